#include "results/table.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace fourfold {

std::string percent(double fraction) { return fmt::format("{:.1f} %", 100 * fraction); }

std::string aligned(const std::vector<std::vector<std::string>>& rows,
                    const std::set<std::size_t>& left) {
    std::vector<std::size_t> width;
    for (const auto& row : rows) {
        width.resize(std::max(width.size(), row.size()));
        for (std::size_t i = 0; i < row.size(); ++i) width[i] = std::max(width[i], row[i].size());
    }
    std::string text;
    for (const auto& row : rows) {
        std::string line = " ";
        for (std::size_t i = 0; i < row.size(); ++i) {
            line += left.contains(i) ? fmt::format(" {:<{}} ", row[i], width[i])
                                     : fmt::format(" {:>{}} ", row[i], width[i]);
        }
        text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
    }
    return text;
}

}  // namespace fourfold
