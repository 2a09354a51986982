#include "scenarios/cluster_section.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <string>
#include <string_view>

#include "scenarios/catalog.hpp"
#include "scenarios/scenario.hpp"
#include "tests/support/catalog.hpp"

namespace fourfold {
namespace {

Scenario parse(std::string_view cluster) {
    const std::string text = fmt::format(
        "model: {{layers: 8, hidden: 512, heads: 8, ffn: 2048, vocab: 1024, sequence: 128}}\n"
        "cluster: {}\n"
        "batch: {{global: 864}}\n",
        cluster);
    auto scenario = parse_scenario(text, "test.yaml", {}, catalog());
    REQUIRE_MESSAGE(scenario, to_text(scenario.error()));
    return std::move(*scenario);
}

const Link& link_between(const Scenario& scenario, std::string_view from, std::string_view to) {
    for (const Link& link : scenario.graph.links()) {
        if (scenario.graph[link.from].name == from && scenario.graph[link.to].name == to) {
            return link;
        }
    }
    FAIL("no link ", std::string(from), " -> ", std::string(to));
    return scenario.graph.links().front();
}

}  // namespace

TEST_CASE("every cluster of the catalog is built of any number of nodes") {
    REQUIRE(catalog().clusters.size() >= 9);
    for (const auto& [name, kind] : catalog().clusters) {
        CAPTURE(name);
        for (const std::int64_t nodes : {1, 3}) {
            const Scenario scenario = parse(fmt::format("{{base: {}, nodes: {}}}", name, nodes));
            CHECK(scenario.graph.devices().size() ==
                  static_cast<std::size_t>(nodes * kind.devices_per_node));
            CHECK(scenario.step.device.name == kind.device.name);
            REQUIRE(kind.node.has_value());
            CHECK(link_between(scenario, "node0.device0", "node0.switch").spec.bandwidth ==
                  kind.node->link.bandwidth);
            CHECK(scenario.step.node.message_overhead == kind.node_costs.message_overhead);
            CHECK(scenario.step.fabric.message_overhead == kind.fabric_costs.message_overhead);
            if (nodes == 1) continue;
            CHECK(link_between(scenario, "node2.device0", "switch").spec.bandwidth ==
                  kind.fabric->link.bandwidth);
        }
    }
}

TEST_CASE("a cluster with a base changes only what it names") {
    const ClusterKind& base = catalog().clusters.at("selene");
    const Scenario scenario = parse(
        "{base: selene, nodes: 6, devices_per_node: 4, device: h100-sxm-80gb,\n"
        "          node: {bandwidth: 111 GB/s}, fabric: {shape: fat_tree, leaf_ports: 8}}");
    CHECK(scenario.graph.devices().size() == 24);
    CHECK(scenario.step.device.name == catalog().devices.at("h100-sxm-80gb").name);
    const Link& inside = link_between(scenario, "node0.device0", "node0.switch");
    CHECK(inside.spec.bandwidth == 111_GBps);
    CHECK(inside.spec.latency == base.node->link.latency);
    CHECK(inside.spec.efficiency == base.node->link.efficiency);
    const Link& port = link_between(scenario, "node2.device0", "leaf1");
    CHECK(port.spec.bandwidth == base.fabric->link.bandwidth);
    CHECK(scenario.step.node.collective_edge == base.node_costs.collective_edge);
}

TEST_CASE("a link of the catalog takes the place of the base's, costs and all") {
    const Scenario scenario = parse("{base: selene, nodes: 2, fabric: {link: ndr}}");
    const LinkKind& ndr = catalog().links.at("ndr");
    CHECK(link_between(scenario, "node0.device0", "switch").spec.bandwidth == ndr.spec.bandwidth);
    CHECK(scenario.step.fabric.message_overhead == ndr.costs.message_overhead);
}

TEST_CASE("a device with a base stands beside a cluster with one") {
    const Scenario scenario =
        parse("{base: selene, nodes: 2, device: {base: a100-sxm-80gb, memory: 40 GiB}}");
    CHECK(scenario.step.device.memory == 40 * 1024 * 1_MiB);
    CHECK(scenario.step.device.peak == catalog().devices.at("a100-sxm-80gb").peak);
}

}  // namespace fourfold
