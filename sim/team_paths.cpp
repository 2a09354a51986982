#include "sim/team_paths.hpp"

#include <algorithm>

#include "topology/check.hpp"

namespace fourfold {

std::span<const LinkId> TeamPaths::between(const Team& team, std::uint32_t from, std::uint32_t to) {
    if (!team.keeps_paths()) {
        if (!routes_) routes_.emplace(*graph_);
        return routes_->path(team.members[from], team.members[to]);
    }
    const auto first = team.peers.begin() + team.first_peer[from];
    const auto last = team.peers.begin() + team.first_peer[from + 1];
    const auto found = std::lower_bound(
        first, last, to, [](const Team::Peer& a, std::uint32_t b) { return a.to < b; });
    FOURFOLD_DCHECK(found != last && found->to == to, "member {} has no path to {}", from, to);
    return {team.links.data() + found->path_begin, team.links.data() + found->path_end};
}

}  // namespace fourfold
