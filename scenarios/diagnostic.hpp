#pragma once

// Messages in the manner of compilers: file:line:column, what is wrong, the line, a caret.

#include <string>
#include <string_view>
#include <vector>

namespace fourfold {

struct Diagnostic {
    std::string file;
    int line = 0;    // from 1; 0: the file as a whole
    int column = 0;  // from 1, in characters
    std::string message;
    std::string source_line;  // empty: none is shown
};

using Diagnostics = std::vector<Diagnostic>;

/// "quickstart.yaml:7:13: error: unknown shape 'rign'; did you mean 'ring'?\n    shape: rign\n ^"
std::string to_text(const Diagnostic& diagnostic);
std::string to_text(const Diagnostics& diagnostics);  // by line and column, a newline after each

}  // namespace fourfold
