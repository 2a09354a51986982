// Tensor parallelism. A is a micro-batch's activation, micro-batch * sequence / context * hidden *
// 2 bytes.
//
//            forward                            backward (input gradient)
//   without  qkv core proj [AR] fc1 fc2 [AR]    fc2 fc1 [AR] proj core qkv [AR]
//   with SP  [AG] qkv core proj [RS]            [AG] fc2 fc1 [RS] [AG] proj core qkv [RS]
//            [AG] fc1 fc2 [RS]                  and [AG] of the inputs of fc1 and qkv again for
//                                               their weight gradients, beside the input gradient
//
// So 4 all-reduces per layer and micro-batch (Shoeybi et al. 2019, fig. 4), or 10 collectives with
// sequence parallelism (Korthikanti et al. 2022, sec. 4.2.2): the same bytes and two gathers.
// Embedding, head and loss have theirs: the axis `vocabulary`.
//
// With user buffers (Transformer Engine), a share `overlap` of a gather's or reduction's bytes
// moves beneath the matrix multiplication that uses or makes them:
//
//   compute | ...   | qkv          | core |             | projection    | ...
//   tensor  | AG (1 - o) | AG o |                       | RS o |        | RS (1 - o) |

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>

#include "workloads/axes/axes.hpp"

namespace fourfold {
namespace {

bool is_forward(Pass pass) { return pass == Pass::forward || pass == Pass::recompute; }

// Which kernels of a layer have whole (not sequence-sharded) inputs and which partial outputs.
bool gathers_input(const Operation& kernel) {
    switch (kernel.site) {
        case Site::attention_qkv:
        case Site::mlp_first:
            return is_forward(kernel.pass);
        case Site::attention_projection:
        case Site::mlp_second:
            return kernel.pass == Pass::input_gradient;
        default:
            return false;
    }
}

bool has_partial_output(const Operation& kernel) {
    switch (kernel.site) {
        case Site::attention_projection:
        case Site::mlp_second:
            return is_forward(kernel.pass);
        case Site::attention_qkv:
        case Site::mlp_first:
            return kernel.pass == Pass::input_gradient;
        default:
            return false;
    }
}

bool regathers_input(const Operation& kernel) {
    return (kernel.site == Site::attention_qkv || kernel.site == Site::mlp_first) &&
           kernel.pass == Pass::weight_gradient;
}

bool same_place(const Operation& a, const Operation& b) {
    return a.layer == b.layer && a.site == b.site && a.pass == b.pass;
}

class TensorInserter {
  public:
    TensorInserter(const TrainingStep& step, std::vector<Operation>& operations)
        : step_(step), in_(operations) {}

    std::vector<Operation> run() {
        for (std::size_t i = 0; i < in_.size(); ++i) {
            const bool opens = i == 0 || !same_place(in_[i - 1], in_[i]);
            const bool closes = i + 1 == in_.size() || !same_place(in_[i], in_[i + 1]);
            if (opens) before(in_[i], i);
            Operation kernel = in_[i];
            if (opens) std::swap(kernel.waits_for, awaited_);
            out_.push_back(kernel);
            if (closes) after(in_[i]);
        }
        return std::move(out_);
    }

  private:
    [[nodiscard]] bool sequence_parallel() const { return step_.split.sequence_parallel; }

    void add(Axis axis, CollectiveKind kind, Bytes bytes, const Operation& near) {
        out_.push_back(collective(axis, kind, bytes, near.pass, near.layer));
    }

    // The share of a collective that runs beside a kernel; its ticket.
    std::int32_t add_beneath(CollectiveKind kind, const Operation& near) {
        Operation hidden =
            collective(Axis::tensor, kind, share_of_activation(overlap()), near.pass, near.layer);
        hidden.blocking = false;
        hidden.ticket = next_ticket_++;
        out_.push_back(hidden);
        return hidden.ticket;
    }
    [[nodiscard]] double overlap() const { return step_.framework.tensor_overlap; }
    [[nodiscard]] Bytes share_of_activation(double share) const {
        const auto all = static_cast<double>(activation_bytes(step_).value);
        return {std::llround(share * all)};
    }

    // The gather for a weight gradient is issued before the input gradient of the same matrix,
    // where that is in this list, else just before the weight gradient.
    void issue_regather(const Operation& near, std::int32_t ticket) {
        Operation gather = collective(Axis::tensor, CollectiveKind::all_gather,
                                      activation_bytes(step_), near.pass, near.layer);
        gather.blocking = false;
        gather.ticket = ticket;
        out_.push_back(gather);
    }

    void before(const Operation& kernel, std::size_t at) {
        if (kernel.site == Site::head) return before_head(kernel);
        if (kernel.site == Site::embedding) return before_embedding(kernel);
        if (!sequence_parallel()) return;
        if (gathers_input(kernel)) {
            add(Axis::tensor, CollectiveKind::all_gather, share_of_activation(1 - overlap()),
                kernel);
            if (overlap() > 0) hidden_ = add_beneath(CollectiveKind::all_gather, kernel);
        }
        if (has_partial_output(kernel) && overlap() > 0) {
            add_beneath(CollectiveKind::reduce_scatter, kernel);
        }
        if (has_partial_output(kernel) && kernel.pass == Pass::input_gradient) {
            const bool weights_follow = std::any_of(in_.begin() + static_cast<std::ptrdiff_t>(at),
                                                    in_.end(), [&](const Operation& later) {
                                                        return regathers_input(later) &&
                                                               later.layer == kernel.layer &&
                                                               later.site == kernel.site;
                                                    });
            if (weights_follow) {
                regathered_ = next_ticket_++;
                issue_regather(kernel, *regathered_);
            }
        }
        if (regathers_input(kernel)) {
            if (!regathered_) {
                regathered_ = next_ticket_++;
                issue_regather(kernel, *regathered_);
            }
            awaited_.push_back(*regathered_);
            regathered_.reset();
        }
    }

    void after(const Operation& kernel) {
        if (hidden_) awaited_.push_back(*hidden_);
        hidden_.reset();
        if (kernel.site == Site::embedding && is_forward(kernel.pass)) {
            if (!step_.split.vocabulary_parallel) return;
            return add(
                Axis::vocabulary,
                sequence_parallel() ? CollectiveKind::reduce_scatter : CollectiveKind::all_reduce,
                activation_bytes(step_), kernel);
        }
        if (kernel.site == Site::head) return after_head(kernel);
        if (kernel.site == Site::loss && is_forward(kernel.pass)) return after_loss(kernel);
        if (!has_partial_output(kernel)) return;
        if (sequence_parallel()) {
            add(Axis::tensor, CollectiveKind::reduce_scatter, share_of_activation(1 - overlap()),
                kernel);
        } else {
            add(Axis::tensor, CollectiveKind::all_reduce, activation_bytes(step_), kernel);
        }
    }

    void before_embedding(const Operation& kernel) {
        if (sequence_parallel() && !is_forward(kernel.pass)) {
            add(Axis::vocabulary, CollectiveKind::all_gather, activation_bytes(step_), kernel);
        }
    }
    void before_head(const Operation& kernel) {
        if (sequence_parallel() && is_forward(kernel.pass)) {
            add(Axis::vocabulary, CollectiveKind::all_gather, activation_bytes(step_), kernel);
        }
    }
    void after_head(const Operation& kernel) {
        if (kernel.pass != Pass::input_gradient || !step_.split.vocabulary_parallel) return;
        add(Axis::vocabulary,
            sequence_parallel() ? CollectiveKind::reduce_scatter : CollectiveKind::all_reduce,
            activation_bytes(step_), kernel);
    }
    // Vocabulary-parallel cross entropy: the maximum, the target's logit, the sum of exponentials.
    void after_loss(const Operation& kernel) {
        if (!step_.split.vocabulary_parallel) return;
        const Bytes one_float_per_token{4 * step_.tokens()};
        for (int i = 0; i < 3; ++i) {
            add(Axis::vocabulary, CollectiveKind::all_reduce, one_float_per_token, kernel);
        }
    }

    const TrainingStep& step_;
    std::vector<Operation>& in_;
    std::vector<Operation> out_;
    std::int32_t next_ticket_ = 0;
    std::optional<std::int32_t> regathered_;  // issued, its weight gradient still to come
    std::optional<std::int32_t> hidden_;      // runs beside the kernel that is open
    std::vector<std::int32_t> awaited_;       // by the kernel that is next
};

}  // namespace

Operation collective(Axis axis, CollectiveKind kind, Bytes bytes, Pass pass, std::int32_t layer) {
    Operation operation;
    operation.pass = pass;
    operation.axis = axis;
    operation.layer = layer;
    operation.collective = kind;
    operation.bytes = bytes;
    const bool of_replicas = axis == Axis::data || axis == Axis::sharding;
    operation.group = of_replicas             ? Group::replicas
                      : axis == Axis::context ? Group::context
                                              : Group::tensor;
    return operation;
}

std::int32_t free_ticket(const std::vector<Operation>& operations) {
    std::int32_t ticket = 0;
    for (const Operation& operation : operations) {
        ticket = std::max(ticket, operation.ticket + 1);
    }
    return ticket;
}

Bytes activation_bytes(const TrainingStep& step) { return {step.tokens() * step.model.hidden * 2}; }

void insert_tensor(const TrainingStep& step, const StageAction&,
                   std::vector<Operation>& operations) {
    if (step.split.tensor == 1) return;
    operations = TensorInserter(step, operations).run();
}

// Both all-reduces wait for the gradients' buckets: they sum what the data group has summed
// (Megatron-LM, finalize_model_grads).
void append_tensor_tail(const TrainingStep& step, std::int64_t pipeline_rank,
                        std::vector<Operation>& operations) {
    std::int64_t per_rank = 0;
    for (std::int64_t chunk = 0; chunk < step.chunks; ++chunk) {
        const LayerRange layers = layers_of(step, chunk * step.split.pipeline + pipeline_rank);
        per_rank += layers.end - layers.begin;
    }
    if (step.split.tensor > 1 && step.split.sequence_parallel) {
        // Norms see a part of the sequence only: their gradients are summed over the group.
        const std::int64_t vectors = step.model.norm == Norm::layernorm ? 4 : 2;
        const Bytes bytes{per_rank * vectors * step.model.hidden * step.gradient_bytes};
        Operation norms =
            collective(Axis::tensor, CollectiveKind::all_reduce, bytes, Pass::update, -1);
        norms.waits_for_all = true;
        operations.push_back(norms);
    }
    const bool at_an_end = pipeline_rank == 0 || pipeline_rank == step.split.pipeline - 1;
    if (step.model.tied_embeddings && step.split.pipeline > 1 && at_an_end) {
        const std::int64_t parts = step.split.vocabulary_parallel ? step.split.tensor : 1;
        const Bytes bytes{padded_vocabulary(step) / parts * step.model.hidden *
                          step.gradient_bytes};
        Operation tied =
            collective(Axis::vocabulary, CollectiveKind::all_reduce, bytes, Pass::update, -1);
        tied.group = Group::embedding;
        tied.waits_for_all = true;
        operations.push_back(tied);
    }
}

}  // namespace fourfold
