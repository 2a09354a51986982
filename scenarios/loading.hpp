#pragma once

#include <cstdint>
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
    std::size_t left_out = 0;        // files with a problem
};

enum class FaultyFiles : std::uint8_t { refuse, leave_out };

/// Loads all files of a command line and prints every problem to standard error. Nothing if the
/// command line is wrong or a file has a problem, unless such files are to be left out.
std::optional<Loaded> load(const ScenarioOptions& options,
                           FaultyFiles faulty = FaultyFiles::refuse);

/// The first that has several jobs, or nullptr.
const Scenario* find_jobs(const std::vector<Scenario>& scenarios);

/// Says that such a scenario is only run. Returns: the exit code.
int refuse_jobs(const Scenario& scenario);

/// The catalog of the program and of `directory` (empty: none); the same on problems.
std::optional<Catalog> load_catalog(const std::string& directory);

}  // namespace fourfold
