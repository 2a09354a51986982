#include "sim/simulate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "sim/flow_links.hpp"
#include "sim/message_links.hpp"
#include "topology/check.hpp"

// The loop. An instant: drain the queue's events of that time, start what became ready in the order
// of task ids, let the links settle once; repeat until the instant is empty, then advance.

namespace fourfold {
namespace {

std::string describe(TaskId task, const Program& program) {
    static constexpr std::string_view names[] = {"compute", "send", "receive", "part"};
    return fmt::format("{} {} on device {}", names[static_cast<std::size_t>(program.kind(task))],
                       task.value, program.device(task).value);
}

// Follows, from a task that never ended, what it waits for until a task comes twice.
std::string describe_cycle(const Program& program, const IdVector<TaskId, std::uint32_t>& pending,
                           const IdVector<TaskId, std::uint8_t>& ended) {
    const auto waits_for = [&](TaskId task) -> TaskId {
        if (pending[task] == 0 && program.kind(task) == TaskKind::part) {
            for (const TaskId other : program.parts(program.collective(task))) {
                if (pending[other] > 0) return other;
            }
        }
        for (const TaskId dependency : program.dependencies(task)) {
            if (ended[dependency] == 0) return dependency;
        }
        return program.kind(task) == TaskKind::receive ? program.partner(task) : task;
    };
    TaskId task{};
    std::size_t open = 0;
    for (const TaskId candidate : ended.keys()) {
        if (ended[candidate] != 0) continue;
        if (open++ == 0) task = candidate;
    }
    IdVector<TaskId, std::uint8_t> passed(program.tasks(), 0);
    for (; passed[task] == 0; task = waits_for(task)) passed[task] = 1;

    std::string text = fmt::format("the program cannot finish: {} tasks wait for each other: {}",
                                   open, describe(task, program));
    constexpr int shown_max = 16;
    const TaskId first = task;
    for (int shown = 0; shown < shown_max; ++shown) {
        task = waits_for(task);
        text += fmt::format(" waits for {}", describe(task, program));
        if (task == first) return text;
    }
    return text + " and so on";
}

// Returns: nothing if a call was taken as undisturbed and is not.
template <class Links>
std::optional<Result<Timeline>> run(const Graph& graph, const Program& program,
                                    const SimulateOptions& options) {
    Timeline timeline;
    timeline.begin.resize(program.tasks());
    timeline.end.resize(program.tasks());
    timeline.started.resize(program.collectives().size());
    timeline.carried.resize(graph.links().size());
    timeline.busy.resize(graph.links().size());
    timeline.records_rates = options.record_rates;

    EventQueue queue;
    std::vector<TaskId> done, ready;
    std::vector<BackgroundId> due;
    IdVector<TaskId, std::uint32_t> pending(program.tasks());
    IdVector<TaskId, std::uint8_t> ended(program.tasks(), 0);
    Run state{graph, program, queue, timeline, done, options};
    Links links(state);
    std::size_t open = program.tasks();

    for (const TaskId task : pending.keys()) {
        const bool waits_for_message = program.kind(task) == TaskKind::receive;
        pending[task] = static_cast<std::uint32_t>(program.dependencies(task).size()) +
                        (waits_for_message ? 1 : 0);
        if (pending[task] == 0) ready.push_back(task);
    }

    for (const BackgroundId id : program.background().keys()) {
        queue.push(program.background()[id].at, {background_start, id.value});
        ++state.background_events;
    }

    const auto start = [&](TaskId task) {
        timeline.begin[task] = queue.now();
        switch (program.kind(task)) {
            case TaskKind::compute:
                queue.push(state.after(program.duration(task)), {compute_end, task.value});
                break;
            case TaskKind::send:
                links.start(task);
                break;
            case TaskKind::receive: {
                const TaskId send = program.partner(task);
                timeline.begin[task] =
                    timeline.begin[send] +
                    stretched(program.transfers()[program.transfer(send)].latency,
                              program.stretch(send));
                timeline.end[task] = queue.now();
                done.push_back(task);
                break;
            }
            case TaskKind::part:
                links.join(task);
                break;
        }
    };
    // A receive's message is one of the things that it waits for; then it is done at once.
    const auto release = [&](TaskId task) {
        if (--pending[task] == 0) ready.push_back(task);
    };
    const auto finish = [&](TaskId task) {
        timeline.end[task] = queue.now();
        ended[task] = 1;
        --open;
        std::span<const TaskId> successors = program.successors(task);
        if (program.kind(task) == TaskKind::send) successors = successors.subspan(1);
        for (const TaskId successor : successors) release(successor);
    };

    while (true) {
        do {
            while (!queue.instant_drained()) {
                const Event event = queue.pop();
                ++timeline.events;
                if (event.kind == compute_end) {
                    done.push_back({event.subject});
                } else if (event.kind == background_start) {
                    --state.background_events;
                    due.push_back({event.subject});
                } else {
                    links.on_event(event);
                }
            }
            for (std::size_t i = 0; i < done.size(); ++i) {
                const TaskId task = done[i];
                // The link model reports a receive when its message is here; it may still wait for
                // its stream.
                if (program.kind(task) == TaskKind::receive && pending[task] > 0) {
                    release(task);
                } else {
                    finish(task);
                }
            }
            done.clear();
            std::sort(ready.begin(), ready.end());
            for (std::size_t i = 0; i < ready.size(); ++i) start(ready[i]);
            ready.clear();
            for (const BackgroundId id : due) links.start(id);
            due.clear();
            links.settle();
        } while (!queue.instant_drained() || !done.empty());
        if (state.disturbed) return std::nullopt;
        if (state.out_of_range) {
            return problem("", fmt::format("the step takes longer than the clock can hold ({})",
                                           to_text(duration_limit)));
        }
        if (!state.cut_off.empty()) return problem("", state.cut_off);
        if (open == 0 || queue.size() == state.background_events) break;
        queue.advance();
    }
    if (open > 0) return problem("", describe_cycle(program, pending, ended));
    links.stop();
    timeline.finish = queue.now();
    return timeline;
}

}  // namespace

Result<void> check_quantum(Bytes quantum) {
    constexpr Bytes quantum_min = 1_KiB;
    if (quantum >= quantum_min) return {};
    return problem("quantum", fmt::format("a quantum of {} makes too many pieces; at least {}",
                                          to_text(quantum), to_text(quantum_min)));
}

Result<Timeline> simulate(const Graph& graph, const Program& program,
                          const SimulateOptions& options) {
    switch (options.links) {
        case LinkModel::flows:
            return *run<FlowLinks>(graph, program, options);
        case LinkModel::messages: {
            if (auto made = run<MessageLinks>(graph, program, options)) return *std::move(made);
            SimulateOptions each = options;
            each.each_message = true;
            return *run<MessageLinks>(graph, program, each);
        }
    }
    FOURFOLD_CHECK(false);
}

}  // namespace fourfold
