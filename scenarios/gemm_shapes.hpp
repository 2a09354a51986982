#pragma once

// Measured matrix multiplications of a device, `shapes:` below its `gemm:`
//
//     - [4096, 5120, 1536, 1, tn, 421 us]        m, n, k, batch, layout, time
//
// in any order, each shape and layout once. workloads/kernels.cpp says what they are for.

#include <span>

#include "scenarios/document.hpp"
#include "scenarios/fields.hpp"
#include "topology/device.hpp"
#include "workloads/kernels.hpp"

namespace fourfold {

/// Replaces the device's residuals where there are shapes. Requires: what the formula needs of
/// `device` is read from `device_fields`; `are_sound`: without errors.
void read_gemm_shapes(Fields& device_fields, Fields& gemm, bool are_sound, Device& device);

/// The list that is read as these.
YamlNode gemm_shapes_node(std::span<const GemmSample> shapes);

}  // namespace fourfold
