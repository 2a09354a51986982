#include "results/jobs.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "sim/append.hpp"
#include "sim/audit.hpp"
#include "topology/check.hpp"

namespace fourfold {
namespace {

// What one program did in the run of all, as if it had been alone.
Timeline part_of(const Timeline& whole, const Program& program, std::size_t first_task,
                 std::size_t first_collective) {
    Timeline part;
    for (const TaskId task : ids<TaskId>(program.tasks())) {
        const TaskId there{static_cast<std::uint32_t>(first_task + task.value)};
        part.begin.push_back(whole.begin[there]);
        part.end.push_back(whole.end[there]);
        part.finish = std::max(part.finish, whole.end[there]);
    }
    for (const CollectiveId id : program.collectives().keys()) {
        part.started.push_back(
            whole.started[{static_cast<std::uint32_t>(first_collective + id.value)}]);
    }
    part.carried = whole.carried;
    part.busy = whole.busy;
    part.events = whole.events;
    part.messages = whole.messages;
    part.passages = whole.passages;
    return part;
}

}  // namespace

double JobEvaluation::slowdown() const {
    const Duration together = evaluation.measures.step_time;
    return alone > Duration::zero() ? to_seconds(together) / to_seconds(alone) : 1;
}

Result<std::vector<JobEvaluation>> evaluate_jobs(std::span<const Job> jobs, const Graph& graph,
                                                 const EvaluateOptions& options) {
    std::vector<JobEvaluation> made;
    ProgramDraft draft;
    for (const Job& job : jobs) {
        FOURFOLD_CHECK(!job.step.devices.empty(), "job {} has no devices", job.name);
        TrainingStep alone = job.step;
        alone.background = jobs.front().step.background;
        Result<Evaluation> evaluation = evaluate(alone, graph, options);
        if (!evaluation) {
            return problem(evaluation.error().where,
                           fmt::format("job '{}': {}", job.name, evaluation.error().what));
        }
        append(evaluation->lowered.program,
               made.empty() ? AppendBackground::yes : AppendBackground::no, draft);
        made.push_back({evaluation->measures.step_time, std::move(*evaluation)});
    }
    const Result<Program> program = seal(std::move(draft));
    if (!program) return tl::unexpected(program.error());
    const SimulateOptions simulated{.links = options.links,
                                    .record_rates = options.audit,
                                    .changes = options.changes,
                                    .quantum = options.quantum};
    const Result<Timeline> timeline = simulate(graph, *program, simulated);
    if (!timeline) return tl::unexpected(timeline.error());
    if (options.audit) {
        const std::vector<std::string> faults = audit(graph, *program, *timeline, simulated);
        if (!faults.empty()) return problem("", "the audit failed: " + faults.front());
    }

    std::size_t first_task = 0, first_collective = 0;
    for (std::size_t i = 0; i < jobs.size(); ++i) {
        Evaluation& evaluation = made[i].evaluation;
        const Program& own = evaluation.lowered.program;
        evaluation.timeline = part_of(*timeline, own, first_task, first_collective);
        evaluation.measures = measure(jobs[i].step, evaluation.lowered, evaluation.timeline);
        evaluation.traffic = traffic(graph, evaluation.lowered, evaluation.timeline);
        evaluation.background = arrivals(own, evaluation.timeline);
        first_task += own.tasks();
        first_collective += own.collectives().size();
    }
    return made;
}

}  // namespace fourfold
