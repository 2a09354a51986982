#pragma once

// The kernels of a transformer on one device of a tensor group, in issue order, without any
// communication. Each kernel's bytes and shapes follow the table in the .cpp.

#include <vector>

#include "workloads/operations.hpp"
#include "workloads/training_step.hpp"

namespace fourfold {

/// One layer, one micro-batch. `layer` is written into the operations.
std::vector<Operation> layer_forward(const TrainingStep& step, std::int32_t layer);

/// Input and weight gradients, each operation marked with its pass, in the order in which one
/// undivided backward runs them (input gradient of a matrix, then its weight gradient). With
/// recomputation, the recomputed forward (Pass::recompute) comes first.
std::vector<Operation> layer_backward(const TrainingStep& step, std::int32_t layer);

std::vector<Operation> embedding_forward(const TrainingStep& step);
std::vector<Operation> embedding_backward(const TrainingStep& step);
/// Final norm, head and loss.
std::vector<Operation> head_forward(const TrainingStep& step);
std::vector<Operation> head_backward(const TrainingStep& step);

/// The optimizer's pass over the parameters that this device owns.
std::vector<Operation> optimizer_update(const TrainingStep& step, double owned_parameters);

}  // namespace fourfold
