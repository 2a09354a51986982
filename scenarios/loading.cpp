#include "scenarios/loading.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "scenarios/arguments.hpp"
#include "scenarios/what_if.hpp"

namespace fourfold {

std::optional<Catalog> load_catalog(const std::string& directory) {
    auto catalog = embedded_catalog();
    if (catalog && !directory.empty()) catalog = with_directory(std::move(*catalog), directory);
    if (catalog) return std::move(*catalog);
    fmt::print(stderr, "{}", to_text(catalog.error()));
    return std::nullopt;
}

const Scenario* find_jobs(const std::vector<Scenario>& scenarios) {
    const auto found = std::ranges::find_if(
        scenarios, [](const Scenario& scenario) { return !scenario.jobs.empty(); });
    return found == scenarios.end() ? nullptr : &*found;
}

int refuse_jobs(const Scenario& scenario) {
    return refuse({scenario.name, "several jobs; `fourfold run` prints what each one does"});
}

std::optional<Loaded> load(const ScenarioOptions& options, FaultyFiles faulty) {
    const auto catalog = load_catalog(options.catalog);
    if (!catalog) return std::nullopt;

    std::vector<Setting> settings;
    bool sound = true;
    for (const std::string& text : options.settings) {
        const std::size_t equals = text.find('=');
        if (equals == std::string::npos || equals == 0) {
            fmt::print(stderr, "--set {}: error: not of the form path=value, as in batch.micro=2\n",
                       text);
            sound = false;
            continue;
        }
        settings.push_back({text.substr(0, equals), text.substr(equals + 1)});
    }
    if (!options.network.empty()) settings.push_back({"network", options.network});

    Loaded loaded;
    for (const std::string& file : options.files) {
        auto scenarios = load_scenarios(file, settings, *catalog);
        if (!scenarios) {
            fmt::print(stderr, "{}", to_text(scenarios.error()));
            ++loaded.left_out;
            continue;
        }
        loaded.is_what_if = options.files.size() == 1 && scenarios->size() > 1;
        loaded.files.insert(loaded.files.end(), scenarios->size(), file);
        std::move(scenarios->begin(), scenarios->end(), std::back_inserter(loaded.scenarios));
    }
    if (!sound || (loaded.left_out > 0 && faulty == FaultyFiles::refuse)) return std::nullopt;
    return loaded;
}

}  // namespace fourfold
