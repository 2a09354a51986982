#include "sim/quiet_teams.hpp"

#include <algorithm>

// A team is quiet if
// - every message over one of its links left its device through one of its ports, and
// - what leaves through such a port are parts of collectives, each after the one before it is over.
//
//     port of d0 --> switch --> d1       While d0, d1, ... all do their part of a call, whoever
//     port of d1 -->   |                 else could send over these links is one of them, before
//                      '------> d0, ...  that call or after it.
//
// From the call's first begin to its last a member may still do its part of another: the link model
// watches for that.

namespace fourfold {
namespace {

constexpr TaskId none{~std::uint32_t{0}};

// By their streams' order or by what `task` itself waits for.
bool is_after(TaskId task, TaskId before, const Program& program) {
    const StreamId stream = program.stream(before);
    return program.stream(task) == stream ||
           std::ranges::any_of(program.dependencies(task), [&](TaskId dependency) {
               return program.stream(dependency) == stream && dependency >= before;
           });
}

}  // namespace

QuietTeams::QuietTeams(const Graph& graph, const Program& program,
                       const IdVector<TaskId, std::uint32_t>& member)
    : teams_(program.teams().size()) {
    const std::size_t links = graph.links().size();
    IdVector<LinkId, std::vector<LinkId>> ports_to(links);  // of the messages over each link
    IdVector<LinkId, std::uint8_t> in_order(links, 1);      // what leaves through each port
    const auto note = [&](std::span<const LinkId> path) {
        for (const LinkId link : path) {
            std::vector<LinkId>& ports = ports_to[link];
            if (std::ranges::find(ports, path.front()) == ports.end()) {
                ports.push_back(path.front());
            }
        }
    };

    for (const Transfer& transfer : program.transfers()) {
        if (transfer.is_collective) continue;
        note(transfer.path);
        in_order[transfer.path.front()] = 0;
    }
    bool all_known = true;  // where messages may be
    for (const TeamId id : teams_.keys()) {
        const Team& team = program.teams()[id];
        all_known = all_known && (team.keeps_paths() || team.members.size() == 1);
        Ports& own = teams_[id];
        own.first.assign(team.members.size() + 1, 0);
        for (std::size_t i = 0; i < team.members.size() && team.keeps_paths(); ++i) {
            const auto begin = static_cast<std::ptrdiff_t>(own.ports.size());
            for (std::uint32_t p = team.first_peer[i]; p < team.first_peer[i + 1]; ++p) {
                const Team::Peer& peer = team.peers[p];
                note({team.links.data() + peer.path_begin, team.links.data() + peer.path_end});
                const LinkId port = team.links[peer.path_begin];
                if (std::find(own.ports.begin() + begin, own.ports.end(), port) ==
                    own.ports.end()) {
                    own.ports.push_back(port);
                }
            }
            own.first[i + 1] = static_cast<std::uint32_t>(own.ports.size());
        }
    }

    if (!all_known) return;

    IdVector<LinkId, TaskId> last(links, none);
    for (const TaskId task : ids<TaskId>(program.tasks())) {
        if (program.kind(task) != TaskKind::part) continue;
        const TeamId team = program.transfer_of(program.collective(task)).team;
        for (const LinkId port : ports(team, member[task])) {
            TaskId& before = last[port];
            if (before != none && !is_after(task, before, program)) in_order[port] = 0;
            before = task;
        }
    }

    IdVector<LinkId, TeamId> of(links, TeamId{~std::uint32_t{0}});
    for (const TeamId id : teams_.keys()) {
        for (const LinkId port : teams_[id].ports) of[port] = id;
        const Team& team = program.teams()[id];
        teams_[id].quiet = team.keeps_paths() && std::ranges::all_of(team.links, [&](LinkId link) {
                               return std::ranges::all_of(ports_to[link], [&](LinkId port) {
                                   return of[port] == id && in_order[port] != 0;
                               });
                           });
    }
}

}  // namespace fourfold
