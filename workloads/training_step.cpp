#include "workloads/training_step.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "workloads/stage.hpp"

namespace fourfold {
namespace {

constexpr std::int64_t degree_max = 1 << 20;
constexpr std::int64_t stages_max = 1 << 15;
constexpr double buckets_max = 1e5;

Result<void> check_degrees(const TrainingStep& step, std::size_t devices) {
    if (!step.devices.empty()) devices = step.devices.size();
    const Split& split = step.split;
    const struct {
        std::string_view where;
        std::int64_t degree;
    } degrees[] = {{"parallel.tensor", split.tensor},
                   {"parallel.context", split.context},
                   {"parallel.pipeline", split.pipeline},
                   {"parallel.data", split.data}};
    for (const auto& [where, degree] : degrees) {
        if (degree >= 1 && degree <= degree_max) continue;
        return problem(std::string(where),
                       fmt::format("a degree of {} is outside 1 .. {}", degree, degree_max));
    }
    const double product = static_cast<double>(split.tensor) * static_cast<double>(split.context) *
                           static_cast<double>(split.pipeline) * static_cast<double>(split.data);
    if (product > static_cast<double>(devices)) {
        const std::string context =
            split.context > 1 ? fmt::format(" x context {}", split.context) : "";
        return problem("parallel",
                       fmt::format("tensor {}{} x pipeline {} x data {} = {} ranks, but the {} "
                                   "has {} devices",
                                   split.tensor, context, split.pipeline, split.data, product,
                                   step.devices.empty() ? "cluster" : "job", devices));
    }
    return {};
}

Result<void> check_tensor(const TrainingStep& step) {
    const std::int64_t tensor = step.split.tensor;
    const Transformer& model = step.model;
    const struct {
        std::string_view what;
        std::int64_t count;
    } divided[] = {{"attention heads", model.heads}, {"FFN columns", model.ffn}};
    for (const auto& [what, count] : divided) {
        if (count % tensor == 0) continue;
        return problem(
            "parallel.tensor",
            fmt::format("{} {} cannot be divided among {} tensor ranks", count, what, tensor));
    }
    if (model.kv_heads % tensor != 0 && tensor % model.kv_heads != 0) {
        return problem(
            "parallel.tensor",
            fmt::format("{} key-value heads and {} tensor ranks: one must divide the other",
                        model.kv_heads, tensor));
    }
    if (model.sequence % step.split.context != 0) {
        return problem("parallel.context",
                       fmt::format("a sequence of {} cannot be divided among {} context ranks",
                                   model.sequence, step.split.context));
    }
    const std::int64_t sequence = model.sequence / step.split.context;
    if (step.split.sequence_parallel && sequence % tensor != 0) {
        const std::string of = step.split.context > 1
                                   ? fmt::format(" on each of {} context ranks", step.split.context)
                                   : "";
        return problem("parallel.sequence_parallel",
                       fmt::format("a sequence of {}{} cannot be divided among {} tensor ranks",
                                   sequence, of, tensor));
    }
    return {};
}

Result<void> check_stage_layers(const TrainingStep& step) {
    const std::vector<std::int64_t>& layers = step.stage_layers;
    if (layers.size() != static_cast<std::size_t>(step.stages())) {
        return problem(
            "parallel.stage_layers",
            fmt::format("{} numbers for {} stages ({} pipeline ranks x {} chunks); write "
                        "one for each",
                        layers.size(), step.stages(), step.split.pipeline, step.chunks));
    }
    const std::int64_t sum = std::accumulate(layers.begin(), layers.end(), std::int64_t{0});
    if (sum != step.model.layers) {
        return problem(
            "parallel.stage_layers",
            fmt::format("they sum to {}, but the model has {} layers", sum, step.model.layers));
    }
    for (std::int64_t stage = 0; stage < step.stages(); ++stage) {
        const bool has_work = layers[static_cast<std::size_t>(stage)] > 0 ||
                              has_embedding(step, stage) || has_head(step, stage);
        if (has_work) continue;
        return problem(
            "parallel.stage_layers",
            fmt::format("stage {} (counted from 0) has no layer, embedding or head", stage));
    }
    return {};
}

Result<void> check_pipeline(const TrainingStep& step) {
    if (step.chunks < 1 || step.chunks > stages_max || step.stages() > stages_max) {
        return problem(
            "schedule.chunks",
            fmt::format("{} chunks on each of {} pipeline ranks: the stages must be 1 .. {}",
                        step.chunks, step.split.pipeline, stages_max));
    }
    if (!step.stage_layers.empty()) return check_stage_layers(step);
    if (step.model.layers % step.stages() != 0) {
        return problem(
            step.chunks > 1 ? "schedule.chunks" : "parallel.pipeline",
            fmt::format(
                "{} layers cannot be divided among {} stages ({} pipeline ranks x {} chunks)",
                step.model.layers, step.stages(), step.split.pipeline, step.chunks));
    }
    return {};
}

Result<void> check_batch(const TrainingStep& step) {
    if (step.micro_batch < 1) {
        return problem("batch.micro",
                       fmt::format("a micro-batch of {} sequences", step.micro_batch));
    }
    if (step.global_batch < 1) {
        return problem("batch.global",
                       fmt::format("a global batch of {} sequences", step.global_batch));
    }
    constexpr std::int64_t batch_max = std::int64_t{1} << 31;
    if (step.global_batch > batch_max || step.micro_batch > batch_max) {
        return problem("batch", fmt::format("more than {} sequences", batch_max));
    }
    const std::int64_t at_once = step.micro_batch * step.split.data;
    if (step.global_batch % at_once != 0) {
        return problem(
            "batch.global",
            fmt::format("{} sequences cannot be divided into micro-batches of {} on {} data "
                        "ranks; the nearest that can: {}",
                        step.global_batch, step.micro_batch, step.split.data,
                        std::max<std::int64_t>(1, step.global_batch / at_once) * at_once));
    }
    return {};
}

// A bucket is a task on every device.
Result<void> check_bucket(const TrainingStep& step) {
    if (step.bucket < 1_B) {
        return problem("parallel.bucket", fmt::format("a bucket of {} B", step.bucket.value));
    }
    if (step.split.replicas() == 1 || step.split.sharding == Sharding::weights) return {};
    double gradients = 0;
    for (std::int64_t stage = 0; stage < step.stages(); ++stage) {
        gradients = std::max(gradients, stage_parameters_on_device(step, stage) *
                                            static_cast<double>(step.gradient_bytes));
    }
    const double buckets = gradients / static_cast<double>(step.bucket.value);
    if (buckets > buckets_max) {
        return problem(
            "parallel.bucket",
            fmt::format("the gradients of a stage make {:.1e} buckets of {}, more than the "
                        "{:.0e} that can be simulated; use larger buckets",
                        buckets, to_text(step.bucket), buckets_max));
    }
    return {};
}

Result<void> check_deferred_head(const TrainingStep& step) {
    constexpr std::string_view where = "schedule.defer_head_gradient";
    if (!step.defer_head_gradient) return {};
    if (step.split.pipeline == 1) {
        return problem(std::string(where), "one pipeline rank: no other stage drains meanwhile");
    }
    if (step.split.sharding == Sharding::gradients || step.split.sharding == Sharding::weights) {
        return problem(std::string(where),
                       "sharded gradients are reduced in every micro-batch, none can be deferred");
    }
    if (step.measured.stage) {
        return problem(std::string(where), "the head's share of a measured stage is not known");
    }
    return {};
}

Result<void> check_slow_devices(const TrainingStep& step, std::size_t devices) {
    for (std::size_t i = 0; i < step.slow_devices.size(); ++i) {
        const SlowDevice& slow = step.slow_devices[i];
        if (slow.device >= devices) {
            return problem(fmt::format("perturb.{}.slow_device", i),
                           fmt::format("there is no device {}; the cluster has {}, counted from 0",
                                       slow.device, devices));
        }
        if (!(slow.factor > 0) || !std::isfinite(slow.factor) || slow.factor > 1e6) {
            return problem(fmt::format("perturb.{}.factor", i),
                           fmt::format("a factor of {}; 1.3 makes a device take 1.3 times as long",
                                       slow.factor));
        }
    }
    return {};
}

}  // namespace

std::int64_t padded_vocabulary(const TrainingStep& step) {
    const std::int64_t multiple = 128 * (step.split.vocabulary_parallel ? step.split.tensor : 1);
    return (step.model.vocab + multiple - 1) / multiple * multiple;
}

Result<void> check(const TrainingStep& step, std::size_t devices) {
    if (auto model = check(step.model); !model) {
        return problem("model." + model.error().where, model.error().what);
    }
    if (auto degrees = check_degrees(step, devices); !degrees) return degrees;
    if (auto tensor = check_tensor(step); !tensor) return tensor;
    if (auto pipeline = check_pipeline(step); !pipeline) return pipeline;
    if (auto batch = check_batch(step); !batch) return batch;
    if (auto bucket = check_bucket(step); !bucket) return bucket;
    const PipelineShape shape{static_cast<std::uint32_t>(step.split.pipeline),
                              static_cast<std::uint32_t>(step.chunks),
                              static_cast<std::uint32_t>(step.micro_batches())};
    if (const auto reason = step.schedule->refuse(shape)) {
        return problem("schedule.kind", *reason);
    }
    if (auto deferred = check_deferred_head(step); !deferred) return deferred;
    return check_slow_devices(step, devices);
}

}  // namespace fourfold
