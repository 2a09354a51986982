// Sharded state over the data group.
//
// Weights (ZeRO-3, FSDP): a unit is gathered before its forward and again before its backward, and
// its gradients are reduce-scattered after it: 3 collectives per unit and micro-batch. With
// prefetch the next unit is gathered while this one computes, so that two are alive at once:
//
//   compute   | layer 0 | layer 1 | layer 2 |
//   sharding  | gather 1 | gather 2 | gather 3 |     (gather 0 is exposed)
//
// or, in the backward of some frameworks, once it is done, before its gradients are reduced:
//
//   compute   | layer 2 |          | layer 1 |          | layer 0 |
//   sharding            | gather 1 | reduce 2 | gather 0 | reduce 1 | reduce 0 |
//
// The outer unit (embedding, head, final norm) is gathered once and kept until its backward is
// done, as FSDP's root unit is (Zhao et al. 2023, sec. 3.2 and PyTorch's reshard_after_forward).
//
// Optimizer state or gradients (ZeRO-1, 2): the updated parameters are gathered once per step,
// after the optimizer, or, overlapped, layer by layer while the first micro-batch's forward runs:
// all gathers of a device are issued with its first forward, those of later chunks behind those of
// earlier ones, and each layer waits for its own.

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "workloads/axes/axes.hpp"

namespace fourfold {
namespace {

constexpr std::int32_t outer_unit = -1;  // the layer number of what is in no layer
constexpr std::int32_t whole_unit = -2;

Bytes parameter_bytes(double parameters) {
    return {static_cast<std::int64_t>(std::llround(parameters)) * 2};
}

class ShardingInserter {
  public:
    ShardingInserter(const TrainingStep& step, const StageAction& action,
                     std::vector<Operation>& operations)
        : step_(step),
          action_(action),
          in_(operations),
          one_unit_(step.split.sharding == Sharding::weights &&
                    step.split.shard_unit == ShardUnit::model),
          next_ticket_(free_ticket(operations)) {
        for (std::size_t i = 0; i < in_.size(); ++i) {
            const auto [entry, is_new] = span_.try_emplace(unit_of(in_[i]), Span{i, i});
            if (is_new) units_.push_back(entry->first);
            entry->second.last = i;
        }
    }

    std::vector<Operation> run(bool gathers, bool reduces) {
        if (gathers && step_.overlap_parameters) issue(units_.front());
        for (std::size_t i = 0; i < in_.size(); ++i) {
            const std::int32_t unit = unit_of(in_[i]);
            Operation operation = in_[i];
            if (i == span_.at(unit).first && gathers) open(unit, operation);
            out_.push_back(operation);
            if (i != span_.at(unit).last) continue;
            if (gathers && step_.overlap_parameters && late()) issue_after(unit);
            if (reduces) reduce(unit);
        }
        return std::move(out_);
    }

  private:
    struct Span {
        std::size_t first, last;  // operations of a unit
    };

    [[nodiscard]] std::int32_t unit_of(const Operation& operation) const {
        return one_unit_ ? whole_unit : operation.layer;
    }
    [[nodiscard]] double parameters(std::int32_t unit) const {
        if (unit == whole_unit) return stage_parameters_on_device(step_, action_.stage);
        if (unit == outer_unit) return outer_parameters_on_device(step_, action_.stage);
        return layer_parameters_on_device(step_);
    }
    // The outer unit is still there from the forward pass.
    [[nodiscard]] bool needs_gather(std::int32_t unit) const {
        return unit != outer_unit || action_.kind == ActionKind::forward;
    }

    void issue(std::int32_t unit) {
        if (!needs_gather(unit) || tickets_.contains(unit)) return;
        Operation gather = collective(Axis::sharding, CollectiveKind::all_gather,
                                      parameter_bytes(parameters(unit)), pass(), unit);
        gather.blocking = false;
        gather.ticket = tickets_[unit] = next_ticket_++;
        out_.push_back(gather);
    }

    [[nodiscard]] bool late() const {
        return step_.framework.prefetch_after_backward && action_.kind != ActionKind::forward;
    }
    void issue_after(std::int32_t unit) {
        const auto next = std::find(units_.begin(), units_.end(), unit) + 1;
        if (next != units_.end()) issue(*next);
    }

    void open(std::int32_t unit, Operation& operation) {
        if (!step_.overlap_parameters) {
            if (!needs_gather(unit)) return;
            out_.push_back(collective(Axis::sharding, CollectiveKind::all_gather,
                                      parameter_bytes(parameters(unit)), pass(), unit));
            return;
        }
        issue(unit);
        if (!late()) issue_after(unit);
        if (const auto ticket = tickets_.find(unit); ticket != tickets_.end()) {
            operation.waits_for.push_back(ticket->second);
        }
    }

    void reduce(std::int32_t unit) {
        const Bytes bytes{static_cast<std::int64_t>(std::llround(parameters(unit))) *
                          step_.gradient_bytes};
        Operation reduction = collective(Axis::sharding, CollectiveKind::reduce_scatter, bytes,
                                         Pass::weight_gradient, unit);
        reduction.blocking = !step_.overlap_gradients;
        out_.push_back(reduction);
    }

    [[nodiscard]] Pass pass() const {
        return action_.kind == ActionKind::forward ? Pass::forward : Pass::input_gradient;
    }

    const TrainingStep& step_;
    const StageAction& action_;
    std::vector<Operation>& in_;
    bool one_unit_;
    std::int32_t next_ticket_;
    std::vector<std::int32_t> units_;  // in the order of their first use
    std::map<std::int32_t, Span> span_;
    std::map<std::int32_t, std::int32_t> tickets_;
    std::vector<Operation> out_;
};

// A layer's number, or one for all that is in no layer of the stage.
std::int32_t step_ticket_of(const TrainingStep& step, std::int64_t stage, std::int32_t layer) {
    return static_cast<std::int32_t>(layer >= 0 ? layer : step.model.layers + stage);
}

void insert_updated_parameters(const TrainingStep& step, const StageAction& action,
                               std::vector<Operation>& operations) {
    std::vector<Operation> gathers;
    const auto gather = [&](std::int64_t stage, std::int32_t layer, double parameters) {
        if (parameters == 0) return;
        Operation made = collective(Axis::sharding, CollectiveKind::all_gather,
                                    parameter_bytes(parameters), Pass::forward, layer);
        made.blocking = false;
        made.step_ticket = step_ticket_of(step, stage, layer);
        gathers.push_back(made);
    };
    if (action.stage < step.split.pipeline) {
        for (std::int64_t stage = action.stage; stage < step.stages();
             stage += step.split.pipeline) {
            const double outer = outer_parameters_on_device(step, stage);
            if (has_embedding(step, stage)) gather(stage, outer_unit, outer);
            const LayerRange layers = layers_of(step, stage);
            for (std::int64_t layer = layers.begin; layer < layers.end; ++layer) {
                gather(stage, static_cast<std::int32_t>(layer), layer_parameters_on_device(step));
            }
            if (!has_embedding(step, stage)) gather(stage, outer_unit, outer);
        }
    }
    std::set<std::int32_t> seen;
    for (Operation& operation : operations) {
        if (operation.axis != Axis::compute || !seen.insert(operation.layer).second) continue;
        operation.waits_for_step_ticket = step_ticket_of(step, action.stage, operation.layer);
    }
    operations.insert(operations.begin(), gathers.begin(), gathers.end());
}

}  // namespace

void insert_sharding(const TrainingStep& step, const StageAction& action,
                     std::vector<Operation>& operations) {
    if (step.split.replicas() == 1 || step.split.sharding == Sharding::none || operations.empty())
        return;
    if (step.split.sharding == Sharding::weights) {
        const bool gathers = action.kind != ActionKind::weight_gradient;
        const bool reduces =
            action.kind == ActionKind::backward || action.kind == ActionKind::weight_gradient;
        operations = ShardingInserter(step, action, operations).run(gathers, reduces);
    } else if (step.overlap_parameters && action.first && action.kind == ActionKind::forward) {
        insert_updated_parameters(step, action, operations);
    }
}

void append_sharding_tail(const TrainingStep& step, std::int64_t pipeline_rank,
                          std::vector<Operation>& operations) {
    const bool updated_elsewhere =
        step.split.sharding == Sharding::optimizer || step.split.sharding == Sharding::gradients;
    if (step.split.replicas() == 1 || !updated_elsewhere) return;
    if (step.overlap_parameters && !step.measured.stage) return;
    double parameters = 0;
    for (std::int64_t chunk = 0; chunk < step.chunks; ++chunk) {
        parameters += stage_parameters_on_device(step, chunk * step.split.pipeline + pipeline_rank);
    }
    operations.push_back(collective(Axis::sharding, CollectiveKind::all_gather,
                                    parameter_bytes(parameters), Pass::update, -1));
}

}  // namespace fourfold
