#pragma once

// Files that commands write beside what they print, and pictures that gnuplot makes of them.

#include <filesystem>
#include <functional>
#include <ostream>

namespace fourfold {

/// Writes `file` through `content`, after making its folder; false, after a message on standard
/// error, if that fails.
bool write_file(const std::filesystem::path& file,
                const std::function<void(std::ostream&)>& content);

/// Runs gnuplot on `script`, in its folder. Returns: the exit code, after a message if it is not
/// `done`.
int draw(const std::filesystem::path& script);

}  // namespace fourfold
