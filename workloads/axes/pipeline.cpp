// Pipeline parallelism: what a message between stages carries. A = micro-batch * sequence /
// context * hidden * 2 bytes; with scatter-gather each tensor rank sends its share of A over its
// own port, and the receiving tensor group gathers it inside the node (Narayanan et al. 2021,
// sec. 4.1). With sequence parallelism activations are cut anyway, and stay so.

#include <algorithm>

#include "workloads/axes/axes.hpp"

namespace fourfold {

Bytes pipeline_message_bytes(const TrainingStep& step) {
    const bool cut = step.split.scatter_gather || step.split.sequence_parallel;
    return cut ? ceil_div(activation_bytes(step), step.split.tensor) : activation_bytes(step);
}

void insert_pipeline(const TrainingStep& step, const StageAction& action,
                     std::vector<Operation>& operations) {
    const Split& split = step.split;
    if (split.tensor == 1 || !split.scatter_gather || split.sequence_parallel) return;
    const bool forward = action.kind == ActionKind::forward;
    const bool backward =
        action.kind == ActionKind::backward || action.kind == ActionKind::input_gradient;
    const bool receives =
        (forward && action.stage > 0) || (backward && action.stage < step.stages() - 1);
    if (!receives || split.pipeline == 1) return;
    // What runs beside the chain (gathers of weights) need not wait for the message.
    const auto first = std::find_if(operations.begin(), operations.end(),
                                    [](const Operation& operation) { return operation.blocking; });
    operations.insert(first,
                      collective(Axis::pipeline, CollectiveKind::all_gather, activation_bytes(step),
                                 forward ? Pass::forward : Pass::input_gradient, -1));
}

}  // namespace fourfold
