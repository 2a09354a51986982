#include "results/table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

namespace fourfold {

std::string percent(double fraction) { return fmt::format("{:.1f} %", 100 * fraction); }

std::string grouped(std::uint64_t number) {
    const std::string digits = fmt::format("{}", number);
    std::string text;
    for (std::size_t i = 0; i < digits.size(); ++i) {
        if (i > 0 && (digits.size() - i) % 3 == 0) text += ',';
        text += digits[i];
    }
    return text;
}

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

std::string indented(const std::string& text, std::string_view by) {
    std::istringstream lines(text);
    std::string result;
    for (std::string line; std::getline(lines, line);) {
        result += line.empty() ? "\n" : fmt::format("{}{}\n", by, line);
    }
    return result;
}

}  // namespace fourfold
