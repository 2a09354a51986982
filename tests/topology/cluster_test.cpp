#include "topology/cluster.hpp"

#include <doctest/doctest.h>

#include <string_view>
#include <vector>

#include "tests/support/topology.hpp"
#include "topology/routes.hpp"

namespace fourfold {
namespace {

const LinkSpec nvlink{.bandwidth = 300_GBps, .latency = 1500_ns, .efficiency = 1.0};
const LinkSpec nic{.bandwidth = 25_GBps, .latency = 2500_ns, .efficiency = 1.0};

ClusterShape two_nodes_of_three() {
    return {.nodes = 2,
            .devices_per_node = 3,
            .node = fabric_of("switch", nvlink),
            .fabric = fabric_of("fat_tree", nic, {.leaf_ports = 4})};
}

std::string refusal(const ClusterShape& cluster) {
    const auto draft = build_cluster(cluster);
    REQUIRE(!draft);
    return draft.error().where + ": " + draft.error().what;
}

TEST_CASE("a cluster's vertices are named by node, device and switch") {
    const auto draft = build_cluster(two_nodes_of_three());
    REQUIRE(draft);
    std::string names;
    for (const Vertex& vertex : draft->vertices) names += vertex.name + " ";
    CHECK(names ==
          "node0.device0 node0.device1 node0.device2 node1.device0 node1.device1 node1.device2 "
          "node0.switch node1.switch leaf0 leaf1 spine0 spine1 spine2 spine3 ");
    CHECK(draft->devices == 6);
    CHECK(draft->vertices[4].node == 1);
    CHECK(draft->vertices[4].device == DeviceId{4});
    // Cables: 6 in the nodes, 6 ports of the fabric, 2 leaves with 4 uplinks.
    CHECK(draft->links.size() == 2 * (6 + 6 + 8));
}

TEST_CASE("devices of a node talk through its switch, others through the fabric") {
    const auto graph = seal(*build_cluster(two_nodes_of_three()));
    REQUIRE(graph);
    Routes routes(*graph);
    CHECK(routes.route(DeviceId{0}, DeviceId{2}).latency == 3_us);
    CHECK(routes.route(DeviceId{0}, DeviceId{3}).latency == 5_us);  // the same leaf
    // Over a spine it is 4 * 2.5 = 10 us; but device 3 shares node 1 with device 4 and leaf 0 with
    // device 0, and forwards in 2 * 2.5 + 2 * 1.5 = 8 us.
    CHECK(routes.route(DeviceId{0}, DeviceId{4}).latency == 8_us);
}

TEST_CASE("a direct fabric joins the same device of every node") {
    const auto draft = build_cluster({.nodes = 4,
                                      .devices_per_node = 2,
                                      .node = fabric_of("ring", nvlink),
                                      .fabric = fabric_of("torus", nic, {.dimensions = {2, 2}})});
    REQUIRE(draft);
    CHECK(draft->vertices.size() == 8);  // no switch anywhere
    // 4 cables in nodes, 4 on each of 2 rails.
    REQUIRE(draft->links.size() == 2 * (4 + 8));
    for (const Link& link : draft->links) {
        const Vertex& from = draft->vertices[link.from.value];
        const Vertex& to = draft->vertices[link.to.value];
        const bool same_rail = from.device.value % 2 == to.device.value % 2;
        CHECK(same_rail == (from.node != to.node));
    }
    CHECK(seal(*draft));
}

TEST_CASE("one node needs no fabric and one device needs no node") {
    CHECK(build_cluster({.nodes = 1, .devices_per_node = 1, .node = {}, .fabric = {}})
              ->links.empty());
    CHECK(build_cluster({.nodes = 1,
                         .devices_per_node = 8,
                         .node = fabric_of("switch", nvlink),
                         .fabric = fabric_of("fat_tree", nic)})
              ->links.size() == 16);
    CHECK(build_cluster({.nodes = 8,
                         .devices_per_node = 1,
                         .node = fabric_of("switch", nvlink),
                         .fabric = fabric_of("switch", nic)})
              ->links.size() == 16);
}

TEST_CASE("a cluster without the joint that it needs is refused") {
    ClusterShape cluster = two_nodes_of_three();
    cluster.node.reset();
    CHECK(refusal(cluster) == "node: it must say how the 3 devices of a node are joined");
    cluster = two_nodes_of_three();
    cluster.fabric.reset();
    CHECK(refusal(cluster) == "fabric: it must say how the 2 nodes are joined");
}

TEST_CASE("an empty or oversized cluster is refused") {
    ClusterShape cluster = two_nodes_of_three();
    cluster.nodes = 0;
    CHECK(refusal(cluster) == "nodes: a cluster has at least one node");
    cluster = two_nodes_of_three();
    cluster.devices_per_node = 0;
    CHECK(refusal(cluster) == "devices_per_node: a node has at least one device");
    cluster.nodes = 4'000'000'000;
    cluster.devices_per_node = 4'000'000'000;
    CHECK(refusal(cluster) ==
          "nodes: 4000000000 nodes of 4000000000 devices are too many; at most 1048576 devices");
}

TEST_CASE("a problem of a part is reported under the part's name") {
    ClusterShape cluster = two_nodes_of_three();
    cluster.node = fabric_of("torus", nvlink, {.dimensions = {2, 2}});
    CHECK(refusal(cluster) == "node.dimensions: 2 x 2 is not the number of endpoints, 3");
    cluster = two_nodes_of_three();
    cluster.fabric->parameters.oversubscription = 0;
    CHECK(refusal(cluster) ==
          "fabric.oversubscription: oversubscription 0 is not a number of at least 1");
    cluster = two_nodes_of_three();
    cluster.fabric->link.latency = Duration(-1);
    CHECK(refusal(cluster) == "fabric.latency: latency -1 ps is negative");
}

TEST_CASE("more links than memory holds are refused before they are built") {
    // 1,024 * 1,023 links in each of 1,024 nodes.
    CHECK(refusal({.nodes = 1024,
                   .devices_per_node = 1024,
                   .node = fabric_of("fully_connected", nvlink),
                   .fabric = fabric_of("switch", nic)}) ==
          "node: 1072693248 links are too many; at most 16777216");
}

std::vector<std::uint32_t> blocks(const ClusterShape& cluster) {
    const Graph graph = seal_cluster(cluster);
    return {graph.blocks().begin(), graph.blocks().end()};
}

using Sizes = std::vector<std::uint32_t>;

TEST_CASE("devices are alike in blocks of a node and of a leaf") {
    ClusterShape cluster{.nodes = 4,
                         .devices_per_node = 8,
                         .node = fabric_of("switch", nvlink),
                         .fabric = fabric_of("switch", nic)};
    CHECK(blocks(cluster) == Sizes{8, 32});
    cluster.node = fabric_of("fully_connected", nvlink);
    CHECK(blocks(cluster) == Sizes{8, 32});
    cluster.fabric = fabric_of("fat_tree", nic, {.leaf_ports = 16});
    CHECK(blocks(cluster) == Sizes{8, 16});
    cluster.fabric->parameters.leaf_ports = 4;  // two leaves a node
    CHECK(blocks(cluster) == Sizes{8, 4});
    cluster.fabric->parameters.leaf_ports = 64;  // one leaf has room for all
    CHECK(blocks(cluster) == Sizes{8, 32});

    cluster.nodes = 1;  // the fabric is not built
    CHECK(blocks(cluster) == Sizes{8});
    cluster.nodes = 4;
    cluster.devices_per_node = 1;  // the node's links are not built
    cluster.node = fabric_of("ring", nvlink);
    CHECK(blocks(cluster) == Sizes{1, 4});
}

TEST_CASE("scarce uplinks can hold up what leaves a block") {
    ClusterShape cluster{.nodes = 4,
                         .devices_per_node = 4,
                         .node = fabric_of("switch", nvlink),
                         .fabric = fabric_of("fat_tree", nic, {.leaf_ports = 8})};
    CHECK(blocks(cluster) == Sizes{4, 8});
    CHECK_FALSE(seal_cluster(cluster).shares_uplinks());
    cluster.fabric->parameters.oversubscription = 2;
    CHECK(blocks(cluster) == Sizes{4, 8});
    CHECK(seal_cluster(cluster).shares_uplinks());
}

TEST_CASE("neighbours make blocks of nothing") {
    ClusterShape cluster{.nodes = 4,
                         .devices_per_node = 4,
                         .node = fabric_of("ring", nvlink),
                         .fabric = fabric_of("switch", nic)};
    CHECK(blocks(cluster).empty());
    cluster.node = fabric_of("torus", nvlink, {.dimensions = {2, 2}});
    CHECK(blocks(cluster).empty());
    cluster.node = fabric_of("switch", nvlink);
    for (const std::string_view direct : {"ring", "fully_connected"}) {
        cluster.fabric = fabric_of(direct, nic);
        CHECK(blocks(cluster).empty());
    }
    cluster.fabric = fabric_of("torus", nic, {.dimensions = {2, 2}});
    CHECK(blocks(cluster).empty());
    // 4 of a node on leaves of 6 ports: the third node is a way from one leaf to the other.
    cluster.fabric = fabric_of("fat_tree", nic, {.leaf_ports = 6});
    CHECK(blocks(cluster).empty());
}

std::string names_of_switches(const GraphDraft& draft) {
    std::string names;
    for (const Vertex& vertex : draft.vertices) {
        if (!vertex.is_device) names += (names.empty() ? "" : " ") + vertex.name;
    }
    return names;
}

TEST_CASE("rails put the i-th device of every node on leaf i") {
    ClusterShape cluster{.nodes = 4,
                         .devices_per_node = 2,
                         .node = fabric_of("switch", nvlink),
                         .fabric = fabric_of("rails", nic)};
    auto draft = build_cluster(cluster);
    REQUIRE(draft);
    // A leaf has 4 ports and as many uplinks.
    CHECK(names_of_switches(*draft) ==
          "node0.switch node1.switch node2.switch node3.switch leaf0 leaf1 spine0 spine1 spine2 "
          "spine3");
    CHECK(draft->links.size() == 2 * (8 + 8 + 2 * 4));
    for (const Link& link : draft->links) {
        const Vertex& from = draft->vertices[link.from.value];
        const Vertex& to = draft->vertices[link.to.value];
        if (!from.is_device || !to.name.starts_with("leaf")) continue;
        CHECK(to.name == (from.device.value % 2 == 0 ? "leaf0" : "leaf1"));
    }
    cluster.fabric->parameters.oversubscription = 2;
    CHECK(build_cluster(cluster)->links.size() == 2 * (8 + 8 + 2 * 2));

    // Leaves of two ports: two a rail, and 2 uplinks each.
    cluster.fabric->parameters = {.leaf_ports = 2};
    draft = build_cluster(cluster);
    CHECK(names_of_switches(*draft).ends_with("leaf0 leaf1 leaf2 leaf3 spine0 spine1"));
    CHECK(draft->links.size() == 2 * (8 + 8 + 4 * 2));
    CHECK(seal(*draft)->name(LinkId{2 * (8 + 2)}) == "node2.device0 -> leaf2");
}

TEST_CASE("without spines rails meet in the nodes") {
    ClusterShape cluster{.nodes = 4,
                         .devices_per_node = 2,
                         .node = fabric_of("switch", nvlink),
                         .fabric = fabric_of("rails", nic, {.spine = false})};
    const auto graph = seal(*build_cluster(cluster));
    REQUIRE(graph);
    CHECK(graph->links().size() == 2 * (8 + 8));
    Routes routes(*graph);
    CHECK(routes.route(DeviceId{0}, DeviceId{2}).latency == 5_us);  // its rail
    // Over its neighbour in the node, or over the other's: 2 * 1.5 + 2 * 2.5 us. A message to an
    // odd device takes the second choice, its own leaf first.
    const Route& across = routes.route(DeviceId{0}, DeviceId{3});
    CHECK(across.latency == 8_us);
    CHECK(across.shares.size() == 8);
    std::string way;
    for (const LinkId link : across.path) way += (*graph)[(*graph)[link].to].name + " ";
    CHECK(way == "leaf0 node1.device0 node1.switch node1.device1 ");

    // Rails of several leaves have spines of their own.
    cluster.fabric->parameters.leaf_ports = 2;
    const auto draft = build_cluster(cluster);
    CHECK(names_of_switches(*draft).ends_with(
        "leaf0 leaf1 leaf2 leaf3 rail0.spine0 rail0.spine1 rail1.spine0 rail1.spine1"));
    CHECK(draft->links.size() == 2 * (8 + 8 + 4 * 2));
}

TEST_CASE("rails that no node joins reach each other over spines only") {
    ClusterShape cluster{
        .nodes = 1, .devices_per_node = 4, .node = fabric_of("rails", nvlink), .fabric = {}};
    const auto graph = seal(*build_cluster(cluster));
    REQUIRE(graph);
    CHECK(graph->links().size() == 2 * (4 + 4));  // four leaves of one port, one spine
    cluster.node->parameters.spine = false;
    CHECK(seal(*build_cluster(cluster)).error().what ==
          "no route from device 'node0.device0' to device 'node0.device1'; every device must reach "
          "every other");
}

TEST_CASE("a node lies in one site") {
    const LinkSpec wan{.bandwidth = 10_GBps, .latency = 10_ms};
    ClusterShape cluster{.nodes = 4,
                         .devices_per_node = 3,
                         .node = fabric_of("switch", nvlink),
                         .fabric = fabric_of("sites", nic, {.wan = wan})};
    const auto graph = seal(*build_cluster(cluster));
    REQUIRE(graph);
    CHECK(graph->links().size() == 2 * (12 + 12 + 1));
    Routes routes(*graph);
    CHECK(routes.route(DeviceId{0}, DeviceId{5}).latency == 5_us);
    CHECK(routes.route(DeviceId{0}, DeviceId{6}).latency == 10_ms + 5_us);
    cluster.fabric->parameters.sites = 3;
    CHECK(refusal(cluster) ==
          "fabric.sites: node 1 would lie in two of 3 sites; let the sites divide the nodes");
}

TEST_CASE("devices are alike in pods too") {
    ClusterShape cluster{
        .nodes = 16,
        .devices_per_node = 4,
        .node = fabric_of("switch", nvlink),
        .fabric = fabric_of("fat_tree", nic, {.leaf_ports = 8, .levels = 3, .pod_leaves = 4})};
    CHECK(blocks(cluster) == Sizes{4, 8, 32});
    cluster.fabric->parameters.pod_leaves = 100;
    CHECK(blocks(cluster) == Sizes{4, 8, 64});
    cluster.fabric->parameters.leaf_ports = 100;
    CHECK(blocks(cluster) == Sizes{4, 64});
    cluster.fabric->parameters = {
        .leaf_ports = 8, .levels = 3, .pod_leaves = 4, .core_oversubscription = 2};
    CHECK(blocks(cluster) == Sizes{4, 8, 32});
    CHECK(seal_cluster(cluster).shares_uplinks());
    cluster.fabric->parameters = {.leaf_ports = 6, .levels = 3, .pod_leaves = 4};
    CHECK(blocks(cluster).empty());  // every other node has ports on two leaves
}

TEST_CASE("of rails that spines join the nodes of a leaf are a block, in sections") {
    ClusterShape cluster{.nodes = 4,
                         .devices_per_node = 2,
                         .node = fabric_of("switch", nvlink),
                         .fabric = fabric_of("rails", nic, {.leaf_ports = 2})};
    CHECK(blocks(cluster) == Sizes{2, 4});
    const Graph graph = seal_cluster(cluster);
    CHECK(graph.rails() == 2);
    CHECK_FALSE(graph.shares_uplinks());
    std::vector<std::uint32_t> sections;
    for (const DeviceId device : ids<DeviceId>(8)) sections.push_back(graph.section_of(device, 4));
    CHECK(sections == std::vector<std::uint32_t>{0, 1, 0, 1, 2, 3, 2, 3});
    cluster.fabric->parameters.oversubscription = 2;
    CHECK(seal_cluster(cluster).shares_uplinks());
    cluster.fabric->parameters = {.spine = false};
    CHECK(blocks(cluster).empty());
    cluster.fabric = fabric_of("switch", nic);
    cluster.node = fabric_of("rails", nvlink);
    CHECK(blocks(cluster).empty());
}

TEST_CASE("a site of two is a block, a dragonfly and more sites make blocks of nothing") {
    const LinkSpec wan{.bandwidth = 1_GBps, .latency = 10_ms};
    ClusterShape cluster{.nodes = 4,
                         .devices_per_node = 2,
                         .node = fabric_of("switch", nvlink),
                         .fabric = fabric_of("sites", nic, {.wan = wan})};
    CHECK(blocks(cluster) == Sizes{2, 4});
    CHECK(seal_cluster(cluster).shares_uplinks());
    cluster.fabric->parameters.sites = 4;
    CHECK(blocks(cluster).empty());
    cluster.fabric = fabric_of("dragonfly", nic);
    CHECK(blocks(cluster).empty());
}

}  // namespace
}  // namespace fourfold
