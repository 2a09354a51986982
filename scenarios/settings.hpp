#pragma once

// Changes to a scenario's YAML before it is read: from `--set path=value` and from what-if files.

#include <optional>
#include <string>

#include "scenarios/document.hpp"
#include "scenarios/scenario.hpp"

namespace fourfold {

struct Change {
    std::string path;
    Place place;  // of the path
    YamlNode value;
};

/// Reports a setting that is no `path=value` or whose value is no YAML.
std::optional<Change> parse_setting(const Setting& setting, Report& report);

/// Puts the value at its path. Mappings on the way that do not exist are made, a list grows by the
/// number after its last, and below the name of a model or device, `model.layers=12` makes it the
/// base of a mapping. Whether the keys mean anything is for the reader of the scenario to say.
void apply(const Change& change, YamlNode& root, Report& report);

}  // namespace fourfold
