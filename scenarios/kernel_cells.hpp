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

/// Microseconds as seconds: from a picosecond to a day.
std::optional<double> read_time(const TableLine& line, const Cell& cell, Findings& findings);

struct Bounds {
    double min = 0, max = 0;
};
std::optional<double> read_within(const TableLine& line, const Cell& cell, const Bounds& bounds,
                                  Findings& findings);

}  // namespace fourfold
