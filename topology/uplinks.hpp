#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "topology/graph.hpp"

namespace fourfold {

/// The links that join blocks of devices through switches.
class Uplinks {
  public:
    explicit Uplinks(const Graph& graph);

    /// A link between two switches, the lower of which is the block's, or its rail's in the block.
    /// Between two that are alike: down to where it leads.
    struct Uplink {
        std::size_t level;      // of the block's size in Graph::blocks
        std::uint32_t section;  // see Graph::section_of
        bool up;                // out of the block
    };
    /// Nothing for a device's own link.
    [[nodiscard]] std::optional<Uplink> of(LinkId link) const;
    /// There is none at all.
    [[nodiscard]] bool empty() const { return below_.empty(); }

  private:
    // The devices that a switch joins from below, and how far above them it is.
    struct Below {
        std::uint32_t first = ~std::uint32_t{0}, last = 0;
        std::uint32_t tier = 0;  // 0: a device
    };

    [[nodiscard]] VertexId lower_end(const Link& link) const;

    const Graph* graph_;
    IdVector<VertexId, Below> below_;
    // Of each tier: how many devices a switch joins. The last one may join fewer.
    std::vector<std::uint32_t> spans_;
};

}  // namespace fourfold
