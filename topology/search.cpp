#include "topology/search.hpp"

#include <algorithm>
#include <boost/range/iterator_range.hpp>
#include <functional>

#include "topology/adjacency.hpp"

// Dijkstra's algorithm with a binary heap and stale entries instead of a decrease-key, over the
// graph's Boost adjacency. Boost's own `dijkstra_shortest_paths` visits every vertex: 0.12 ms per
// source among 3,072 devices, and growing with the square of the cluster in all. It serves one
// search to the end; here two take turns and stop early.

namespace fourfold {

Search::Search(const Graph& graph, Direction direction)
    : graph_(&graph), direction_(direction), labels_(graph.vertices().size()) {}

void Search::close(LinkId link) {
    closed_.resize(graph_->links().size());
    closed_[link.value] = true;
}

void Search::start(VertexId origin) {
    for (const VertexId vertex : reached_) labels_[vertex] = {};
    reached_.clear();
    parents_.clear();
    queue_.clear();
    reach(origin, Cost{});
}

std::span<const VertexId> Search::advance() {
    const VertexId vertex = queue_.front().vertex;
    const Cost base = queue_.front().cost;
    std::ranges::pop_heap(queue_, std::greater<>{});
    queue_.pop_back();
    fallen_.clear();
    const Adjacency::Boost& adjacency = graph_->adjacency().graph;
    if (direction_ == Direction::outward) {
        for (const auto edge : boost::make_iterator_range(out_edges(vertex.value, adjacency))) {
            relax(adjacency[edge], base);
        }
    } else {
        for (const auto edge : boost::make_iterator_range(in_edges(vertex.value, adjacency))) {
            relax(adjacency[edge], base);
        }
    }
    drop_stale();
    return fallen_;
}

void Search::relax(LinkId id, Cost base) {
    if (!closed_.empty() && closed_[id.value]) return;
    const Link& link = (*graph_)[id];
    const VertexId end = direction_ == Direction::outward ? link.to : link.from;
    const Cost cost = base + Cost{link.spec.latency, 1};
    Label& label = labels_[end];
    if (cost > label.cost) return;
    if (cost < label.cost) {
        reach(end, cost);
        fallen_.push_back(end);
    }
    parents_.push_back({id, label.parents});
    label.parents = static_cast<std::uint32_t>(parents_.size() - 1);
}

void Search::reach(VertexId vertex, Cost cost) {
    if (!reaches(vertex)) reached_.push_back(vertex);
    labels_[vertex] = {cost, none};
    queue_.push_back({cost, vertex});
    std::ranges::push_heap(queue_, std::greater<>{});
}

void Search::drop_stale() {
    while (!queue_.empty() && queue_.front().cost != labels_[queue_.front().vertex].cost) {
        std::ranges::pop_heap(queue_, std::greater<>{});
        queue_.pop_back();
    }
}

void Search::append_parents(VertexId vertex, std::vector<LinkId>& links) const {
    for (std::uint32_t at = labels_[vertex].parents; at != none; at = parents_[at].next) {
        links.push_back(parents_[at].link);
    }
}

}  // namespace fourfold
