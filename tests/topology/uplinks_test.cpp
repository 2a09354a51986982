#include "topology/uplinks.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <string>

#include "tests/support/topology.hpp"

namespace fourfold {
namespace {

/// "leaf1 -> spine0": "up from section 1 of blocks of 2 devices"
std::string uplink(const Graph& graph, std::string_view from, std::string_view to) {
    const Uplinks uplinks(graph);
    for (const LinkId id : ids<LinkId>(graph.links().size())) {
        if (graph[graph[id].from].name != from || graph[graph[id].to].name != to) continue;
        const auto found = uplinks.of(id);
        if (!found) return "none";
        return fmt::format("{} section {} of blocks of {} devices",
                           found->up ? "up from" : "down to", found->section,
                           graph.blocks()[found->level]);
    }
    return "no such link";
}

TEST_CASE("an uplink is that of the block that its lower switch joins") {
    const LinkSpec spec{.bandwidth = 25_GBps};
    ClusterShape shape{.nodes = 8,
                       .devices_per_node = 2,
                       .node = fabric_of("switch", spec),
                       .fabric = fabric_of("fat_tree", spec, {.leaf_ports = 4})};
    const Graph two = seal_cluster(shape);
    CHECK(uplink(two, "leaf1", "spine0") == "up from section 1 of blocks of 4 devices");
    CHECK(uplink(two, "spine2", "leaf3") == "down to section 3 of blocks of 4 devices");
    CHECK(uplink(two, "node0.device1", "leaf0") == "none");
    CHECK(uplink(two, "node0.switch", "node0.device1") == "none");

    shape.fabric->parameters.levels = 3;
    shape.fabric->parameters.pod_leaves = 2;
    const Graph three = seal_cluster(shape);
    CHECK(uplink(three, "leaf3", "pod1.aggregation0") ==
          "up from section 3 of blocks of 4 devices");
    CHECK(uplink(three, "core1", "pod1.aggregation0") ==
          "down to section 1 of blocks of 8 devices");

    shape.fabric->parameters = {.leaf_ports = 1};  // two leaves a node
    CHECK(uplink(seal_cluster(shape), "leaf5", "spine0") ==
          "up from section 5 of blocks of 1 devices");
}

TEST_CASE("the last leaf's block is as large as the others', however few it joins") {
    const Graph graph = cluster_of(5, 2, "fat_tree", {.leaf_ports = 4});
    CHECK(uplink(graph, "leaf2", "spine0") == "up from section 2 of blocks of 4 devices");
}

TEST_CASE("a leaf of rails has the uplinks of a section, a long link those of where it leads") {
    const Graph rails = cluster_of(4, 2, "rails", {.leaf_ports = 2});
    CHECK(uplink(rails, "leaf0", "spine0") == "up from section 0 of blocks of 4 devices");
    CHECK(uplink(rails, "leaf1", "spine0") == "up from section 1 of blocks of 4 devices");
    CHECK(uplink(rails, "spine1", "leaf2") == "down to section 2 of blocks of 4 devices");
    const Graph sites = cluster_of(4, 2, "sites", {.wan = {.bandwidth = 1_GBps}});
    CHECK(uplink(sites, "site0", "site1") == "down to section 1 of blocks of 4 devices");
    CHECK(uplink(sites, "site1", "site0") == "down to section 0 of blocks of 4 devices");
}

TEST_CASE("where no two switches are joined there are no uplinks") {
    CHECK(Uplinks(cluster_of(2, 4, "switch")).empty());
}

}  // namespace
}  // namespace fourfold
