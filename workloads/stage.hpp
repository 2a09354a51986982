#pragma once

// What a device does for one action of its schedule, as one list of operations: the kernels of the
// stage, and what each axis inserts.

#include <cstdint>
#include <vector>

#include "workloads/operations.hpp"
#include "workloads/training_step.hpp"

namespace fourfold {

/// One action of one stage. `first` and `last`: whether it belongs to the step's first or last
/// micro-batch.
struct StageAction {
    std::int64_t stage = 0;
    ActionKind kind = ActionKind::forward;
    bool first = false, last = false;
};

/// Layers are dealt to stages in order: `stage_layers`, or as many to each.
struct LayerRange {
    std::int64_t begin = 0, end = 0;
};
LayerRange layers_of(const TrainingStep& step, std::int64_t stage);

bool has_embedding(const TrainingStep& step, std::int64_t stage);
bool has_head(const TrainingStep& step, std::int64_t stage);

/// Parameters of one layer, of the table of an embedding or a head, and of embedding, head and
/// final norm on this stage, on one device of the tensor group. Norms and what else is not split
/// count whole.
double layer_parameters_on_device(const TrainingStep& step);
double table_parameters_on_device(const TrainingStep& step);
double outer_parameters_on_device(const TrainingStep& step, std::int64_t stage);
double stage_parameters_on_device(const TrainingStep& step, std::int64_t stage);

std::vector<Operation> stage_operations(const TrainingStep& step, const StageAction& action);

/// After the last action of a device that holds these stages: reductions that were not overlapped,
/// the gradient norm, the optimizer, the gathering of updated parameters.
std::vector<Operation> tail_operations(const TrainingStep& step, std::int64_t pipeline_rank);

}  // namespace fourfold
