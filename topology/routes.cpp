#include "topology/routes.hpp"

#include <algorithm>

#include "topology/check.hpp"
#include "topology/splitmix.hpp"

// The problem: thousands of devices, each asked for a handful of destinations, in graphs of any
// shape. A search of the whole graph per source costs the square of the cluster.
//
// The method: search from both ends and stop in the middle (Pohl 1971, Bi-directional search). With
// F and B the least cost not yet scanned on either side and `best` the cheapest meeting so far, the
// searches stop when F + B >= best. That also finds *every* shortest route, not just one:
//
//     source  o---o---u--->w---o---o  destination        u: the last on the route with cost < F
//             scanned     |   scanned
//             from here   |   from there
//
// w is at least F from the source, so at most best - F <= B from the destination: all after w are
// scanned from there and all before w from here. So w is known exactly from both sides, and the
// links of the route are among the parents that the two searches kept.
//
// Even splits are reckoned in 2^-100 of the transfer, and the remainder of a division goes to the
// first choices one by one: what enters a vertex leaves it, to the last unit, and branches that
// meet again add up. Only the finished share is rounded up to 2^-32; errors of the division, far
// below that, must not lift a share that is exact (three sixths are a half).

namespace fourfold {
namespace {

constexpr int part_bits = 100;
constexpr int share_bits = 32;

/// In 2^-32, rounded up, and never nothing. Up to 2^-60 above a whole number of those is an error
/// of division.
std::uint64_t rounded_up(unsigned __int128 parts) {
    using Wide = unsigned __int128;
    constexpr int drop = part_bits - share_bits;
    constexpr Wide slack = Wide{1} << (part_bits - 60);
    const Wide units = (parts + (Wide{1} << drop) - 1 - slack) >> drop;
    return std::max<std::uint64_t>(1, static_cast<std::uint64_t>(units));
}

}  // namespace

Bytes on_link(Bytes bytes, const Share& share) {
    FOURFOLD_DCHECK(bytes.value >= 0 && share.part <= Share::whole);
    const auto product = static_cast<unsigned __int128>(bytes.value) * share.part;
    return {static_cast<std::int64_t>((product + (Share::whole - 1)) >> share_bits)};
}

Routes::Routes(const Graph& graph)
    : graph_(&graph),
      outward_(graph, Search::Direction::outward),
      inward_(graph, Search::Direction::inward),
      walked_(graph.vertices().size()),
      inflow_(graph.vertices().size()) {}

const Route& Routes::route(DeviceId from, DeviceId to) {
    FOURFOLD_CHECK(from != to, "device {}", from.value);
    const std::uint64_t key = std::uint64_t{from.value} << 32 | to.value;
    const auto [entry, fresh] = found_.try_emplace(key);
    if (!fresh) return entry->second;

    const VertexId source = graph_->devices()[from.value];
    if (source_ != from) outward_.start(source);
    source_ = from;
    inward_.start(graph_->devices()[to.value]);
    const Cost total = meet();
    collect_steps(total);
    const bool by_hash = graph_->routing().kind == Routing::Kind::ecmp;
    entry->second = by_hash ? choose(source, key) : split(source, to);
    entry->second.latency = total.latency;
    return entry->second;
}

/// Runs both searches until no cheaper meeting is possible. Returns: the cost of the whole route.
Cost Routes::meet() {
    Cost best{Duration::max(), 0};
    const auto look = [&best](VertexId vertex, const Search& here, const Search& there) {
        if (there.reaches(vertex)) best = std::min(best, here.cost(vertex) + there.cost(vertex));
    };
    for (const VertexId destination : inward_.reached()) look(destination, inward_, outward_);
    while (!outward_.exhausted() && !inward_.exhausted() &&
           outward_.nearest() + inward_.nearest() < best) {
        const bool outward = outward_.nearest() <= inward_.nearest();
        Search& here = outward ? outward_ : inward_;
        const Search& there = outward ? inward_ : outward_;
        for (const VertexId vertex : here.advance()) look(vertex, here, there);
    }
    FOURFOLD_CHECK(best.latency < Duration::max(), "a sealed graph has a route");
    return best;
}

/// Every link of every shortest route, by distance of its beginning from the source.
void Routes::collect_steps(Cost total) {
    steps_.clear();
    const bool fewer_outward = outward_.reached().size() < inward_.reached().size();
    for (const VertexId vertex : (fewer_outward ? outward_ : inward_).reached()) {
        const bool meeting = outward_.reaches(vertex) && inward_.reaches(vertex) &&
                             outward_.cost(vertex) + inward_.cost(vertex) == total;
        if (!meeting) continue;
        walk(outward_, vertex, total);
        walk(inward_, vertex, total);
    }
    for (const VertexId vertex : marked_) walked_[vertex] = 0;
    marked_.clear();
    std::ranges::sort(steps_);
    // Steps between two meetings were seen from both.
    steps_.erase(std::unique(steps_.begin(), steps_.end()), steps_.end());
}

/// From a meeting to the search's origin, over all its links that were not yet walked.
void Routes::walk(const Search& search, VertexId from, Cost total) {
    const bool outward = &search == &outward_;
    const std::uint8_t mark = outward ? 1 : 2;
    const auto visit = [&](VertexId vertex) {
        if ((walked_[vertex] & mark) != 0) return;
        walked_[vertex] = static_cast<std::uint8_t>(walked_[vertex] | mark);
        marked_.push_back(vertex);
        pending_.push_back(vertex);
    };
    visit(from);
    while (!pending_.empty()) {
        const VertexId vertex = pending_.back();
        pending_.pop_back();
        links_.clear();
        search.append_parents(vertex, links_);
        for (const LinkId id : links_) {
            const Link& link = (*graph_)[id];
            const Cost at = outward ? outward_.cost(link.from) : total - inward_.cost(vertex);
            steps_.push_back({at, link.from, id});
            visit(outward ? link.from : link.to);
        }
    }
}

/// Follows the transfer from its source through every fork. Requires: steps_ in order of distance.
Route Routes::split(VertexId source, DeviceId to) {
    Route route;
    route.shares.reserve(steps_.size());
    inflow_[source] = Parts{1} << part_bits;
    VertexId message = source;  // where the whole message is
    for (std::size_t begin = 0, end = 0; begin < steps_.size(); begin = end) {
        const VertexId vertex = steps_[begin].from;
        while (end < steps_.size() && steps_[end].from == vertex) ++end;
        const std::size_t choices = end - begin;
        const Parts each = inflow_[vertex] / choices;
        const Parts left = inflow_[vertex] % choices;
        inflow_[vertex] = 0;
        for (std::size_t i = 0; i < choices; ++i) {
            const LinkId link = steps_[begin + i].link;
            const Parts parts = each + (i < left ? 1 : 0);
            inflow_[(*graph_)[link].to] += parts;
            route.shares.push_back({link, rounded_up(parts)});
        }
        if (vertex == message) {
            route.path.push_back(steps_[begin + to.value % choices].link);
            message = (*graph_)[route.path.back()].to;
        }
    }
    inflow_[message] = 0;
    FOURFOLD_DCHECK(message == graph_->devices()[to.value]);
    std::ranges::sort(route.shares, {}, &Share::link);
    return route;
}

/// Takes one link at every fork. Requires: steps_ in order of distance, and links within a vertex.
Route Routes::choose(VertexId source, std::uint64_t ends) const {
    const std::uint64_t flow = splitmix64(splitmix64(graph_->routing().seed) ^ ends);
    Route route;
    VertexId at = source;
    for (auto step = steps_.begin(); step != steps_.end();) {
        const auto next = std::find_if(step, steps_.end(),
                                       [&](const Step& other) { return other.from != step->from; });
        if (step->from == at) {
            const auto choices = static_cast<std::uint64_t>(next - step);
            const std::uint64_t choice = splitmix64(flow ^ at.value) % choices;
            const LinkId link = step[static_cast<std::ptrdiff_t>(choice)].link;
            route.path.push_back(link);
            route.shares.push_back({link, Share::whole});
            at = (*graph_)[link].to;
        }
        step = next;
    }
    std::ranges::sort(route.shares, {}, &Share::link);
    return route;
}

}  // namespace fourfold
