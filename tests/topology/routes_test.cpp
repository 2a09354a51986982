#include "topology/routes.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <boost/random/mersenne_twister.hpp>
#include <boost/random/uniform_int_distribution.hpp>
#include <cstdlib>
#include <initializer_list>
#include <map>

#include "topology/shapes/shape.hpp"

namespace fourfold {
namespace {

constexpr BytesPerSecond port_rate = 25_GBps;

struct Cable {
    const char* a;
    const char* b;
    Duration latency = 1_us;
};

// Names that begin with 's' are switches.
Graph drawn(std::initializer_list<const char*> names, std::initializer_list<Cable> cables) {
    GraphDraft draft;
    std::map<std::string_view, VertexId> vertices;
    for (const char* name : names) {
        vertices[name] = name[0] == 's' ? draft.add_switch(name) : draft.add_device(name, 0);
    }
    for (const Cable& cable : cables) {
        draft.add_cable(vertices.at(cable.a), vertices.at(cable.b),
                        {.bandwidth = port_rate, .latency = cable.latency, .efficiency = 1.0});
    }
    auto graph = seal(std::move(draft));
    REQUIRE(graph);
    return *std::move(graph);
}

Graph shaped(std::string_view shape, std::uint32_t endpoints, const ShapeParameters& parameters,
             const Routing& routing = {}) {
    GraphDraft draft;
    draft.routing = routing;
    std::vector<VertexId> devices;
    for (std::uint32_t i = 0; i < endpoints; ++i) {
        devices.push_back(draft.add_device(fmt::format("e{}", i), i));
    }
    const LinkSpec port{.bandwidth = port_rate, .latency = 1_us, .efficiency = 1.0};
    REQUIRE(join(**find_shape(shape), devices, port, parameters, "", draft));
    auto graph = seal(std::move(draft));
    REQUIRE(graph);
    return *std::move(graph);
}

DeviceId device(const Graph& graph, std::string_view name) {
    return graph[*graph.find(name)].device;
}

// "all" or "1/4", or the part in units of 2^-32.
std::string part_text(std::uint64_t part) {
    if (part == Share::whole) return "all";
    if (Share::whole % part == 0) return fmt::format("1/{}", Share::whole / part);
    return fmt::format("{}", part);
}

// "2 us: a -> b -> c" and below it a line for each share.
std::string routed(const Graph& graph, std::string_view from, std::string_view to) {
    Routes routes(graph);
    const Route& route = routes.route(device(graph, from), device(graph, to));
    std::string text = fmt::format("{}: {}", to_text(route.latency), from);
    for (const LinkId link : route.path) text += " -> " + graph[graph[link].to].name;
    for (const Share& share : route.shares) {
        text += fmt::format("\n{}: {}", graph.name(share.link), part_text(share.part));
    }
    return text;
}

TEST_CASE("a lone path carries all of a transfer on each of its links") {
    const Graph graph = drawn({"a", "b", "c"}, {{"a", "b"}, {"b", "c"}});
    CHECK(routed(graph, "a", "b") == "1 us: a -> b\na -> b: all");
    CHECK(routed(graph, "a", "c") == "2 us: a -> b -> c\na -> b: all\nb -> c: all");
    CHECK(routed(graph, "c", "a") == "2 us: c -> b -> a\nb -> a: all\nc -> b: all");
}

TEST_CASE("least latency wins over fewest links") {
    const Graph graph = drawn({"a", "b", "c"}, {{"a", "c", 3_us}, {"a", "b"}, {"b", "c"}});
    CHECK(routed(graph, "a", "c") == "2 us: a -> b -> c\na -> b: all\nb -> c: all");
}

TEST_CASE("of equal latencies the fewest links win") {
    const Graph graph = drawn({"a", "b", "c"}, {{"a", "b"}, {"b", "c"}, {"a", "c", 2_us}});
    CHECK(routed(graph, "a", "c") == "2 us: a -> c\na -> c: all");
}

TEST_CASE("links without latency are still counted") {
    const Graph graph =
        drawn({"a", "b", "c", "d"},
              {{"a", "b", 0_ps}, {"b", "d", 0_ps}, {"d", "c", 0_ps}, {"a", "c", 0_ps}});
    CHECK(routed(graph, "a", "c") == "0 s: a -> c\na -> c: all");
    CHECK(routed(graph, "a", "d") ==
          "0 s: a -> c -> d\na -> b: 1/2\nb -> d: 1/2\nc -> d: 1/2\na -> c: 1/2");
}

TEST_CASE("a ring with one slow cable is travelled the other way round") {
    const Graph graph =
        drawn({"a", "b", "c", "d"}, {{"a", "b", 10_us}, {"b", "c"}, {"c", "d"}, {"d", "a"}});
    CHECK(routed(graph, "a", "b") ==
          "3 us: a -> d -> c -> b\nc -> b: all\nd -> c: all\na -> d: all");
}

TEST_CASE("a transfer across an even ring splits to both ways") {
    const Graph graph = shaped("ring", 4, {});
    CHECK(routed(graph, "e0", "e2") ==
          "2 us: e0 -> e1 -> e2\n"
          "e0 -> e1: 1/2\ne1 -> e2: 1/2\ne3 -> e2: 1/2\ne0 -> e3: 1/2");
    // Destination 3 is odd: the second choice.
    CHECK(routed(graph, "e1", "e3") ==
          "2 us: e1 -> e2 -> e3\n"
          "e1 -> e0: 1/2\ne1 -> e2: 1/2\ne2 -> e3: 1/2\ne0 -> e3: 1/2");
}

TEST_CASE("parallel links share a transfer") {
    const Graph graph = drawn({"a", "b"}, {{"a", "b"}, {"a", "b"}, {"a", "b", 2_us}});
    CHECK(routed(graph, "a", "b") == "1 us: a -> b\na -> b: 1/2\na -> b: 1/2");
}

TEST_CASE("a fork of three is rounded up, and what meets again is all") {
    const Graph graph = drawn({"a", "b", "sx", "sy", "sz", "sw"}, {{"a", "sx"},
                                                                   {"a", "sy"},
                                                                   {"a", "sz"},
                                                                   {"sx", "sw"},
                                                                   {"sy", "sw"},
                                                                   {"sz", "sw"},
                                                                   {"sw", "b"}});
    // 2^32 / 3 = 1431655765.33; b is device 1: the second choice.
    CHECK(routed(graph, "a", "b") ==
          "3 us: a -> sy -> sw -> b\n"
          "a -> sx: 1431655766\na -> sy: 1431655766\na -> sz: 1431655766\n"
          "sx -> sw: 1431655766\nsy -> sw: 1431655766\nsz -> sw: 1431655766\n"
          "sw -> b: all");
}

TEST_CASE("three sixths that meet are a half") {
    //       +-- su -- s1|s2|s3 -- sm --+        su forks to three that meet again in sm
    //       a                          b
    //       +-- sl ----- sk ----- sj --+
    const Graph graph =
        drawn({"a", "b", "sl", "sk", "sj", "su", "s1", "s2", "s3", "sm"}, {{"a", "sl"},
                                                                           {"sl", "sk"},
                                                                           {"sk", "sj"},
                                                                           {"sj", "b"},
                                                                           {"a", "su"},
                                                                           {"su", "s1"},
                                                                           {"su", "s2"},
                                                                           {"su", "s3"},
                                                                           {"s1", "sm"},
                                                                           {"s2", "sm"},
                                                                           {"s3", "sm"},
                                                                           {"sm", "b"}});
    // A sixth: 715827882.67.
    CHECK(routed(graph, "a", "b") ==
          "4 us: a -> su -> s2 -> sm -> b\n"
          "a -> sl: 1/2\nsl -> sk: 1/2\nsk -> sj: 1/2\nsj -> b: 1/2\na -> su: 1/2\n"
          "su -> s1: 715827883\nsu -> s2: 715827883\nsu -> s3: 715827883\n"
          "s1 -> sm: 715827883\ns2 -> sm: 715827883\ns3 -> sm: 715827883\n"
          "sm -> b: 1/2");
}

TEST_CASE("bytes on a link are rounded up and never more than the transfer") {
    const Share third{LinkId{0}, 1431655766};
    CHECK(on_link(0_B, third) == 0_B);
    CHECK(on_link(1_B, third) == 1_B);
    CHECK(on_link(3_B, third) == 2_B);  // 1.0000000005
    CHECK(on_link(100_B, third) == 34_B);
    const Share all{LinkId{0}, Share::whole};
    CHECK(on_link(1_B, all) == 1_B);
    CHECK(on_link(64_MiB, all) == 64_MiB);
    constexpr Bytes most{std::int64_t{1} << 62};
    CHECK(on_link(most, all) == most);
    CHECK(on_link(most, {LinkId{0}, Share::whole / 2}) == Bytes{std::int64_t{1} << 61});
}

TEST_CASE("a fat tree spreads a transfer over all spines") {
    const Graph tree = shaped("fat_tree", 8, {.leaf_ports = 4});
    CHECK(routed(tree, "e0", "e3") ==
          "2 us: e0 -> leaf0 -> e3\ne0 -> leaf0: all\nleaf0 -> e3: all");
    CHECK(routed(tree, "e0", "e6") ==
          "4 us: e0 -> leaf0 -> spine2 -> leaf1 -> e6\n"
          "e0 -> leaf0: all\nleaf1 -> e6: all\n"
          "leaf0 -> spine0: 1/4\nleaf0 -> spine1: 1/4\nleaf0 -> spine2: 1/4\nleaf0 -> spine3: 1/4\n"
          "spine0 -> leaf1: 1/4\nspine1 -> leaf1: 1/4\nspine2 -> leaf1: 1/4\nspine3 -> leaf1: 1/4");
}

TEST_CASE("on a torus the even split is per fork, not per path") {
    // 4 x 4, from (0, 0) to (1, 2): y goes either way, x first, between or last. At e0: e1, e4,
    // e12.
    const Graph torus = shaped("torus", 16, {.dimensions = {4, 4}});
    Routes routes(torus);
    const Route& route = routes.route(DeviceId{0}, DeviceId{9});
    CHECK(route.latency == 3_us);
    std::map<std::string, std::string> parts;
    for (const Share& share : route.shares) parts[torus.name(share.link)] = part_text(share.part);
    CHECK(parts["e0 -> e1"] == "1431655766");  // a third
    CHECK(parts["e1 -> e5"] == "715827883");   // half of it: 715827882.67
    CHECK(parts["e4 -> e5"] == "715827883");
    CHECK(parts["e5 -> e9"] == "1431655766");  // two sixths meet in e5
    CHECK(parts["e8 -> e9"] == "1431655766");  // and two in e8
    CHECK(parts["e13 -> e9"] == "1431655766");
}

TEST_CASE("the hybrid cube mesh of a DGX-1 goes through a neighbour where it must") {
    // NVIDIA DGX-1 with V100 white paper, fig. 4: two squares with diagonals, joined corner to
    // corner; some pairs have two cables.
    const Graph mesh =
        drawn({"g0", "g1", "g2", "g3", "g4", "g5", "g6", "g7"},
              {{"g0", "g1"}, {"g0", "g2"}, {"g0", "g3"}, {"g0", "g3"}, {"g0", "g4"}, {"g0", "g4"},
               {"g1", "g2"}, {"g1", "g2"}, {"g1", "g3"}, {"g1", "g5"}, {"g1", "g5"}, {"g2", "g3"},
               {"g2", "g3"}, {"g2", "g6"}, {"g3", "g7"}, {"g4", "g5"}, {"g4", "g6"}, {"g4", "g7"},
               {"g4", "g7"}, {"g5", "g6"}, {"g5", "g6"}, {"g5", "g7"}, {"g6", "g7"}, {"g6", "g7"}});
    CHECK(routed(mesh, "g0", "g1") == "1 us: g0 -> g1\ng0 -> g1: all");
    CHECK(routed(mesh, "g0", "g3") == "1 us: g0 -> g3\ng0 -> g3: 1/2\ng0 -> g3: 1/2");
    // g0 to g6: over g2, or over g4 by either of its two cables. Three ways out, a third each;
    // 6 mod 3 is the first of them.
    CHECK(routed(mesh, "g0", "g6") ==
          "2 us: g0 -> g2 -> g6\n"
          "g0 -> g2: 1431655766\ng0 -> g4: 1431655766\ng0 -> g4: 1431655766\n"
          "g2 -> g6: 1431655766\ng4 -> g6: 2863311531");
}

// ------------------------------------------------------------------------------------ properties

struct Dice {
    boost::random::mt19937 generator;

    std::uint32_t operator()(std::uint32_t low, std::uint32_t high) {
        return boost::random::uniform_int_distribution<std::uint32_t>(low, high)(generator);
    }
};

// A ring through all, so that it is connected, and as many links again in one direction only; few
// different latencies, so that many routes are equally short.
Graph random_graph(Dice& dice) {
    GraphDraft draft;
    const std::uint32_t count = dice(2, 14);
    for (std::uint32_t i = 0; i < count; ++i) {
        const std::string name = fmt::format("v{}", i);
        if (i < 2 || dice(0, 2) > 0) {
            draft.add_device(name, i);
        } else {
            draft.add_switch(name);
        }
    }
    const auto link = [&](std::uint32_t from, std::uint32_t to) {
        const Duration latency = 1_us * static_cast<std::int64_t>(dice(0, 2));
        draft.add_link(VertexId{from}, VertexId{to},
                       {.bandwidth = port_rate, .latency = latency, .efficiency = 1.0});
    };
    for (std::uint32_t i = 0; i < count; ++i) link(i, (i + 1) % count);
    for (std::uint32_t i = dice(0, 3 * count); i > 0; --i) {
        const std::uint32_t from = dice(0, count - 1), to = dice(0, count - 1);
        if (from != to) link(from, to);
    }
    auto graph = seal(std::move(draft));
    REQUIRE(graph);
    return *std::move(graph);
}

// Devices at few switches, most with one or two ports of few kinds, so that many have the same;
// some are joined to another device beside them.
Graph random_hosts(Dice& dice, const Routing& routing) {
    GraphDraft draft;
    draft.routing = routing;
    const auto cable = [&](VertexId a, VertexId b) {
        const Duration latency = 1_us * static_cast<std::int64_t>(dice(1, 2));
        draft.add_cable(a, b, {.bandwidth = port_rate, .latency = latency, .efficiency = 1.0});
    };
    std::vector<VertexId> switches, hosts;
    for (std::uint32_t i = 0; i < 4; ++i) {
        switches.push_back(draft.add_switch(fmt::format("s{}", i)));
        if (i > 0) cable(switches[i - 1], switches[i]);
    }
    if (dice(0, 1) > 0) cable(switches[0], switches[3]);
    for (std::uint32_t i = 0; i < 12; ++i) {
        hosts.push_back(draft.add_device(fmt::format("h{}", i), i));
        for (std::uint32_t ports = dice(1, 2); ports > 0; --ports) {
            cable(hosts[i], switches[dice(0, 3)]);
        }
        if (dice(0, 9) == 0 && i > 0) cable(hosts[i], hosts[dice(0, i - 1)]);
    }
    auto graph = seal(std::move(draft));
    REQUIRE(graph);
    return *std::move(graph);
}

using Costs = std::vector<std::vector<Cost>>;

// Floyd 1962, Algorithm 97: tries every vertex as a stop between every two others.
Costs all_costs(const Graph& graph) {
    const std::size_t count = graph.vertices().size();
    Costs costs(count, std::vector<Cost>(count, Cost{duration_limit / 4, 0}));
    for (std::size_t i = 0; i < count; ++i) costs[i][i] = {};
    for (const Link& link : graph.links()) {
        Cost& direct = costs[link.from.value][link.to.value];
        direct = std::min(direct, Cost{link.spec.latency, 1});
    }
    for (std::size_t middle = 0; middle < count; ++middle) {
        for (std::size_t from = 0; from < count; ++from) {
            for (std::size_t to = 0; to < count; ++to) {
                costs[from][to] =
                    std::min(costs[from][to], costs[from][middle] + costs[middle][to]);
            }
        }
    }
    return costs;
}

// What the shares must be, in exact fractions too small to overflow a double's 53 bits often:
// compared with a tolerance.
std::map<LinkId, double> expected_shares(const Graph& graph, const Costs& costs, VertexId from,
                                         VertexId to) {
    const auto on_route = [&](const Link& link) {
        return costs[from.value][link.from.value] + Cost{link.spec.latency, 1} +
                   costs[link.to.value][to.value] ==
               costs[from.value][to.value];
    };
    std::vector<VertexId> order;
    for (const VertexId vertex : ids<VertexId>(graph.vertices().size())) order.push_back(vertex);
    std::ranges::sort(order, {}, [&](VertexId vertex) { return costs[from.value][vertex.value]; });
    std::vector<double> inflow(graph.vertices().size(), 0.0);
    inflow[from.value] = 1;
    std::map<LinkId, double> shares;
    for (const VertexId vertex : order) {
        std::vector<LinkId> choices;
        for (const LinkId id : ids<LinkId>(graph.links().size())) {
            if (graph[id].from == vertex && on_route(graph[id])) choices.push_back(id);
        }
        for (const LinkId id : choices) {
            shares[id] = inflow[vertex.value] / static_cast<double>(choices.size());
            inflow[graph[id].to.value] += shares[id];
        }
    }
    return shares;
}

void check_path(const Graph& graph, const Route& route, VertexId from, VertexId to) {
    VertexId at = from;
    Duration latency{};
    for (const LinkId link : route.path) {
        CHECK(graph[link].from == at);
        at = graph[link].to;
        latency += graph[link].spec.latency;
        CHECK(std::ranges::find(route.shares, link, &Share::link) != route.shares.end());
    }
    CHECK(at == to);
    CHECK(latency == route.latency);
}

// What enters a vertex leaves it, but for less than one unit of 2^-32 per link.
void check_conserved(const Graph& graph, const Route& route, VertexId from, VertexId to) {
    std::vector<std::int64_t> surplus(graph.vertices().size(), 0), degree(surplus);
    surplus[from.value] += static_cast<std::int64_t>(Share::whole);
    surplus[to.value] -= static_cast<std::int64_t>(Share::whole);
    for (const Share& share : route.shares) {
        const Link& link = graph[share.link];
        surplus[link.to.value] += static_cast<std::int64_t>(share.part);
        surplus[link.from.value] -= static_cast<std::int64_t>(share.part);
        ++degree[link.to.value];
        ++degree[link.from.value];
    }
    for (std::size_t vertex = 0; vertex < surplus.size(); ++vertex) {
        CHECK(std::abs(surplus[vertex]) <= degree[vertex]);
    }
}

TEST_CASE("on random graphs routes are shortest, shares are conserved and split evenly") {
    for (std::uint32_t seed = 1; seed <= 300; ++seed) {
        CAPTURE(seed);
        Dice dice{boost::random::mt19937(seed)};
        const Graph graph = random_graph(dice);
        const Costs costs = all_costs(graph);
        Routes routes(graph);
        const auto devices = static_cast<std::uint32_t>(graph.devices().size());
        for (int asked = 0; asked < 40; ++asked) {
            const DeviceId source{dice(0, devices - 1)}, destination{dice(0, devices - 1)};
            if (source == destination) continue;
            const VertexId from = graph.devices()[source.value];
            const VertexId to = graph.devices()[destination.value];
            CAPTURE(graph[from].name);
            CAPTURE(graph[to].name);
            const Route& route = routes.route(source, destination);
            REQUIRE(route.latency == costs[from.value][to.value].latency);
            REQUIRE(route.path.size() == costs[from.value][to.value].links);
            check_path(graph, route, from, to);
            check_conserved(graph, route, from, to);
            const auto expected = expected_shares(graph, costs, from, to);
            REQUIRE(route.shares.size() == expected.size());
            REQUIRE(std::ranges::is_sorted(route.shares, {}, &Share::link));
            for (const Share& share : route.shares) {
                const double exact = expected.at(share.link) * static_cast<double>(Share::whole);
                CHECK(static_cast<double>(share.part) >= exact - 1e-3);
                CHECK(static_cast<double>(share.part) < exact + 1 + 1e-3);
            }
        }
    }
}

// Of two devices with the same ports the second is told the routes of the first.
void check_asked_before(const Graph& graph) {
    Routes all(graph);
    for (const DeviceId from : ids<DeviceId>(graph.devices().size())) {
        for (const DeviceId to : ids<DeviceId>(graph.devices().size())) {
            if (from == to) continue;
            Routes fresh(graph);
            const Route& one = fresh.route(from, to);
            CHECK(std::ranges::equal(one.path, all.path(from, to)));
            const Route& other = all.route(from, to);
            CHECK(one.path == other.path);
            CHECK(one.latency == other.latency);
            CHECK(std::ranges::equal(one.shares, other.shares, [](Share a, Share b) {
                return a.link == b.link && a.part == b.part;
            }));
        }
    }
}

TEST_CASE("a route does not depend on what was asked before") {
    Dice dice{boost::random::mt19937(7)};
    for (int graphs = 0; graphs < 20; ++graphs) {
        CAPTURE(graphs);
        check_asked_before(random_graph(dice));
        check_asked_before(random_hosts(dice, {}));
        check_asked_before(random_hosts(dice, {.kind = Routing::Kind::ecmp, .seed = dice(0, 99)}));
    }
}

// ------------------------------------------------------------------------------------------ ecmp

constexpr Routing hashed(std::uint64_t seed) { return {.kind = Routing::Kind::ecmp, .seed = seed}; }

// 64 endpoints of 8 leaves, 8 spines: 8 equally short paths between leaves.
Graph eight_spines(const Routing& routing) {
    return shaped("fat_tree", 64, {.leaf_ports = 8}, routing);
}

TEST_CASE("with ecmp all that a pair sends takes one path, and it is a shortest one") {
    const Graph graph = eight_spines(hashed(1)), even = eight_spines({});
    Routes routes(graph), balanced(even);
    for (const DeviceId from : ids<DeviceId>(64)) {
        for (const DeviceId to : ids<DeviceId>(64)) {
            if (from == to) continue;
            const Route& route = routes.route(from, to);
            VertexId at = graph.devices()[from.value];
            Duration latency{};
            for (const LinkId link : route.path) {
                REQUIRE(graph[link].from == at);
                at = graph[link].to;
                latency += graph[link].spec.latency;
            }
            CHECK(at == graph.devices()[to.value]);
            CHECK(latency == route.latency);
            CHECK(route.latency == balanced.route(from, to).latency);
            CHECK(route.path.size() == balanced.route(from, to).path.size());
            REQUIRE(route.shares.size() == route.path.size());
            for (const Share& share : route.shares) {
                CHECK(share.part == Share::whole);
                CHECK(std::ranges::find(route.path, share.link) != route.path.end());
            }
        }
    }
}

TEST_CASE("ecmp spreads many pairs over all spines, and neither way back nor seed repeat it") {
    const Graph graph = eight_spines(hashed(1)), other = eight_spines(hashed(2));
    Routes routes(graph), otherwise(other);
    std::map<std::string, int> passing;
    int same_back = 0, same_seed = 0, pairs = 0;
    const auto spine = [&](Routes& by, DeviceId from, DeviceId to) {
        return graph[graph[by.route(from, to).path[1]].to].name;
    };
    for (const DeviceId from : ids<DeviceId>(64)) {
        for (const DeviceId to : ids<DeviceId>(64)) {
            if (from.value / 8 == to.value / 8) continue;
            const std::string mine = spine(routes, from, to);
            ++pairs;
            ++passing[mine];
            same_back += mine == spine(routes, to, from) ? 1 : 0;
            same_seed += mine == spine(otherwise, from, to) ? 1 : 0;
        }
    }
    // 64 * 56 = 3,584 pairs, 448 for each spine: a fair hash stays within 4 standard deviations,
    // sqrt(3584 * 1/8 * 7/8) = 19.8; an eighth of the pairs meet again by chance.
    CHECK(passing.size() == 8);
    for (const auto& [name, count] : passing) CHECK(std::abs(count - 448) < 80);
    CHECK(std::abs(same_back - pairs / 8) < 160);  // pairs are counted in both directions
    CHECK(std::abs(same_seed - pairs / 8) < 80);
}

TEST_CASE("ecmp's hash is the documented one, on every machine") {
    // e0 is vertex 0 and forks to e1 and e3. The digits are from a second implementation, whose
    // splitmix64 gives e220a8397b1dcdaf from state 0, as Vigna's does.
    const auto path = [](std::uint64_t seed) {
        const Graph graph = shaped("ring", 4, {}, hashed(seed));
        return routed(graph, "e0", "e2");
    };
    std::string ways;
    for (std::uint64_t seed = 0; seed < 12; ++seed)
        ways += path(seed)[std::string("2 us: e0 -> e").size()];
    CHECK(ways == "313113331131");
}

TEST_CASE("with ecmp a graph promises no likeness") {
    CHECK(eight_spines(hashed(0)).blocks().empty());
    CHECK(with_rates(eight_spines(hashed(3)), 2, 2).routing() == hashed(3));
}

}  // namespace
}  // namespace fourfold
