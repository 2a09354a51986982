#pragma once

// A pipeline schedule is data: per rank, the ordered list of what it does. No events, no clock.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "topology/result.hpp"
#include "topology/units.hpp"

namespace fourfold {

enum class ActionKind : std::uint8_t {
    forward,
    backward,         // both halves in one piece: the upstream stage gets its gradient at the end
    input_gradient,   // the half that the upstream stage waits for
    weight_gradient,  // the half that nobody waits for
};

struct Action {
    ActionKind kind;
    std::uint16_t chunk;  // of this rank: stage = chunk * ranks + rank
    std::uint32_t micro_batch;
    friend bool operator==(const Action&, const Action&) = default;
};

struct PipelineShape {
    std::uint32_t ranks = 1;          // p
    std::uint32_t chunks = 1;         // v, model chunks per rank
    std::uint32_t micro_batches = 1;  // m
};

/// Times of one chunk and micro-batch, the same on every rank, and the latency of a hop.
struct ChunkTimes {
    Duration forward{}, input_gradient{}, weight_gradient{}, hop{};
};

struct Schedule {
    std::string_view name;
    std::string_view summary;
    /// Whether backward is split in its two halves.
    bool splits_backward;
    /// Why this shape cannot run, if it cannot.
    std::optional<std::string> (*refuse)(const PipelineShape& shape);
    /// Requires: not refused, rank < shape.ranks.
    std::vector<Action> (*actions)(const PipelineShape& shape, std::uint32_t rank);
    /// The makespan on equal ranks where a closed form is known, else nothing.
    std::optional<Duration> (*makespan)(const PipelineShape& shape, const ChunkTimes& times);
};

std::span<const Schedule* const> schedules();
Result<const Schedule*> find_schedule(std::string_view name);

/// Most chunk activations alive at once on a rank: from a forward's begin to the end of its weight
/// gradient (or whole backward). Depends on the order only.
std::uint32_t peak_in_flight(std::span<const Action> actions);

/// "0F0 0F1 4B0": stage, kind, micro-batch; for tests and eyes.
std::string to_text(std::span<const Action> actions, const PipelineShape& shape,
                    std::uint32_t rank);

}  // namespace fourfold
