#pragma once

// Devices that behave alike are simulated once. Along the axes tensor, context and data all ranks
// do the same work; where the network treats them alike too, the first of each stands for the
// others, and a step has as many devices to simulate as it has pipeline ranks.

#include "topology/graph.hpp"
#include "workloads/training_step.hpp"

namespace fourfold {

/// Whether the pipeline ranks of tensor, context and data rank 0 can stand for all devices in the
/// fluid link model: no device is slow, and every group of an axis lies alike in the blocks of the
/// graph, so that no other device's traffic can be met outside a device's own ports.
bool ranks_are_alike(const TrainingStep& step, const Graph& graph);

}  // namespace fourfold
