#pragma once

// What-if files: a scenario, and changes to it.
//
//     base: gpt3_175b.yaml          # relative to this file
//     what_if:
//       - {name: twice the network, set: {cluster.fabric.bandwidth: 50 GB/s}}

#include <filesystem>
#include <tl/expected.hpp>
#include <vector>

#include "scenarios/catalog.hpp"
#include "scenarios/diagnostic.hpp"
#include "scenarios/scenario.hpp"

namespace fourfold {

/// Of a scenario file, the scenario; of a what-if file, the base and then one scenario per entry,
/// named by the entry. Settings change the base, before the entries do. Reports all problems of the
/// base, or, once it is sound, those of all entries.
tl::expected<std::vector<Scenario>, Diagnostics> load_scenarios(
    const std::filesystem::path& file, const std::vector<Setting>& settings,
    const Catalog& catalog);

}  // namespace fourfold
