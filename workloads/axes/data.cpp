// Data parallelism. Gradients are reduced once per step, in buckets of `bucket` bytes, each issued
// when the last weight gradient in it is done, during the last micro-batch's backward:
//
//   backward   | layer 3 | layer 2 | layer 1 | layer 0 |
//   data lane            | bucket  | bucket  | bucket  | the first layer's is always exposed
//
// All-reduce where nothing is sharded, reduce-scatter where the optimizer's state is (ZeRO-1). With
// sharded gradients (ZeRO-2) no device keeps whole ones: every micro-batch reduces its own
// (Rajbhandari et al. 2020, sec. 5).

#include <cmath>

#include "workloads/axes/axes.hpp"

namespace fourfold {
namespace {

class Buckets {
  public:
    Buckets(const TrainingStep& step, bool blocking, Pass pass, std::vector<Operation>& out)
        : step_(step), blocking_(blocking), pass_(pass), out_(out) {}

    void add(double parameters) {
        open_ += static_cast<std::int64_t>(std::llround(parameters)) * step_.gradient_bytes;
        for (; open_ >= step_.bucket.value; open_ -= step_.bucket.value) emit(step_.bucket);
    }
    void flush() {
        if (open_ > 0) emit({open_});
        open_ = 0;
    }

  private:
    void emit(Bytes bytes) {
        const bool whole =
            step_.split.sharding == Sharding::none ||
            (step_.split.sharding == Sharding::optimizer && step_.framework.reduce_whole_gradients);
        const CollectiveKind kind =
            whole ? CollectiveKind::all_reduce : CollectiveKind::reduce_scatter;
        Operation reduction = collective(Axis::data, kind, bytes, pass_, -1);
        reduction.blocking = blocking_;
        out_.push_back(reduction);
    }

    const TrainingStep& step_;
    bool blocking_;
    Pass pass_;
    std::vector<Operation>& out_;
    std::int64_t open_ = 0;
};

bool reduces(const TrainingStep& step) {
    return step.split.replicas() > 1 && step.split.sharding != Sharding::weights;
}

bool during_backward(const TrainingStep& step) {
    return step.overlap_gradients || step.split.sharding == Sharding::gradients;
}

double deferred_parameters(const TrainingStep& step, std::int64_t stage) {
    return step.defer_head_gradient && has_head(step, stage) ? table_parameters_on_device(step) : 0;
}

// Whose gradients are complete once `operation` is done, if it is the last of its kind.
double parameters_of(const TrainingStep& step, const StageAction& action,
                     const Operation& operation) {
    if (operation.layer >= 0) return layer_parameters_on_device(step);
    const double outer =
        outer_parameters_on_device(step, action.stage) - deferred_parameters(step, action.stage);
    if (!has_embedding(step, action.stage) || !has_head(step, action.stage)) return outer;
    // A table that both share is complete at the embedding; else each has about one half.
    if (step.model.tied_embeddings) return operation.site == Site::embedding ? outer : 0;
    return outer / 2;
}

bool same_owner(const Operation& a, const Operation& b) {
    return a.layer == b.layer &&
           (a.layer >= 0 || (a.site == Site::embedding) == (b.site == Site::embedding));
}

}  // namespace

void insert_data(const TrainingStep& step, const StageAction& action,
                 std::vector<Operation>& operations) {
    const bool makes_gradients =
        action.kind == ActionKind::backward || action.kind == ActionKind::weight_gradient;
    const bool now = action.last || step.split.sharding == Sharding::gradients;
    if (!reduces(step) || !during_backward(step) || !makes_gradients || !now) return;

    std::vector<Operation> out;
    // Without overlap, the next micro-batch waits (sharded gradients only: see during_backward).
    Buckets buckets(step, !step.overlap_gradients, Pass::weight_gradient, out);
    if (step.measured.stage) {
        out = operations;
        buckets.add(stage_parameters_on_device(step, action.stage));
        buckets.flush();
        operations = std::move(out);
        return;
    }
    for (std::size_t i = 0; i < operations.size(); ++i) {
        out.push_back(operations[i]);
        if (operations[i].axis != Axis::compute) continue;
        bool owner_done = true;
        for (std::size_t j = i + 1; j < operations.size() && owner_done; ++j) {
            owner_done =
                operations[j].axis != Axis::compute || !same_owner(operations[i], operations[j]);
        }
        if (owner_done) buckets.add(parameters_of(step, action, operations[i]));
    }
    buckets.flush();
    operations = std::move(out);
}

void append_data_tail(const TrainingStep& step, std::int64_t pipeline_rank,
                      std::vector<Operation>& operations) {
    if (!reduces(step)) return;
    Buckets buckets(step, true, Pass::update, operations);
    for (std::int64_t chunk = 0; chunk < step.chunks; ++chunk) {
        const std::int64_t stage = chunk * step.split.pipeline + pipeline_rank;
        buckets.add(during_backward(step) ? deferred_parameters(step, stage)
                                          : stage_parameters_on_device(step, stage));
    }
    buckets.flush();
}

}  // namespace fourfold
