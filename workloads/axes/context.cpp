// Context parallelism. Every rank has a part of the sequence, cut zig-zag so that causal masks are
// balanced, and sees the keys and values of the others as they go round a ring (Liu et al. 2023,
// Ring Attention, arXiv 2310.01889, sec. 3; Megatron-LM, Transformer Engine):
//
//   compute | own block | blocks of others  |        backward: the same, and the gradients of keys
//   context | keys and values gathered  |            and values go back (reduce-scatter)
//
// The first of `context` parts of the attention core needs none of them.

#include "workloads/axes/axes.hpp"

namespace fourfold {
namespace {

// Keys and values of the whole sequence on one tensor rank, 16 bit.
Bytes key_value_bytes(const TrainingStep& step) {
    const std::int64_t heads = (step.model.kv_heads + step.split.tensor - 1) / step.split.tensor;
    return {step.micro_batch * step.model.sequence * 2 * heads * head_dim(step.model) * 2};
}

}  // namespace

void insert_context(const TrainingStep& step, const StageAction&,
                    std::vector<Operation>& operations) {
    if (step.split.context == 1) return;
    const double own = 1.0 / static_cast<double>(step.split.context);
    std::int32_t ticket = free_ticket(operations);
    std::int32_t gradients = -1;  // on their way back
    std::vector<Operation> out;
    for (Operation& operation : operations) {
        if (gradients >= 0 && operation.site == Site::attention_qkv) {
            operation.waits_for.push_back(gradients);
            gradients = -1;
        }
        if (operation.site != Site::attention_core || operation.axis != Axis::compute) {
            out.push_back(operation);
            continue;
        }
        const auto exchange = [&](CollectiveKind kind) {
            Operation made = collective(Axis::context, kind, key_value_bytes(step), operation.pass,
                                        operation.layer);
            made.blocking = false;
            made.ticket = ticket++;
            out.push_back(made);
            return made.ticket;
        };
        const std::int32_t gathered = exchange(CollectiveKind::all_gather);
        Operation first = operation;
        first.seconds *= own;
        first.flops *= own;
        Operation rest = operation;
        rest.seconds -= first.seconds;
        rest.flops -= first.flops;
        rest.waits_for = {gathered};
        out.push_back(first);
        if (operation.pass == Pass::input_gradient) {
            gradients = exchange(CollectiveKind::reduce_scatter);
        }
        out.push_back(rest);
    }
    operations = std::move(out);
}

}  // namespace fourfold
