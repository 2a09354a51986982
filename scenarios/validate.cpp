// `fourfold validate`: every scenario whose step time was measured, simulated and compared.

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <iostream>
#include <mutex>
#include <nlohmann/json.hpp>
#include <system_error>
#include <thread>

#include "results/evaluate.hpp"
#include "results/validation.hpp"
#include "scenarios/arguments.hpp"
#include "scenarios/commands.hpp"
#include "scenarios/drawing.hpp"
#include "scenarios/loading.hpp"
#include "scenarios/progress.hpp"

namespace fourfold {
namespace {

namespace fs = std::filesystem;

// All .yaml below a folder, by name; what is no folder stands for itself.
Result<std::vector<fs::path>> scenario_files(const std::string& name) {
    std::error_code error;
    if (!fs::is_directory(name, error)) return std::vector<fs::path>{name};
    std::vector<fs::path> files;
    for (fs::recursive_directory_iterator entry(name, error), end; !error && entry != end;
         entry.increment(error)) {
        if (entry->path().extension() == ".yaml") files.push_back(entry->path());
    }
    if (error) return problem(name, fmt::format("cannot be read: {}", error.message()));
    std::ranges::sort(files);
    return files;
}

// In the order given, each once.
Result<std::vector<std::string>> scenario_files(const std::vector<std::string>& names) {
    std::vector<std::string> all;
    for (const std::string& name : names) {
        const auto files = scenario_files(name);
        if (!files) return tl::unexpected(files.error());
        for (const fs::path& file : *files) {
            if (std::ranges::find(all, file.string()) == all.end()) all.push_back(file.string());
        }
    }
    return all;
}

struct Subject {
    const Scenario* scenario;
    std::string file;
};

// What a what-if file changes still has the published time of its base, which was not measured of
// it; and its base is a file of its own.
std::vector<Subject> measured_subjects(const Loaded& loaded) {
    std::vector<Subject> subjects;
    for (std::size_t i = 0; i < loaded.scenarios.size(); ++i) {
        const bool is_what_if = std::ranges::count(loaded.files, loaded.files[i]) > 1;
        if (!loaded.scenarios[i].published || is_what_if) continue;
        subjects.push_back({&loaded.scenarios[i], loaded.files[i]});
    }
    return subjects;
}

// The name that the scenario gives, or its folder's.
std::string group_of(const Subject& subject) {
    const std::string& named = subject.scenario->published->group;
    if (!named.empty()) return named;
    std::error_code error;
    fs::path file = fs::absolute(subject.file, error);
    if (error) file = subject.file;
    return file.lexically_normal().parent_path().filename().string();
}

// The evaluation, which can be large, ends here.
Result<ValidationRow> compare(const Subject& subject) {
    const Scenario& scenario = *subject.scenario;
    const TrainingStep& step = scenario.step;
    const Result<Evaluation> evaluation = evaluate(step, scenario.graph,
                                                   {.links = scenario.links,
                                                    .changes = scenario.changes,
                                                    .quantum = scenario.quantum,
                                                    .uncertainty = true});
    if (!evaluation) return tl::unexpected(evaluation.error());
    std::optional<Interval> interval;
    if (const auto& known = evaluation->uncertainty) interval = {known->low, known->high};
    return ValidationRow{.group = group_of(subject),
                         .name = scenario.name,
                         .file = subject.file,
                         .measured = scenario.published->step_time,
                         .predicted = evaluation->measures.step_time,
                         .interval = interval,
                         .devices = static_cast<std::int64_t>(evaluation->measures.devices),
                         .tensor = step.split.tensor,
                         .context = step.split.context,
                         .pipeline = step.split.pipeline,
                         .data = step.split.data,
                         .micro_batch = step.micro_batch,
                         .micro_batches = step.micro_batches()};
}

// In the order of the subjects, whichever ends first.
std::vector<Result<ValidationRow>> compare_all(const std::vector<Subject>& subjects,
                                               std::uint32_t jobs) {
    std::vector<Result<ValidationRow>> rows(subjects.size());
    Progress progress(subjects.size());
    std::mutex progress_mutex;
    std::atomic<std::size_t> next = 0;
    const auto work = [&] {
        for (std::size_t i = next++; i < subjects.size(); i = next++) {
            {
                const std::scoped_lock lock(progress_mutex);
                progress.next(subjects[i].scenario->name);
            }
            rows[i] = compare(subjects[i]);
        }
    };
    {
        std::vector<std::jthread> others;
        try {
            while (others.size() + 1 < std::min<std::size_t>(jobs, subjects.size())) {
                others.emplace_back(work);
            }
        } catch (const std::system_error&) {
            // The system gives no more threads: those that run do the work.
        }
        work();
    }
    return rows;
}

int draw_rows(std::span<const ValidationRow> rows, const fs::path& svg) {
    const fs::path script = fs::path(svg).replace_extension(".gp");
    const bool written = write_file(script, [&](std::ostream& out) {
        write_validation_gnuplot(out, rows, svg.filename().string());
    });
    return written ? draw(script) : failed;
}

}  // namespace

int validate_command(const ValidateOptions& options) {
    if (!options.plot.empty() && fs::path(options.plot).extension() != ".svg") {
        return refuse({"--plot", fmt::format("'{}' does not end in .svg", options.plot)});
    }
    const auto files = scenario_files(options.scenarios.files);
    if (!files) return refuse(files.error());
    ScenarioOptions scenarios = options.scenarios;
    scenarios.files = *files;
    const auto loaded = load(scenarios, FaultyFiles::leave_out);
    if (!loaded) return bad_input;
    const std::vector<Subject> subjects = measured_subjects(*loaded);
    if (subjects.empty()) {
        if (loaded->left_out > 0) return bad_input;
        return refuse({"",
                       "no scenario has a published step time to compare with; add for example "
                       "'published: {step_time: 24.8 s, source: its paper, table}'"});
    }
    if (const std::size_t skipped = loaded->scenarios.size() - subjects.size(); skipped > 0) {
        fmt::print(stderr, "{} of {} scenarios skipped: no published step time of their own\n",
                   skipped, loaded->scenarios.size());
    }

    if (loaded->left_out > 0) {
        fmt::print(stderr, "{} of {} files left out: they have mistakes\n", loaded->left_out,
                   files->size());
    }

    int code = loaded->left_out > 0 ? bad_input : done;
    std::vector<ValidationRow> rows;
    const std::vector<Result<ValidationRow>> compared = compare_all(subjects, options.jobs);
    for (std::size_t i = 0; i < compared.size(); ++i) {
        if (compared[i]) {
            rows.push_back(*compared[i]);
        } else {
            fmt::print(stderr, "{}: failed: {}\n", subjects[i].scenario->name,
                       compared[i].error().what);
            code = failed;
        }
    }

    if (options.json) {
        std::cout << validation_json(rows).dump(2) << "\n";
    } else if (!rows.empty()) {
        if (options.rows) std::cout << validation_rows_text(rows) << "\n";
        std::cout << validation_text(rows);
    }
    if (!std::cout.flush()) code = failed;
    if (!options.csv.empty() &&
        !write_file(options.csv, [&](std::ostream& out) { write_validation_csv(out, rows); })) {
        code = failed;
    }
    if (!options.plot.empty() && !rows.empty()) {
        const int drawn = draw_rows(rows, options.plot);
        if (code == done) code = drawn;
    }
    return code;
}

}  // namespace fourfold
