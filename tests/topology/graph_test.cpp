#include "topology/graph.hpp"

#include <doctest/doctest.h>

#include <limits>

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

}  // namespace
}  // namespace fourfold
