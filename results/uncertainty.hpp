#pragma once

// How far a prediction can be trusted. The step time is taken to be lognormal around the predicted
// one: the constants of devices, links and software are known to so much, and the step is simulated
// again with each of them 5 % better, which gives what each is worth.

#include <optional>
#include <string_view>
#include <vector>

#include "topology/graph.hpp"
#include "workloads/training_step.hpp"

namespace fourfold {

/// What the step time gains from one constant.
struct Elasticity {
    std::string_view name;  // of the constant: "network ports"
    double value = 0;       // d ln(step time) / d ln(constant): negative where more is faster
    double spread = 0;      // one standard deviation of ln(constant)
    /// Step time with the constant 10 % worse, relative to now.
    [[nodiscard]] double cost_of_ten_percent() const;
};

struct Uncertainty {
    double sigma = 0;                      // of ln(step time)
    Duration low, high;                    // the 90 % interval
    std::vector<Elasticity> elasticities;  // the largest first
};

/// Nothing where the step cannot be folded and is too large (`tasks`) to be simulated again and
/// again. Slow devices are left out, where that lets it be folded.
/// Requires: check(step, devices of the graph); `step_time`: what it takes.
std::optional<Uncertainty> uncertainty(const TrainingStep& step, const Graph& graph,
                                       Duration step_time, std::size_t tasks);

}  // namespace fourfold
