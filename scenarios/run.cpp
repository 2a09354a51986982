// `fourfold run`: the program's table of contents. YAML -> scenarios -> (lower, simulate, measure)
// -> a screen, a table, JSON, a trace.

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>

#include "results/evaluate.hpp"
#include "results/report.hpp"
#include "results/trace.hpp"
#include "scenarios/arguments.hpp"
#include "scenarios/commands.hpp"
#include "scenarios/loading.hpp"
#include "scenarios/progress.hpp"

namespace fourfold {
namespace {

struct Outcome {
    const Scenario* scenario;
    Evaluation evaluation;

    [[nodiscard]] Report report() const {
        return {scenario->name,
                scenario->step,
                scenario->graph,
                scenario->links,
                scenario->published ? std::optional(scenario->published->step_time) : std::nullopt,
                evaluation};
    }
};

// Tables print nothing of the program and its timeline, which can be large.
void forget_timeline(Evaluation& evaluation) {
    evaluation.lowered = {};
    evaluation.timeline = {};
}

int write_trace_file(const std::string& path, const Outcome& outcome) {
    std::ofstream file(path, std::ios::binary);
    if (file) {
        write_trace(file, outcome.scenario->graph, outcome.evaluation.lowered,
                    outcome.evaluation.timeline,
                    {.name = outcome.scenario->name,
                     .device = outcome.scenario->step.device,
                     .gradient_bytes = outcome.scenario->step.gradient_bytes});
    }
    file.close();
    if (!file) {
        fmt::print(stderr, "{}: error: cannot be written\n", path);
        return failed;
    }
    return done;
}

// Several jobs on one network: a table of what they cost each other, and a report of each.
int run_jobs(const Scenario& scenario, const RunOptions& options) {
    const auto evaluations = evaluate_jobs(scenario.jobs, scenario.graph,
                                           {.links = scenario.links,
                                            .changes = scenario.changes,
                                            .quantum = scenario.quantum,
                                            .audit = options.audit});
    if (!evaluations) {
        fmt::print(stderr, "{}: error: {}\n", scenario.name, evaluations.error().what);
        return failed;
    }
    std::vector<Report> reports;
    for (std::size_t i = 0; i < scenario.jobs.size(); ++i) {
        reports.push_back({scenario.jobs[i].name, scenario.jobs[i].step, scenario.graph,
                           scenario.links, std::nullopt, (*evaluations)[i].evaluation});
    }
    const JobsReport report{scenario.name, reports, *evaluations};
    if (options.json) {
        std::cout << to_json(report).dump(2) << "\n";
    } else {
        std::cout << to_text(report);
    }
    return std::cout.flush() ? done : failed;
}

}  // namespace

int run_command(const RunOptions& options) {
    const auto loaded = load(options.scenarios);
    if (!loaded) return bad_input;
    const std::vector<Scenario>& scenarios = loaded->scenarios;
    if (!options.trace.empty() && scenarios.size() > 1) {
        return refuse({"--trace", fmt::format("writes one run, but there are {} scenarios",
                                              scenarios.size())});
    }

    if (const Scenario* shared = find_jobs(scenarios)) {
        if (scenarios.size() == 1 && options.trace.empty()) return run_jobs(*shared, options);
        return refuse({shared->name, scenarios.size() > 1
                                         ? "a file of jobs is run alone, not beside other scenarios"
                                         : "--trace writes one job's run, but there are several"});
    }

    std::vector<Outcome> outcomes;
    {
        Progress progress(scenarios.size());
        for (const Scenario& scenario : scenarios) {
            progress.next(scenario.name);
            // A trace shows every device.
            Result<Evaluation> evaluation = evaluate(scenario.step, scenario.graph,
                                                     {.links = scenario.links,
                                                      .changes = scenario.changes,
                                                      .quantum = scenario.quantum,
                                                      .audit = options.audit,
                                                      .fold = options.fold && options.trace.empty(),
                                                      .uncertainty = !loaded->is_what_if});
            if (!evaluation) {
                fmt::print(stderr, "{}: error: {}\n", scenario.name, evaluation.error().what);
                return failed;
            }
            if (scenarios.size() > 1) forget_timeline(*evaluation);
            outcomes.push_back({&scenario, std::move(*evaluation)});
        }
    }
    if (!options.trace.empty()) {
        if (const int code = write_trace_file(options.trace, outcomes.front()); code != done) {
            return code;
        }
    }

    std::vector<Report> reports;
    for (const Outcome& outcome : outcomes) reports.push_back(outcome.report());
    if (options.json) {
        nlohmann::ordered_json all = nlohmann::ordered_json::array();
        for (const Report& report : reports) all.push_back(to_json(report));
        std::cout << (reports.size() == 1 ? all.front() : all).dump(2) << "\n";
    } else if (reports.size() == 1) {
        std::cout << to_text(reports.front());
    } else if (loaded->is_what_if) {
        std::cout << comparison_text(reports);
    } else {
        std::cout << table_text(reports);
    }
    return std::cout.flush() ? done : failed;
}

int traffic_command(const ScenarioOptions& options, bool json) {
    const auto loaded = load(options);
    if (!loaded) return bad_input;
    if (const Scenario* shared = find_jobs(loaded->scenarios)) return refuse_jobs(*shared);
    nlohmann::ordered_json all = nlohmann::ordered_json::array();
    for (const Scenario& scenario : loaded->scenarios) {
        const Result<Evaluation> evaluation = evaluate(scenario.step, scenario.graph,
                                                       {.links = scenario.links,
                                                        .changes = scenario.changes,
                                                        .quantum = scenario.quantum,
                                                        .audit = false});
        if (!evaluation) {
            fmt::print(stderr, "{}: error: {}\n", scenario.name, evaluation.error().what);
            return failed;
        }
        const Report report{scenario.name,  scenario.step, scenario.graph,
                            scenario.links, std::nullopt,  *evaluation};
        if (json) {
            all.push_back({{"name", scenario.name}, {"traffic", traffic_json(report)}});
        } else {
            std::cout << scenario.name << "\n" << traffic_text(report);
        }
    }
    if (json) std::cout << (all.size() == 1 ? all.front() : all).dump(2) << "\n";
    return std::cout.flush() ? done : failed;
}

}  // namespace fourfold
