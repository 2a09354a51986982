#pragma once

// Nodes of devices inside a fabric: one shape inside each node, another across.

#include <cstdint>
#include <optional>

#include "topology/graph.hpp"
#include "topology/shapes/shape.hpp"

namespace fourfold {

struct Fabric {
    const Shape* shape = nullptr;
    LinkSpec link;
    ShapeParameters parameters;
};

struct ClusterShape {
    std::uint32_t nodes = 1;
    std::uint32_t devices_per_node = 1;
    std::optional<Fabric> node;    // needed when devices_per_node > 1
    std::optional<Fabric> fabric;  // needed when nodes > 1; every device has a port of its own
};

/// Devices are named "node3.device0" and numbered node by node; a node's switch is "node3.switch",
/// the fabric's are "switch", "leaf0", "spine0". A problem's `where` is "node", "fabric",
/// "node.dimensions" and so on. At most 2^20 devices.
Result<GraphDraft> build_cluster(const ClusterShape& cluster);

}  // namespace fourfold
