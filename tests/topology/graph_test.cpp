#include "topology/graph.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "tests/support/topology.hpp"

namespace fourfold {
namespace {

const LinkSpec port{.bandwidth = 25_GBps, .latency = 5_us, .efficiency = 1.0};

std::string refusal(const GraphDraft& draft) {
    const auto graph = seal(draft);
    REQUIRE(!graph);
    return graph.error().where + ": " + graph.error().what;
}

// Two devices with one link each way; `there` is the spec of a -> b.
GraphDraft pair_with(const LinkSpec& there) {
    GraphDraft draft;
    const VertexId a = draft.add_device("a", 0);
    const VertexId b = draft.add_device("b", 1);
    draft.add_link(a, b, there);
    draft.add_link(b, a, port);
    return draft;
}

TEST_CASE("a sealed graph knows its vertices, links and devices") {
    GraphDraft draft;
    const VertexId hub = draft.add_switch("hub");
    const VertexId a = draft.add_device("a", 0);
    const VertexId b = draft.add_device("b", 7);
    draft.add_cable(a, hub, port);
    draft.add_cable(b, hub, port);
    const auto graph = seal(draft);
    REQUIRE(graph);
    CHECK(graph->vertices().size() == 3);
    CHECK(graph->links().size() == 4);
    REQUIRE(graph->devices().size() == 2);
    CHECK(graph->devices()[0] == a);  // numbered as added, whatever lies between
    CHECK(graph->devices()[1] == b);
    CHECK(graph->node_of(DeviceId{1}) == 7);
    CHECK(graph->name(LinkId{0}) == "a -> hub");
    CHECK(graph->name(LinkId{3}) == "hub -> b");
    CHECK((*graph)[LinkId{0}].rate == 25_GBps);
    CHECK(graph->find("hub") == hub);
}

TEST_CASE("a graph of one device needs no link") {
    GraphDraft draft;
    draft.add_device("a", 0);
    CHECK(seal(draft));
}

TEST_CASE("a link's rate is what a transport reaches of its bandwidth") {
    LinkSpec spec = port;
    spec.efficiency = 0.7;
    const auto graph = seal(pair_with(spec));
    REQUIRE(graph);
    // 0.7 has no exact double, and people still expect 17.5 GB/s and not a byte less.
    CHECK((*graph)[LinkId{0}].rate == BytesPerSecond{17'500'000'000});
    spec.bandwidth = BytesPerSecond{15};
    CHECK((*seal(pair_with(spec)))[LinkId{0}].rate == BytesPerSecond{10});  // 10.5, rounded down
}

TEST_CASE("an unknown vertex is told the closest name") {
    const auto graph = seal(pair_with(port));
    REQUIRE(graph);
    CHECK(graph->find("hub").error().what == "unknown vertex 'hub'; known: a, b");

    GraphDraft draft;
    const VertexId hub = draft.add_switch("switch");
    for (int i = 0; i < 30; ++i) {
        draft.add_cable(draft.add_device("device" + std::to_string(i), 0), hub, port);
    }
    const auto star = seal(draft);
    REQUIRE(star);
    CHECK(star->find("swicth").error().what == "unknown vertex 'swicth'; did you mean 'switch'?");
    CHECK(star->find("n").error().what ==
          "unknown vertex 'n'; names are like 'switch' and 'device29'");
}

TEST_CASE("a graph without devices is refused") {
    GraphDraft draft;
    draft.add_switch("hub");
    CHECK(refusal(draft) == "vertices: there is no device");
    CHECK(refusal({}) == "vertices: there is no device");
}

TEST_CASE("two vertices of one name are refused") {
    GraphDraft draft = pair_with(port);
    draft.add_switch("a");
    CHECK(refusal(draft) == "vertices: two vertices are named 'a'; names must differ");
}

TEST_CASE("a link that cannot be is refused") {
    LinkSpec spec = port;
    spec.bandwidth = {0};
    CHECK(refusal(pair_with(spec)) ==
          "links: link 'a -> b': bandwidth 0 B/s is not more than zero");
    spec.bandwidth = {-1500};
    CHECK(refusal(pair_with(spec)) ==
          "links: link 'a -> b': bandwidth -1.5 kB/s is not more than zero");
    spec = port;
    spec.latency = Duration(-1);
    CHECK(refusal(pair_with(spec)) == "links: link 'a -> b': latency -1 ps is negative");
    // Half of duration_limit is 640.5 h: two such links are still a duration.
    spec.latency = Duration(std::int64_t{1} << 61);
    CHECK(seal(pair_with(spec)));
    spec.latency += 1_ps;
    CHECK(refusal(pair_with(spec)) ==
          "links: link 'a -> b': latency 640.5 h is too long; at most 640.5 h in a graph of 2 "
          "vertices");

    GraphDraft loop = pair_with(port);
    loop.add_link(VertexId{1}, VertexId{1}, port);
    CHECK(refusal(loop) == "links: link 'b -> b': it leads from a vertex to itself");
}

TEST_CASE("an efficiency of 0 or below, or above 1, is refused") {
    LinkSpec spec = port;
    spec.efficiency = 0;
    CHECK(refusal(pair_with(spec)) ==
          "links: link 'a -> b': efficiency 0 is not more than 0 and at most 1");
    spec.efficiency = 1.5;
    CHECK(refusal(pair_with(spec)) ==
          "links: link 'a -> b': efficiency 1.5 is not more than 0 and at most 1");
    spec.efficiency = std::numeric_limits<double>::quiet_NaN();
    CHECK(refusal(pair_with(spec)) ==
          "links: link 'a -> b': efficiency nan is not more than 0 and at most 1");
    spec.efficiency = 1e-12;
    CHECK(refusal(pair_with(spec)) ==
          "links: link 'a -> b': efficiency 1e-12 leaves less than 1 B/s of 25 GB/s");
}

TEST_CASE("devices that cannot reach each other are named, in the direction that is missing") {
    GraphDraft draft;
    const VertexId a = draft.add_device("a", 0);
    const VertexId b = draft.add_device("b", 1);
    const VertexId c = draft.add_device("c", 2);
    draft.add_cable(a, b, port);
    CHECK(refusal(draft) ==
          "links: no route from device 'a' to device 'c'; every device must "
          "reach every other");
    draft.add_link(a, c, port);
    CHECK(refusal(draft) ==
          "links: no route from device 'c' to device 'a'; every device must "
          "reach every other");
    draft.links.pop_back();
    draft.add_link(c, a, port);
    CHECK(refusal(draft) ==
          "links: no route from device 'a' to device 'c'; every device must "
          "reach every other");
    draft.add_link(b, c, port);
    CHECK(seal(draft));
}

TEST_CASE("a switch that nothing leads to does no harm") {
    GraphDraft draft = pair_with(port);
    draft.add_switch("spare");
    CHECK(seal(draft));
}

/// "a -> hub: 25 GB/s": the rate of every link.
std::string rates(const Graph& graph) {
    std::string text;
    for (const LinkId id : ids<LinkId>(graph.links().size())) {
        text += graph.name(id) + ": " + to_text(graph[id].rate) + "\n";
    }
    return text;
}

TEST_CASE("rates are changed within nodes or across them, by what links end at") {
    // Two nodes of two devices: a switch in each, one for all, and a cable between two devices of
    // one node and between two of different ones. Up to the hub all is across.
    GraphDraft draft;
    const VertexId a = draft.add_device("a", 0), b = draft.add_device("b", 0);
    const VertexId c = draft.add_device("c", 1), d = draft.add_device("d", 1);
    const VertexId inner = draft.add_switch("inner"), hub = draft.add_switch("hub");
    draft.add_link(a, inner, port);
    draft.add_link(inner, b, port);
    draft.add_link(a, b, port);
    draft.add_link(a, hub, port);
    draft.add_link(c, d, port);
    draft.add_link(d, c, port);
    draft.add_link(b, c, port);
    draft.add_link(hub, d, port);
    draft.add_link(d, hub, port);
    draft.add_link(hub, a, port);
    const auto graph = seal(draft);
    REQUIRE(graph);
    CHECK(rates(with_rates(*graph, 2, 1)) ==
          "a -> inner: 50 GB/s\n"
          "inner -> b: 50 GB/s\n"
          "a -> b: 50 GB/s\n"
          "a -> hub: 25 GB/s\n"
          "c -> d: 50 GB/s\n"
          "d -> c: 50 GB/s\n"
          "b -> c: 25 GB/s\n"
          "hub -> d: 25 GB/s\n"
          "d -> hub: 25 GB/s\n"
          "hub -> a: 25 GB/s\n");
    CHECK(rates(with_rates(*graph, 1, 0.5)) ==
          "a -> inner: 25 GB/s\n"
          "inner -> b: 25 GB/s\n"
          "a -> b: 25 GB/s\n"
          "a -> hub: 12.5 GB/s\n"
          "c -> d: 25 GB/s\n"
          "d -> c: 25 GB/s\n"
          "b -> c: 12.5 GB/s\n"
          "hub -> d: 12.5 GB/s\n"
          "d -> hub: 12.5 GB/s\n"
          "hub -> a: 12.5 GB/s\n");
    CHECK(rates(with_rates(*graph, 1, 1)) == rates(*graph));
}

TEST_CASE("links between switches are across nodes") {
    GraphDraft draft;
    const VertexId a = draft.add_device("a", 0), b = draft.add_device("b", 1);
    const VertexId leaf = draft.add_switch("leaf0"), other = draft.add_switch("leaf1");
    draft.add_cable(a, leaf, port);
    draft.add_cable(leaf, other, port);
    draft.add_cable(other, b, port);
    const auto graph = seal(draft);
    REQUIRE(graph);
    const Graph faster = with_rates(*graph, 3, 2);
    for (const Link& link : faster.links()) CHECK(link.rate == 50_GBps);
}

TEST_CASE("a graph with other rates keeps all else") {
    GraphDraft draft = pair_with({.bandwidth = 10_GBps, .latency = 3_us, .efficiency = 0.5});
    draft.blocks.sizes = {1, 2};
    const auto graph = seal(draft);
    REQUIRE(graph);
    const Graph faster = with_rates(*graph, 1, 1.5);
    CHECK(faster.vertices().size() == 2);
    CHECK(faster.devices().size() == 2);
    CHECK(faster.node_of(DeviceId{1}) == 1);
    CHECK(std::ranges::equal(faster.blocks(), graph->blocks()));
    CHECK(faster[LinkId{0}].spec.latency == 3_us);
    CHECK(faster[LinkId{0}].spec.efficiency == 0.5);
    CHECK(faster[LinkId{0}].rate == BytesPerSecond{7'500'000'000});
}

TEST_CASE("a link has a place among those out of its start, and among those into its end") {
    const Graph graph = cluster_of(2, 2, "switch");
    std::vector<std::string> places;
    for (const LinkId id : ids<LinkId>(graph.links().size())) {
        if (graph[graph[id].from].name != "node1.device1") continue;
        places.push_back(fmt::format("{}: {} {}", graph.name(id), graph.place_at_start(id),
                                     graph.place_at_end(id)));
    }
    CHECK(places == std::vector<std::string>{"node1.device1 -> node1.switch: 0 1",
                                             "node1.device1 -> switch: 1 3"});
}

}  // namespace
}  // namespace fourfold
