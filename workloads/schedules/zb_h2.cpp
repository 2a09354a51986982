// ZB-H2: the handcrafted schedule of Qi et al. 2023 ("Zero bubble pipeline parallelism", sec. 2.2)
// that doubles the activations in flight to fill the warm-up too. Rank r runs 2 (p - 1 - r) + 1
// forwards ahead, and its weight gradients lag 2r micro-batches behind. 3 ranks, 5 micro-batches,
// all three as long:
//
//     rank 0  F0 F1 F2 F3 F4 I0 W0 I1 W1 I2 W2 I3 W3 I4 W4
//     rank 1     F0 F1 F2 I0 F3 I1 F4 I2 W0 I3 W1 I4 W2 W3 W4
//     rank 2        F0 I0 F1 I1 F2 I2 F3 I3 F4 I4 W0 W1 W2 W3 W4
//
// No rank idles from its own first action to its last. The ranks end one after the other, and where
// the optimizer step waits for nobody (sec. 4), the next step begins so: that span is the step.

#include <fmt/format.h>

#include <algorithm>

#include "workloads/schedules/rules.hpp"
#include "workloads/schedules/schedule.hpp"

namespace fourfold {
namespace {

std::optional<std::string> refuse(const PipelineShape& shape) {
    if (const auto reason = refuse_counts(shape)) return "zb_h2: " + *reason;
    if (shape.chunks == 1) return std::nullopt;
    return fmt::format("zb_h2 has one chunk per rank, not {}", shape.chunks);
}

std::vector<Action> actions(const PipelineShape& shape, std::uint32_t rank) {
    const std::uint32_t m = shape.micro_batches;
    const std::uint32_t ahead = std::min(2 * (shape.ranks - 1 - rank) + 1, m);
    std::vector<Action> list;
    list.reserve(3 * std::size_t{m});
    for (std::uint32_t k = 0; k < ahead; ++k) {
        list.push_back({ActionKind::forward, 0, k});
    }
    std::uint32_t weights = 0;  // weight gradients done
    for (std::uint32_t k = 0; k < m; ++k) {
        list.push_back({ActionKind::input_gradient, 0, k});
        if (k >= 2 * rank) list.push_back({ActionKind::weight_gradient, 0, weights++});
        if (ahead + k < m) list.push_back({ActionKind::forward, 0, ahead + k});
    }
    while (weights < m) list.push_back({ActionKind::weight_gradient, 0, weights++});
    return list;
}

// The last rank begins p - 1 forwards late and then never waits; the first is held up as long where
// weight gradients are too short to fill its warm-up. Known without latency, with micro-batches
// enough for the warm-up, and for weight gradients that fit into the holes they fill.
std::optional<Duration> makespan(const PipelineShape& shape, const ChunkTimes& times) {
    const bool full = shape.micro_batches + 1 >= 2 * shape.ranks;
    if (!full || times.hop != Duration{} ||
        times.weight_gradient > std::min(times.forward, times.input_gradient)) {
        return std::nullopt;
    }
    const Duration unfilled =
        times.forward + times.input_gradient - 2 * times.weight_gradient;  // never negative
    return total({{shape.micro_batches, times.forward},
                  {shape.micro_batches, times.input_gradient},
                  {shape.micro_batches, times.weight_gradient},
                  {shape.ranks - 1, std::max(times.forward, unfilled)}});
}

}  // namespace

extern const Schedule zb_h2_schedule = {
    .name = "zb_h2",
    .summary = "zb1p with twice the activations; no rank idles between its first and last action",
    .splits_backward = true,
    .refuse = refuse,
    .actions = actions,
    .makespan = makespan,
};

}  // namespace fourfold
