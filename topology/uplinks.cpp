#include "topology/uplinks.hpp"

#include <algorithm>

#include "topology/check.hpp"

namespace fourfold {

Uplinks::Uplinks(const Graph& graph) : graph_(&graph) {
    const auto joins_switches = [&](const Link& link) {
        return !graph[link.from].is_device && !graph[link.to].is_device;
    };
    if (std::ranges::none_of(graph.links(), joins_switches)) return;
    std::vector<std::vector<VertexId>> above(graph.vertices().size());
    for (const Link& link : graph.links()) {
        if (!graph[link.to].is_device) above[link.from.value].push_back(link.to);
    }
    below_.resize(graph.vertices().size());
    std::vector<VertexId> tier(graph.devices().begin(), graph.devices().end());
    for (const VertexId device : tier) {
        below_[device].first = below_[device].last = graph[device].device.value;
    }
    while (!tier.empty()) {
        spans_.push_back(0);
        const auto height = static_cast<std::uint32_t>(spans_.size());
        std::vector<VertexId> next;
        for (const VertexId lower : tier) {
            for (const VertexId upper : above[lower.value]) {
                Below& joined = below_[upper];
                if (joined.tier == 0) {
                    joined.tier = height;
                    next.push_back(upper);
                }
                if (joined.tier < height) continue;
                joined.first = std::min(joined.first, below_[lower].first);
                joined.last = std::max(joined.last, below_[lower].last);
            }
        }
        tier = std::move(next);
    }
    for (const Link& link : graph.links()) {
        if (!joins_switches(link)) continue;
        const Below& lower = below_[lower_end(link)];
        spans_[lower.tier] = std::max(spans_[lower.tier], lower.last - lower.first + 1);
    }
}

VertexId Uplinks::lower_end(const Link& link) const {
    return below_[link.from].tier < below_[link.to].tier ? link.from : link.to;
}

std::optional<Uplinks::Uplink> Uplinks::of(LinkId id) const {
    const Link& link = (*graph_)[id];
    if ((*graph_)[link.from].is_device || (*graph_)[link.to].is_device) return std::nullopt;
    const VertexId end = lower_end(link);
    const Below& lower = below_[end];
    const std::span<const std::uint32_t> sizes = graph_->blocks();
    const auto size = std::ranges::find(sizes, spans_[lower.tier]);
    FOURFOLD_CHECK(size != sizes.end() && lower.first % *size == 0,
                   "the graph's blocks are not what {} joins", (*graph_)[end].name);
    return Uplink{.level = static_cast<std::size_t>(size - sizes.begin()),
                  .block = lower.first / *size,
                  .up = end == link.from};
}

}  // namespace fourfold
