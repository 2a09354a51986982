// GPipe: all forwards, then all backwards (Huang et al. 2019, "GPipe", sec. 2.3).
//
// The simplest pipeline that is right. Every micro-batch's activations stay until the backwards
// begin, so memory grows with their number. 3 ranks, 4 micro-batches, a backward as long as two
// forwards (dots: idle):
//
//     rank 0  F0 F1 F2 F3 .. .. .. .. .. .. B0 B0 B1 B1 B2 B2 B3 B3
//     rank 1  .. F0 F1 F2 F3 .. .. .. B0 B0 B1 B1 B2 B2 B3 B3 .. ..
//     rank 2  .. .. F0 F1 F2 F3 B0 B0 B1 B1 B2 B2 B3 B3 .. .. .. ..
//
// Backwards run in the order of the forwards; the reverse order takes as long.

#include <fmt/format.h>

#include "workloads/schedules/rules.hpp"
#include "workloads/schedules/schedule.hpp"

namespace fourfold {
namespace {

std::optional<std::string> refuse(const PipelineShape& shape) {
    if (const auto reason = refuse_counts(shape)) return "gpipe: " + *reason;
    if (shape.chunks != 1) {
        return fmt::format(
            "gpipe runs 1 chunk on each rank, not {}; interleaved_1f1b and zb1p run several",
            shape.chunks);
    }
    return std::nullopt;
}

std::vector<Action> actions(const PipelineShape& shape, std::uint32_t /*rank*/) {
    std::vector<Action> list;
    list.reserve(2 * std::size_t{shape.micro_batches});
    for (std::uint32_t k = 0; k < shape.micro_batches; ++k) {
        list.push_back({ActionKind::forward, 0, k});
    }
    for (std::uint32_t k = 0; k < shape.micro_batches; ++k) {
        list.push_back({ActionKind::backward, 0, k});
    }
    return list;
}

// The last rank starts after p - 1 forwards and never idles until its last backward, which then
// passes p - 1 ranks; both ways every hop shows once.
std::optional<Duration> makespan(const PipelineShape& shape, const ChunkTimes& times) {
    const std::uint64_t p = shape.ranks;
    const std::uint64_t rounds = shape.micro_batches + p - 1;
    return total({{rounds, times.forward},
                  {rounds, times.input_gradient},
                  {rounds, times.weight_gradient},
                  {2 * (p - 1), times.hop}});
}

}  // namespace

extern const Schedule gpipe_schedule = {
    .name = "gpipe",
    .summary = "all forwards, then all backwards; memory grows with the micro-batches",
    .splits_backward = false,
    .refuse = refuse,
    .actions = actions,
    .makespan = makespan,
};

}  // namespace fourfold
