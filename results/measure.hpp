#pragma once

// What a timeline means: where every device's time went, how fast and how efficient the step is.

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "sim/timeline.hpp"
#include "workloads/lower.hpp"
#include "workloads/training_step.hpp"

namespace fourfold {

/// Where a device's time goes: exclusive classes that sum to the step, to the picosecond. At an
/// instant without compute, what counts is the operation that the next kernel waits for.
enum class TimeClass : std::uint8_t {
    compute,
    transfer,         // that operation moves bytes, all its members are there
    wait_peer,        // it is a collective, and a member has not arrived
    wait_upstream,    // it is an activation that the stage before has not sent
    wait_downstream,  // it is a gradient that the stage after has not sent
    warmup,           // the same before the device's first kernel
    drain,            // after its last one, other stages still work
    host,             // its host has not issued that operation
};
inline constexpr std::size_t time_class_count = 8;

/// "compute", "comm.transfer", "wait.peer", ...
std::string_view name_of(TimeClass time_class);

using TimePartition = std::array<Duration, time_class_count>;

struct Measures {
    Duration step_time{};
    std::uint32_t devices = 0;  // that have work
    double tokens_per_second = 0;
    double model_flops = 0;  // of the step
    FlopsConvention convention = FlopsConvention::full;
    double flops_per_device = 0;  // model FLOP/s
    double hardware_flops_per_device = 0;
    double mfu = 0, hfu = 0;
    double idle_fraction = 0;    // 1 - mean compute / step
    double bubble_fraction = 0;  // warm-up, drain and waiting for a neighbour stage
    std::array<double, time_class_count> time{};  // mean over devices, fractions of the step
};

/// Of each of the lowered devices.
std::vector<TimePartition> partition_time(const Lowered& lowered, const Timeline& timeline);

/// Until the last device is done; with `overlap_optimizer`, the longest that one device takes from
/// its first task to its last, since its next step begins there.
Duration step_time(const TrainingStep& step, const Lowered& lowered, const Timeline& timeline);

Measures measure(const TrainingStep& step, const Lowered& lowered, const Timeline& timeline);

}  // namespace fourfold
