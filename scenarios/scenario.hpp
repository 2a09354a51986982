#pragma once

// A scenario: what one YAML file describes, checked.

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

#include "results/jobs.hpp"
#include "scenarios/catalog.hpp"
#include "scenarios/diagnostic.hpp"
#include "sim/simulate.hpp"
#include "topology/graph.hpp"
#include "workloads/training_step.hpp"

namespace fourfold {

struct Published {
    Duration step_time{};
    std::string source;
    std::string group;  // which runs it is compared with; empty: none is named
};

struct Scenario {
    std::string name;
    Graph graph;                      // slow links already slowed
    std::vector<LinkChange> changes;  // of links, while the step runs
    TrainingStep step;
    LinkModel links = LinkModel::flows;
    Bytes quantum{};  // 0: links serve whole messages
    std::optional<Published> published;
    std::vector<Job> jobs;  // several on one network: then `step` is the first one's
};

/// "cluster.fabric.bandwidth=50 GB/s": a change to a scenario's YAML before it is read.
struct Setting {
    std::string path;   // keys joined by dots; a list's items by number
    std::string value;  // YAML
};

/// Reads, changes and checks. All problems of the file are reported at once.
tl::expected<Scenario, Diagnostics> load_scenario(const std::filesystem::path& file,
                                                  const std::vector<Setting>& settings,
                                                  const Catalog& catalog);

/// The same from text that is already in memory; `file` is its name in messages.
tl::expected<Scenario, Diagnostics> parse_scenario(std::string_view text, std::string_view file,
                                                   const std::vector<Setting>& settings,
                                                   const Catalog& catalog);

}  // namespace fourfold
