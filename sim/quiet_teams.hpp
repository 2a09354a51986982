#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/program.hpp"
#include "topology/graph.hpp"

namespace fourfold {

/// The teams whose messages nobody else's can meet, once all members take part in a call and no
/// other call is open that sends through the same ports. (A port: the first link of a message.)
class QuietTeams {
  public:
    /// `member`: of each part, its place in its team. Cost: all parts.
    QuietTeams(const Graph& graph, const Program& program,
               const IdVector<TaskId, std::uint32_t>& member);

    [[nodiscard]] bool is_quiet(TeamId team) const { return teams_[team].quiet; }
    [[nodiscard]] bool any() const {
        for (const Ports& team : teams_) {
            if (team.quiet) return true;
        }
        return false;
    }
    /// Those through which the team sends; of a team that keeps no paths, none.
    [[nodiscard]] std::span<const LinkId> ports(TeamId team) const { return teams_[team].ports; }
    [[nodiscard]] std::span<const LinkId> ports(TeamId team, std::uint32_t member) const {
        const Ports& own = teams_[team];
        return ports(team).subspan(own.first[member], own.first[member + 1] - own.first[member]);
    }

  private:
    struct Ports {
        std::vector<LinkId> ports;         // by member
        std::vector<std::uint32_t> first;  // members + 1 offsets into `ports`
        bool quiet = false;
    };
    IdVector<TeamId, Ports> teams_;
};

}  // namespace fourfold
