#include "scenarios/yaml_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace fourfold {
namespace {

constexpr std::size_t width = 100;
constexpr std::size_t indentation = 2;

std::string in_double_quotes(std::string_view text) {
    std::string quoted = "\"";
    for (const char c : text) {
        if (c == '\n') {
            quoted += "\\n";
        } else if (c == '\t') {
            quoted += "\\t";
        } else {
            if (c == '"' || c == '\\') quoted += '\\';
            quoted += c;
        }
    }
    return quoted + '"';
}

// Whether breaking the text at spaces and joining it again with spaces loses nothing.
bool can_be_folded(std::string_view text) {
    return !text.empty() && text.front() != ' ' && text.back() != ' ' &&
           text.find_first_of("\n\t") == std::string_view::npos &&
           text.find("  ") == std::string_view::npos;
}

std::string folded(std::string_view text, std::size_t indent) {
    std::string lines = ">-";
    std::size_t column = width;
    while (!text.empty()) {
        const std::size_t end = std::min(text.find(' '), text.size());
        if (column + 1 + end > width) {
            lines += '\n' + std::string(indent, ' ');
            column = indent;
        } else {
            lines += ' ';
            ++column;
        }
        lines += text.substr(0, end);
        column += end;
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    return lines;
}

std::string list_text(const YamlNode& list);

std::string scalar_text(const YamlNode& scalar) {
    return scalar.quoted ? in_double_quotes(scalar.text) : scalar.text;
}

// In one line, with brackets.
std::string flow_text(const YamlNode& node) {
    switch (node.kind) {
        case YamlNode::Kind::empty:
            return "";
        case YamlNode::Kind::scalar:
            return scalar_text(node);
        case YamlNode::Kind::list:
            return list_text(node);
        case YamlNode::Kind::mapping:
            break;
    }
    std::string text;
    for (std::size_t i = 0; i < node.keys.size(); ++i) {
        text += fmt::format("{}{}: {}", i == 0 ? "" : ", ", scalar_text(node.keys[i]),
                            flow_text(node.values[i]));
    }
    return '{' + text + '}';
}

std::string list_text(const YamlNode& list) {
    std::string text;
    for (const YamlNode& item : list.values) {
        text += (text.empty() ? "" : ", ") + flow_text(item);
    }
    return '[' + text + ']';
}

bool is_table(const YamlNode& node) {
    return node.kind == YamlNode::Kind::list && !node.values.empty() &&
           std::ranges::all_of(
               node.values, [](const YamlNode& item) { return item.kind == YamlNode::Kind::list; });
}

void append_block(const YamlNode& mapping, std::size_t indent, std::string& text) {
    for (std::size_t i = 0; i < mapping.keys.size(); ++i) {
        const YamlNode& value = mapping.values[i];
        const std::string key = fmt::format("{:{}}{}:", "", indent, scalar_text(mapping.keys[i]));
        text += key;
        if (value.kind == YamlNode::Kind::mapping && !value.keys.empty()) {
            text += '\n';
            append_block(value, indent + indentation, text);
            continue;
        }
        if (is_table(value)) {
            text += '\n';
            for (const YamlNode& row : value.values) {
                text += fmt::format("{:{}}- {}\n", "", indent + indentation, list_text(row));
            }
            continue;
        }
        std::string line = flow_text(value);
        const bool is_text = value.kind == YamlNode::Kind::scalar && value.quoted;
        if (is_text && key.size() + 1 + line.size() > width && can_be_folded(value.text)) {
            line = folded(value.text, indent + indentation);
        }
        text += (line.empty() ? "" : " ") + line + '\n';
    }
}

YamlNode scalar_node(std::string text, bool quoted) {
    YamlNode node;
    node.kind = YamlNode::Kind::scalar;
    node.quoted = quoted;
    node.text = std::move(text);
    return node;
}

YamlNode& value_at(YamlNode& mapping, std::string_view key) {
    if (YamlNode* there = mapping.find(key)) return *there;
    mapping.keys.push_back(scalar_node(std::string(key), false));
    mapping.values.emplace_back();
    return mapping.values.back();
}

}  // namespace

std::string yaml_text(const YamlNode& mapping) {
    std::string text;
    append_block(mapping, 0, text);
    return text;
}

void set_scalar(YamlNode& mapping, std::string_view key, std::string value, Scalar kind) {
    value_at(mapping, key) = scalar_node(std::move(value), kind == Scalar::text);
}

void set_value(YamlNode& mapping, std::string_view key, YamlNode value) {
    value_at(mapping, key) = std::move(value);
}

YamlNode& submapping(YamlNode& mapping, std::string_view key) {
    YamlNode& value = value_at(mapping, key);
    if (value.kind != YamlNode::Kind::mapping) {
        value = {};
        value.kind = YamlNode::Kind::mapping;
    }
    return value;
}

void erase_key(YamlNode& mapping, std::string_view key) {
    const YamlNode* value = mapping.find(key);
    if (value == nullptr) return;
    const auto index = value - mapping.values.data();
    mapping.keys.erase(mapping.keys.begin() + index);
    mapping.values.erase(mapping.values.begin() + index);
}

}  // namespace fourfold
