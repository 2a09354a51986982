#pragma once

// What people and programs read of a run: one screen of text, a table of several, JSON.

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>

#include "results/evaluate.hpp"
#include "results/jobs.hpp"

namespace fourfold {

/// A run and what it was of. All is borrowed.
struct Report {
    const std::string& name;
    const TrainingStep& step;
    const Graph& graph;
    LinkModel links;
    std::optional<Duration> published;  // measured step time
    const Evaluation& evaluation;
};

/// One screen: configuration, speed, where the time goes, traffic, warnings.
std::string to_text(const Report& report);

/// The traffic table alone.
std::string traffic_text(const Report& report);

/// A row each; with published step times the errors and their mean.
std::string table_text(std::span<const Report> reports);

/// A run of several jobs.
struct JobsReport {
    const std::string& name;
    std::span<const Report> jobs;
    std::span<const JobEvaluation> evaluations;
};

/// A table of what the jobs cost each other, and a screen for each.
std::string to_text(const JobsReport& report);
nlohmann::ordered_json to_json(const JobsReport& report);

/// A row each, against the first: what changes, and in which class of time.
std::string comparison_text(std::span<const Report> reports);

/// Keys as in the README ("--json").
nlohmann::ordered_json to_json(const Report& report);
nlohmann::ordered_json traffic_json(const Report& report);

}  // namespace fourfold
