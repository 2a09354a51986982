// 1F1B: one forward, one backward (Narayanan et al. 2019, "PipeDream", sec. 3.2; with a flush at
// the end of the step as in Narayanan et al. 2021, "Efficient large-scale language model training",
// sec. 2.2.1).
//
// As fast as GPipe, but a rank starts on backwards as soon as it can and so holds at most p - rank
// activations, however many micro-batches there are. 3 ranks, 4 micro-batches, a backward as long
// as two forwards (dots: idle):
//
//     rank 0  F0 F1 F2 .. .. .. .. B0 B0 F3 B1 B1 .. B2 B2 .. B3 B3
//     rank 1  .. F0 F1 .. .. B0 B0 F2 B1 B1 F3 B2 B2 .. B3 B3 .. ..
//     rank 2  .. .. F0 B0 B0 F1 B1 B1 F2 B2 B2 F3 B3 B3 .. .. .. ..
//
// Warm-up: p - 1 - rank forwards. Then a forward and a backward by turns; then the backwards left.

#include <fmt/format.h>

#include <algorithm>

#include "workloads/schedules/rules.hpp"
#include "workloads/schedules/schedule.hpp"

namespace fourfold {
namespace {

std::optional<std::string> refuse(const PipelineShape& shape) {
    if (const auto reason = refuse_counts(shape)) return "1f1b: " + *reason;
    if (shape.chunks != 1) {
        return fmt::format(
            "1f1b runs 1 chunk on each rank, not {}; interleaved_1f1b and zb1p run several",
            shape.chunks);
    }
    return std::nullopt;
}

std::vector<Action> actions(const PipelineShape& shape, std::uint32_t rank) {
    const std::uint32_t m = shape.micro_batches;
    const std::uint32_t warm_up = std::min(shape.ranks - 1 - rank, m);
    std::vector<Action> list;
    list.reserve(2 * std::size_t{m});
    for (std::uint32_t k = 0; k < warm_up; ++k) list.push_back({ActionKind::forward, 0, k});
    for (std::uint32_t k = 0; k < m; ++k) {
        if (warm_up + k < m) list.push_back({ActionKind::forward, 0, warm_up + k});
        list.push_back({ActionKind::backward, 0, k});
    }
    return list;
}

// Without latency as GPipe. Rank 0 may have only p micro-batches in flight, so p forwards and
// backwards must cover a round trip of 2 (p - 1) hops: latency is paid in every round, where GPipe
// pays it once.
std::optional<Duration> makespan(const PipelineShape& shape, const ChunkTimes& times) {
    const std::uint64_t p = shape.ranks;
    const std::uint64_t rounds = shape.micro_batches + p - 1;
    return total({{rounds, times.forward},
                  {rounds, times.input_gradient},
                  {rounds, times.weight_gradient},
                  {2 * ((p - 1) * rounds / p), times.hop}});
}

}  // namespace

extern const Schedule one_f_one_b_schedule = {
    .name = "1f1b",
    .summary = "one forward, one backward; as fast as gpipe with at most `ranks` activations",
    .splits_backward = false,
    .refuse = refuse,
    .actions = actions,
    .makespan = makespan,
};

}  // namespace fourfold
