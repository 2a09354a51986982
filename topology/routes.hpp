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

/// Routes are found when first asked for and kept. Cost of a new one: the neighbourhoods of both
/// ends up to the middle, whatever the size of the graph; routes of one source after the other
/// share the source's half.
class Routes {
  public:
    /// `graph` is borrowed and must outlive this.
    explicit Routes(const Graph& graph);

    /// Requires: from != to. (Every device reaches every other: `seal` saw to it.)
    /// The reference stays valid as long as this object.
    const Route& route(DeviceId from, DeviceId to);

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

    Cost meet();
    void collect_steps(Cost total);
    void walk(const Search& search, VertexId from, Cost total);
    Route split(VertexId source, DeviceId to);
    [[nodiscard]] Route choose(VertexId source, std::uint64_t ends) const;

    const Graph* graph_;
    std::unordered_map<std::uint64_t, Route> found_;  // by source << 32 | destination
    std::optional<DeviceId> source_;                  // of which outward_ holds the search
    Search outward_, inward_;
    // Scratch space of one route.
    std::vector<Step> steps_;
    std::vector<VertexId> pending_;
    std::vector<LinkId> links_;
    IdVector<VertexId, std::uint8_t> walked_;
    std::vector<VertexId> marked_;
    IdVector<VertexId, Parts> inflow_;
};

}  // namespace fourfold
