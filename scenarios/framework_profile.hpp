#pragma once

// The key `framework` of a scenario: what a training software does where the scenario does not say
// otherwise, and what it costs.

#include <cstdint>
#include <optional>

#include "topology/units.hpp"
#include "workloads/training_step.hpp"

namespace fourfold {

class Fields;

struct FrameworkProfile {
    Framework software;
    // Defaults of keys that a scenario may write itself.
    std::optional<Attention> attention;
    std::optional<bool> dropout;
    std::optional<Sharding> sharding;
    std::optional<Bytes> bucket;
    std::optional<PointToPoint> point_to_point;
    std::optional<std::int64_t> gradient_bytes;
    std::optional<bool> gradient_clipping;
    std::optional<bool> overlap_gradients, overlap_parameters, overlap_optimizer;
};

/// Reads over what `into` already holds.
void read_profile(Fields& fields, FrameworkProfile& into);

/// Everything but the model.
void apply(const FrameworkProfile& profile, TrainingStep& step);
void apply(const FrameworkProfile& profile, Transformer& model);

// Keys that stand in profiles and in scenarios.
bool read_attention(Fields& fields, Attention& into);
bool read_sharding(Fields& fields, Sharding& into);
bool read_point_to_point(Fields& fields, PointToPoint& into);
bool read_gradient_precision(Fields& fields, std::int64_t& bytes);
bool read_tensor_overlap(Fields& overlap, double& into);

}  // namespace fourfold
