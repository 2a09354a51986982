// ZB1P (with one chunk ZB-H1): 1F1B with the backward split in two (Qi et al. 2023, "Zero bubble
// pipeline parallelism", sec. 2; for several chunks the order is that of PyTorch's
// `ScheduleInterleavedZeroBubble`).
//
// Only the input gradient I is waited for upstream. The weight gradient W is put off and fills what
// was the bubble: on rank r it lags r micro-batches behind, which also gives all ranks the same
// peak of p activations. 3 ranks, 4 micro-batches, all three as long (dots: idle):
//
//     rank 0  F0 F1 F2 .. .. I0 W0 F3 I1 W1 I2 W2 I3 W3
//     rank 1  .. F0 F1 .. I0 F2 I1 W0 F3 I2 W1 I3 W2 W3
//     rank 2  .. .. F0 I0 F1 I1 F2 I2 W0 F3 I3 W1 W2 W3
//
// Papers differ in what B means: the bubble (p - 1)(F + B - W) of Qi et al. has B = I, and
// DeepSeek's (p - 1)(F + B - 2W) has B = I + W. It is the same bubble, (p - 1)(F + I - W).

#include <fmt/format.h>

#include <algorithm>

#include "workloads/schedules/rules.hpp"
#include "workloads/schedules/schedule.hpp"

namespace fourfold {
namespace {

// How many groups the micro-batches come in, as PyTorch splits them: groups of p or a little more.
std::uint32_t rounds_of(const PipelineShape& shape) {
    return std::max(1U, shape.micro_batches / shape.ranks);
}

// With one chunk the groups follow each other like a single list, and any number will do.
std::optional<std::string> refuse(const PipelineShape& shape) {
    if (const auto reason = refuse_counts(shape)) return "zb1p: " + *reason;
    if (shape.chunks == 1) return std::nullopt;
    if (shape.ranks < 2) {
        return fmt::format("zb1p with {} chunks needs at least 2 ranks to interleave, not {}",
                           shape.chunks, shape.ranks);
    }
    const std::uint32_t rounds = rounds_of(shape);
    if (shape.micro_batches % rounds != 0) {
        return fmt::format(
            "zb1p with {} chunks takes {} micro-batches on {} ranks in {} rounds, which cannot be "
            "equal; use a multiple of {} micro-batches",
            shape.chunks, shape.micro_batches, shape.ranks, rounds, shape.ranks);
    }
    return std::nullopt;
}

std::vector<Action> actions(const PipelineShape& shape, std::uint32_t rank) {
    const std::uint32_t v = shape.chunks;
    const std::uint32_t turns = shape.micro_batches * v;
    const std::uint32_t group =
        v == 1 ? shape.micro_batches : shape.micro_batches / rounds_of(shape);
    const std::uint32_t warm_up = std::min((v - 1) * group + (shape.ranks - 1 - rank), turns);
    std::vector<Action> list;
    list.reserve(3 * std::size_t{turns});
    for (std::uint32_t k = 0; k < warm_up; ++k) {
        list.push_back(action(ActionKind::forward, forward_turn(k, group, v)));
    }
    std::uint32_t weights = 0;  // weight gradients done; they follow the order of the I
    const auto weight_gradient = [&] {
        list.push_back(action(ActionKind::weight_gradient, backward_turn(weights++, group, v)));
    };
    for (std::uint32_t k = 0; k < turns; ++k) {
        if (warm_up + k < turns) {
            list.push_back(action(ActionKind::forward, forward_turn(warm_up + k, group, v)));
        }
        list.push_back(action(ActionKind::input_gradient, backward_turn(k, group, v)));
        if (k >= rank) weight_gradient();
    }
    while (weights < turns) weight_gradient();
    return list;
}

// Known without latency, with micro-batches enough to fill the pipeline, and for weight gradients
// that fit into the holes they fill.
std::optional<Duration> makespan(const PipelineShape& shape, const ChunkTimes& times) {
    const bool full = shape.chunks == 1 ? shape.micro_batches >= shape.ranks
                                        : shape.micro_batches % shape.ranks == 0;
    if (!full || times.hop != Duration{} ||
        times.weight_gradient > std::min(times.forward, times.input_gradient)) {
        return std::nullopt;
    }
    const std::uint64_t turns = std::uint64_t{shape.micro_batches} * shape.chunks;
    const std::uint64_t bubbles = shape.ranks - 1;
    return total({{turns, times.forward},
                  {turns, times.input_gradient},
                  {turns, times.weight_gradient},
                  {bubbles, times.forward},
                  {bubbles, times.input_gradient - times.weight_gradient}});
}

}  // namespace

extern const Schedule zb1p_schedule = {
    .name = "zb1p",
    .summary = "1f1b with the backward split; weight gradients fill two thirds of the bubble",
    .splits_backward = true,
    .refuse = refuse,
    .actions = actions,
    .makespan = makespan,
};

}  // namespace fourfold
