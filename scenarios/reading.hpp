#pragma once

// The steps from YAML to a Scenario that plain scenarios and what-if files share.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/catalog.hpp"
#include "scenarios/document.hpp"
#include "scenarios/scenario.hpp"

namespace fourfold {

/// The text of a file, as a source of the report; nothing after a report.
std::optional<std::uint32_t> open_source(const std::string& file, Report& report);

/// The tree of a source; reports an empty one too.
std::optional<YamlNode> read_tree(std::uint32_t source, Report& report);

void apply_settings(const std::vector<Setting>& settings, YamlNode& tree, Report& report);

/// Nothing where something is wrong, which is then reported. `name` is what a scenario without a
/// name is called.
std::optional<Scenario> read_scenario(const YamlNode& tree, std::string_view name,
                                      const Catalog& catalog, Report& report);

/// The same of a tree without jobs, on some of the cluster's devices; empty: on all.
std::optional<Scenario> read_plain_scenario(const YamlNode& tree, std::string_view name,
                                            const std::vector<DeviceId>& devices,
                                            const Catalog& catalog, Report& report);

}  // namespace fourfold
