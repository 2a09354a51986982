#pragma once

// Several jobs on one cluster:
//
//     cluster: {...}                # and what else the jobs have in common
//     jobs:
//       - {name: a, nodes: 0..1, batch: {global: 64}}
//       - {name: b, devices: [16..23, 31], scenario: other.yaml}
//
// A job is the scenario with its own keys in place of the common ones, or another file's scenario
// on this cluster, on the devices that it names.

#include <optional>
#include <string_view>

#include "scenarios/catalog.hpp"
#include "scenarios/document.hpp"
#include "scenarios/scenario.hpp"

namespace fourfold {

/// Requires: `tree` is a mapping with the key `jobs`. Nothing after a report.
std::optional<Scenario> read_jobs(const YamlNode& tree, std::string_view name,
                                  const Catalog& catalog, Report& report);

}  // namespace fourfold
