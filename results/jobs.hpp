#pragma once

// Several training jobs on one network, each on devices of its own.

#include <span>
#include <string>
#include <vector>

#include "results/evaluate.hpp"

namespace fourfold {

struct Job {
    std::string name;
    TrainingStep step;
};

struct JobEvaluation {
    Duration alone{};       // the step time without the other jobs
    Evaluation evaluation;  // with them
    [[nodiscard]] double slowdown() const;
};

/// Each job does one step; all begin at once, and whoever is done is silent. Background flows are
/// those of the first job, and with it alone as with all.
/// Requires: `devices` of the steps are named and do not overlap; check(step, ...) of each.
Result<std::vector<JobEvaluation>> evaluate_jobs(std::span<const Job> jobs, const Graph& graph,
                                                 const EvaluateOptions& options);

}  // namespace fourfold
