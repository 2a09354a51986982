#pragma once

#include <string>
#include <string_view>

#include "scenarios/document.hpp"

namespace fourfold {

/// A mapping as YAML text that parse_yaml reads as the same tree (places apart): mappings in
/// blocks, lists in brackets (of lists of lists each item on its line), long texts folded. Comments
/// are no part of a tree.
std::string yaml_text(const YamlNode& mapping);

/// Sets a value of a mapping, at its end if the key is new. A text stands in quotes; other scalars
/// (numbers, names, quantities) do not.
enum class Scalar : std::uint8_t { plain, text };
void set_scalar(YamlNode& mapping, std::string_view key, std::string value, Scalar kind);

void set_value(YamlNode& mapping, std::string_view key, YamlNode value);

/// The mapping at a key of a mapping, made if there is none.
YamlNode& submapping(YamlNode& mapping, std::string_view key);

/// Nothing happens where there is no such key.
void erase_key(YamlNode& mapping, std::string_view key);

}  // namespace fourfold
