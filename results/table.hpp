#pragma once

// What printed tables share.

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace fourfold {

/// 0.1234 -> "12.3 %"
std::string percent(double fraction);

/// 1536 -> "1,536"
std::string grouped(std::uint64_t number);

/// Pads every column to its widest cell; the columns of `left` to the left, all others to the
/// right.
std::string aligned(const std::vector<std::vector<std::string>>& rows,
                    const std::set<std::size_t>& left);

/// Every line that is not empty, moved to the right.
std::string indented(const std::string& text, std::string_view by);

}  // namespace fourfold
