#pragma once

// What printed tables share.

#include <set>
#include <string>
#include <vector>

namespace fourfold {

/// 0.1234 -> "12.3 %"
std::string percent(double fraction);

/// Pads every column to its widest cell; the columns of `left` to the left, all others to the
/// right.
std::string aligned(const std::vector<std::vector<std::string>>& rows,
                    const std::set<std::size_t>& left);

}  // namespace fourfold
