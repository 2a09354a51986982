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
    for (std::uint32_t height = 1; !tier.empty(); ++height) {
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
}

std::optional<Uplinks::Uplink> Uplinks::of(LinkId id) const {
    const Link& link = (*graph_)[id];
    if ((*graph_)[link.from].is_device || (*graph_)[link.to].is_device) return std::nullopt;
    const bool up = below_[link.from].tier < below_[link.to].tier;
    const Below& lower = below_[up ? link.from : link.to];
    const std::span<const std::uint32_t> sizes = graph_->blocks();
    auto size = sizes.end();
    for (auto candidate = sizes.begin(); candidate != sizes.end(); ++candidate) {
        const bool holds = lower.first / *candidate == lower.last / *candidate;
        if (holds && (size == sizes.end() || *candidate < *size)) size = candidate;
    }
    FOURFOLD_CHECK(size != sizes.end(), "the graph's blocks do not hold what {} joins",
                   (*graph_)[up ? link.from : link.to].name);
    return Uplink{.level = static_cast<std::size_t>(size - sizes.begin()),
                  .block = lower.first / *size,
                  .up = up};
}

}  // namespace fourfold
