#include <doctest/doctest.h>
#include <fmt/format.h>

#include <limits>

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
          "unknown shape 'cube'; known: ring, fully_connected, switch, torus, fat_tree");
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

}  // namespace
}  // namespace fourfold
