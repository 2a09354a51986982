#include "scenarios/table_lines.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "scenarios/document.hpp"

namespace fourfold {
namespace {

constexpr std::size_t line_bytes_max = 65'536;
constexpr std::string_view spaces = " \t";

std::string_view trimmed(std::string_view text) {
    const std::size_t begin = std::min(text.find_first_not_of(spaces), text.size());
    text.remove_prefix(begin);
    return text.substr(0, text.find_last_not_of(spaces) + 1);
}

}  // namespace

void Findings::error(const TableLine& line, std::string_view where, const std::string& message) {
    ++errors_;
    if (found_.size() >= Report::kept) return;
    // A report of this line alone knows how to show what is no printable text.
    Report report;
    const std::uint32_t source = report.add_source(file_, line.text);
    report.error({source, 0, static_cast<std::uint32_t>(where.data() - line.text.data())}, message);
    found_.push_back(report.diagnostics().front());
    found_.back().line = line.number;
}

void Findings::error(std::string message) {
    ++errors_;
    if (found_.size() < Report::kept) found_.push_back({file_, 0, 0, std::move(message), {}});
}

Diagnostics Findings::diagnostics() const {
    Diagnostics all = found_;
    if (errors_ > found_.size()) {
        all.push_back({file_,
                       0,
                       0,
                       fmt::format("{} more errors; correct these first", errors_ - found_.size()),
                       {}});
    }
    return all;
}

TableReader::TableReader(std::istream& stream, Findings& findings)
    : stream_(&stream), findings_(&findings), buffer_(line_bytes_max + 2) {}

bool TableReader::next() {
    if (!stream_->good()) return false;
    stream_->getline(buffer_.data(), static_cast<std::streamsize>(buffer_.size()));
    auto length = static_cast<std::size_t>(stream_->gcount());
    if (stream_->bad()) {
        findings_->error("cannot be read to its end; check the disk");
        return false;
    }
    line_.ended = !stream_->eof();
    if (length == 0) return false;
    ++line_.number;
    if (stream_->fail()) {
        line_.text = {buffer_.data(), length};
        findings_->error(
            line_, line_.text,
            fmt::format("a line of more than {} bytes; is this a table?", line_bytes_max));
        return false;
    }
    if (line_.ended) --length;  // the line end counts
    line_.text = {buffer_.data(), length};
    if (line_.text.ends_with('\r')) line_.text.remove_suffix(1);
    constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";
    if (line_.number == 1 && line_.text.starts_with(byte_order_mark)) {
        line_.text.remove_prefix(byte_order_mark.size());
    }
    return true;
}

void split_at_commas(std::string_view text, std::vector<std::string_view>& cells) {
    cells.clear();
    while (true) {
        const std::size_t quote = text.find_first_not_of(spaces);
        const bool quoted = quote != std::string_view::npos && text[quote] == '"';
        const std::size_t closing = quoted ? text.find('"', quote + 1) : std::string_view::npos;
        const bool closed = closing != std::string_view::npos;
        const std::size_t comma = text.find(',', closed ? closing : 0);
        cells.push_back(closed ? text.substr(quote + 1, closing - quote - 1)
                               : trimmed(text.substr(0, comma)));
        if (comma == std::string_view::npos) return;
        text.remove_prefix(comma + 1);
    }
}

void split_at_spaces(std::string_view text, std::vector<std::string_view>& words) {
    words.clear();
    while (true) {
        text.remove_prefix(std::min(text.find_first_not_of(spaces), text.size()));
        if (text.empty()) return;
        const std::size_t end = std::min(text.find_first_of(spaces), text.size());
        words.push_back(text.substr(0, end));
        text.remove_prefix(end);
    }
}

}  // namespace fourfold
