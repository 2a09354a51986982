#include "scenarios/fields.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <system_error>

#include "topology/closest.hpp"

namespace fourfold {
namespace {

std::string_view name_of(YamlNode::Kind kind) {
    switch (kind) {
        case YamlNode::Kind::empty:
            return "empty";
        case YamlNode::Kind::scalar:
            return "a value";
        case YamlNode::Kind::list:
            return "a list";
        case YamlNode::Kind::mapping:
            return "a mapping";
    }
    return "?";
}

// The whole of `text` as a number. 'from_chars' also reads "inf" and "nan", which no key takes.
template <class T>
std::errc parse_number(std::string_view text, T& into) {
    T number{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (end != text.data() + text.size()) return std::errc::invalid_argument;
    if (error != std::errc{}) return error;
    if constexpr (std::is_floating_point_v<T>) {
        if (!std::isfinite(number)) return std::errc::invalid_argument;
    }
    into = number;
    return {};
}

std::string text_not_number(std::string_view text) {
    return fmt::format("{} is a text, because of its quotes; write {} without them",
                       in_quotes(text), shortened(text));
}

const std::vector<YamlNode> no_items;

}  // namespace

Fields::Fields(const YamlNode& node, Place place, std::string path, Report& report)
    : node_(&node), place_(place), path_(std::move(path)), report_(&report) {
    if (node.kind == YamlNode::Kind::mapping) return;
    node_ = nullptr;
    report_->error(place_,
                   fmt::format("{} is {}; write a mapping, 'key: value' on each line",
                               path_.empty() ? "the file" : in_quotes(path_), name_of(node.kind)));
}

Fields::Fields(Fields& parent, std::string_view key, Need need, std::string_view example)
    : node_(nullptr), place_(parent.place_), path_(parent.path(key)), report_(parent.report_) {
    const YamlNode* node = parent.value(key, need, example);
    if (node == nullptr) return;
    if (node->kind != YamlNode::Kind::mapping) {
        report_->error(node->place, fmt::format("'{}' is {}; write a mapping, for example '{}: {}'",
                                                path_, name_of(node->kind), key, example));
        return;
    }
    node_ = node;
    place_ = locate(*parent.node_, key);
}

Fields::~Fields() {
    if (node_ == nullptr) return;
    const std::vector<std::string_view> known(known_.begin(), known_.end());
    for (const YamlNode& key : node_->keys) {
        // A key that is no word is reported where the text is read.
        if (key.kind != YamlNode::Kind::scalar) continue;
        if (std::ranges::find(known_, key.text) != known_.end()) continue;
        if (std::ranges::find(refused_, key.text) != refused_.end()) continue;
        report_->error(key.place, report_->full() ? "unknown key"
                                                  : unknown("key", shortened(key.text), known));
    }
}

std::string Fields::path(std::string_view key) const {
    return path_.empty() ? std::string(key) : fmt::format("{}.{}", path_, key);
}

const YamlNode* Fields::look(std::string_view key) {
    if (std::ranges::find(known_, key) == known_.end()) known_.emplace_back(key);
    return node_ == nullptr ? nullptr : node_->find(key);
}

bool Fields::has(std::string_view key) { return look(key) != nullptr; }

const YamlNode* Fields::value(std::string_view key, Need need, std::string_view example) {
    const YamlNode* node = look(key);
    if (node == nullptr) {
        if (present() && need == Need::required) {
            report_->error(place_,
                           fmt::format("missing key '{0}'{1}; write for example '{0}: {2}'", key,
                                       path_.empty() ? "" : " in '" + path_ + "'", example));
        }
        return nullptr;
    }
    if (node->kind == YamlNode::Kind::empty) {
        report_->error(node->place, fmt::format("'{0}' has no value; write for example '{0}: {1}'",
                                                key, example));
        return nullptr;
    }
    return node;
}

const std::vector<YamlNode>& Fields::list(std::string_view key, Need need,
                                          std::string_view example) {
    const YamlNode* node = value(key, need, example);
    if (node == nullptr) return no_items;
    if (node->kind == YamlNode::Kind::list) return node->values;
    report_->error(node->place,
                   fmt::format("'{0}' is {1}, not a list; write for example '{0}: {2}'", key,
                               name_of(node->kind), example));
    return no_items;
}

const YamlNode* Fields::scalar(std::string_view key, Need need, std::string_view what,
                               std::string_view example) {
    const YamlNode* node = value(key, need, example);
    if (node == nullptr || node->kind == YamlNode::Kind::scalar) return node;
    report_->error(node->place, fmt::format("'{0}' is {1}, not {2}; write for example '{0}: {3}'",
                                            key, name_of(node->kind), what, example));
    return nullptr;
}

std::vector<const YamlNode*> Fields::words(std::string_view key, Need need,
                                           std::string_view example) {
    std::vector<const YamlNode*> words;
    for (const YamlNode& item : list(key, need, example)) {
        if (item.kind == YamlNode::Kind::scalar) {
            words.push_back(&item);
            continue;
        }
        report_->error(item.place,
                       fmt::format("an item of '{0}' is {1}; write for example '{0}: {2}'", key,
                                   name_of(item.kind), example));
    }
    return words;
}

bool Fields::read_integer(const YamlNode& node, std::string_view key, std::string_view example,
                          Integers range, std::int64_t& into) {
    std::int64_t number = 0;
    const std::errc error = parse_number(node.text, number);
    if (error == std::errc::invalid_argument) {
        report_->error(node.place,
                       fmt::format("{} is not a whole number; write for example '{}: {}'",
                                   in_quotes(node.text), key, example));
        return false;
    }
    if (node.quoted) {
        report_->error(node.place, text_not_number(node.text));
        return false;
    }
    if (error != std::errc{} || number < range.min || number > range.max) {
        report_->error(node.place,
                       fmt::format("'{}' cannot be {}; write a whole number from {} to {}", key,
                                   shortened(node.text), range.min, range.max));
        return false;
    }
    into = number;
    return true;
}

bool Fields::integers(std::string_view key, Need need, std::vector<std::int64_t>& into,
                      Integers range, std::string_view example) {
    const std::size_t errors = report_->errors();
    std::vector<std::int64_t> numbers;
    for (const YamlNode* word : words(key, need, example)) {
        std::int64_t number = 0;
        if (read_integer(*word, key, example, range, number)) numbers.push_back(number);
    }
    if (numbers.empty() || report_->errors() > errors) return false;
    into = std::move(numbers);
    return true;
}

bool Fields::integer(std::string_view key, Need need, std::int64_t& into, Integers range) {
    const std::string example = fmt::format("{}", range.example);
    const YamlNode* node = scalar(key, need, "a whole number", example);
    return node != nullptr && read_integer(*node, key, example, range, into);
}

bool Fields::number(std::string_view key, Need need, double& into, const Reals& range) {
    const YamlNode* node = scalar(key, need, "a number", range.example);
    if (node == nullptr) return false;
    double number = 0;
    const std::errc error = parse_number(node->text, number);
    if (error == std::errc::invalid_argument) {
        report_->error(node->place, fmt::format("{} is not a number; write for example '{}: {}'",
                                                in_quotes(node->text), key, range.example));
        return false;
    }
    if (node->quoted) {
        report_->error(node->place, text_not_number(node->text));
        return false;
    }
    const bool too_small = range.above_min ? number <= range.min : number < range.min;
    if (error != std::errc{} || too_small || number > range.max) {
        report_->error(node->place,
                       fmt::format("'{}' cannot be {}; write a number {} {} and at most {}", key,
                                   shortened(node->text), range.above_min ? "above" : "of at least",
                                   range.min, range.max));
        return false;
    }
    into = number;
    return true;
}

bool Fields::boolean(std::string_view key, Need need, bool& into) {
    return choice<bool>(key, "truth value", need, into, {{"true", true}, {"false", false}});
}

bool Fields::text(std::string_view key, Need need, std::string& into, std::string_view example) {
    const YamlNode* node = scalar(key, need, "a text", example);
    if (node == nullptr) return false;
    into = node->text;
    return true;
}

template <class T>
bool Fields::quantity(std::string_view key, Need need, T& into, std::string_view what,
                      std::string_view example, Result<T> (*parse)(std::string_view)) {
    const YamlNode* node = scalar(key, need, what, example);
    if (node == nullptr) return false;
    // A quantity is short; a longer text would only flood the message.
    const Result<T> parsed = parse(shortened(node->text));
    if (!parsed) {
        report_->error(node->place, parsed.error().what);
        return false;
    }
    into = *parsed;
    return true;
}

bool Fields::bytes(std::string_view key, Need need, Bytes& into, std::string_view example) {
    Bytes read;
    if (!quantity<Bytes>(key, need, read, "a size", example, parse_bytes)) return false;
    if (read.value <= 0) {
        error(key, fmt::format("'{}' cannot be {}; write for example '{}: {}'", key, to_text(read),
                               key, example));
        return false;
    }
    into = read;
    return true;
}

bool Fields::rate(std::string_view key, Need need, BytesPerSecond& into) {
    return quantity<BytesPerSecond>(key, need, into, "a rate", "25 GB/s", parse_rate);
}

bool Fields::duration(std::string_view key, Need need, Duration& into, Durations range) {
    Duration read{};
    if (!quantity<Duration>(key, need, read, "a time", "5 us", parse_duration)) return false;
    if (read < range.min || read > range.max) {
        error(key, fmt::format("'{}' cannot be {}; write a time from {} to {}", key, to_text(read),
                               to_text(range.min), to_text(range.max)));
        return false;
    }
    into = read;
    return true;
}

bool Fields::flops_rate(std::string_view key, Need need, double& into) {
    return quantity<double>(key, need, into, "a rate", "312 TFLOP/s", parse_flops_rate);
}

std::size_t Fields::choose(std::string_view key, std::string_view kind, Need need,
                           const std::vector<std::string_view>& names) {
    const std::string example = fmt::format("{}", fmt::join(names, "|"));
    const YamlNode* node = scalar(key, need, "a " + std::string(kind), example);
    if (node == nullptr) return names.size();
    const auto chosen = std::ranges::find(names, node->text);
    if (chosen == names.end()) {
        const std::string what = unknown(kind, shortened(node->text), names);
        report_->error(node->place, what);
    }
    return static_cast<std::size_t>(chosen - names.begin());
}

Place Fields::place(std::string_view key) const {
    const bool there = node_ != nullptr && node_->find(key) != nullptr;
    return there ? locate(*node_, key) : place_;
}

void Fields::error(std::string_view key, std::string message) {
    report_->error(place(key), std::move(message));
}

void Fields::error_at_key(std::string_view key, std::string message) {
    for (std::size_t i = 0; node_ != nullptr && i < node_->keys.size(); ++i) {
        if (node_->keys[i].text != key) continue;
        report_->error(node_->keys[i].place, std::move(message));
        return;
    }
    report_->error(place_, std::move(message));
}

void Fields::refuse(std::string_view key, std::string message) {
    const bool is_known = std::ranges::find(known_, key) != known_.end();
    if (is_known || node_ == nullptr || node_->find(key) == nullptr) return;
    if (std::ranges::find(refused_, key) != refused_.end()) return;
    refused_.emplace_back(key);
    error_at_key(key, std::move(message));
}

}  // namespace fourfold
