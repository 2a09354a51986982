#pragma once

// Half of a search for shortest routes: Dijkstra's algorithm from one end, one vertex at a time, so
// that whoever searches from both ends can stop in the middle.

#include <cstdint>
#include <span>
#include <vector>

#include "topology/graph.hpp"

namespace fourfold {

/// What a route costs: latency first, then links.
struct Cost {
    Duration latency{};
    std::uint32_t links = 0;

    friend auto operator<=>(const Cost&, const Cost&) = default;
    friend Cost operator+(Cost a, Cost b) { return {a.latency + b.latency, a.links + b.links}; }
    friend Cost operator-(Cost a, Cost b) { return {a.latency - b.latency, a.links - b.links}; }
};

class Search {
  public:
    /// Along links, or against them.
    enum class Direction { outward, inward };

    /// `graph` is borrowed and must outlive this.
    Search(const Graph& graph, Direction direction);

    /// Searches after this do not go over `link`.
    void close(LinkId link);

    /// Forgets everything but closed links. Cost: what the search before had reached.
    void start(VertexId origin);

    /// Every vertex that can be reached has been scanned.
    [[nodiscard]] bool exhausted() const { return queue_.empty(); }
    /// The least cost of a vertex that has not been scanned. Requires: not exhausted.
    [[nodiscard]] Cost nearest() const { return queue_.front().cost; }
    /// Scans that vertex. Returns: the vertices whose cost fell; valid until the next call.
    std::span<const VertexId> advance();

    [[nodiscard]] bool reaches(VertexId vertex) const { return labels_[vertex].cost < unreached; }
    /// An upper bound, and exact for scanned vertices. Requires: `reaches(vertex)`.
    [[nodiscard]] Cost cost(VertexId vertex) const { return labels_[vertex].cost; }
    /// All vertices that are reached.
    [[nodiscard]] std::span<const VertexId> reached() const { return reached_; }

    /// Appends the links over which `vertex` was reached at its cost, from scanned vertices.
    void append_parents(VertexId vertex, std::vector<LinkId>& links) const;

  private:
    static constexpr Cost unreached{Duration::max(), 0};
    static constexpr std::uint32_t none = ~std::uint32_t{0};

    struct Label {
        Cost cost = unreached;
        std::uint32_t parents = none;  // head of a list in parents_
    };
    struct Parent {
        LinkId link;
        std::uint32_t next = none;
    };
    struct Entry {
        Cost cost;
        VertexId vertex;
        friend auto operator<=>(const Entry&, const Entry&) = default;
    };

    void relax(LinkId link, Cost base);
    void reach(VertexId vertex, Cost cost);
    void drop_stale();

    const Graph* graph_;
    Direction direction_;
    std::vector<bool> closed_;  // by link; empty: none
    IdVector<VertexId, Label> labels_;
    std::vector<Parent> parents_;
    std::vector<Entry> queue_;  // a heap; an entry is stale once its vertex has a lower cost
    std::vector<VertexId> reached_, fallen_;
};

}  // namespace fourfold
