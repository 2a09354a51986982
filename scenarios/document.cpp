#include "scenarios/document.hpp"

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <exception>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <system_error>
#include <tuple>
#include <utility>

#include "topology/closest.hpp"

namespace fourfold {
namespace {

// yaml-cpp recurses into every level, spends about 100 bytes on every value, and keeps a whole line
// of tokens until it knows whether the line is a key. These bounds keep any file harmless; a graph
// of 10,000 devices stays far below them.
constexpr std::size_t levels_max = 64;
constexpr std::size_t brackets_max = 1000;  // open at once, comments and texts included
constexpr std::size_t values_max = 1'000'000;
constexpr std::size_t line_bytes_max = 65'536;

// The length of the UTF-8 character that begins `text`, 0 if none does (RFC 3629, sec. 4).
std::size_t utf8_length(std::string_view text) {
    const auto byte = [&text](std::size_t i) {
        return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U;
    };
    const auto continues = [&byte](std::size_t from, std::size_t to) {
        for (std::size_t i = from; i < to; ++i) {
            if ((byte(i) & 0xC0U) != 0x80U) return false;
        }
        return true;
    };
    const unsigned first = byte(0), second = byte(1);
    if (first < 0x80) return 1;
    if (first >= 0xC2 && first <= 0xDF && continues(1, 2)) return 2;
    if (first >= 0xE0 && first <= 0xEF && continues(1, 3)) {
        const bool overlong = first == 0xE0 && second < 0xA0;
        const bool surrogate = first == 0xED && second > 0x9F;
        return overlong || surrogate ? 0 : 3;
    }
    if (first >= 0xF0 && first <= 0xF4 && continues(1, 4)) {
        const bool overlong = first == 0xF0 && second < 0x90;
        const bool beyond = first == 0xF4 && second > 0x8F;
        return overlong || beyond ? 0 : 4;
    }
    return 0;
}

// A line as a terminal can show it: what is no character becomes a question mark.
std::string printable(std::string_view line) {
    std::string shown;
    while (!line.empty()) {
        const std::size_t length = utf8_length(line);
        const bool control = static_cast<unsigned char>(line[0]) < 0x20 || line[0] == 0x7F;
        if (length == 0 || (control && line[0] != '\t')) {
            shown += '?';
        } else {
            shown += line.substr(0, length);
        }
        line.remove_prefix(std::max<std::size_t>(length, 1));
    }
    return shown;
}

// Whether the text in quotes that begins `text` ends in it.
bool closes(std::string_view text) {
    const char quote = text[0];
    for (std::size_t i = 1; i < text.size(); ++i) {
        if (quote == '"' && text[i] == '\\') {
            ++i;
        } else if (text[i] == quote) {
            const bool doubled = quote == '\'' && i + 1 < text.size() && text[i + 1] == quote;
            if (!doubled) return true;
            ++i;
        }
    }
    return false;
}

// What must hold before yaml-cpp may see the text. Returns: whether it does.
bool harmless(std::string_view text, Place place, Report& report) {
    std::size_t open = 0;
    std::size_t line_bytes = 0;
    for (std::size_t i = 0; i < text.size();) {
        const char c = text[i];
        const std::size_t length = utf8_length(text.substr(i));
        if (length == 0) {
            report.error(place,
                         fmt::format("byte 0x{:02x} is not UTF-8; save the file as UTF-8 text",
                                     static_cast<unsigned char>(c)));
            return false;
        }
        const bool control = static_cast<unsigned char>(c) < 0x20 || c == 0x7F;
        if (control && c != '\n' && c != '\t') {
            report.error(place, fmt::format("control character 0x{:02x}; a scenario is plain text",
                                            static_cast<unsigned char>(c)));
            return false;
        }
        if (c == '[' || c == '{') ++open;
        if ((c == ']' || c == '}') && open > 0) --open;
        if (open > brackets_max) {
            report.error(place, fmt::format("nested more than {} levels deep", levels_max));
            return false;
        }
        line_bytes = c == '\n' ? 0 : line_bytes + length;
        if (line_bytes > line_bytes_max) {
            report.error(place, fmt::format("a line of more than {} bytes; break it in several",
                                            line_bytes_max));
            return false;
        }
        place.column += static_cast<std::uint32_t>(length);
        if (c == '\n') {
            ++place.line;
            place.column = 0;
        }
        i += length;
    }
    return true;
}

// Builds the tree from yaml-cpp's events. What it cannot keep it reports, and ignores what follows.
class TreeBuilder final : public YAML::EventHandler {
  public:
    TreeBuilder(Place begin, std::string_view text, Report& report)
        : begin_(begin), text_(text), report_(&report) {}

    void OnDocumentStart(const YAML::Mark& mark) override {
        if (++documents_ == 2) {
            report_->error(place(mark),
                           "a second YAML document begins here; put each in a file of its own");
        }
    }
    void OnDocumentEnd() override {}

    void OnNull(const YAML::Mark& mark, YAML::anchor_t) override {
        add(node(YamlNode::Kind::empty, mark));
    }
    void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
        if (ignoring()) return;
        report_->error(place(mark),
                       "aliases ('*name') are not read here; write the value out once more");
        broken_ = true;
        add(node(YamlNode::Kind::empty, mark));
    }
    void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t,
                  const std::string& value) override {
        if (ignoring()) return;
        check_tag(mark, tag);
        YamlNode scalar = node(YamlNode::Kind::scalar, mark);
        scalar.quoted = tag == "!";  // yaml-cpp's mark of a text in quotes
        if (scalar.quoted) check_quotes(mark);
        scalar.text = value;
        add(std::move(scalar));
    }
    void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t,
                         YAML::EmitterStyle::value style) override {
        begin(YamlNode::Kind::list, mark, tag, style);
    }
    void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t,
                    YAML::EmitterStyle::value style) override {
        begin(YamlNode::Kind::mapping, mark, tag, style);
    }
    void OnSequenceEnd() override { end(); }
    void OnMapEnd() override { end(); }

    [[nodiscard]] Place place(const YAML::Mark& mark) const {
        const auto line = static_cast<std::uint32_t>(std::max(mark.line, 0));
        const auto column = static_cast<std::uint32_t>(std::max(mark.column, 0));
        return {begin_.source, begin_.line + line, line == 0 ? begin_.column + column : column};
    }
    /// The innermost bracket that is still open.
    [[nodiscard]] std::optional<Place> open_bracket() const {
        const bool open = !open_.empty() && styles_.back() == YAML::EmitterStyle::Flow;
        return open ? std::optional(open_.back().place) : std::nullopt;
    }
    [[nodiscard]] bool broken() const { return broken_; }
    [[nodiscard]] std::optional<YamlNode> take() { return std::move(root_); }

  private:
    // Open collections, outermost first; a mapping with one more key than values awaits a value.
    std::vector<YamlNode> open_;
    std::optional<YamlNode> root_;
    Place begin_;
    std::string_view text_;  // what is parsed; outlives the parsing
    Report* report_;
    std::size_t documents_ = 0;
    std::size_t values_ = 0;
    std::size_t ignored_levels_ = 0;
    std::vector<YAML::EmitterStyle::value> styles_;  // of the open ones
    bool broken_ = false;

    [[nodiscard]] bool ignoring() const {
        return ignored_levels_ > 0 || documents_ > 1 || values_ > values_max;
    }

    [[nodiscard]] YamlNode node(YamlNode::Kind kind, const YAML::Mark& mark) const {
        YamlNode made;
        made.kind = kind;
        made.place = place(mark);
        return made;
    }

    // yaml-cpp takes the end of the file for the missing quotes.
    void check_quotes(const YAML::Mark& mark) {
        const auto at = static_cast<std::size_t>(std::max(mark.pos, 0));
        if (at >= text_.size() || (text_[at] != '"' && text_[at] != '\'')) return;
        if (closes(text_.substr(at))) return;
        report_->error(place(mark), "these quotes are never closed; close them");
        broken_ = true;
    }

    void check_tag(const YAML::Mark& mark, const std::string& tag) {
        if (tag.empty() || tag == "?" || tag == "!") return;
        report_->error(place(mark),
                       fmt::format("tag {} has no meaning here; leave it out", in_quotes(tag)));
    }

    void begin(YamlNode::Kind kind, const YAML::Mark& mark, const std::string& tag,
               YAML::EmitterStyle::value style) {
        if (ignored_levels_ == 0 && open_.size() == levels_max) {
            report_->error(place(mark), fmt::format("nested more than {} levels deep", levels_max));
            broken_ = true;
            ++ignored_levels_;
            return;
        }
        if (ignoring()) {
            ++ignored_levels_;
            return;
        }
        check_tag(mark, tag);
        styles_.push_back(style);
        open_.push_back(node(kind, mark));
    }

    void end() {
        if (ignored_levels_ > 0) {
            --ignored_levels_;
            return;
        }
        if (open_.empty()) return;
        YamlNode done = std::move(open_.back());
        open_.pop_back();
        styles_.pop_back();
        if (done.kind == YamlNode::Kind::mapping) check_keys(done);
        add(std::move(done));
    }

    void add(YamlNode value) {
        if (ignoring()) return;
        if (++values_ > values_max) {
            report_->error(value.place, fmt::format("more than {} values", values_max));
            broken_ = true;
            return;
        }
        if (open_.empty()) {
            root_ = std::move(value);
            return;
        }
        YamlNode& parent = open_.back();
        const bool is_key =
            parent.kind == YamlNode::Kind::mapping && parent.keys.size() == parent.values.size();
        if (is_key) {
            parent.keys.push_back(std::move(value));
            return;
        }
        if (value.kind == YamlNode::Kind::empty) {
            // yaml-cpp puts nothing at the token after it, which may be lines away.
            value.place =
                parent.kind == YamlNode::Kind::mapping ? parent.keys.back().place : parent.place;
        }
        parent.values.push_back(std::move(value));
    }

    void check_keys(const YamlNode& mapping) {
        std::map<std::string_view, Place> seen;
        for (const YamlNode& key : mapping.keys) {
            if (key.kind != YamlNode::Kind::scalar) {
                report_->error(key.place, "a key must be a word");
                continue;
            }
            const auto [first, is_new] = seen.emplace(key.text, key.place);
            if (is_new) continue;
            report_->error(key.place, fmt::format("duplicate key {}, first given on line {}; "
                                                  "remove one of them",
                                                  in_quotes(key.text), first->second.line + 1));
        }
    }
};

// A tab before the first word of the line of `place`: yaml-cpp stumbles over it in many ways.
std::optional<Place> tab_in_indentation(Place place, const Report& report) {
    std::string_view text = report.text(place.source);
    for (std::uint32_t line = 0; line < place.line && !text.empty(); ++line) {
        text.remove_prefix(std::min(text.find('\n'), text.size() - 1) + 1);
    }
    const std::size_t tab = text.find_first_not_of(' ');
    if (tab == std::string_view::npos || text[tab] != '\t') return std::nullopt;
    return Place{place.source, place.line, static_cast<std::uint32_t>(tab)};
}

// yaml-cpp's words, and what a reader of them can do.
std::string advice(std::string_view what) {
    using Advice = std::pair<std::string_view, std::string_view>;
    const std::array<Advice, 9> advices{{
        {YAML::ErrorMsg::END_OF_MAP,
         "this line does not continue the mapping above it; check its indentation"},
        {YAML::ErrorMsg::END_OF_SEQ,
         "this line does not continue the list above it; check its indentation"},
        {YAML::ErrorMsg::END_OF_MAP_FLOW, "this '{' has no '}', or a ',' is missing"},
        {YAML::ErrorMsg::END_OF_SEQ_FLOW, "this '[' has no ']', or a ',' is missing"},
        {YAML::ErrorMsg::FLOW_END, "this bracket closes nothing; remove it"},
        {YAML::ErrorMsg::MAP_VALUE,
         "no ':' can stand here; check the indentation, or put the text in quotes"},
        {YAML::ErrorMsg::TAB_IN_INDENTATION, "a tab in the indentation; use spaces"},
        {YAML::ErrorMsg::EOF_IN_SCALAR, "the file ends inside a text; close its quotes"},
        {YAML::ErrorMsg::UNKNOWN_TOKEN, "no value can begin with this; put the text in quotes"},
    }};
    for (const auto& [known, meaning] : advices) {
        if (what == known) return std::string(meaning);
    }
    return fmt::format("not YAML: {}", what);
}

}  // namespace

const YamlNode* YamlNode::find(std::string_view key) const {
    if (kind != Kind::mapping) return nullptr;
    for (std::size_t i = 0; i < keys.size(); ++i) {
        if (keys[i].kind == Kind::scalar && keys[i].text == key) return &values[i];
    }
    return nullptr;
}

YamlNode* YamlNode::find(std::string_view key) {
    return const_cast<YamlNode*>(std::as_const(*this).find(key));
}

std::uint32_t Report::add_source(std::string name, std::string_view text) {
    constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";
    if (text.starts_with(byte_order_mark)) text.remove_prefix(byte_order_mark.size());
    Source source{.name = std::move(name), .text = {}, .lines = {0}};
    source.text.reserve(text.size());
    for (std::size_t i = 0; i < text.size(); ++i) {
        const bool is_end = text[i] == '\n' || text[i] == '\r';
        if (text[i] == '\r' && i + 1 < text.size() && text[i + 1] == '\n') ++i;
        source.text += is_end ? '\n' : text[i];
        if (is_end) source.lines.push_back(source.text.size());
    }
    sources_.push_back(std::move(source));
    return static_cast<std::uint32_t>(sources_.size() - 1);
}

const std::string& Report::text(std::uint32_t source) const { return sources_[source].text; }
const std::string& Report::name(std::uint32_t source) const { return sources_[source].name; }

void Report::error(Place place, std::string message) {
    ++errors_;
    if (found_.size() >= kept) return;
    if (!remark_.empty() && place.source != remark_home_) message += remark_;
    const bool is_known = std::ranges::any_of(
        found_, [&](const Found& one) { return one.place == place && one.message == message; });
    if (is_known) {
        ++repeated_;
        return;
    }
    found_.push_back({place, false, std::move(message)});
}

void Report::error(std::uint32_t source, std::string message) {
    ++errors_;
    if (found_.size() >= kept) return;
    found_.push_back({{source, 0, 0}, true, std::move(message)});
}

void Report::set_remark(std::uint32_t home, std::string remark) {
    remark_home_ = home;
    remark_ = std::move(remark);
}

Diagnostic Report::diagnostic(const Found& found) const {
    const Source& source = sources_[found.place.source];
    if (found.whole_file) return {source.name, 0, 0, found.message, {}};

    const std::size_t line = std::min<std::size_t>(found.place.line, source.lines.size() - 1);
    const std::size_t begin = source.lines[line];
    const std::size_t end = std::min(source.text.find('\n', begin), source.text.size());
    const std::string_view text = std::string_view(source.text).substr(begin, end - begin);
    const std::string_view before = text.substr(0, found.place.column);
    const std::string shown = printable(before);
    const auto characters = std::ranges::count_if(
        shown, [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; });
    return {source.name, static_cast<int>(line) + 1, static_cast<int>(characters) + 1,
            found.message, printable(text)};
}

Diagnostics Report::diagnostics() const {
    std::vector<Found> sorted = found_;
    std::ranges::stable_sort(sorted, {}, [](const Found& one) {
        return std::tuple(one.place.source, !one.whole_file, one.place.line, one.place.column);
    });
    Diagnostics all;
    for (const Found& one : sorted) all.push_back(diagnostic(one));
    const std::size_t left = errors_ - repeated_ - found_.size();
    if (left > 0) {
        all.push_back(
            {all.front().file, 0, 0, fmt::format("{} more errors; correct these first", left), {}});
    }
    return all;
}

std::optional<YamlNode> parse_yaml(Place begin, Report& report) {
    std::string_view text = report.text(begin.source);
    if (text.size() > yaml_bytes_max) {
        report.error(begin.source, "larger than 8 MiB; is this a scenario?");
        return std::nullopt;
    }
    for (std::uint32_t line = 0; line < begin.line; ++line) text.remove_prefix(text.find('\n') + 1);
    text.remove_prefix(begin.column);
    if (!harmless(text, begin, report)) return std::nullopt;

    TreeBuilder builder(begin, text, report);
    const std::size_t errors_before = report.errors();
    try {
        std::istringstream stream{std::string(text)};
        YAML::Parser parser(stream);
        const bool more = parser.HandleNextDocument(builder);
        if (more) parser.HandleNextDocument(builder);
    } catch (const YAML::Exception& exception) {
        // What is too deep for yaml-cpp was too deep for the builder before.
        if (builder.broken()) return std::nullopt;
        const Place place = builder.place(exception.mark);
        const bool in_brackets = exception.msg == YAML::ErrorMsg::END_OF_MAP_FLOW ||
                                 exception.msg == YAML::ErrorMsg::END_OF_SEQ_FLOW;
        const auto tab = tab_in_indentation(place, report);
        if (tab) {
            report.error(*tab, advice(YAML::ErrorMsg::TAB_IN_INDENTATION));
        } else if (in_brackets) {
            report.error(builder.open_bracket().value_or(place), advice(exception.msg));
        } else {
            report.error(place, advice(exception.msg));
        }
        return std::nullopt;
    } catch (const std::exception& exception) {
        if (report.errors() == errors_before) {
            report.error(begin.source, fmt::format("not YAML: {}", exception.what()));
        }
        return std::nullopt;
    }
    if (builder.broken()) return std::nullopt;
    return builder.take();
}

FileText read_file(const std::string& path) {
    namespace fs = std::filesystem;
    std::error_code code;
    const fs::path file(path);
    if (fs::is_directory(file, code)) return {{}, "a directory; name a YAML file in it"};
    if (!fs::exists(file, code)) {
        std::vector<std::string> names;
        const fs::path folder = file.has_parent_path() ? file.parent_path() : fs::path(".");
        for (fs::directory_iterator entry(folder, code), end; !code && entry != end;
             entry.increment(code)) {
            if (entry->path().extension() == ".yaml" && names.size() < 10'000) {
                names.push_back(entry->path().filename().string());
            }
        }
        std::ranges::sort(names);
        const std::vector<std::string_view> views(names.begin(), names.end());
        const std::string wanted = file.filename().string();
        if (const auto near = closest(wanted, views)) {
            return {{}, fmt::format("no such file; did you mean '{}'?", *near)};
        }
        return {{}, "no such file; check its name and folder"};
    }
    std::ifstream stream(file, std::ios::binary);
    if (!stream) return {{}, "cannot be opened; check its permissions"};
    // One byte more than is allowed, so that an endless device is noticed too.
    std::string text(yaml_bytes_max + 1, '\0');
    stream.read(text.data(), static_cast<std::streamsize>(text.size()));
    if (stream.bad()) return {{}, "cannot be read; check the disk"};
    text.resize(static_cast<std::size_t>(stream.gcount()));
    return {std::move(text), {}};
}

Place locate(const YamlNode& root, std::string_view path) {
    const YamlNode* node = &root;
    Place place = root.place;
    while (!path.empty()) {
        const std::size_t dot = std::min(path.find('.'), path.size());
        const std::string_view step = path.substr(0, dot);
        path.remove_prefix(std::min(dot + 1, path.size()));

        const YamlNode* next = node->find(step);
        std::size_t index = 0;
        const auto [end, error] = std::from_chars(step.data(), step.data() + step.size(), index);
        const bool is_index = error == std::errc{} && end == step.data() + step.size();
        if (node->kind == YamlNode::Kind::list && is_index && index < node->values.size()) {
            next = &node->values[index];
        }
        if (next == nullptr) break;

        place = next->place;
        // A block mapping begins at its first key, a line below the key that names it.
        const bool is_block =
            next->kind == YamlNode::Kind::mapping || next->kind == YamlNode::Kind::list;
        if (is_block && node->kind == YamlNode::Kind::mapping) {
            place = node->keys[static_cast<std::size_t>(next - node->values.data())].place;
        }
        node = next;
    }
    return place;
}

std::string shortened(std::string_view text) {
    constexpr std::size_t bytes_max = 40;
    std::size_t end = std::min(text.size(), bytes_max);
    while (end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) --end;
    std::string shown(text.substr(0, end));
    for (char& c : shown) {
        if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) c = '?';
    }
    return end < text.size() ? shown + "..." : shown;
}

std::string in_quotes(std::string_view text) { return fmt::format("'{}'", shortened(text)); }

}  // namespace fourfold
