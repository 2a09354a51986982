#include "sim/program.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "topology/check.hpp"

namespace fourfold {
namespace {

constexpr std::uint32_t unconnected = ~std::uint32_t{0};
constexpr TaskId missing{~std::uint32_t{0}};

}  // namespace

StreamId ProgramDraft::add_stream(DeviceId device, std::uint8_t lane) {
    last_.push_back(none);
    return program_.streams_.push_back({device, lane});
}

TeamId ProgramDraft::add_team(Team team) { return program_.teams_.push_back(std::move(team)); }

TransferId ProgramDraft::add_transfer(Transfer transfer) {
    return program_.transfers_.push_back(std::move(transfer));
}

CollectiveId ProgramDraft::add_collective(TransferId transfer) {
    const auto first_part = static_cast<std::uint32_t>(program_.parts_.size());
    const std::size_t members = program_.teams_[program_.transfers_[transfer].team].members.size();
    program_.parts_.resize(program_.parts_.size() + members, missing);
    return program_.collectives_.push_back({transfer, first_part});
}

BackgroundId ProgramDraft::add_background(const Background& background) {
    FOURFOLD_CHECK(!program_.transfers_[background.transfer].is_collective);
    return program_.background_.push_back(background);
}

TaskId ProgramDraft::add(TaskKind kind, StreamId stream, std::uint32_t detail,
                         std::span<const TaskId> after) {
    program_.kind_.push_back(kind);
    program_.stream_.push_back(stream);
    const TaskId task = program_.detail_.push_back(detail);
    auto& first = program_.first_dependency_;
    auto& all = program_.dependencies_;
    if (first.empty()) first.push_back(0);

    const TaskId before = last_[stream];
    bool follows = before == none;
    for (const TaskId dependency : after) {
        FOURFOLD_DCHECK(dependency < task, "task {} depends on {}", task.value, dependency.value);
        all.push_back(dependency);
        follows = follows || dependency == before;
        // The stream's order often follows from what the dependency itself waits for: a compute
        // task between two parts on one stream, say. Leave such edges out.
        const std::uint32_t end = first[dependency.value + 1];
        for (std::uint32_t i = first[dependency.value]; i < end && !follows; ++i) {
            follows = all[i] == before;
        }
    }
    if (!follows) all.push_back(before);
    first.push_back(static_cast<std::uint32_t>(all.size()));
    last_[stream] = task;
    return task;
}

TaskId ProgramDraft::compute(StreamId stream, Duration duration, std::span<const TaskId> after) {
    FOURFOLD_CHECK(duration >= Duration::zero());
    const auto [entry, is_new] = duration_ids_.try_emplace(
        duration.count(), static_cast<std::uint32_t>(program_.durations_.size()));
    if (is_new) program_.durations_.push_back(duration);
    return add(TaskKind::compute, stream, entry->second, after);
}

TaskId ProgramDraft::send(StreamId stream, TransferId transfer, std::span<const TaskId> after) {
    FOURFOLD_CHECK(!program_.transfers_[transfer].is_collective);
    return add(TaskKind::send, stream, transfer.value, after);
}

TaskId ProgramDraft::receive(StreamId stream, std::span<const TaskId> after) {
    return add(TaskKind::receive, stream, unconnected, after);
}

TaskId ProgramDraft::part(StreamId stream, CollectiveId collective, std::uint32_t member,
                          std::span<const TaskId> after) {
    const TaskId task = add(TaskKind::part, stream, collective.value, after);
    const Team& team =
        program_.teams_[program_.transfers_[program_.collectives_[collective].transfer].team];
    FOURFOLD_CHECK(team.members[member] == program_.streams_[stream].device);
    TaskId& slot = program_.parts_[program_.collectives_[collective].first_part + member];
    if (slot != missing) twice_.push_back(collective);
    slot = task;
    return task;
}

void ProgramDraft::connect(TaskId send, TaskId receive, Bytes expected) {
    FOURFOLD_CHECK(program_.kind_[send] == TaskKind::send);
    FOURFOLD_CHECK(program_.kind_[receive] == TaskKind::receive);
    FOURFOLD_CHECK(program_.detail_[receive] == unconnected);
    program_.detail_[receive] = send.value;
    if (program_.transfers_[program_.transfer(send)].bytes != expected) {
        mismatched_.push_back(receive);
        mismatched_expect_.push_back(expected);
    }
}

void ProgramDraft::stretch_compute(TaskId compute, double factor) {
    FOURFOLD_DCHECK(program_.kind(compute) == TaskKind::compute);
    const Duration duration = scale(program_.duration(compute), factor);
    program_.detail_[compute] = static_cast<std::uint32_t>(program_.durations_.size());
    program_.durations_.push_back(duration);
}

void ProgramDraft::stretch_send(TaskId send, double factor) {
    FOURFOLD_DCHECK(program_.kind(send) == TaskKind::send);
    if (factor == 1 && program_.send_stretch_.empty()) return;
    program_.send_stretch_.resize(program_.tasks(), 1);
    program_.send_stretch_[send.value] = factor;
}

void ProgramDraft::stretch_collective(CollectiveId id, double factor) {
    if (factor == 1 && program_.collective_stretch_.empty()) return;
    program_.collective_stretch_.resize(program_.collectives_.size(), 1);
    program_.collective_stretch_[id.value] = factor;
}

Result<Program> seal(ProgramDraft draft) {
    Program& program = draft.program_;
    if (program.first_dependency_.empty()) program.first_dependency_.push_back(0);

    for (std::size_t i = 0; i < draft.mismatched_.size(); ++i) {
        const TaskId receive = draft.mismatched_[i];
        const TaskId send = program.partner(receive);
        return problem(
            "", fmt::format("task {} on device {} sends {} bytes, but task {} on device {} expects "
                            "{}: sizes must agree",
                            send.value, program.device(send).value,
                            program.transfers_[program.transfer(send)].bytes.value, receive.value,
                            program.device(receive).value, draft.mismatched_expect_[i].value));
    }
    for (const CollectiveId collective : draft.twice_) {
        return problem("", fmt::format("a member joins collective {} twice", collective.value));
    }
    for (const CollectiveId collective : program.collectives_.keys()) {
        const std::span<const TaskId> parts = program.parts(collective);
        const auto absent = std::find(parts.begin(), parts.end(), missing);
        if (absent == parts.end()) continue;
        const auto member = static_cast<std::size_t>(absent - parts.begin());
        const Team& team = program.teams_[program.transfer_of(collective).team];
        return problem("", fmt::format("device {} does not take part in collective {} of its team",
                                       team.members[member].value, collective.value));
    }

    const std::size_t tasks = program.tasks();
    if (!program.send_stretch_.empty()) program.send_stretch_.resize(tasks, 1);
    if (!program.collective_stretch_.empty()) {
        program.collective_stretch_.resize(program.collectives_.size(), 1);
    }
    std::vector<std::uint32_t>& first = program.first_successor_;
    first.assign(tasks + 1, 0);
    std::size_t sends = 0;
    for (const TaskId task : ids<TaskId>(tasks)) {
        sends += program.kind(task) == TaskKind::send ? 1 : 0;
        for (const TaskId dependency : program.dependencies(task)) ++first[dependency.value + 1];
        if (program.kind(task) != TaskKind::receive) continue;
        if (program.detail_[task] == unconnected) {
            return problem("",
                           fmt::format("task {} on device {} receives a message that nobody sends",
                                       task.value, program.device(task).value));
        }
        ++first[program.partner(task).value + 1];
        --sends;
    }
    if (sends != 0) {
        return problem("", fmt::format("{} sends have no receive, or one has two", sends));
    }
    for (std::size_t i = 0; i < tasks; ++i) first[i + 1] += first[i];
    program.successors_.resize(first[tasks]);
    std::vector<std::uint32_t> next(first.begin(), first.end() - 1);
    // A send's receive comes first among its successors: link models find it there.
    for (const TaskId task : ids<TaskId>(tasks)) {
        if (program.kind(task) != TaskKind::receive) continue;
        std::uint32_t& slot = next[program.partner(task).value];
        if (slot != first[program.partner(task).value]) {
            return problem("", fmt::format("task {} on device {} is received twice",
                                           program.partner(task).value,
                                           program.device(program.partner(task)).value));
        }
        program.successors_[slot++] = task;
    }
    for (const TaskId task : ids<TaskId>(tasks)) {
        for (const TaskId dependency : program.dependencies(task)) {
            program.successors_[next[dependency.value]++] = task;
        }
    }
    return std::move(program);
}

}  // namespace fourfold
