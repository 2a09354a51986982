#pragma once

// Shortest routes between devices: least latency, then fewest links. Where several are equally
// short, the graph's routing decides:
//   balanced  a fluid transfer splits evenly at every fork (`shares`), a whole message takes one
//             path, chosen by its destination (`path`).
//   ecmp      all that one device sends to another takes one path (equal-cost multi-path, as
//             switches do it by the hash of a flow's header): at a fork of n links, in the order of
//             their ids, at vertex v, link number h(h(h(seed) ^ source << 32 ^ destination) ^ v)
//             mod n, where h is one step of splitmix64 (Steele et al. 2014). Pairs can collide.

#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "topology/graph.hpp"
#include "topology/search.hpp"

namespace fourfold {

/// The part of a transfer's bytes that crosses `link`, in units of 2^-32, rounded up; a lone path
/// has exactly `whole` on each of its links.
struct Share {
    LinkId link;
    std::uint64_t part;
    static constexpr std::uint64_t whole = std::uint64_t{1} << 32;
};

struct Route {
    std::vector<Share> shares;  // every link of every shortest path, by LinkId
    std::vector<LinkId> path;   // the one path of a whole message, in travel order
    Duration latency{};         // of any of them
};

/// Bytes of a transfer of `bytes` that cross a link with this share, rounded up.
Bytes on_link(Bytes bytes, const Share& share);

/// Devices with the same ports (links to the same switches, of the same latencies) have the same
/// routes but for these ports. Each such route is found when first asked for and kept, so that a
/// switch with all its devices needs one. Cost of a new one: the neighbourhoods of both ends up to
/// the middle, whatever the size of the graph; routes of one source after the other share the
/// source's half.
class Routes {
  public:
    /// `graph` is borrowed and must outlive this.
    explicit Routes(const Graph& graph);

    /// Requires: from != to. (Every device reaches every other: `seal` saw to it.)
    /// Returns: good until the next call of this or of `path`.
    const Route& route(DeviceId from, DeviceId to);
    /// `route(from, to).path`, without the rest.
    std::span<const LinkId> path(DeviceId from, DeviceId to);

    [[nodiscard]] const Graph& graph() const { return *graph_; }

  private:
    using Parts = unsigned __int128;  // of a transfer, see routes.cpp

    /// A link that lies on a shortest route, and how far from the source it begins.
    struct Step {
        Cost at;
        VertexId from;
        LinkId link;
        friend auto operator<=>(const Step&, const Step&) = default;
    };
    /// One of the links that a transfer can take from a vertex, and the share that is split off.
    struct Choice {
        VertexId from, to;
        Share share;
    };
    /// Every shortest route of a pair, and of all whose ports are the same.
    struct Ways {
        DeviceId from, to;
        Duration latency{};
        std::vector<Choice> choices;  // by distance from the source; within a vertex by link
    };

    DeviceId twin(DeviceId device);
    [[nodiscard]] bool same_ports(VertexId a, VertexId b) const;
    const Ways& ways(DeviceId from, DeviceId to);
    Cost meet();
    void collect_steps(Cost total);
    void walk(const Search& search, VertexId from, Cost total);
    std::vector<Choice> split(VertexId source);
    [[nodiscard]] LinkId own_link(const Choice& choice, const Ways& ways, DeviceId from,
                                  DeviceId to) const;
    void choose(const Ways& ways, DeviceId from, DeviceId to);

    const Graph* graph_;
    IdVector<DeviceId, DeviceId> twins_;             // the first with the same ports, once known
    std::unordered_map<std::uint64_t, Ways> found_;  // by source's twin << 32 | destination's
    std::size_t kept_ = 0;                           // choices in `found_`
    Route route_;                                    // the last that was asked for
    std::optional<DeviceId> source_;                 // of which outward_ holds the search
    Search outward_, inward_;
    // Scratch space of one search.
    std::vector<Step> steps_;
    std::vector<VertexId> pending_;
    std::vector<LinkId> links_;
    IdVector<VertexId, std::uint8_t> walked_;
    std::vector<VertexId> marked_;
    IdVector<VertexId, Parts> inflow_;
};

}  // namespace fourfold
