#include "topology/survey.hpp"

#include <doctest/doctest.h>

#include <string>
#include <string_view>

#include "tests/support/topology.hpp"

namespace fourfold {
namespace {

// "6 links, 15 us"
std::string span_of(const Graph& graph) {
    const Diameter found = diameter(graph);
    CHECK(found.exact);
    return std::to_string(found.links) + " links, " + to_text(found.latency);
}

TEST_CASE("vertices whose names differ in numbers only are one group") {
    const auto groups = vertex_groups(cluster_of(2, 3, "fat_tree", {.leaf_ports = 4}));
    REQUIRE(groups.size() == 4);
    CHECK(groups[0].pattern == "node*.device*");
    CHECK(groups[0].count == 6);
    CHECK(groups[0].first == VertexId{0});
    CHECK(groups[0].last == VertexId{5});
    CHECK(groups[1].pattern == "node*.switch");
    CHECK(groups[2].pattern == "leaf*");
    CHECK(groups[2].count == 2);
    CHECK(groups[3].pattern == "spine*");
    CHECK(groups[3].count == 4);
}

TEST_CASE("links between the same groups that offer the same are one group") {
    const auto groups = link_groups(cluster_of(2, 3, "fat_tree", {.leaf_ports = 4}));
    REQUIRE(groups.size() == 6);  // device and node switch, device and leaf, leaf and spine
    CHECK(groups[0].from == "node*.device*");
    CHECK(groups[0].to == "node*.switch");
    CHECK(groups[0].count == 6);
    CHECK(groups[0].rate == 300_GBps);
    CHECK(groups[4].from == "leaf*");
    CHECK(groups[4].to == "spine*");
    CHECK(groups[4].count == 8);
    std::size_t links = 0;
    for (const LinkGroup& group : groups) links += group.count;
    CHECK(links == 2 * (6 + 6 + 8));
}

TEST_CASE("nodes are counted, whatever their numbers") {
    CHECK(count_nodes(cluster_of(3, 2, "switch")) == 3);
    CHECK(count_nodes(shaped("ring", 1)) == 1);
}

TEST_CASE("the diameter is the longest of the shortest routes") {
    // Links of 5 us.
    CHECK(span_of(shaped("ring", 1)) == "0 links, 0 s");
    CHECK(span_of(shaped("ring", 8)) == "4 links, 20 us");
    CHECK(span_of(shaped("ring", 7)) == "3 links, 15 us");
    CHECK(span_of(shaped("fully_connected", 8)) == "1 links, 5 us");
    CHECK(span_of(shaped("switch", 8)) == "2 links, 10 us");
    // Half around in each dimension: 2 + 2 + 2, and 1 + 2 + 4.
    CHECK(span_of(shaped("torus", 64, {.dimensions = {4, 4, 4}})) == "6 links, 30 us");
    CHECK(span_of(shaped("torus", 96, {.dimensions = {3, 4, 8}})) == "7 links, 35 us");
    CHECK(span_of(shaped("fat_tree", 8, {.leaf_ports = 4})) == "4 links, 20 us");
    CHECK(span_of(shaped("fat_tree", 8, {.leaf_ports = 2, .levels = 3, .pod_leaves = 2})) ==
          "6 links, 30 us");
    // Port, local, global, local, port; where there are two groups all routers have global links.
    CHECK(span_of(shaped("dragonfly", 1056)) == "5 links, 25 us");
    CHECK(span_of(shaped("dragonfly", 64)) == "4 links, 20 us");
    CHECK(span_of(shaped("sites", 8, {.wan = {1_GBps, 10_ms}})) == "3 links, 10.01 ms");
}

TEST_CASE("rails are as far apart as two ports and what joins them") {
    // In the node 1.5 us a link, outside 2.5: two links of each, or four outside.
    CHECK(span_of(cluster_of(4, 2, "rails")) == "4 links, 8 us");
    CHECK(span_of(cluster_of(4, 2, "rails", {.spine = false})) == "4 links, 8 us");
    // Two leaves a rail: 4 links outside, and 2 inside to change rails (13 us); over the spines
    // that join all leaves no change is needed.
    CHECK(span_of(cluster_of(4, 2, "rails", {.leaf_ports = 2, .spine = false})) ==
          "6 links, 13 us");
    CHECK(span_of(cluster_of(4, 2, "rails", {.leaf_ports = 2})) == "4 links, 10 us");
}

TEST_CASE("a large graph is searched from some of its devices") {
    const Diameter found = diameter(shaped("ring", 20'000));
    CHECK_FALSE(found.exact);
    CHECK(found.sources < 20'000);
    CHECK(found.links == 10'000);
    // Of devices joined alike one is enough: one for each of 512 nodes.
    const Diameter cluster = diameter(cluster_of(512, 8, "fat_tree"));
    CHECK(cluster.exact);
    CHECK(cluster.sources == 512);
    CHECK(cluster.links == 4);
}

TEST_CASE("a route one way only counts") {
    // Round a ring of one direction it is n - 1 links to the one before.
    GraphDraft draft;
    for (int i = 0; i < 5; ++i) draft.add_device("gpu" + std::to_string(i), 0);
    for (std::uint32_t i = 0; i < 5; ++i) draft.add_link({i}, {(i + 1) % 5}, port);
    CHECK(span_of(*seal(std::move(draft))) == "4 links, 20 us");
}

}  // namespace
}  // namespace fourfold
