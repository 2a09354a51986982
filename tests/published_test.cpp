// The published runs that ship as scenarios, predicted against measured. The bounds are the
// project's promise for these tables, not the errors of the day.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include "results/evaluate.hpp"
#include "scenarios/what_if.hpp"

using namespace fourfold;

namespace {

const std::filesystem::path published = FOURFOLD_SOURCE_DIR "/scenarios/published";

Scenario load(const std::filesystem::path& file, const Catalog& catalog) {
    auto scenarios = load_scenarios(file, {}, catalog);
    REQUIRE_MESSAGE(scenarios, to_text(scenarios.error()));
    return std::move(scenarios->front());
}

struct Errors {
    double mean = 0, largest = 0;
    int rows = 0, covered = 0;
};

Errors errors_of(const std::string& folder) {
    const auto catalog = embedded_catalog();
    REQUIRE(catalog);
    Errors errors;
    for (const auto& entry : std::filesystem::directory_iterator(published / folder)) {
        const Scenario scenario = load(entry.path(), *catalog);
        const auto evaluation = evaluate(scenario.step, scenario.graph, {.uncertainty = true});
        REQUIRE_MESSAGE(evaluation, evaluation.error().what);
        REQUIRE(evaluation->uncertainty.has_value());
        const Duration measured = scenario.published->step_time;
        const double error =
            std::abs(to_seconds(evaluation->measures.step_time) / to_seconds(measured) - 1);
        errors.mean += error;
        errors.largest = std::max(errors.largest, error);
        ++errors.rows;
        const Uncertainty& known = *evaluation->uncertainty;
        if (known.low <= measured && measured <= known.high) ++errors.covered;
    }
    errors.mean /= errors.rows;
    return errors;
}

}  // namespace

TEST_CASE("Step times of recomputation runs are within 4 % and 2.5 % on average") {
    const Errors errors = errors_of("korthikanti");
    CHECK(errors.rows == 6);
    CHECK(errors.mean < 0.025);
    CHECK(errors.largest < 0.04);
    CHECK(errors.covered == errors.rows);
}

TEST_CASE("Step times of the Megatron runs of 2021 are within 10 % and 6 % on average") {
    const Errors errors = errors_of("megatron_sc21");
    CHECK(errors.rows == 7);
    CHECK(errors.mean < 0.06);
    CHECK(errors.largest < 0.10);
}

TEST_CASE("Step times of the zero-bubble runs are within 12 % and 4.5 % on average") {
    const Errors errors = errors_of("zero_bubble");
    CHECK(errors.rows == 24);
    CHECK(errors.mean < 0.045);
    CHECK(errors.largest < 0.12);
}

TEST_CASE("Step times of dense models on DGX H100 are within 10 % and 4 % on average") {
    const Errors errors = errors_of("dgxc_h100");
    CHECK(errors.rows == 24);
    CHECK(errors.mean < 0.04);
    CHECK(errors.largest < 0.10);
}

TEST_CASE("Step times of FSDP are within 7 % on A100 and 11 % on H100 on average") {
    CHECK(errors_of("fsdp_a100").mean < 0.07);
    CHECK(errors_of("fsdp_h100").mean < 0.11);
}

TEST_CASE("Every scenario that ships loads") {
    const auto catalog = embedded_catalog();
    REQUIRE(catalog);
    int files = 0;
    for (const char* folder : {"scenarios/course", "scenarios/published"}) {
        for (const auto& entry : std::filesystem::recursive_directory_iterator(
                 std::filesystem::path(FOURFOLD_SOURCE_DIR) / folder)) {
            if (!entry.is_regular_file()) continue;
            load(entry.path(), *catalog);
            ++files;
        }
    }
    CHECK(files >= 100);
}
