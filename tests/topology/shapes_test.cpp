#include <doctest/doctest.h>
#include <fmt/format.h>

#include <limits>
#include <map>
#include <string>
#include <utility>

#include "topology/routes.hpp"
#include "topology/shapes/shape.hpp"

namespace fourfold {
namespace {

const LinkSpec port{.bandwidth = 25_GBps, .latency = 5_us, .efficiency = 1.0};

Result<GraphDraft> joined(std::string_view shape, std::uint32_t endpoints,
                          const ShapeParameters& parameters = {}, const LinkSpec& link = port) {
    GraphDraft draft;
    std::vector<VertexId> devices;
    for (std::uint32_t i = 0; i < endpoints; ++i) {
        devices.push_back(draft.add_device(fmt::format("e{}", i), i));
    }
    const auto found = find_shape(shape);
    REQUIRE(found);
    if (auto done = join(**found, devices, link, parameters, "", draft); !done) {
        return tl::unexpected(done.error());
    }
    return draft;
}

struct Size {
    std::size_t vertices, links;
    friend bool operator==(const Size&, const Size&) = default;
};

Size size_of(std::string_view shape, std::uint32_t endpoints,
             const ShapeParameters& parameters = {}) {
    const auto draft = joined(shape, endpoints, parameters);
    REQUIRE(draft);
    return {draft->vertices.size(), draft->links.size()};
}

std::string refusal(std::string_view shape, std::uint32_t endpoints,
                    const ShapeParameters& parameters, const LinkSpec& link = port) {
    const auto draft = joined(shape, endpoints, parameters, link);
    REQUIRE(!draft);
    return draft.error().where + ": " + draft.error().what;
}

// "e0 -> e1 -> e2": the path of a whole message, by vertex.
std::string way(const Graph& graph, std::uint32_t from, std::uint32_t to) {
    Routes routes(graph);
    std::string text = fmt::format("e{}", from);
    for (const LinkId link : routes.route(DeviceId{from}, DeviceId{to}).path) {
        text += " -> " + graph[graph[link].to].name;
    }
    return text;
}

Graph graph_of(std::string_view shape, std::uint32_t endpoints,
               const ShapeParameters& parameters = {}) {
    auto graph = seal(*joined(shape, endpoints, parameters));
    REQUIRE(graph);
    return *std::move(graph);
}

TEST_CASE("every shape of the catalog is found by its name, has a summary and a picture") {
    REQUIRE(!shapes().empty());
    for (const Shape* shape : shapes()) {
        CAPTURE(shape->name);
        CHECK(find_shape(shape->name) == shape);
        CHECK(!shape->summary.empty());
        CHECK(shape->picture.starts_with('\n'));
        for (const ShapeParameter& each : shape->parameters) {
            CHECK(shape->takes(each.name));
            CHECK(!each.meaning.empty());
            CHECK_FALSE(each.is_set({}));
        }
    }
}

TEST_CASE("an unknown shape is told the closest name, or all") {
    CHECK(find_shape("rign").error().what == "unknown shape 'rign'; did you mean 'ring'?");
    CHECK(find_shape("cube").error().what ==
          "unknown shape 'cube'; known: ring, fully_connected, switch, torus, fat_tree, rails, "
          "dragonfly, sites");
}

TEST_CASE("a shape refuses a parameter that it does not take") {
    CHECK(refusal("ring", 4, {.dimensions = {4}}) ==
          "dimensions: shape 'ring' does not take 'dimensions'");
    CHECK(refusal("switch", 4, {.oversubscription = 2}) ==
          "oversubscription: shape 'switch' does not take 'oversubscription'");
    CHECK(refusal("torus", 4, {.dimensions = {4}, .leaf_ports = 8}) ==
          "leaf_ports: shape 'torus' does not take 'leaf_ports'");
}

TEST_CASE("a shape refuses links that cannot be") {
    CHECK(refusal("ring", 4, {}, {.bandwidth = {0}, .latency = 5_us, .efficiency = 1}) ==
          "bandwidth: bandwidth 0 B/s is not more than zero");
}

TEST_CASE("a ring has a cable to the next, and only one between two") {
    CHECK(size_of("ring", 1) == Size{1, 0});
    CHECK(size_of("ring", 2) == Size{2, 2});
    CHECK(size_of("ring", 3) == Size{3, 6});
    CHECK(size_of("ring", 8) == Size{8, 16});
    const Graph ring = graph_of("ring", 5);
    CHECK(way(ring, 0, 2) == "e0 -> e1 -> e2");
    CHECK(way(ring, 0, 3) == "e0 -> e4 -> e3");
    CHECK(way(ring, 4, 0) == "e4 -> e0");
}

TEST_CASE("fully connected endpoints are one link apart") {
    CHECK(size_of("fully_connected", 1) == Size{1, 0});
    CHECK(size_of("fully_connected", 2) == Size{2, 2});
    CHECK(size_of("fully_connected", 8) == Size{8, 56});  // 8 * 7 directed links
    const Graph graph = graph_of("fully_connected", 8);
    CHECK(way(graph, 2, 7) == "e2 -> e7");
    CHECK(refusal("fully_connected", 2049, {}) ==
          "shape: a cable between every two of 2049 endpoints is too many; at most 2048 endpoints");
}

TEST_CASE("a switch is two links wide") {
    CHECK(size_of("switch", 1) == Size{2, 2});
    CHECK(size_of("switch", 8) == Size{9, 16});
    CHECK(way(graph_of("switch", 8), 2, 7) == "e2 -> switch -> e7");
}

TEST_CASE("a torus has a ring per row, one cable per pair in a dimension of two") {
    CHECK(size_of("torus", 1, {.dimensions = {1}}) == Size{1, 0});
    CHECK(size_of("torus", 2, {.dimensions = {2}}) == Size{2, 2});
    CHECK(size_of("torus", 5, {.dimensions = {5}}) == Size{5, 10});
    CHECK(size_of("torus", 6, {.dimensions = {3, 2}}) == Size{6, 12 + 6});
    CHECK(size_of("torus", 16, {.dimensions = {4, 4}}) == Size{16, 64});
    CHECK(size_of("torus", 8, {.dimensions = {2, 2, 2}}) == Size{8, 24});  // a cube
    CHECK(size_of("torus", 64, {.dimensions = {4, 4, 4}}) == Size{64, 64 * 6});
    CHECK(size_of("torus", 4, {.dimensions = {1, 4, 1}}) == Size{4, 8});
}

TEST_CASE("a torus wraps around") {
    // 4 x 4, e(x + 4 y): e0 is (0, 0), e3 is (3, 0), e12 is (0, 3).
    const Graph torus = graph_of("torus", 16, {.dimensions = {4, 4}});
    CHECK(way(torus, 0, 3) == "e0 -> e3");
    CHECK(way(torus, 0, 12) == "e0 -> e12");
    CHECK(way(torus, 5, 6) == "e5 -> e6");
    // (0, 0) to (3, 3): a step back in x and in y, either first, and e15 is odd: the second choice.
    // The cable e12 - e0 of dimension y has the higher number.
    CHECK(way(torus, 0, 15) == "e0 -> e12 -> e15");
    // 4 x 4 x 4: e48 is (0, 0, 3) and e63 (3, 3, 3).
    const Graph cube = graph_of("torus", 64, {.dimensions = {4, 4, 4}});
    CHECK(way(cube, 0, 48) == "e0 -> e48");
    CHECK(way(cube, 48, 0) == "e48 -> e0");
    Routes routes(cube);
    CHECK(routes.route(DeviceId{0}, DeviceId{63}).latency == 3 * 5_us);
}

TEST_CASE("a torus whose dimensions do not fit is refused") {
    CHECK(refusal("torus", 16, {}) ==
          "dimensions: a torus needs 1 to 3 sizes whose product is 16, for example [16]");
    CHECK(refusal("torus", 16, {.dimensions = {2, 2, 2, 2}}) ==
          "dimensions: a torus needs 1 to 3 sizes whose product is 16, for example [16]");
    CHECK(refusal("torus", 16, {.dimensions = {4, 3}}) ==
          "dimensions: 4 x 3 is not the number of endpoints, 16");
    CHECK(refusal("torus", 16, {.dimensions = {-4, -4}}) == "dimensions: size -4 is not positive");
    CHECK(refusal("torus", 16, {.dimensions = {16, 0}}) == "dimensions: size 0 is not positive");
    constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
    CHECK(refusal("torus", 16, {.dimensions = {most, most, 2}}) ==
          "dimensions: 9223372036854775807 x 9223372036854775807 x 2 is not the number of "
          "endpoints, 16");
}

TEST_CASE("a fat tree has as many spines as a leaf has uplinks") {
    // 8 endpoints, 4 to a leaf: 2 leaves, 4 spines; cables 8 + 2 * 4.
    CHECK(size_of("fat_tree", 8, {.leaf_ports = 4}) == Size{8 + 2 + 4, 2 * (8 + 8)});
    // Oversubscription 2: 2 spines; 3: ceil(4 / 3) = 2; 4: 1; 100: still one.
    CHECK(size_of("fat_tree", 8, {.oversubscription = 2, .leaf_ports = 4}) ==
          Size{8 + 2 + 2, 2 * (8 + 4)});
    CHECK(size_of("fat_tree", 8, {.oversubscription = 3, .leaf_ports = 4}) ==
          Size{8 + 2 + 2, 2 * (8 + 4)});
    CHECK(size_of("fat_tree", 8, {.oversubscription = 100, .leaf_ports = 4}) ==
          Size{8 + 2 + 1, 2 * (8 + 2)});
    // 9 endpoints need a third leaf, with all its uplinks.
    CHECK(size_of("fat_tree", 9, {.leaf_ports = 4}) == Size{9 + 3 + 4, 2 * (9 + 12)});
    // 33 / 1.1 is 30.000000000000004 in doubles, or 29.999999999999996: 30 uplinks.
    CHECK(size_of("fat_tree", 34, {.oversubscription = 1.1, .leaf_ports = 33}) ==
          Size{34 + 2 + 30, 2 * (34 + 60)});
    // One leaf holds all: no spine.
    CHECK(size_of("fat_tree", 32) == Size{33, 64});
    CHECK(size_of("fat_tree", 4, {.leaf_ports = std::numeric_limits<std::int64_t>::max()}) ==
          Size{5, 8});
}

TEST_CASE("a fat tree's messages take the spine of their destination") {
    const Graph tree = graph_of("fat_tree", 8, {.leaf_ports = 4});
    CHECK(way(tree, 0, 3) == "e0 -> leaf0 -> e3");
    CHECK(way(tree, 0, 5) == "e0 -> leaf0 -> spine1 -> leaf1 -> e5");  // 5 mod 4
    CHECK(way(tree, 1, 5) == "e1 -> leaf0 -> spine1 -> leaf1 -> e5");
    CHECK(way(tree, 7, 2) == "e7 -> leaf1 -> spine2 -> leaf0 -> e2");
}

TEST_CASE("a fat tree with senseless parameters is refused") {
    CHECK(refusal("fat_tree", 8, {.leaf_ports = 0}) ==
          "leaf_ports: a leaf has at least one port, not 0");
    CHECK(refusal("fat_tree", 8, {.oversubscription = 0.5}) ==
          "oversubscription: oversubscription 0.5 is not a number of at least 1");
    CHECK(refusal("fat_tree", 8, {.oversubscription = std::numeric_limits<double>::infinity()}) ==
          "oversubscription: oversubscription inf is not a number of at least 1");
    CHECK(refusal("fat_tree", 8, {.oversubscription = std::numeric_limits<double>::quiet_NaN()}) ==
          "oversubscription: oversubscription nan is not a number of at least 1");
}

TEST_CASE("a three-level fat tree has pods, and cores above them") {
    // Leaves of 2, pods of 2 leaves: 8 endpoints, 4 leaves, 2 pods of 2 aggregation switches with 2
    // uplinks each, so 2 groups of 2 cores. Cables 8 + 2 * (2 * 2) + 2 * (2 * 2).
    const ShapeParameters pods{.leaf_ports = 2, .levels = 3, .pod_leaves = 2};
    CHECK(size_of("fat_tree", 8, pods) == Size{8 + 4 + 4 + 4, 2 * (8 + 8 + 8)});
    // One pod is a tree of two levels, one leaf a switch.
    CHECK(size_of("fat_tree", 4, pods) == Size{4 + 2 + 2, 2 * (4 + 4)});
    CHECK(size_of("fat_tree", 2, pods) == Size{2 + 1, 2 * 2});
    // A ninth endpoint: a fifth leaf and a third pod, with all its uplinks.
    CHECK(size_of("fat_tree", 9, pods) == Size{9 + 5 + 6 + 4, 2 * (9 + 10 + 12)});
    // Leaves of 4 with one uplink for 2 ports: 2 aggregation switches a pod, each with
    // ceil(3 leaves / 2) = 2 uplinks. Three pods: cables 36 + 9 * 2 + 6 * 2.
    CHECK(size_of("fat_tree", 36,
                  {.oversubscription = 2,
                   .leaf_ports = 4,
                   .levels = 3,
                   .pod_leaves = 3,
                   .core_oversubscription = 2}) == Size{36 + 9 + 6 + 4, 2 * (36 + 18 + 12)});
    CHECK(size_of("fat_tree", 36,
                  {.leaf_ports = 4,
                   .levels = 3,
                   .pod_leaves = std::numeric_limits<std::int64_t>::max()}) ==
          Size{36 + 9 + 4, 2 * (36 + 36)});
}

TEST_CASE("a three-level fat tree's messages go as high as they must") {
    const Graph tree = graph_of("fat_tree", 8, {.leaf_ports = 2, .levels = 3, .pod_leaves = 2});
    CHECK(way(tree, 0, 1) == "e0 -> leaf0 -> e1");
    CHECK(way(tree, 0, 2) == "e0 -> leaf0 -> pod0.aggregation0 -> leaf1 -> e2");
    CHECK(way(tree, 0, 3) == "e0 -> leaf0 -> pod0.aggregation1 -> leaf1 -> e3");
    // Aggregation 1 of each pod is joined to cores 2 and 3; 7 is odd: the second choice.
    CHECK(way(tree, 0, 7) ==
          "e0 -> leaf0 -> pod0.aggregation1 -> core3 -> pod1.aggregation1 -> leaf3 -> e7");
}

TEST_CASE("a three-level fat tree with senseless parameters is refused") {
    CHECK(refusal("fat_tree", 8, {.levels = 4}) == "levels: a fat tree has 2 or 3 levels, not 4");
    CHECK(refusal("fat_tree", 8, {.pod_leaves = 4}) ==
          "pod_leaves: 'pod_leaves' is for 3 levels; add 'levels: 3' or remove it");
    CHECK(refusal("fat_tree", 8, {.core_oversubscription = 4}) ==
          "core_oversubscription: 'core_oversubscription' is for 3 levels; add 'levels: 3' or "
          "remove it");
    CHECK(refusal("fat_tree", 8, {.levels = 3, .pod_leaves = 0}) ==
          "pod_leaves: a pod has at least one leaf, not 0");
    CHECK(refusal("fat_tree", 8, {.levels = 3, .core_oversubscription = 0.5}) ==
          "core_oversubscription: oversubscription 0.5 is not a number of at least 1");
}

TEST_CASE("a dragonfly joins routers of a group, and groups evenly") {
    const ShapeParameters small{
        .routers_per_group = 2, .endpoints_per_router = 1, .global_links_per_router = 1};
    // 3 groups (the most: 2 * 1 + 1) of 2 routers: 6 ports, 3 local cables, 3 global ones.
    CHECK(size_of("dragonfly", 6, small) == Size{6 + 6, 2 * (6 + 3 + 3)});
    // 2 groups: 2 global ports each lead to the other.
    CHECK(size_of("dragonfly", 4, small) == Size{4 + 4, 2 * (4 + 2 + 2)});
    // 1 group, the second router without an endpoint.
    CHECK(size_of("dragonfly", 1, small) == Size{1 + 2, 2 * (1 + 1)});
    // 4 groups of 3 routers with h = 2: 6 global ports for 3 others, two cables between every two.
    CHECK(size_of(
              "dragonfly", 24,
              {.routers_per_group = 3, .endpoints_per_router = 2, .global_links_per_router = 2}) ==
          Size{24 + 12, 2 * (24 + 4 * 3 + 2 * 6)});
    // The defaults, at their largest: 33 groups of 8 routers of 4. Local 33 * 28, global 33 * 32
    // / 2.
    CHECK(size_of("dragonfly", 1056) == Size{1056 + 264, 2 * (1056 + 924 + 528)});
}

TEST_CASE("no router of a dragonfly has more global links than it may, and all groups are joined") {
    for (const std::uint32_t endpoints : {40U, 33U, 21U, 16U, 9U}) {
        CAPTURE(endpoints);
        const Graph graph = graph_of(
            "dragonfly", endpoints,
            {.routers_per_group = 4, .endpoints_per_router = 1, .global_links_per_router = 3});
        const auto group = [&](VertexId id) {
            return graph[id].name.substr(0, graph[id].name.find('.'));
        };
        std::map<VertexId, int> global;
        std::map<std::pair<std::string, std::string>, int> cables;
        for (const Link& link : graph.links()) {
            const bool is_global = !graph[link.from].is_device && !graph[link.to].is_device &&
                                   group(link.from) != group(link.to);
            if (!is_global) continue;
            ++global[link.from];
            ++cables[{group(link.from), group(link.to)}];
        }
        for (const auto& [router, links] : global) CHECK(links <= 3);
        const std::uint32_t groups = (endpoints + 3) / 4;
        CHECK(cables.size() == groups * (groups - 1));
        for (const auto& [ends, count] : cables) {
            CHECK(count == static_cast<int>(12 / (groups - 1)));
        }
    }
}

TEST_CASE("a dragonfly's messages go local, global, local, or less") {
    // Port 0 of a group (router 0) leads to the next group, port 1 (router 1) to the one after.
    const Graph graph =
        graph_of("dragonfly", 6,
                 {.routers_per_group = 2, .endpoints_per_router = 1, .global_links_per_router = 1});
    CHECK(way(graph, 0, 1) == "e0 -> group0.router0 -> group0.router1 -> e1");
    CHECK(way(graph, 0, 3) == "e0 -> group0.router0 -> group1.router1 -> e3");
    CHECK(way(graph, 0, 2) == "e0 -> group0.router0 -> group1.router1 -> group1.router0 -> e2");
    CHECK(way(graph, 1, 2) ==
          "e1 -> group0.router1 -> group0.router0 -> group1.router1 -> group1.router0 -> e2");
}

TEST_CASE("a dragonfly that cannot be is refused") {
    CHECK(refusal("dragonfly", 1057, {}) ==
          "global_links_per_router: 1057 endpoints need 34 groups of 8 x 4, but 8 x 4 global links "
          "join at most 33 groups");
    CHECK(refusal("dragonfly", 8, {.routers_per_group = 0}) ==
          "routers_per_group: 'routers_per_group' is 1 to 1048576, not 0");
    CHECK(refusal("dragonfly", 8,
                  {.endpoints_per_router = std::numeric_limits<std::int64_t>::max()}) ==
          "endpoints_per_router: 'endpoints_per_router' is 1 to 1048576, not 9223372036854775807");
    CHECK(refusal("dragonfly", 8, {.routers_per_group = 5000}) ==
          "routers_per_group: groups of 5000 routers have too many links; at most 16777216 in all");
}

TEST_CASE("sites are switches that long links join") {
    const LinkSpec wan{.bandwidth = 1_GBps, .latency = 10_ms};
    CHECK(size_of("sites", 8, {.wan = wan}) == Size{8 + 2, 2 * (8 + 1)});
    CHECK(size_of("sites", 6, {.sites = 3, .wan = wan}) == Size{6 + 3, 2 * (6 + 3)});
    const Graph graph = graph_of("sites", 8, {.wan = wan});
    CHECK(way(graph, 0, 3) == "e0 -> site0 -> e3");
    CHECK(way(graph, 0, 4) == "e0 -> site0 -> site1 -> e4");
    Routes routes(graph);
    CHECK(routes.route(DeviceId{0}, DeviceId{4}).latency == 10_ms + 10_us);
}

TEST_CASE("sites that cannot be are refused") {
    const LinkSpec wan{.bandwidth = 1_GBps, .latency = 10_ms};
    CHECK(refusal("sites", 8, {}) ==
          "wan: a link must join the sites; write for example 'wan: {bandwidth: 100 Gb/s, "
          "latency: 10 ms}'");
    CHECK(refusal("sites", 8, {.wan = {.bandwidth = 1_GBps, .latency = Duration(-1)}}) ==
          "wan: latency -1 ps is negative");
    CHECK(refusal("sites", 8, {.sites = 1, .wan = wan}) ==
          "sites: there are 2 to 1024 sites, not 1");
    CHECK(refusal("sites", 8, {.sites = 3, .wan = wan}) ==
          "sites: 8 endpoints cannot be dealt out evenly to 3 sites");
}

}  // namespace
}  // namespace fourfold
