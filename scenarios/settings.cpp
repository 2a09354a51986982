#include "scenarios/settings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string_view>
#include <utility>
#include <vector>

namespace fourfold {
namespace {

constexpr std::size_t levels_max = 16;

struct PathKey {
    std::string_view key;
    Place place;
};

std::vector<PathKey> split(std::string_view path, Place place) {
    std::vector<PathKey> steps;
    while (true) {
        const std::size_t dot = std::min(path.find('.'), path.size());
        steps.push_back({path.substr(0, dot), place});
        if (dot == path.size()) return steps;
        path.remove_prefix(dot + 1);
        place.column += static_cast<std::uint32_t>(dot + 1);
    }
}

std::optional<std::size_t> as_number(std::string_view text) {
    std::size_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
    return number;
}

YamlNode scalar(std::string_view text, Place place) {
    YamlNode node;
    node.kind = YamlNode::Kind::scalar;
    node.place = place;
    node.text = text;
    return node;
}

// `model: gpt3-175b` as `model: {base: gpt3-175b}`, so that a key of it can be changed.
void make_base(YamlNode& name) {
    YamlNode mapping;
    mapping.kind = YamlNode::Kind::mapping;
    mapping.place = name.place;
    mapping.keys.push_back(scalar("base", name.place));
    mapping.values.push_back(std::move(name));
    name = std::move(mapping);
}

// The value that `step` leads to in `node`, made if it is not there; nullptr after a report.
YamlNode* descend(YamlNode& node, const PathKey& step, std::string_view done, Report& report) {
    const auto number = as_number(step.key);
    if (node.kind == YamlNode::Kind::empty) {
        node.kind = number ? YamlNode::Kind::list : YamlNode::Kind::mapping;
        node.place = step.place;
    }
    const bool names_entry = done == "model" || done == "cluster.device";
    if (node.kind == YamlNode::Kind::scalar && names_entry) make_base(node);
    if (node.kind == YamlNode::Kind::scalar) {
        report.error(step.place, fmt::format("nothing can be set below '{}', which is {}; set '{}'",
                                             done, in_quotes(node.text), done));
        return nullptr;
    }
    if (node.kind == YamlNode::Kind::list) {
        if (!number || *number > node.values.size()) {
            report.error(step.place,
                         fmt::format("'{0}' is a list of {1}; its next item is '{0}.{1}'", done,
                                     node.values.size()));
            return nullptr;
        }
        if (*number == node.values.size()) {
            node.values.emplace_back();
            node.values.back().place = step.place;
        }
        return &node.values[*number];
    }
    if (YamlNode* there = node.find(step.key)) return there;
    node.keys.push_back(scalar(step.key, step.place));
    node.values.emplace_back();
    node.values.back().place = step.place;
    return &node.values.back();
}

}  // namespace

std::optional<Change> parse_setting(const Setting& setting, Report& report) {
    const std::string text = setting.path + "=" + setting.value;
    const std::uint32_t source = report.add_source("--set " + shortened(text), text);
    if (setting.path.empty()) {
        report.error({source, 0, 0}, "no path; write for example '--set batch.global=64'");
        return std::nullopt;
    }
    if (setting.path.find('\n') != std::string::npos) {
        report.error({source, 0, 0},
                     "a path is one line; write for example '--set batch.global=64'");
        return std::nullopt;
    }
    const auto begin = static_cast<std::uint32_t>(setting.path.size() + 1);
    const std::size_t errors = report.errors();
    auto value = parse_yaml({source, 0, begin}, report);
    if (!value && report.errors() == errors) {
        report.error({source, 0, begin}, fmt::format("no value; write for example '--set {}=8'",
                                                     shortened(setting.path)));
    }
    if (!value) return std::nullopt;
    return Change{setting.path, {source, 0, 0}, std::move(*value)};
}

void apply(const Change& change, YamlNode& root, Report& report) {
    const std::vector<PathKey> steps = split(change.path, change.place);
    if (steps.size() > levels_max) {
        report.error(change.place, fmt::format("a path of more than {} keys", levels_max));
        return;
    }
    YamlNode* node = &root;
    std::size_t done = 0;
    for (const PathKey& step : steps) {
        if (step.key.empty()) {
            report.error(step.place, "an empty key; write for example 'batch.global'");
            return;
        }
        node = descend(*node, step, std::string_view(change.path).substr(0, done), report);
        if (node == nullptr) return;
        done += (done == 0 ? 0 : 1) + step.key.size();
    }
    *node = change.value;
}

}  // namespace fourfold
