#include "sim/append.hpp"

#include <vector>

namespace fourfold {

void append(const Program& program, AppendBackground background, ProgramDraft& draft) {
    IdVector<StreamId, StreamId> streams;
    for (const Stream& stream : program.streams()) {
        streams.push_back(draft.add_stream(stream.device, stream.lane));
    }
    IdVector<TeamId, TeamId> teams;
    for (const Team& team : program.teams()) teams.push_back(draft.add_team(team));
    IdVector<TransferId, TransferId> transfers;
    for (Transfer transfer : program.transfers()) {
        if (transfer.is_collective) transfer.team = teams[transfer.team];
        transfers.push_back(draft.add_transfer(std::move(transfer)));
    }
    IdVector<CollectiveId, CollectiveId> collectives;
    IdVector<TaskId, std::uint32_t> member(program.tasks(), 0);
    for (const CollectiveId id : program.collectives().keys()) {
        collectives.push_back(draft.add_collective(transfers[program.collectives()[id].transfer]));
        draft.stretch_collective(collectives[id], program.stretch(id));
        std::uint32_t place = 0;
        for (const TaskId part : program.parts(id)) member[part] = place++;
    }

    const auto first = static_cast<std::uint32_t>(draft.tasks());
    const auto moved = [first](TaskId task) { return TaskId{first + task.value}; };
    std::vector<TaskId> after;
    for (const TaskId task : member.keys()) {
        after.clear();
        for (const TaskId before : program.dependencies(task)) after.push_back(moved(before));
        const StreamId stream = streams[program.stream(task)];
        switch (program.kind(task)) {
            case TaskKind::compute:
                draft.compute(stream, program.duration(task), after);
                break;
            case TaskKind::send:
                draft.stretch_send(draft.send(stream, transfers[program.transfer(task)], after),
                                   program.stretch(task));
                break;
            case TaskKind::receive:
                draft.receive(stream, after);
                break;
            case TaskKind::part:
                draft.part(stream, collectives[program.collective(task)], member[task], after);
                break;
        }
    }
    for (const TaskId task : member.keys()) {
        if (program.kind(task) != TaskKind::receive) continue;
        const TaskId send = program.partner(task);
        draft.connect(moved(send), moved(task), program.transfers()[program.transfer(send)].bytes);
    }
    if (background == AppendBackground::no) return;
    for (Background flow : program.background()) {
        flow.transfer = transfers[flow.transfer];
        draft.add_background(flow);
    }
}

}  // namespace fourfold
