#pragma once

#include <optional>
#include <string>
#include <vector>

#include "scenarios/commands.hpp"
#include "scenarios/scenario.hpp"

namespace fourfold {

struct Loaded {
    std::vector<Scenario> scenarios;
    std::vector<std::string> files;  // of each scenario, the one that it was read from
    bool is_what_if = false;         // one file: a base and its changes
};

/// Loads all files of a command line; nothing if any has a problem, after printing them all to
/// standard error.
std::optional<Loaded> load(const ScenarioOptions& options);

/// The catalog of the program and of `directory` (empty: none); the same on problems.
std::optional<Catalog> load_catalog(const std::string& directory);

}  // namespace fourfold
