#pragma once

// How predictions of many runs compare with measurements of the same runs: by group, by the shape
// of the run, as text, JSON, CSV and picture. Errors are fractions of the measured time.

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <ostream>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "topology/units.hpp"

namespace fourfold {

struct Interval {
    Duration low{}, high{};
};

struct ValidationRow {
    std::string group, name, file;
    Duration measured{}, predicted{};  // step times; measured > 0
    std::optional<Interval> interval;  // in which 90 % of measurements should lie
    std::int64_t devices = 0, tensor = 1, context = 1, pipeline = 1, data = 1;
    std::int64_t micro_batch = 1, micro_batches = 1;
};

/// predicted / measured - 1: positive where the prediction is too slow.
double relative_error(const ValidationRow& row);

/// Of `values`, the one at `share` (0..1) of the way from the least to the greatest; interpolated
/// linearly between two. Requires: values is not empty.
double percentile(std::vector<double> values, double share);

/// Spearman's; equal values share the mean of their ranks. Nothing where all values of a side are
/// equal. Requires: as many values on each side. O(n^2).
std::optional<double> rank_correlation(std::span<const double> a, std::span<const double> b);

struct ValidationSummary {
    std::string group;
    std::size_t rows = 0;
    double mean = 0, median = 0, p90 = 0, max = 0;  // of the absolute errors
    std::string max_name;
    double bias = 0;                         // mean of the signed errors
    std::optional<double> rank_correlation;  // of predicted and measured times
    std::optional<double> coverage;  // share of measurements inside their interval, where one is
};

/// Requires: rows is not empty.
ValidationSummary summarize(std::string_view group, std::span<const ValidationRow> rows);

/// Rows that have one value of an attribute.
struct Residual {
    std::int64_t value = 0;
    double bias = 0;
    std::size_t rows = 0;
};

/// For example residuals(rows, &ValidationRow::tensor); by value.
std::vector<Residual> residuals(std::span<const ValidationRow> rows,
                                std::int64_t ValidationRow::*attribute);

struct ValidationGroup {
    std::string name;
    std::vector<ValidationRow> rows;
};

/// In the order of their first rows.
std::vector<ValidationGroup> groups_of(std::span<const ValidationRow> rows);

/// A summary of each group and of all; then of each group the worst rows and, if there are eight or
/// more, the bias by tensor, pipeline, micro-batch and devices, where these differ. Requires: rows
/// is not empty.
std::string validation_text(std::span<const ValidationRow> rows);

/// A line for each row.
std::string validation_rows_text(std::span<const ValidationRow> rows);

/// {groups: [...], all: {...}, rows: [...]}; null for what there is none of.
nlohmann::ordered_json validation_json(std::span<const ValidationRow> rows);

void write_validation_csv(std::ostream& out, std::span<const ValidationRow> rows);

/// A gnuplot script that draws predicted over measured times into `svg`, a file name.
/// Requires: rows is not empty.
void write_validation_gnuplot(std::ostream& out, std::span<const ValidationRow> rows,
                              std::string_view svg);

}  // namespace fourfold
