#include "scenarios/framework_profile.hpp"

#include "scenarios/fields.hpp"

namespace fourfold {
namespace {

// Reads a key into an optional, which keeps its value where the key is absent or wrong.
template <class T, class Read>
void read_into(std::optional<T>& into, Read read) {
    T value{};
    if (read(value)) into = value;
}

void read_flag(Fields& fields, std::string_view key, std::optional<bool>& into) {
    read_into(into, [&](bool& value) { return fields.boolean(key, Need::optional, value); });
}

// A host that is slower than this is broken.
constexpr Durations launch_duration{Duration(0), Duration(1'000'000'000'000)};
constexpr Durations host_duration{Duration(0), Duration(60'000'000'000'000)};

void read_host(Fields&& host, Host& into) {
    host.duration("forward_launch", Need::optional, into.forward_launch, launch_duration);
    host.duration("backward_launch", Need::optional, into.backward_launch, launch_duration);
    host.duration("micro_batch", Need::optional, into.micro_batch, host_duration);
    host.duration("step", Need::optional, into.step, host_duration);
    host.boolean("blocking", Need::optional, into.blocking);
    host.duration("wait", Need::optional, into.wait, launch_duration);
}

constexpr Reals bytes_each{.min = 0, .max = 1e4, .above_min = false, .example = "48"};
constexpr Reals relative_speed{.min = 0.01, .max = 2, .above_min = false, .example = "0.7"};
constexpr Reals share{.min = 0, .max = 1, .above_min = false, .example = "0.3"};

}  // namespace

bool read_attention(Fields& fields, Attention& into) {
    return fields.choice<Attention>("attention", "attention", Need::optional, into,
                                    {{"unfused", Attention::unfused},
                                     {"flash", Attention::flash},
                                     {"flash-1", Attention::flash_1}});
}

bool read_sharding(Fields& fields, Sharding& into) {
    return fields.choice<Sharding>("sharding", "sharding", Need::optional, into,
                                   {{"none", Sharding::none},
                                    {"optimizer", Sharding::optimizer},
                                    {"gradients", Sharding::gradients},
                                    {"weights", Sharding::weights}});
}

bool read_point_to_point(Fields& fields, PointToPoint& into) {
    return fields.choice<PointToPoint>(
        "point_to_point", "kind of point-to-point message", Need::optional, into,
        {{"overlapped", PointToPoint::overlapped}, {"blocking", PointToPoint::blocking}});
}

bool read_gradient_precision(Fields& fields, std::int64_t& bytes) {
    return fields.choice<std::int64_t>("gradient_precision", "gradient precision", Need::optional,
                                       bytes, {{"fp32", 4}, {"bf16", 2}, {"fp16", 2}});
}

bool read_tensor_overlap(Fields& overlap, double& into) {
    return overlap.number("tensor", Need::optional, into, share);
}

void read_profile(Fields& fields, FrameworkProfile& into) {
    Framework& software = into.software;
    fields.text("name", Need::optional, software.name, "mcore-2024");
    read_into(into.attention, [&](Attention& value) { return read_attention(fields, value); });
    read_flag(fields, "dropout", into.dropout);
    read_into(into.sharding, [&](Sharding& value) { return read_sharding(fields, value); });
    read_into(into.bucket, [&](Bytes& value) {
        return fields.bytes("bucket", Need::optional, value, "25 MiB");
    });
    read_into(into.point_to_point,
              [&](PointToPoint& value) { return read_point_to_point(fields, value); });
    read_into(into.gradient_bytes,
              [&](std::int64_t& value) { return read_gradient_precision(fields, value); });
    read_flag(fields, "gradient_clipping", into.gradient_clipping);
    {
        Fields overlap(fields, "overlap", Need::optional, "{gradients: true, parameters: true}");
        read_flag(overlap, "gradients", into.overlap_gradients);
        read_flag(overlap, "parameters", into.overlap_parameters);
        read_flag(overlap, "optimizer", into.overlap_optimizer);
        read_tensor_overlap(overlap, software.tensor_overlap);
    }
    read_host({fields, "host", Need::optional, "{forward_launch: 40 us}"}, software.host);
    fields.boolean("reduce_whole_gradients", Need::optional, software.reduce_whole_gradients);
    fields.boolean("fused_softmax", Need::optional, software.fused_softmax);
    fields.number("loss_forward_bytes", Need::optional, software.loss_forward_bytes, bytes_each);
    fields.number("loss_backward_bytes", Need::optional, software.loss_backward_bytes, bytes_each);
    read_into(software.accumulate_bytes, [&](double& value) {
        return fields.number("accumulate_bytes", Need::optional, value, bytes_each);
    });
    fields.number("optimizer_bytes", Need::optional, software.optimizer_bytes, bytes_each);
    fields.number("norm_forward", Need::optional, software.norm_forward, relative_speed);
    fields.number("norm_backward", Need::optional, software.norm_backward, relative_speed);
    fields.boolean("prefetch_after_backward", Need::optional, software.prefetch_after_backward);
    fields.number("sharding_contention", Need::optional, software.sharding_contention, share);
}

void apply(const FrameworkProfile& profile, TrainingStep& step) {
    step.framework = profile.software;
    const auto set = [](const auto& from, auto& into) { into = from.value_or(into); };
    set(profile.sharding, step.split.sharding);
    set(profile.bucket, step.bucket);
    set(profile.point_to_point, step.point_to_point);
    set(profile.gradient_bytes, step.gradient_bytes);
    set(profile.gradient_clipping, step.gradient_norm);
    set(profile.overlap_gradients, step.overlap_gradients);
    set(profile.overlap_parameters, step.overlap_parameters);
    set(profile.overlap_optimizer, step.overlap_optimizer);
}

void apply(const FrameworkProfile& profile, Transformer& model) {
    model.attention = profile.attention.value_or(model.attention);
    model.dropout = profile.dropout.value_or(model.dropout);
}

}  // namespace fourfold
