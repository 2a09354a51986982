#pragma once

// What a fit of constants on measurements found, and how far it can be trusted.

#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "workloads/kernels.hpp"

namespace fourfold {

enum class ConstantUnit : std::uint8_t { none, seconds, bytes_per_second };

struct FittedConstant {
    std::string_view key;  // as in YAML
    ConstantUnit unit = ConstantUnit::none;
    double base = 0, fitted = 0;
    double fold_min = 0, fold_max = 0;  // over the fits that cross-validation makes
    /// Whether the samples' times depend on it. Where they do not, the base's value stays.
    bool is_seen = true;
};

/// Means of |predicted / measured - 1|. Cross-validated: each sample predicted by a fit on the
/// samples of other shapes or sizes; `with_shapes`: corrected by those samples, too.
struct MeanErrors {
    std::string_view of;  // "all", "below 50 GFLOP"
    std::size_t samples = 0;
    double base = 0, fitted = 0, cross_validated = 0;
    double with_shapes = 0;
};

struct FitReport {
    std::string_view kernel;
    std::string_view different_what;  // "shapes"
    std::size_t samples = 0;
    std::size_t different = 0;
    std::vector<FittedConstant> constants;
    std::vector<MeanErrors> errors;  // of all, then of each class of size that has samples
    bool tries_shapes = false;       // whether a table of what was measured can correct the formula
    std::vector<GemmSample> shapes = {};  // that table, where other shapes gain from it
};

/// A constant's value, as YAML takes it: "0.755", "28.9 us", "55 GB/s".
std::string value_text(ConstantUnit unit, double value);

/// "kernel-fit on 183 rows of kernels.csv, mean error 3.5 %, cross-validated 3.6 %"
std::string source_text(const FitReport& report, std::string_view origin);

/// "kernel-fit: the 183 shapes and layouts of gemm, medians; with them cross-validated 2.9 %"
std::string shapes_source_text(const FitReport& report);

/// A line on the rows and their origin, a table of the constants, a table of the errors, whether
/// measured shapes are kept, and a warning where the fit is of no use.
std::string to_text(const FitReport& report, std::string_view origin);

/// {rows, different, constants: {cap: {base, fitted, fold_min, fold_max, seen}, ...}, errors:
/// [...], shapes}
nlohmann::ordered_json to_json(const FitReport& report);

}  // namespace fourfold
