#include "topology/cluster.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "topology/check.hpp"

// Two nodes of three devices on a switch, and a fabric that reaches every device:
//
//       +------------ fabric ------------+        A direct fabric (a ring, a torus) instead joins
//       |    |    |          |    |    |          the first devices of all nodes, the second ones,
//       d0   d1   d2         d0   d1   d2         and so on: one rail for each.
//       |    |    |          |    |    |
//       node0.switch         node1.switch

namespace fourfold {
namespace {

constexpr std::uint64_t devices_max = std::uint64_t{1} << 20;
constexpr std::size_t links_max = std::size_t{1} << 24;  // about a gigabyte

/// The problem as seen from the whole cluster: "dimensions" becomes "node.dimensions".
tl::unexpected<Problem> within(std::string_view part, const Problem& inner) {
    return problem(fmt::format("{}.{}", part, inner.where), inner.what);
}

/// Joins one of `copies` groups alike. Refuses where all of them together had too many links.
Result<void> join_within(std::string_view part, const Fabric& fabric,
                         std::span<const VertexId> endpoints, std::string_view prefix,
                         std::size_t copies, GraphDraft& draft) {
    FOURFOLD_CHECK(fabric.shape != nullptr);
    const std::size_t before = draft.links.size();
    auto joined = join(*fabric.shape, endpoints, fabric.link, fabric.parameters, prefix, draft);
    if (!joined) return within(part, joined.error());
    const std::size_t links = (draft.links.size() - before) * copies;
    if (links > links_max) {
        return problem(std::string(part),
                       fmt::format("{} links are too many; at most {}", links, links_max));
    }
    return {};
}

Result<void> check_sizes(const ClusterShape& cluster) {
    if (cluster.nodes == 0) return problem("nodes", "a cluster has at least one node");
    if (cluster.devices_per_node == 0) {
        return problem("devices_per_node", "a node has at least one device");
    }
    if (std::uint64_t{cluster.nodes} * cluster.devices_per_node > devices_max) {
        return problem("nodes",
                       fmt::format("{} nodes of {} devices are too many; at most {} devices",
                                   cluster.nodes, cluster.devices_per_node, devices_max));
    }
    if (cluster.devices_per_node > 1 && !cluster.node) {
        return problem("node", fmt::format("it must say how the {} devices of a node are joined",
                                           cluster.devices_per_node));
    }
    if (cluster.nodes > 1 && !cluster.fabric) {
        return problem("fabric",
                       fmt::format("it must say how the {} nodes are joined", cluster.nodes));
    }
    return {};
}

Result<void> join_fabric(const ClusterShape& cluster, std::span<const VertexId> devices,
                         GraphDraft& draft) {
    if (!cluster.fabric->shape->direct) {
        return join_within("fabric", *cluster.fabric, devices, "", 1, draft);
    }
    for (std::uint32_t rail = 0; rail < cluster.devices_per_node; ++rail) {
        std::vector<VertexId> endpoints;
        for (std::size_t at = rail; at < devices.size(); at += cluster.devices_per_node) {
            endpoints.push_back(devices[at]);
        }
        const std::string prefix = fmt::format("rail{}.", rail);
        auto joined = join_within("fabric", *cluster.fabric, endpoints, prefix,
                                  cluster.devices_per_node, draft);
        if (!joined) return joined;
    }
    return {};
}

/// See Graph::blocks.
Blocks blocks_of(const ClusterShape& cluster) {
    const std::uint32_t node = cluster.devices_per_node;
    const auto inside = [node](const Fabric& fabric, std::uint32_t nodes) {
        const Shape& shape = *fabric.shape;
        return shape.blocks ? shape.blocks(nodes * node, nodes, fabric.parameters) : Blocks{};
    };
    Blocks blocks{.sizes = {node}};
    if (cluster.node && node > 1) {
        const Blocks own = inside(*cluster.node, 1);
        if (own.sizes != blocks.sizes || own.rails > 1) return {};
    }
    if (cluster.fabric && cluster.nodes > 1) {
        if (cluster.fabric->shape->direct) return {};
        const auto fabric = inside(*cluster.fabric, cluster.nodes);
        // A node with ports on two leaves is a way around the spines.
        const auto nested = [node](std::uint32_t leaf) {
            return leaf % node == 0 || node % leaf == 0;
        };
        if (fabric.sizes.empty() || !std::ranges::all_of(fabric.sizes, nested)) return {};
        blocks.sizes.insert(blocks.sizes.end(), fabric.sizes.begin(), fabric.sizes.end());
        blocks.rails = fabric.rails;
        blocks.share_uplinks = fabric.share_uplinks;
    }
    return blocks;
}

}  // namespace

Result<GraphDraft> build_cluster(const ClusterShape& cluster) {
    if (auto fine = check_sizes(cluster); !fine) return tl::unexpected(fine.error());
    GraphDraft draft;
    draft.blocks = blocks_of(cluster);
    std::vector<VertexId> devices;
    for (std::uint32_t node = 0; node < cluster.nodes; ++node) {
        for (std::uint32_t device = 0; device < cluster.devices_per_node; ++device) {
            devices.push_back(draft.add_device(fmt::format("node{}.device{}", node, device), node));
        }
    }
    const std::span<const VertexId> all = devices;
    if (cluster.node && cluster.devices_per_node > 1) {
        for (std::size_t node = 0; node < cluster.nodes; ++node) {
            const auto own = all.subspan(node * cluster.devices_per_node, cluster.devices_per_node);
            const std::string prefix = fmt::format("node{}.", node);
            auto joined = join_within("node", *cluster.node, own, prefix, cluster.nodes, draft);
            if (!joined) return tl::unexpected(joined.error());
        }
    }
    if (cluster.fabric && cluster.nodes > 1) {
        auto joined = join_fabric(cluster, all, draft);
        if (!joined) return tl::unexpected(joined.error());
    }
    return draft;
}

}  // namespace fourfold
