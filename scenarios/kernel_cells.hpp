#pragma once

// Numbers in the cells of a table of kernels: each is there and in range, or is reported.

#include <cstdint>
#include <optional>
#include <string_view>

#include "scenarios/table_lines.hpp"

namespace fourfold {

struct Cell {
    std::string_view name;  // of its column, for messages
    std::string_view text;
};

/// A whole number from `min`; "4096.0", as spreadsheets write it, is one.
std::optional<std::int64_t> read_count(const TableLine& line, const Cell& cell, std::int64_t min,
                                       Findings& findings);

/// Microseconds as seconds: above 0, at most a day.
std::optional<double> read_time(const TableLine& line, const Cell& cell, Findings& findings);

/// Above 0, at most `max`.
std::optional<double> read_positive(const TableLine& line, const Cell& cell, double max,
                                    Findings& findings);

}  // namespace fourfold
