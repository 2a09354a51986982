#pragma once

// From a training step on a machine to the program that the simulator runs.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/program.hpp"
#include "topology/graph.hpp"
#include "workloads/chain.hpp"
#include "workloads/fold.hpp"
#include "workloads/operations.hpp"
#include "workloads/placement.hpp"
#include "workloads/training_step.hpp"

namespace fourfold {

/// The streams of a device.
enum class Lane : std::uint8_t {
    compute,
    tensor,
    sharding,
    data,
    send_forward,
    send_backward,
    receive_forward,
    receive_backward,
    world,
    context,
    host,
};
inline constexpr std::size_t lane_count = 11;

std::string_view name_of(Lane lane);

/// What a task is for.
struct Label {
    Axis axis = Axis::compute;
    Pass pass = Pass::forward;
    std::uint16_t stage = 0;
    std::uint32_t micro_batch = none;  // none: of the step's end
    bool on_chain = false;             // the next kernel waits for it (of a send: never)
    bool awaited = false;              // a later forward or backward kernel of the device needs it
    std::uint32_t chain = none;        // of `Lowered::chains`: the task stands for several
    static constexpr std::uint32_t none = ~std::uint32_t{0};
};

struct Lowered {
    Program program;
    IdVector<TaskId, Label> labels;
    std::vector<DeviceId> devices = {};      // that have tasks, in order
    std::vector<std::int64_t> counts = {};   // how many each stands for, itself included
    bool folded = false;                     // some stand for others
    std::optional<Fold> fold = {};           // classes of like devices, folded or not
    std::vector<CollectiveKind> kinds = {};  // of each transfer that is a collective
    std::vector<Chain> chains = {};
    std::vector<std::string> refusals = {};  // why auto chose where an algorithm was given
    double hardware_flops = 0;               // of all devices, recomputation included
};

/// A kernel; not the host's time, which takes a stream of its own.
inline bool is_kernel(const Program& program, TaskId task, const Label& label) {
    return program.kind(task) == TaskKind::compute && label.axis == Axis::compute;
}

/// Where ranks are alike (workloads/fold.hpp), which devices are lowered.
enum class Folding : std::uint8_t {
    none,   // all
    exact,  // those that stand for all, which changes no picosecond
};

/// Whether each kernel and collective is a task of its own, or chains of them are one where that
/// changes no picosecond (workloads/chain.hpp). Chains exist only where devices are folded.
enum class Detail : std::uint8_t { operations, chains };

/// Requires: check(step, devices of the graph). A problem if it makes too many tasks, if a
/// collective's algorithm does not do what the step needs, or if a time leaves the clock's range.
Result<Lowered> lower(const TrainingStep& step, const Graph& graph, Folding folding = Folding::none,
                      Detail detail = Detail::operations);

/// A bare pipeline: the schedule's actions with the given times on the devices 0 .. ranks - 1, and
/// messages of zero bytes between neighbouring stages. For curves of schedules.
Result<Lowered> lower_pipeline(const Schedule& schedule, const PipelineShape& shape,
                               const ChunkTimes& times, const Graph& graph);

}  // namespace fourfold
