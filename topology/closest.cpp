#include "topology/closest.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

namespace fourfold {
namespace {

// Damerau-Levenshtein, restricted (Boytsov 2011, sec. 2.2): three rows of the usual table.
std::size_t edits(std::string_view a, std::string_view b) {
    std::vector<std::size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
    for (std::size_t j = 0; j <= b.size(); ++j) last[j] = j;
    for (std::size_t i = 1; i <= a.size(); ++i) {
        row[0] = i;
        for (std::size_t j = 1; j <= b.size(); ++j) {
            const std::size_t replace = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
            row[j] = std::min({last[j] + 1, row[j - 1] + 1, replace});
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
                row[j] = std::min(row[j], before[j - 2] + 1);
            }
        }
        before.swap(last);
        last.swap(row);
    }
    return last[b.size()];
}

}  // namespace

std::optional<std::string_view> closest(std::string_view word,
                                        std::span<const std::string_view> names) {
    std::optional<std::string_view> best;
    std::size_t best_edits = std::max<std::size_t>(1, (word.size() + 1) / 3) + 1;
    for (const std::string_view name : names) {
        const std::size_t distance = edits(word.substr(0, 64), name);
        if (distance < best_edits) {
            best = name;
            best_edits = distance;
        }
    }
    return best;
}

std::string unknown(std::string_view kind, std::string_view word,
                    std::span<const std::string_view> names) {
    if (const auto near = closest(word, names)) {
        return fmt::format("unknown {} '{}'; did you mean '{}'?", kind, word, *near);
    }
    return fmt::format("unknown {} '{}'; known: {}", kind, word, fmt::join(names, ", "));
}

}  // namespace fourfold
