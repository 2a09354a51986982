#include "scenarios/kernel_cells.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <system_error>

#include "scenarios/document.hpp"

namespace fourfold {
namespace {

constexpr double count_max = 1e15;  // exact as a double, and enough bytes for anything
constexpr double picosecond_us = 1e-6;
constexpr double day_us = 86'400e6;

// Any finite number.
std::optional<double> number(const TableLine& line, const Cell& cell, Findings& findings) {
    if (cell.text.empty()) {
        findings.error(line, cell.text, fmt::format("'{}' is empty; this row needs it", cell.name));
        return std::nullopt;
    }
    double value = 0;
    const char* last = cell.text.data() + cell.text.size();
    const auto [end, error] = std::from_chars(cell.text.data(), last, value);
    if (error != std::errc{} || end != last || !std::isfinite(value)) {
        findings.error(line, cell.text,
                       fmt::format("{} is not a number; '{}' is one, as in 128",
                                   in_quotes(cell.text), cell.name));
        return std::nullopt;
    }
    return value;
}

}  // namespace

std::optional<std::int64_t> read_count(const TableLine& line, const Cell& cell, std::int64_t min,
                                       Findings& findings) {
    const auto value = number(line, cell, findings);
    if (!value) return std::nullopt;
    const bool fits = *value >= static_cast<double>(min) && *value <= count_max;
    if (!fits || *value != std::floor(*value)) {
        findings.error(line, cell.text,
                       fmt::format("'{}' is {}; it must be a whole number from {} to {:.0e}",
                                   cell.name, shortened(cell.text), min, count_max));
        return std::nullopt;
    }
    return static_cast<std::int64_t>(*value);
}

std::optional<double> read_within(const TableLine& line, const Cell& cell, const Bounds& bounds,
                                  Findings& findings) {
    const auto value = number(line, cell, findings);
    if (!value) return std::nullopt;
    if (*value < bounds.min || *value > bounds.max) {
        findings.error(line, cell.text,
                       fmt::format("'{}' is {}; it must be from {:g} to {:g}", cell.name,
                                   shortened(cell.text), bounds.min, bounds.max));
        return std::nullopt;
    }
    return value;
}

std::optional<double> read_time(const TableLine& line, const Cell& cell, Findings& findings) {
    const auto value = number(line, cell, findings);
    if (!value) return std::nullopt;
    if (*value < picosecond_us || *value > day_us) {
        findings.error(line, cell.text,
                       fmt::format("'{}' is {}; a measured time is above 0 and at most a day, in "
                                   "microseconds",
                                   cell.name, shortened(cell.text)));
        return std::nullopt;
    }
    return *value * 1e-6;
}

}  // namespace fourfold
