#pragma once

// What a graph is made of, and how far apart its devices are.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "topology/graph.hpp"

namespace fourfold {

/// Vertices whose names differ in their numbers only.
struct VertexGroup {
    std::string pattern;  // "node*.device*"
    std::size_t count = 0;
    VertexId first, last;
};

/// Links between vertices of two groups that offer the same.
struct LinkGroup {
    std::string from, to;  // patterns
    LinkSpec spec;
    BytesPerSecond rate{};  // of each
    std::size_t count = 0;
};

/// In the order in which the graph has them.
std::vector<VertexGroup> vertex_groups(const Graph& graph);
std::vector<LinkGroup> link_groups(const Graph& graph);

std::size_t count_nodes(const Graph& graph);

/// The longest of the shortest routes between devices, by latency and by links.
struct Diameter {
    Duration latency{};
    std::uint32_t links = 0;
    std::size_t sources = 0;  // devices from which all routes were searched
    bool exact = true;        // every other device is joined as one of these is
};

/// Cost: a bounded number of searches of the whole graph. In a large one the longest route may
/// begin at none of the devices that were tried.
Diameter diameter(const Graph& graph);

}  // namespace fourfold
