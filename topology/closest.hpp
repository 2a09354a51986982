#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace fourfold {

/// The name nearest to `word` by edits (insert, delete, replace, swap neighbours), if it is near
/// enough to be what was meant (at most a third of its letters, at least one, wrong).
std::optional<std::string_view> closest(std::string_view word,
                                        std::span<const std::string_view> names);

/// "unknown topology 'rign'; did you mean 'ring'?", or the list of names where none is close.
std::string unknown(std::string_view kind, std::string_view word,
                    std::span<const std::string_view> names);

}  // namespace fourfold
