#pragma once

// What several schedules share.

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>

#include "topology/units.hpp"
#include "workloads/schedules/schedule.hpp"

namespace fourfold {

/// Why no schedule at all takes these counts: one is zero, or a rank's list would not fit.
std::optional<std::string> refuse_counts(const PipelineShape& shape);

/// A term of a closed form: `count` times `duration`.
struct Term {
    std::uint64_t count;
    Duration duration;
};

/// Their sum, or nothing beyond `duration_limit`. Requires: durations >= 0.
std::optional<Duration> total(std::initializer_list<Term> terms);

/// One forward or backward of a rank that works on several chunks.
struct Turn {
    std::uint32_t chunk, micro_batch;
};

/// The k-th forward of a rank with `chunks` chunks: micro-batches come in groups of `group`, and a
/// group passes all chunks before the next group starts, as in Megatron's `get_schedule_table`. For
/// groups of 2 and 2 chunks, written chunk.micro_batch: 0.0 0.1 1.0 1.1 | 0.2 0.3 1.2 1.3
/// Requires: all micro-batches come in whole groups.
constexpr Turn forward_turn(std::uint32_t k, std::uint32_t group, std::uint32_t chunks) {
    const std::uint32_t in_group = k % (group * chunks);
    return {in_group / group, k / (group * chunks) * group + in_group % group};
}

/// The k-th backward: the same order with the chunks from last to first.
constexpr Turn backward_turn(std::uint32_t k, std::uint32_t group, std::uint32_t chunks) {
    const Turn turn = forward_turn(k, group, chunks);
    return {chunks - 1 - turn.chunk, turn.micro_batch};
}

constexpr Action action(ActionKind kind, Turn turn) {
    return {kind, static_cast<std::uint16_t>(turn.chunk), turn.micro_batch};
}

}  // namespace fourfold
