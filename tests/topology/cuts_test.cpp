#include "topology/cuts.hpp"

#include <doctest/doctest.h>

#include "tests/support/topology.hpp"

namespace fourfold {
namespace {

// In links of 25 GB/s.
std::int64_t links_cut(const Graph& graph) {
    const std::int64_t cut = bisection_bandwidth(graph).value;
    CHECK(cut % port.bandwidth.value == 0);
    return cut / port.bandwidth.value;
}

TEST_CASE("direct shapes are cut where the halves meet") {
    CHECK(links_cut(shaped("ring", 1)) == 0);
    CHECK(links_cut(shaped("ring", 2)) == 1);
    CHECK(links_cut(shaped("ring", 8)) == 2);
    CHECK(links_cut(shaped("fully_connected", 8)) == 4 * 4);
    CHECK(links_cut(shaped("fully_connected", 7)) == 3 * 4);
    // Between the layers z = 1 and 2, and around from 3 to 0.
    CHECK(links_cut(shaped("torus", 64, {.dimensions = {4, 4, 4}})) == 2 * 16);
    CHECK(links_cut(shaped("torus", 6, {.dimensions = {3, 2}})) == 3);
}

TEST_CASE("a TPU v4 pod's bisection is 24 TB/s in its data sheet") {
    const Graph pod = shaped("torus", 4096, {.dimensions = {16, 16, 16}}, {50_GBps, 1_us});
    CHECK(bisection_bandwidth(pod) == 512 * 50_GBps);  // 25.6 TB/s: 23.3 in units of 2^40
}

TEST_CASE("switches that never block are cut at the smaller half's ports") {
    CHECK(links_cut(shaped("switch", 8)) == 4);
    CHECK(links_cut(shaped("switch", 7)) == 3);
    CHECK(links_cut(shaped("fat_tree", 8, {.leaf_ports = 4})) == 4);
    CHECK(links_cut(shaped("fat_tree", 8, {.leaf_ports = 2, .levels = 3, .pod_leaves = 2})) == 4);
    CHECK(links_cut(shaped("fat_tree", 64, {.leaf_ports = 4, .levels = 3, .pod_leaves = 4})) == 32);
}

TEST_CASE("oversubscribed trees are cut at the uplinks") {
    CHECK(links_cut(shaped("fat_tree", 8, {.oversubscription = 2, .leaf_ports = 4})) == 2);
    CHECK(links_cut(shaped("fat_tree", 32, {.oversubscription = 4, .leaf_ports = 8})) == 2 * 2);
    // Pods of 4 leaves of 4, each of 4 aggregation switches with one uplink: 4 a pod.
    CHECK(links_cut(shaped(
              "fat_tree", 64,
              {.leaf_ports = 4, .levels = 3, .pod_leaves = 4, .core_oversubscription = 4})) ==
          2 * 4);
}

TEST_CASE("a dragonfly is cut at the links between its groups, a third of its ports") {
    // Groups of 4 routers of 4, one global link each: 5 groups, one cable between every two. Of 4
    // groups two and two are joined by 4 cables, two for every pair where there are only 3 others.
    const ShapeParameters balanced{
        .routers_per_group = 4, .endpoints_per_router = 4, .global_links_per_router = 1};
    CHECK(links_cut(shaped("dragonfly", 64, balanced)) == 4);
    // Two groups: all four global ports.
    CHECK(links_cut(shaped("dragonfly", 32, balanced)) == 4);
}

TEST_CASE("the cut goes through nodes and rails alike") {
    // Four nodes of two: the network ports of two nodes.
    CHECK(links_cut(cluster_of(4, 2, "switch")) == 4);
    CHECK(links_cut(cluster_of(4, 2, "rails")) == 4);
    CHECK(links_cut(cluster_of(4, 2, "rails", {.spine = false})) == 4);
    CHECK(links_cut(cluster_of(4, 2, "ring")) == 2 * 2);
    // One node alone is cut within.
    CHECK(bisection_bandwidth(cluster_of(1, 4, "switch")) == 2 * 300_GBps);
}

TEST_CASE("two sites are cut at their wan, which may be thin or thick") {
    CHECK(bisection_bandwidth(shaped("sites", 8, {.wan = {1_GBps, 10_ms}})) == 1_GBps);
    CHECK(bisection_bandwidth(shaped("sites", 8, {.wan = {1000_GBps, 10_ms}})) == 100_GBps);
}

TEST_CASE("the thinner direction counts, at usable rates") {
    GraphDraft draft;
    const VertexId a = draft.add_device("a", 0), b = draft.add_device("b", 1);
    draft.add_link(a, b, {25_GBps, 5_us, 1.0});
    draft.add_link(b, a, {50_GBps, 5_us, 0.25});
    CHECK(bisection_bandwidth(*seal(std::move(draft))) == BytesPerSecond{12'500'000'000});
}

TEST_CASE("sums beyond 64 bits are no trouble") {
    // 16 ports of 2^62 B/s.
    const LinkSpec vast{BytesPerSecond{duration_limit.count()}, 1_us};
    CHECK(bisection_bandwidth(shaped("switch", 16, {}, vast)).value == duration_limit.count());
}

}  // namespace
}  // namespace fourfold
