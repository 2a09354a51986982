#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "sim/program.hpp"
#include "topology/graph.hpp"
#include "topology/routes.hpp"

namespace fourfold {

/// The whole-message paths between members: those that a team keeps, or else the graph's routes.
class TeamPaths {
  public:
    /// `graph` is borrowed and must outlive this.
    explicit TeamPaths(const Graph& graph) : graph_(&graph) {}

    /// Requires: the team keeps no paths, or this one.
    /// Returns: as long as the team if it keeps its paths, else good until the next call.
    std::span<const LinkId> between(const Team& team, std::uint32_t from, std::uint32_t to);

  private:
    const Graph* graph_;
    std::optional<Routes> routes_;  // once a team without paths was asked for
};

}  // namespace fourfold
