// Interleaved 1F1B (Narayanan et al. 2021, "Efficient large-scale language model training on GPU
// clusters using Megatron-LM", sec. 2.2.2; the order is Megatron-LM's `get_schedule_table`).
//
// Each rank holds v chunks of the model, dealt out in turn (chunk c of rank r is stage c p + r),
// and a micro-batch goes round the ranks v times. Warm-up and drain take p - 1 chunks instead of as
// many whole stages: the bubble shrinks by v, for v times the messages. 2 ranks with 2 chunks:
//
//     rank 0 | stage 0   stage 2          micro-batches go in groups of p:  chunk 0 of 0, 1,
//     rank 1 |   stage 1   stage 3        chunk 1 of 0, 1, then chunk 0 of 2, 3 ...
//
// The warm-up of rank r is 2 (p - 1 - r) + (v - 1) p forwards. The factor 2 is what lets a rank
// hide the hop's latency; it costs up to p - 1 activations more than strictly needed.
//
// A last group shorter than p breaks the round: rank 0 would turn to the group's next chunk before
// the first of it is back from rank p - 1, and in some shapes (p 4, m 5, v 3) ranks wait for each
// other for ever. Megatron refuses such a tail, and so do we.

#include <fmt/format.h>

#include <algorithm>

#include "workloads/schedules/rules.hpp"
#include "workloads/schedules/schedule.hpp"

namespace fourfold {
namespace {

std::optional<std::string> refuse(const PipelineShape& shape) {
    if (const auto reason = refuse_counts(shape)) return "interleaved_1f1b: " + *reason;
    if (shape.chunks < 2) {
        return fmt::format(
            "interleaved_1f1b needs at least 2 chunks on each rank, not {}; with 1 chunk use 1f1b",
            shape.chunks);
    }
    if (shape.ranks < 2) {
        return fmt::format("interleaved_1f1b needs at least 2 ranks to interleave, not {}",
                           shape.ranks);
    }
    if (const std::uint32_t tail = shape.micro_batches % shape.ranks; tail != 0) {
        return fmt::format(
            "interleaved_1f1b takes micro-batches in groups of {}, one for each rank, and {} "
            "micro-batches leave a last group of {}, in which ranks can wait for each other for "
            "ever; use a multiple of {} micro-batches",
            shape.ranks, shape.micro_batches, tail, shape.ranks);
    }
    return std::nullopt;
}

std::vector<Action> actions(const PipelineShape& shape, std::uint32_t rank) {
    const std::uint32_t group = shape.ranks;
    const std::uint32_t v = shape.chunks;
    const std::uint32_t turns = shape.micro_batches * v;
    const std::uint32_t warm_up = std::min(2 * (shape.ranks - 1 - rank) + (v - 1) * group, turns);
    std::vector<Action> list;
    list.reserve(2 * std::size_t{turns});
    for (std::uint32_t k = 0; k < warm_up; ++k) {
        list.push_back(action(ActionKind::forward, forward_turn(k, group, v)));
    }
    for (std::uint32_t k = 0; k < turns; ++k) {
        if (warm_up + k < turns) {
            list.push_back(action(ActionKind::forward, forward_turn(warm_up + k, group, v)));
        }
        list.push_back(action(ActionKind::backward, backward_turn(k, group, v)));
    }
    return list;
}

// A hop longer than a chunk's forward or backward outlasts what the doubled warm-up hides, and no
// closed form is known.
std::optional<Duration> makespan(const PipelineShape& shape, const ChunkTimes& times) {
    const bool outlasts_backward = times.hop - times.input_gradient > times.weight_gradient;
    if (times.hop > times.forward || outlasts_backward) return std::nullopt;
    const std::uint64_t p = shape.ranks;
    const std::uint64_t v = shape.chunks;
    const std::uint64_t rounds = shape.micro_batches * v + p - 1;
    return total({{rounds, times.forward},
                  {rounds, times.input_gradient},
                  {rounds, times.weight_gradient},
                  {2 * (p * v - 1), times.hop}});
}

}  // namespace

extern const Schedule interleaved_1f1b_schedule = {
    .name = "interleaved_1f1b",
    .summary = "1f1b over several chunks per rank: a smaller bubble for more messages",
    .splits_backward = false,
    .refuse = refuse,
    .actions = actions,
    .makespan = makespan,
};

}  // namespace fourfold
