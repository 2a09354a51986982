#include "results/idle_curves.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "results/curves.hpp"

namespace fourfold {
namespace {

IdleQuestion question_of(std::string_view schedule, std::vector<std::uint32_t> pipeline,
                         std::vector<std::uint32_t> chunks,
                         std::vector<std::uint32_t> micro_batches) {
    const auto found = find_schedule(schedule);
    REQUIRE(found.has_value());
    IdleQuestion question;
    question.schedules = {*found};
    question.pipeline = std::move(pipeline);
    question.chunks = std::move(chunks);
    question.micro_batches = std::move(micro_batches);
    question.forward = question.input_gradient = question.weight_gradient = 1_ms;
    return question;
}

std::vector<IdleRow> rows_of(const IdleQuestion& question) {
    auto rows = idle_curves(question);
    REQUIRE_MESSAGE(rows.has_value(), (rows ? "" : rows.error().what));
    return std::move(*rows);
}

IdleRow row_of(const IdleQuestion& question) {
    const std::vector<IdleRow> rows = rows_of(question);
    REQUIRE(rows.size() == 1);
    return rows.front();
}

TEST_CASE("4 ranks, 8 micro-batches: the idle fractions of the books") {
    // Units of one chunk's forward: makespans 33, 33, 57, 81, 105, 27, 51 of which
    // 24 * chunks are work.
    const struct {
        std::string_view schedule;
        std::uint32_t chunks;
        int makespan;
        double idle;
    } golden[] = {{"gpipe", 1, 33, 3.0 / 11},
                  {"1f1b", 1, 33, 3.0 / 11},
                  {"interleaved_1f1b", 2, 57, 3.0 / 19},
                  {"interleaved_1f1b", 3, 81, 1.0 / 9},
                  {"interleaved_1f1b", 4, 105, 3.0 / 35},
                  {"zb1p", 1, 27, 1.0 / 9},
                  {"zb1p", 2, 51, 1.0 / 17}};
    for (const auto& [schedule, chunks, makespan, idle] : golden) {
        CAPTURE(schedule);
        CAPTURE(chunks);
        IdleQuestion question = question_of(schedule, {4}, {chunks}, {8});
        question.forward = question.input_gradient = question.weight_gradient = 1_ms * chunks;
        const IdleRow row = row_of(question);
        CHECK(row.makespan == 1_ms * makespan);
        CHECK(row.idle_fraction == doctest::Approx(idle).epsilon(1e-12));
        REQUIRE(row.closed_form_idle.has_value());
        CHECK(*row.difference == 0);
        CHECK(row.ideal == 24_ms * chunks);
        CHECK(row.max_rank_span <= row.makespan);
    }
}

TEST_CASE("where a closed form holds the simulated curve is on it exactly") {
    for (const Schedule* schedule : schedules()) {
        IdleQuestion question =
            question_of(schedule->name, {1, 2, 3, 4, 8}, {1, 2, 3}, {1, 2, 3, 4, 7, 8, 16, 24});
        question.forward = 1'000'003_ns;
        question.input_gradient = 1'100'001_ps;
        question.weight_gradient = 900'001_ps;
        for (const Duration hop : {0_us, 1_ns, 20_us}) {
            question.hop_latency = hop;
            std::size_t with_closed_form = 0, ran = 0;
            for (const IdleRow& row : rows_of(question)) {
                CAPTURE(row.schedule);
                CAPTURE(row.shape.ranks);
                CAPTURE(row.shape.chunks);
                CAPTURE(row.shape.micro_batches);
                if (!row.refused.empty()) continue;
                ++ran;
                CHECK(row.idle_fraction >= 0);
                CHECK(row.idle_fraction < 1);
                if (!row.difference) continue;
                ++with_closed_form;
                CHECK(*row.difference == 0);
            }
            CHECK(ran > 0);
            if (hop == 0_us) CHECK(with_closed_form > 0);
        }
    }
}

TEST_CASE("1f1b pays the hop on every round: 2 c floor((p - 1)(m + p - 1) / p)") {
    // 4 ranks, 8 micro-batches: 33 ms and 2 * floor(3 * 11 / 4) = 16 hops of 10 us. gpipe: 6 hops.
    IdleQuestion question = question_of("1f1b", {4}, {1}, {8});
    question.hop_latency = 10_us;
    CHECK(row_of(question).makespan == 33_ms + 160_us);
    CHECK(*row_of(question).difference == 0);
    question.schedules = {*find_schedule("gpipe")};
    CHECK(row_of(question).makespan == 33_ms + 60_us);
}

TEST_CASE("a chunk's time is rounded up, in the simulation and in the closed form alike") {
    // 1 ms / 3 = 333,333,333 and a third ps; makespan (8 * 3 + 3) * 3 * 333,333,334 ps.
    const IdleRow row = row_of(question_of("interleaved_1f1b", {4}, {3}, {8}));
    CHECK(row.makespan == Duration(std::int64_t{27} * 3 * 333'333'334));
    CHECK(*row.difference == 0);
}

TEST_CASE("a lone rank is never idle") {
    const IdleRow row = row_of(question_of("1f1b", {1}, {1}, {8}));
    CHECK(row.idle_fraction == 0);
    CHECK(row.makespan == row.ideal);
}

TEST_CASE("idle.csv has exact seconds, and the reason where a schedule refuses") {
    std::vector<IdleRow> rows = rows_of(question_of("1f1b", {4}, {1}, {8}));
    const auto refused = rows_of(question_of("interleaved_1f1b", {4}, {2}, {5}));
    rows.insert(rows.end(), refused.begin(), refused.end());
    std::ostringstream out;
    write_idle_csv(out, rows);
    CHECK(out.str() ==
          "schedule,pipeline,chunks,micro_batches,makespan_s,ideal_s,idle_fraction,"
          "closed_form_idle,difference,max_rank_span_s,refused\n"
          "1f1b,4,1,8,0.033,0.024,0.272727272727,0.272727272727,0,0.033,\n"
          "interleaved_1f1b,4,2,5,,,,,,,\"interleaved_1f1b takes micro-batches in groups of 4, one "
          "for each rank, and 5 micro-batches leave a last group of 1, in which ranks can wait for "
          "each other for ever; use a multiple of 4 micro-batches\"\n");
}

TEST_CASE("where no closed form is known its fields are empty") {
    IdleQuestion question = question_of("zb1p", {4}, {1}, {8});
    question.hop_latency = 10_us;
    std::ostringstream out;
    write_idle_csv(out, rows_of(question));
    CHECK(out.str().find(",,,") != std::string::npos);
}

TEST_CASE("the batch that keeps idle under 10 % is the first from which all do") {
    // (p - 1) / (m + p - 1) < 1 / 10 from m > 9 (p - 1) on: 28 for 4 ranks, 27 is 10 % exactly.
    std::vector<std::uint32_t> all;
    for (std::uint32_t m = 1; m <= 32; ++m) all.push_back(m);
    CHECK(batch_below(rows_of(question_of("1f1b", {4}, {1}, all)), 0.1) == 28);
    CHECK(batch_below(rows_of(question_of("1f1b", {8}, {1}, all)), 0.1) == std::nullopt);
}

TEST_CASE("a negative or endless time is refused by its name") {
    IdleQuestion question = question_of("1f1b", {4}, {1}, {8});
    question.hop_latency = Duration(-1);
    CHECK(idle_curves(question).error().where == "hop_latency");
    question.hop_latency = {};
    question.forward = duration_limit;
    CHECK(idle_curves(question).error().where == "forward");
}

TEST_CASE("idle.gp draws idle.svg and idle.png beside itself") {
    const auto directory = std::filesystem::temp_directory_path() / "fourfold_idle_curves_test";
    std::filesystem::remove_all(directory);
    std::filesystem::create_directories(directory);
    IdleQuestion question = question_of("gpipe", {2, 4, 8}, {1, 2}, {1, 2, 4, 8, 16, 32});
    question.schedules.assign(schedules().begin(), schedules().end());
    const std::vector<IdleRow> rows = rows_of(question);
    std::ofstream csv(directory / "idle.csv");
    write_idle_csv(csv, rows);
    csv.close();
    std::ofstream script(directory / "idle.gp");
    write_idle_gnuplot(script, rows);
    script.close();
    const auto drawn = run_gnuplot(directory, "idle.gp");
    REQUIRE_MESSAGE(drawn.has_value(), (drawn ? "" : drawn.error().what));
    if (*drawn == Drawing::done) {
        CHECK(std::filesystem::file_size(directory / "idle.svg") > 1000);
        CHECK(std::filesystem::file_size(directory / "idle.png") > 1000);
        CHECK_FALSE(run_gnuplot(directory, "nothing.gp").has_value());
    }
    std::filesystem::remove_all(directory);
}

TEST_CASE("numbers and texts of curves are exact") {
    CHECK(exact_seconds({}) == "0");
    CHECK(exact_seconds(1_ps) == "0.000000000001");
    CHECK(exact_seconds(1500_ms) == "1.5");
    CHECK(exact_seconds(2000_ms) == "2");
    CHECK(exact_seconds(Duration(-1)) == "-0.000000000001");
    CHECK(twelve_digits(3.0 / 11) == "0.272727272727");
    CHECK(twelve_digits(0) == "0");
    CHECK(csv_field("plain") == "plain");
    CHECK(csv_field("with \"quotes\", and comma") == "\"with \"\"quotes\"\", and comma\"");
    CHECK(gnuplot_text("a\"b\\c") == "\"a\\\"b\\\\c\"");
}

}  // namespace
}  // namespace fourfold
