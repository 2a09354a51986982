#pragma once

// How much of a pipeline is idle, by schedule, depth, chunks and micro-batches: simulated, with the
// closed form beside it.

#include <cstdint>
#include <optional>
#include <ostream>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "topology/result.hpp"
#include "topology/units.hpp"
#include "workloads/schedules/schedule.hpp"

namespace fourfold {

/// All combinations are asked for, in the order of the lists, micro-batches innermost.
struct IdleQuestion {
    std::vector<const Schedule*> schedules;
    std::vector<std::uint32_t> pipeline;  // ranks
    std::vector<std::uint32_t> chunks;    // of each rank
    std::vector<std::uint32_t> micro_batches;
    // Of a whole stage (all chunks of a rank) and one micro-batch. A chunk takes 1/chunks of it,
    // rounded up to a whole picosecond, in the simulation and in the closed form alike.
    Duration forward{}, input_gradient{}, weight_gradient{};
    Duration hop_latency{};
};

struct IdleRow {
    std::string_view schedule;
    PipelineShape shape;
    Duration makespan{};  // until the last action of any rank ends
    Duration ideal{};     // a rank's work: micro-batches * (forward + both gradients) of a stage
    double idle_fraction = 0;                // 1 - busy / (ranks * makespan)
    std::optional<double> closed_form_idle;  // the same of the closed form's makespan
    std::optional<double> difference;        // 0 exactly where both makespans are equal
    Duration max_rank_span{};  // longest time from a rank's first action to the end of its last
    std::string refused;       // why the schedule cannot run this; then all figures are 0
};

/// A problem if a run leaves the clock's range, or cannot finish.
Result<std::vector<IdleRow>> idle_curves(const IdleQuestion& question);

/// One line per row: schedule,pipeline,chunks,micro_batches,makespan_s,ideal_s,idle_fraction,
/// closed_form_idle,difference,max_rank_span_s,refused
void write_idle_csv(std::ostream& out, std::span<const IdleRow> rows);

/// A gnuplot script that reads idle.csv in its own directory and makes idle.svg and idle.png there.
void write_idle_gnuplot(std::ostream& out, std::span<const IdleRow> rows);

/// The fewest micro-batches, of those that were tried, from which on less than `limit` is idle.
/// Requires: rows of one schedule, depth and number of chunks.
std::optional<std::uint32_t> batch_below(std::span<const IdleRow> rows, double limit);

}  // namespace fourfold
