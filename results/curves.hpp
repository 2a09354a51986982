#pragma once

// What the published curves share: exact numbers in CSV, and pictures by gnuplot.

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "topology/result.hpp"
#include "topology/units.hpp"

namespace fourfold {

/// Seconds as an exact decimal, without trailing zeros: 4,837,620,000 ps is "0.00483762".
std::string exact_seconds(Duration duration);

/// 12 significant digits, without trailing zeros.
std::string twelve_digits(double value);

/// A field of a CSV line: quoted, as RFC 4180 has it, where it must be.
std::string csv_field(std::string_view text);

/// Text in double quotes of a gnuplot script.
std::string gnuplot_text(std::string_view text);

enum class Drawing : std::uint8_t { done, gnuplot_missing };

/// Runs gnuplot on `script`, a file name, in `directory`. A problem's text holds gnuplot's status.
Result<Drawing> run_gnuplot(const std::filesystem::path& directory, const std::string& script);

}  // namespace fourfold
