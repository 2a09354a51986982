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
    // On rails a switch joins fewer than all that lie between its first device and its last.
    const std::span<const std::uint32_t> sizes = graph_->blocks();
    auto size = sizes.end();
    for (auto each = sizes.begin(); each != sizes.end(); ++each) {
        if (*each >= spans_[lower.tier] && (size == sizes.end() || *each < *size)) size = each;
    }
    FOURFOLD_CHECK(size != sizes.end() && lower.first % *size < graph_->rails(),
                   "the graph's blocks are not what {} joins", (*graph_)[end].name);
    return Uplink{.level = static_cast<std::size_t>(size - sizes.begin()),
                  .section = graph_->section_of({lower.first}, *size),
                  .up = end == link.from};
}

}  // namespace fourfold
