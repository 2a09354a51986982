#pragma once

// Shapes and clusters for tests, in few words.

#include <doctest/doctest.h>

#include <string>
#include <string_view>
#include <vector>

#include "topology/cluster.hpp"

namespace fourfold {

inline const LinkSpec port{.bandwidth = 25_GBps, .latency = 5_us, .efficiency = 1.0};

/// Devices "e0", "e1" and so on, each a node of its own.
inline Graph shaped(std::string_view shape, std::uint32_t endpoints,
                    const ShapeParameters& parameters = {}, const LinkSpec& link = port) {
    GraphDraft draft;
    std::vector<VertexId> devices;
    for (std::uint32_t i = 0; i < endpoints; ++i) {
        devices.push_back(draft.add_device("e" + std::to_string(i), i));
    }
    const auto found = find_shape(shape);
    REQUIRE(found);
    const auto joined = join(**found, devices, link, parameters, "", draft);
    REQUIRE_MESSAGE(joined, (joined ? "" : joined.error().what));
    auto graph = seal(std::move(draft));
    REQUIRE(graph);
    return std::move(*graph);
}

inline Fabric fabric_of(std::string_view shape, const LinkSpec& link,
                        const ShapeParameters& parameters = {}) {
    const auto found = find_shape(shape);
    REQUIRE(found.has_value());
    return {.shape = *found, .link = link, .parameters = parameters};
}

inline Graph seal_cluster(const ClusterShape& shape) {
    const auto draft = build_cluster(shape);
    REQUIRE_MESSAGE(draft.has_value(), (draft ? "" : draft.error().what));
    Result<Graph> graph = seal(*draft);
    REQUIRE_MESSAGE(graph.has_value(), (graph ? "" : graph.error().what));
    return std::move(*graph);
}

/// Nodes on a switch of 300 GB/s and 1.5 us a link; a fabric of 25 GB/s and 2.5 us.
inline Graph cluster_of(std::uint32_t nodes, std::uint32_t devices_per_node,
                        std::string_view fabric, const ShapeParameters& parameters = {}) {
    return seal_cluster({.nodes = nodes,
                         .devices_per_node = devices_per_node,
                         .node = fabric_of("switch", {300_GBps, 1500_ns}),
                         .fabric = fabric_of(fabric, {25_GBps, 2500_ns}, parameters)});
}

}  // namespace fourfold
