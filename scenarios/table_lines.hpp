#pragma once

// Long tables of text, line by line, and what is wrong in them.

#include <cstddef>
#include <istream>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/diagnostic.hpp"

namespace fourfold {

struct TableLine {
    int number = 0;  // from 1
    std::string_view text;
    bool ended = true;  // by a line end, not by the end of the file
};

/// What is wrong in one file. Keeps the first `Report::kept` and counts the rest.
class Findings {
  public:
    explicit Findings(std::string file) : file_(std::move(file)) {}

    /// At `where`, which is a part of the line's text.
    void error(const TableLine& line, std::string_view where, const std::string& message);
    /// About the file as a whole.
    void error(std::string message);
    [[nodiscard]] std::size_t errors() const { return errors_; }
    [[nodiscard]] Diagnostics diagnostics() const;

  private:
    std::string file_;
    Diagnostics found_;
    std::size_t errors_ = 0;
};

/// The lines of a stream, without line ends of any kind and without a byte order mark.
class TableReader {
  public:
    TableReader(std::istream& stream, Findings& findings);

    /// Whether there is one more line. A line beyond all reason is reported and is the last.
    bool next();
    /// Valid until the next call of next().
    [[nodiscard]] const TableLine& line() const { return line_; }

  private:
    std::istream* stream_;  // the caller's, as are the findings
    Findings* findings_;
    std::vector<char> buffer_;
    TableLine line_;
};

/// Cells between commas, without spaces and quotes around them.
void split_at_commas(std::string_view text, std::vector<std::string_view>& cells);
/// Words between spaces.
void split_at_spaces(std::string_view text, std::vector<std::string_view>& words);

}  // namespace fourfold
