#include "workloads/stage.hpp"

#include <algorithm>
#include <functional>
#include <iterator>
#include <numeric>

#include "topology/check.hpp"
#include "workloads/axes/axes.hpp"
#include "workloads/layer.hpp"

namespace fourfold {
namespace {

void append(std::vector<Operation>& operations, std::vector<Operation> more) {
    std::move(more.begin(), more.end(), std::back_inserter(operations));
}

// All layers are alike.
void append_layer(std::vector<Operation>& operations, const std::vector<Operation>& each,
                  std::int64_t layer) {
    if (operations.size() + each.size() > operations.capacity()) {
        operations.reserve(4 * (operations.size() + each.size()));
    }
    for (const Operation& operation : each) {
        operations.push_back(operation);
        operations.back().layer = static_cast<std::int32_t>(layer);
    }
}

bool is_head_gradient(const Operation& operation) {
    return operation.site == Site::head && operation.pass == Pass::weight_gradient;
}

std::vector<Operation> kernels(const TrainingStep& step, const StageAction& action) {
    std::vector<Operation> operations;
    const LayerRange layers = layers_of(step, action.stage);
    if (action.kind == ActionKind::forward) {
        if (has_embedding(step, action.stage)) append(operations, embedding_forward(step));
        const std::vector<Operation> each = layer_forward(step, 0);
        for (std::int64_t layer = layers.begin; layer < layers.end; ++layer) {
            append_layer(operations, each, layer);
        }
        if (has_head(step, action.stage)) append(operations, head_forward(step));
        return operations;
    }
    if (has_head(step, action.stage)) append(operations, head_backward(step));
    if (step.defer_head_gradient) std::erase_if(operations, is_head_gradient);
    const std::vector<Operation> each = layer_backward(step, 0);
    for (std::int64_t layer = layers.end; layer-- > layers.begin;) {
        append_layer(operations, each, layer);
    }
    if (has_embedding(step, action.stage)) append(operations, embedding_backward(step));
    if (action.kind != ActionKind::backward) {
        const bool weights = action.kind == ActionKind::weight_gradient;
        std::erase_if(operations, [&](const Operation& operation) {
            return (operation.pass == Pass::weight_gradient) != weights;
        });
    }
    return operations;
}

// The measured time of the whole stage stands for `modelled` kernels of some passes, whose FLOPs it
// keeps.
Operation measured(Duration whole_stage, const TrainingStep& step,
                   const std::vector<Operation>& modelled, bool weights, Pass pass) {
    double flops = 0;
    for (const Operation& operation : modelled) {
        if ((operation.pass == Pass::weight_gradient) == weights) flops += operation.flops;
    }
    return {.site = Site::whole_stage,
            .pass = pass,
            .seconds = to_seconds(whole_stage) / static_cast<double>(step.chunks),
            .flops = flops};
}

std::vector<Operation> measured_stage(const TrainingStep& step, const MeasuredTimes& times,
                                      const StageAction& action) {
    const std::vector<Operation> modelled = kernels(step, action);
    std::vector<Operation> operations;
    if (action.kind == ActionKind::forward) {
        operations.push_back(measured(times.forward, step, modelled, false, Pass::forward));
        return operations;
    }
    const bool whole = action.kind == ActionKind::backward;
    if (whole || action.kind == ActionKind::input_gradient) {
        operations.push_back(
            measured(times.input_gradient, step, modelled, false, Pass::input_gradient));
    }
    if (whole || action.kind == ActionKind::weight_gradient) {
        operations.push_back(
            measured(times.weight_gradient, step, modelled, true, Pass::weight_gradient));
    }
    return operations;
}

double norm_parameters(const TrainingStep& step) {
    return static_cast<double>(step.model.hidden) *
           (step.model.norm == Norm::layernorm ? 2.0 : 1.0);
}

}  // namespace

LayerRange layers_of(const TrainingStep& step, std::int64_t stage) {
    if (step.stage_layers.empty()) {
        const std::int64_t each = step.model.layers / step.stages();
        return {stage * each, (stage + 1) * each};
    }
    const auto own = step.stage_layers.begin() + stage;
    const std::int64_t begin = std::accumulate(step.stage_layers.begin(), own, std::int64_t{0});
    return {begin, begin + *own};
}

bool has_embedding(const TrainingStep&, std::int64_t stage) { return stage == 0; }

bool has_head(const TrainingStep& step, std::int64_t stage) { return stage == step.stages() - 1; }

double layer_parameters_on_device(const TrainingStep& step) {
    const double tensor = static_cast<double>(step.split.tensor);
    const double whole_bias = step.model.bias ? 2.0 * static_cast<double>(step.model.hidden) : 0;
    const double whole = 2 * norm_parameters(step) + whole_bias;
    // Key and value heads that are fewer than the tensor group are copied, not split.
    const double copies =
        std::max(0.0, tensor / static_cast<double>(step.model.kv_heads) - 1) * 2 *
        static_cast<double>(step.model.hidden * head_dim(step.model) * step.model.kv_heads) /
        tensor;
    return whole + (static_cast<double>(layer_parameters(step.model)) - whole) / tensor + copies;
}

double table_parameters_on_device(const TrainingStep& step) {
    const double parts =
        step.split.vocabulary_parallel ? static_cast<double>(step.split.tensor) : 1.0;
    return static_cast<double>(padded_vocabulary(step)) * static_cast<double>(step.model.hidden) /
           parts;
}

double outer_parameters_on_device(const TrainingStep& step, std::int64_t stage) {
    const double table = table_parameters_on_device(step);
    double sum = 0;
    if (has_embedding(step, stage)) {
        sum += table;
        if (step.model.positions == Positions::learned) {
            sum += static_cast<double>(step.model.sequence * step.model.hidden);
        }
    }
    if (has_head(step, stage)) {
        const bool own_table = !step.model.tied_embeddings || !has_embedding(step, stage);
        sum += norm_parameters(step) + (own_table ? table : 0);
    }
    return sum;
}

double stage_parameters_on_device(const TrainingStep& step, std::int64_t stage) {
    const LayerRange layers = layers_of(step, stage);
    return static_cast<double>(layers.end - layers.begin) * layer_parameters_on_device(step) +
           outer_parameters_on_device(step, stage);
}

std::vector<Operation> stage_operations(const TrainingStep& step, const StageAction& action) {
    if (step.measured.stage) {
        std::vector<Operation> operations = measured_stage(step, *step.measured.stage, action);
        if (step.split.sharding != Sharding::weights) insert_data(step, action, operations);
        return operations;
    }
    std::vector<Operation> operations = kernels(step, action);
    insert_tensor(step, action, operations);
    insert_context(step, action, operations);
    insert_sharding(step, action, operations);
    insert_data(step, action, operations);
    insert_pipeline(step, action, operations);
    return operations;
}

std::vector<Operation> tail_operations(const TrainingStep& step, std::int64_t pipeline_rank) {
    std::vector<Operation> operations;
    if (step.defer_head_gradient && pipeline_rank == step.split.pipeline - 1) {
        std::vector<Operation> deferred = head_backward(step);
        std::erase_if(deferred, std::not_fn(is_head_gradient));
        for (std::int64_t i = 0; i < step.micro_batches(); ++i) append(operations, deferred);
    }
    append_data_tail(step, pipeline_rank, operations);
    append_tensor_tail(step, pipeline_rank, operations);

    double parameters = 0;
    for (std::int64_t chunk = 0; chunk < step.chunks; ++chunk) {
        parameters += stage_parameters_on_device(step, chunk * step.split.pipeline + pipeline_rank);
    }
    const bool sharded = step.split.sharding != Sharding::none;
    const std::int64_t sharers =
        step.split.tensor * step.split.pipeline * (sharded ? step.split.replicas() : 1);
    if (step.gradient_norm && sharers > 1 && !step.overlap_optimizer) {
        Operation norm = collective(Axis::norm, CollectiveKind::all_reduce, 4_B, Pass::update, -1);
        norm.group = sharded ? Group::world : Group::model;
        norm.waits_for_all = true;
        operations.push_back(norm);
    }
    std::vector<Operation> update = optimizer_update(
        step, sharded ? parameters / static_cast<double>(step.split.replicas()) : parameters);
    FOURFOLD_CHECK(!update.empty());
    update.front().waits_for_all = true;
    append(operations, std::move(update));
    append_sharding_tail(step, pipeline_rank, operations);
    return operations;
}

}  // namespace fourfold
