#include "topology/routes.hpp"

#include <algorithm>
#include <boost/range/iterator_range.hpp>
#include <iterator>

#include "topology/adjacency.hpp"
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
//
// Two devices are twins if their ports are the same. A shortest route between others never goes
// through both: from the first it had better go on where it leaves the second. So the routes of a
// pair are those of its twins, with their ports in place of the pair's:
//
//     d --.                        .-- e        at a vertex whose choices include a device's port,
//          switch ==>  ...  ==> switch          all choices are (parallel) ports to that device:
//     d' -'                        '-- e'       others would be longer. So their order is the same.

namespace fourfold {
namespace {

constexpr int part_bits = 100;
constexpr int share_bits = 32;

// Beyond so many choices (half a gigabyte) all are forgotten and found anew when asked for again.
constexpr std::size_t kept_max = std::size_t{1} << 24;
constexpr DeviceId unknown{~std::uint32_t{0}};

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
      twins_(graph.devices().size(), unknown),
      outward_(graph, Search::Direction::outward),
      inward_(graph, Search::Direction::inward),
      walked_(graph.vertices().size()),
      inflow_(graph.vertices().size()) {}

const Route& Routes::route(DeviceId from, DeviceId to) {
    const Ways& found = ways(from, to);
    choose(found, from, to);
    route_.latency = found.latency;
    route_.shares.clear();
    if (graph_->routing().kind == Routing::Kind::ecmp) {
        for (const LinkId link : route_.path) route_.shares.push_back({link, Share::whole});
    } else {
        for (const Choice& choice : found.choices) {
            route_.shares.push_back({own_link(choice, found, from, to), choice.share.part});
        }
    }
    std::ranges::sort(route_.shares, {}, &Share::link);
    return route_;
}

std::span<const LinkId> Routes::path(DeviceId from, DeviceId to) {
    choose(ways(from, to), from, to);
    return route_.path;
}

/// The first device with the same ports, of those that are joined to switches only.
DeviceId Routes::twin(DeviceId device) {
    DeviceId& known = twins_[device];
    if (known != unknown) return known;
    known = device;
    const VertexId vertex = graph_->devices()[device.value];
    const Adjacency::Boost& adjacency = graph_->adjacency().graph;
    const auto port = adjacency[*out_edges(vertex.value, adjacency).first];
    const VertexId joined = (*graph_)[port].to;
    for (const auto edge : boost::make_iterator_range(in_edges(joined.value, adjacency))) {
        const VertexId other = (*graph_)[adjacency[edge]].from;
        if (!(*graph_)[other].is_device || !same_ports(vertex, other)) continue;
        return known = (*graph_)[other].device;
    }
    return known;
}

bool Routes::same_ports(VertexId a, VertexId b) const {
    const Adjacency::Boost& adjacency = graph_->adjacency().graph;
    const auto same = [&](const auto& mine, const auto& theirs, VertexId Link::*end) {
        return std::equal(mine.first, mine.second, theirs.first, theirs.second,
                          [&](const auto& one, const auto& other) {
                              const Link& x = (*graph_)[adjacency[one]];
                              const Link& y = (*graph_)[adjacency[other]];
                              return x.*end == y.*end && !(*graph_)[x.*end].is_device &&
                                     x.spec.latency == y.spec.latency;
                          });
    };
    return same(out_edges(a.value, adjacency), out_edges(b.value, adjacency), &Link::to) &&
           same(in_edges(a.value, adjacency), in_edges(b.value, adjacency), &Link::from);
}

const Routes::Ways& Routes::ways(DeviceId from, DeviceId to) {
    FOURFOLD_CHECK(from != to, "device {}", from.value);
    const std::uint64_t key = std::uint64_t{twin(from).value} << 32 | twin(to).value;
    const auto known = found_.find(key);
    if (known != found_.end()) return known->second;

    const VertexId source = graph_->devices()[from.value];
    if (source_ != from) outward_.start(source);
    source_ = from;
    inward_.start(graph_->devices()[to.value]);
    const Cost total = meet();
    collect_steps(total);
    if (kept_ > kept_max) {
        found_.clear();
        kept_ = 0;
    }
    kept_ += steps_.size();
    return found_.emplace(key, Ways{from, to, total.latency, split(source)}).first->second;
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
std::vector<Routes::Choice> Routes::split(VertexId source) {
    std::vector<Choice> choices;
    choices.reserve(steps_.size());
    inflow_[source] = Parts{1} << part_bits;
    for (std::size_t begin = 0, end = 0; begin < steps_.size(); begin = end) {
        const VertexId vertex = steps_[begin].from;
        while (end < steps_.size() && steps_[end].from == vertex) ++end;
        const Parts each = inflow_[vertex] / (end - begin);
        const Parts left = inflow_[vertex] % (end - begin);
        inflow_[vertex] = 0;
        for (std::size_t i = begin; i < end; ++i) {
            const LinkId link = steps_[i].link;
            const VertexId to = (*graph_)[link].to;
            const Parts parts = each + (i - begin < left ? 1 : 0);
            inflow_[to] += parts;
            choices.push_back({vertex, to, {link, rounded_up(parts)}});
        }
    }
    inflow_[choices.back().to] = 0;
    return choices;
}

/// The link of this pair that is as the choice's: another where it is a port.
LinkId Routes::own_link(const Choice& choice, const Ways& ways, DeviceId from, DeviceId to) const {
    const std::span<const VertexId> vertex = graph_->devices();
    const Adjacency::Boost& adjacency = graph_->adjacency().graph;
    const auto same_place = [&](const auto& theirs, const auto& mine) {
        auto own = mine.first;
        for (auto other = theirs.first; adjacency[*other] != choice.share.link; ++other) ++own;
        return adjacency[*own];
    };
    if (from != ways.from && choice.from == vertex[ways.from.value]) {
        return same_place(out_edges(choice.from.value, adjacency),
                          out_edges(vertex[from.value].value, adjacency));
    }
    if (to != ways.to && choice.to == vertex[ways.to.value]) {
        return same_place(in_edges(choice.to.value, adjacency),
                          in_edges(vertex[to.value].value, adjacency));
    }
    return choice.share.link;
}

/// Takes one link at every fork.
void Routes::choose(const Ways& ways, DeviceId from, DeviceId to) {
    const Routing& routing = graph_->routing();
    const std::uint64_t ends = std::uint64_t{from.value} << 32 | to.value;
    const std::uint64_t flow = splitmix64(splitmix64(routing.seed) ^ ends);
    route_.path.clear();
    VertexId at = ways.choices.front().from;
    for (auto choice = ways.choices.begin(); choice != ways.choices.end();) {
        const auto next = std::find_if(choice, ways.choices.end(), [&](const Choice& other) {
            return other.from != choice->from;
        });
        if (choice->from == at) {
            const VertexId fork = route_.path.empty() ? graph_->devices()[from.value] : at;
            const bool by_hash = routing.kind == Routing::Kind::ecmp;
            const std::uint64_t number = by_hash ? splitmix64(flow ^ fork.value) : to.value;
            const Choice& taken = choice[static_cast<std::ptrdiff_t>(
                number % static_cast<std::uint64_t>(next - choice))];
            route_.path.push_back(own_link(taken, ways, from, to));
            at = taken.to;
        }
        choice = next;
    }
}

}  // namespace fourfold
