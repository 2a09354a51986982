#include "scenarios/diagnostic.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <tuple>

namespace fourfold {
namespace {

bool begins_character(char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }

// The byte at which the n-th character (from 0) begins; the end for a character past it.
std::size_t byte_of(std::string_view line, std::size_t n) {
    std::size_t byte = 0;
    while (byte < line.size()) {
        if (begins_character(line[byte]) && n-- == 0) break;
        ++byte;
    }
    return byte;
}

// The line without its indentation and, if it is long, only the part around the caret.
std::string excerpt(std::string_view line, int column) {
    constexpr std::size_t whole = 100, before = 60, width = 92;
    const auto caret = byte_of(line, static_cast<std::size_t>(std::max(column, 1) - 1));
    std::size_t begin = std::min(line.find_first_not_of(" \t"), caret);
    std::size_t end = line.size();
    const bool fits = end - begin <= whole;
    const bool cut_begin = !fits && caret - begin > before;
    if (cut_begin) begin = caret - before;
    while (begin < caret && !begins_character(line[begin])) ++begin;
    const bool cut_end = !fits && end - begin > width;
    if (cut_end) end = begin + width;
    while (end < line.size() && !begins_character(line[end])) ++end;

    const std::string_view shown = line.substr(begin, end - begin);
    std::string pad = cut_begin ? "   " : "";
    for (const char c : line.substr(begin, caret - begin)) {
        // A tab stays a tab, so that the caret stands below its column whatever the tab's width.
        if (c == '\t') pad += '\t';
        if (c != '\t' && begins_character(c)) pad += ' ';
    }
    return fmt::format("    {}{}{}\n    {}^", cut_begin ? "..." : "", shown, cut_end ? "..." : "",
                       pad);
}

}  // namespace

std::string to_text(const Diagnostic& diagnostic) {
    std::string text = diagnostic.file;
    if (diagnostic.line > 0) {
        text += fmt::format(":{}:{}", diagnostic.line, diagnostic.column);
    }
    text += ": error: " + diagnostic.message;
    if (!diagnostic.source_line.empty()) {
        text += '\n' + excerpt(diagnostic.source_line, diagnostic.column);
    }
    return text;
}

std::string to_text(const Diagnostics& diagnostics) {
    std::map<std::string_view, std::size_t> files;  // in order of their first diagnostic
    for (const Diagnostic& one : diagnostics) files.emplace(one.file, files.size());
    std::vector<const Diagnostic*> sorted;
    sorted.reserve(diagnostics.size());
    for (const Diagnostic& one : diagnostics) sorted.push_back(&one);
    std::ranges::stable_sort(sorted, {}, [&files](const Diagnostic* one) {
        return std::tuple(files.at(one->file), one->line, one->column);
    });

    std::string text;
    for (const Diagnostic* one : sorted) text += to_text(*one) + '\n';
    return text;
}

}  // namespace fourfold
