#include "sim/link_changes.hpp"

#include <algorithm>
#include <cmath>

#include "topology/check.hpp"
#include "topology/search.hpp"

namespace fourfold {

BytesPerSecond changed_rate(const Link& link, double bandwidth) {
    const double left = std::floor(static_cast<double>(link.rate.value) * bandwidth);
    return {std::max(std::int64_t{1}, static_cast<std::int64_t>(left))};
}

LinkChanges::LinkChanges(const Graph& graph, std::span<const LinkChange> changes)
    : graph_(&graph), changes_(changes.begin(), changes.end()) {
    if (changes_.empty()) return;
    of_link_.resize(graph.links().size());
    for (const LinkChange& change : changes_) {
        FOURFOLD_CHECK(of_link_[change.link] == nullptr, "link {}", change.link.value);
        of_link_[change.link] = &change;
    }
}

Duration LinkChanges::slowed(LinkId link, Time from, Duration duration) const {
    const LinkChange* change = any() ? of_link_[link] : nullptr;
    if (change == nullptr || change->bandwidth == 0) return duration;
    const Duration before = std::max(Duration::zero(), change->at - from);
    if (duration <= before) return duration;
    const std::int64_t full = (*graph_)[link].rate.value;
    const std::int64_t left = changed_rate((*graph_)[link], change->bandwidth).value;
    __extension__ using Wide = __int128;
    const Wide rest = (Wide{(duration - before).count()} * full + left - 1) / left;
    if (rest >= (duration_limit - before).count()) return duration_limit;
    return before + Duration(static_cast<std::int64_t>(rest));
}

std::optional<Time> LinkChanges::failure(LinkId link) const {
    const LinkChange* change = any() ? of_link_[link] : nullptr;
    if (change == nullptr || change->bandwidth > 0) return std::nullopt;
    return change->at;
}

std::vector<LinkId> LinkChanges::path(VertexId from, VertexId to, Time now) const {
    Search search(*graph_, Search::Direction::outward);
    for (const LinkChange& change : changes_) {
        if (change.bandwidth == 0 && change.at <= now) search.close(change.link);
    }
    search.start(from);
    while (!search.exhausted() && !(search.reaches(to) && search.cost(to) < search.nearest())) {
        search.advance();
    }
    std::vector<LinkId> path, parents;
    if (!search.reaches(to)) return path;
    for (VertexId at = to; at != from; at = (*graph_)[path.back()].from) {
        parents.clear();
        search.append_parents(at, parents);
        path.push_back(*std::ranges::min_element(parents));
    }
    std::ranges::reverse(path);
    return path;
}

}  // namespace fourfold
