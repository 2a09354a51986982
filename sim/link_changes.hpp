#pragma once

// Links that are slower from some time on, or gone.

#include <optional>
#include <span>
#include <vector>

#include "topology/graph.hpp"

namespace fourfold {

struct LinkChange {
    LinkId link;
    Time at{};
    double bandwidth = 1;  // the part that is left, at most 1; 0: it fails
};

/// What is left of a link's rate; never nothing.
BytesPerSecond changed_rate(const Link& link, double bandwidth);

class LinkChanges {
  public:
    /// `graph` is borrowed. Requires: at most one change of each link.
    LinkChanges(const Graph& graph, std::span<const LinkChange> changes);

    [[nodiscard]] bool any() const { return !of_link_.empty(); }
    /// How long from `from` on what takes `duration` on the unchanged link takes.
    [[nodiscard]] Duration slowed(LinkId link, Time from, Duration duration) const;
    [[nodiscard]] std::optional<Time> failure(LinkId link) const;
    /// A shortest path over links that have not failed at `now`; empty: there is none.
    [[nodiscard]] std::vector<LinkId> path(VertexId from, VertexId to, Time now) const;

  private:
    const Graph* graph_;
    std::vector<LinkChange> changes_;
    IdVector<LinkId, const LinkChange*> of_link_;  // into changes_; empty: no change at all
};

}  // namespace fourfold
