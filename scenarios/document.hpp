#pragma once

// YAML text as a tree that remembers where each value stands, and the report on what is wrong in
// it. document.cpp is the only file that knows yaml-cpp.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/diagnostic.hpp"

namespace fourfold {

/// Where a value begins: a text of a Report, a line and a column, both from 0, the column in bytes.
struct Place {
    std::uint32_t source = 0;
    std::uint32_t line = 0;
    std::uint32_t column = 0;
    friend bool operator==(const Place&, const Place&) = default;
};

struct YamlNode {
    enum class Kind : std::uint8_t { empty, scalar, list, mapping };

    Kind kind = Kind::empty;
    bool quoted = false;  // a scalar in quotes is a text, never a number
    Place place;
    std::string text;              // of a scalar
    std::vector<YamlNode> keys;    // of a mapping: keys[i] names values[i]
    std::vector<YamlNode> values;  // of a mapping or a list

    /// The value of a key of this mapping, or nullptr.
    [[nodiscard]] const YamlNode* find(std::string_view key) const;
    [[nodiscard]] YamlNode* find(std::string_view key);
};

/// Collects what is wrong in any of the texts that one scenario is read from.
class Report {
  public:
    /// Line ends become '\n' and a byte order mark goes. Returns: the number of the text.
    std::uint32_t add_source(std::string name, std::string_view text);
    [[nodiscard]] const std::string& text(std::uint32_t source) const;
    [[nodiscard]] const std::string& name(std::uint32_t source) const;

    /// `message` says what is wrong and what to do; the report adds where. Said twice of one place,
    /// it is kept once.
    void error(Place place, std::string message);
    /// About a file as a whole.
    void error(std::uint32_t source, std::string message);

    /// All errors found so far, those that are no longer kept included.
    [[nodiscard]] std::size_t errors() const { return errors_; }
    /// Whether further errors are only counted: no need to word them with care.
    [[nodiscard]] bool full() const { return found_.size() >= kept; }
    /// In order of text, line and column. After `kept` errors the rest is only counted.
    [[nodiscard]] Diagnostics diagnostics() const;

    static constexpr std::size_t kept = 50;

    /// While set, errors that land in another text than `home` end in `remark`.
    void set_remark(std::uint32_t home, std::string remark);

  private:
    struct Source {
        std::string name;
        std::string text;
        std::vector<std::size_t> lines;  // where each begins
    };
    struct Found {
        Place place;
        bool whole_file = false;
        std::string message;
    };
    [[nodiscard]] Diagnostic diagnostic(const Found& found) const;

    std::vector<Source> sources_;
    std::vector<Found> found_;
    std::size_t errors_ = 0;
    std::size_t repeated_ = 0;  // of them, what was said of the same place before
    std::uint32_t remark_home_ = 0;
    std::string remark_;
};

/// The largest YAML file that is read.
inline constexpr std::size_t yaml_bytes_max = std::size_t{8} << 20;

/// Reads the one YAML document in the text `source` from `begin` on. Reports all of: no UTF-8 text,
/// syntax, nesting beyond 64 levels, aliases, tags, keys that are not words, duplicate keys, more
/// than one document. Returns: nothing if there is no tree to go on with.
std::optional<YamlNode> parse_yaml(Place begin, Report& report);

/// Reads a file of at most `yaml_bytes_max`. Returns: its text, or what is wrong ("no such file;
/// did you mean 'ring.yaml'?").
struct FileText {
    std::optional<std::string> text;
    std::string why_not;
};
FileText read_file(const std::string& path);

/// The place of the value at a dotted path ("parallel.tensor"), or of the nearest parent that
/// exists.
Place locate(const YamlNode& root, std::string_view path);

/// `text` fit for a message: control characters replaced, cut after 40 bytes.
std::string shortened(std::string_view text);
std::string in_quotes(std::string_view text);

}  // namespace fourfold
