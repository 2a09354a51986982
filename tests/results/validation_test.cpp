#include "results/validation.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "results/curves.hpp"

namespace fourfold {
namespace {

ValidationRow row_of(std::string group, std::string name, Duration measured, Duration predicted) {
    ValidationRow row;
    row.file = group + "/" + name + ".yaml";
    row.group = std::move(group);
    row.name = std::move(name);
    row.measured = measured;
    row.predicted = predicted;
    row.devices = 64;
    row.micro_batch = 2;
    return row;
}

// Group `a` has errors of +10, -10, +20, 0, 0, -6, +5 and -40 %; `b` is one row among them, +20 %.
std::vector<ValidationRow> nine_rows() {
    std::vector<ValidationRow> rows = {
        row_of("a", "r1", 1000_ms, 1100_ms),   row_of("a", "r2", 2000_ms, 1800_ms),
        row_of("a", "r3", 4000_ms, 4800_ms),   row_of("a", "r4", 4000_ms, 4000_ms),
        row_of("b", "lone", 1000_ms, 1200_ms), row_of("a", "r5", 5000_ms, 5000_ms),
        row_of("a", "r6", 10000_ms, 9400_ms),  row_of("a", "r7", 20000_ms, 21000_ms),
        row_of("a", "r8", 25000_ms, 15000_ms)};
    for (const std::size_t i : {3, 5, 6, 7, 8}) rows[i].tensor = 8;
    rows[8].pipeline = 4;
    rows[8].devices = 1024;
    // Inside, at the lower end, outside, at the upper end.
    rows[0].interval = {900_ms, 1200_ms};
    rows[1].interval = {2000_ms, 2100_ms};
    rows[2].interval = {4100_ms, 5000_ms};
    rows[8].interval = {9000_ms, 25000_ms};
    return rows;
}

TEST_CASE("a percentile is interpolated linearly between two values") {
    CHECK(percentile({7}, 0.9) == 7);
    CHECK(percentile({4, 1, 3, 2}, 0.5) == 2.5);
    CHECK(percentile({4, 1, 3, 2}, 0.9) == doctest::Approx(3.7));  // 0.7 of the way from 3 to 4
    CHECK(percentile({4, 1, 3, 2}, 1) == 4);
}

TEST_CASE("the rank correlation sees order alone, and shares ranks among equals") {
    const std::vector<double> rising = {1, 2, 3}, steep = {1, 10, 1000}, falling = {3, 2, 1};
    CHECK(rank_correlation(rising, steep) == 1);
    CHECK(rank_correlation(rising, falling) == -1);
    // Ranks 1, 2.5, 2.5 against 1, 2, 3: squares 1.5 and 2, products 1 + 0 + 0.5.
    const std::vector<double> tied = {5, 6, 6};
    CHECK(*rank_correlation(tied, rising) == doctest::Approx(1.5 / std::sqrt(3.0)));
    const std::vector<double> equal = {4, 4, 4}, one = {1};
    CHECK(rank_correlation(equal, rising) == std::nullopt);
    CHECK(rank_correlation(one, one) == std::nullopt);
}

TEST_CASE("a summary of eight rows, by hand") {
    const ValidationGroup group = groups_of(nine_rows()).front();
    const ValidationSummary summary = summarize(group.name, group.rows);
    CHECK(summary.group == "a");
    CHECK(summary.rows == 8);
    CHECK(summary.mean == doctest::Approx(0.91 / 8));
    CHECK(summary.median == doctest::Approx(0.08));  // 0 0 5 6 | 10 10 20 40
    CHECK(summary.p90 == doctest::Approx(0.26));     // 0.3 of the way from 20 to 40
    CHECK(summary.max == doctest::Approx(0.40));
    CHECK(summary.max_name == "r8");
    CHECK(summary.bias == doctest::Approx(-0.21 / 8));
    // Measured ranks 1 2 3.5 3.5 5 6 7 8, predicted 1 2 4 3 5 6 8 7, both less 4.5: squares 41.5
    // and 42, products 12.25 + 6.25 + 0.5 + 1.5 + 0.25 + 2.25 + 8.75 + 8.75.
    CHECK(*summary.rank_correlation == doctest::Approx(40.5 / std::sqrt(41.5 * 42)));
    CHECK(*summary.coverage == 0.75);
}

TEST_CASE("one row has no rank correlation, rows without intervals no coverage") {
    const ValidationGroup group = groups_of(nine_rows()).back();
    const ValidationSummary summary = summarize(group.name, group.rows);
    CHECK(summary.rows == 1);
    CHECK(summary.median == doctest::Approx(0.20));
    CHECK(summary.p90 == doctest::Approx(0.20));
    CHECK(summary.rank_correlation == std::nullopt);
    CHECK(summary.coverage == std::nullopt);
}

TEST_CASE("the table, the worst rows, and the bias by attribute where a group has eight rows") {
    // All: 111 % over 9; 0 0 5 6 10 10 20 20 40, 0.2 of the way from 20 to 40; -1 % over 9; ranks
    // less 5: squares 59 and 60, products 58.
    // Bias of tensor 1: (10 - 10 + 20) / 3; of tensor 8: (0 + 0 - 6 + 5 - 40) / 5; of pipeline 1
    // and 64 devices: (10 - 10 + 20 + 0 + 0 - 6 + 5) / 7. All micro-batches are of one size.
    CHECK(
        validation_text(nine_rows()) ==
        "  group  rows    mean  median    90 %     max     bias   rank  covered  worst\n"
        "  a         8  11.4 %   8.0 %  26.0 %  40.0 %   -2.6 %  0.970   75.0 %  r8\n"
        "  b         1  20.0 %  20.0 %  20.0 %  20.0 %  +20.0 %      -        -  lone\n"
        "  all       9  12.3 %  10.0 %  24.0 %  40.0 %   -0.1 %  0.975   75.0 %  r8\n"
        "  mean to max: of the absolute errors; bias: mean of the signed errors (+: predicted too "
        "slow);\n"
        "  rank: Spearman's correlation; covered: measurements inside their 90 % interval\n"
        "\n"
        "  a\n"
        "    worst         -40.0 %  r8\n"
        "                  +20.0 %  r3\n"
        "                  +10.0 %  r1\n"
        "    tensor       1: +6.7 % (3), 8: -8.2 % (5)\n"
        "    pipeline     1: +2.7 % (7), 4: -40.0 % (1)\n"
        "    devices      64: +2.7 % (7), 1024: -40.0 % (1)\n"
        "\n"
        "  b\n"
        "    worst         +20.0 %  lone\n");
}

TEST_CASE("a line for each row, with its interval if it has one") {
    const std::vector<ValidationRow> rows = nine_rows();
    CHECK(validation_rows_text(std::span(rows).subspan(2, 2)) ==
          "  scenario  measured  predicted    error  90 % interval\n"
          "  r3             4 s      4.8 s  +20.0 %   4.1 s .. 5 s\n"
          "  r4             4 s        4 s   +0.0 %              -\n");
}

TEST_CASE("the CSV has exact seconds, and empty fields where there is no interval") {
    std::vector<ValidationRow> rows = nine_rows();
    rows[3].name = "r4, again";
    rows[3].predicted = 4000_ms + 1_ps;
    rows[3].data = 2;
    rows[3].context = 4;
    rows[3].micro_batches = 16;
    std::ostringstream out;
    write_validation_csv(out, std::span(rows).subspan(2, 2));
    CHECK(out.str() ==
          "group,name,file,measured_s,predicted_s,error,low_s,high_s,devices,tensor,context,"
          "pipeline,data,micro_batch,micro_batches\n"
          "a,r3,a/r3.yaml,4,4.8,0.2,4.1,5,64,1,1,1,1,2,1\n"
          "a,\"r4, again\",a/r4.yaml,4,4.000000000001,2.50022225146e-13,,,64,8,4,1,2,2,16\n");
}

TEST_CASE("the JSON has fractions, seconds, and null for what there is none of") {
    const nlohmann::ordered_json json = validation_json(nine_rows());
    REQUIRE(json["groups"].size() == 2);
    REQUIRE(json["rows"].size() == 9);
    CHECK(json["groups"][1].dump() ==
          R"({"group":"b","rows":1,"mape":0.19999999999999996,"median":0.19999999999999996,)"
          R"("p90":0.19999999999999996,"max":0.19999999999999996,"max_name":"lone",)"
          R"("bias":0.19999999999999996,"rank_correlation":null,"coverage":null})");
    CHECK(json["all"]["group"] == "all");
    CHECK(json["all"]["coverage"] == 0.75);
    CHECK(json["rows"][1].dump() ==
          R"({"group":"a","name":"r2","file":"a/r2.yaml","measured_s":2.0,"predicted_s":1.8,)"
          R"("error":-0.09999999999999998,"low_s":2.0,"high_s":2.1,"devices":64,"tensor":1,)"
          R"("context":1,"pipeline":1,"data":1,"micro_batch":2,"micro_batches":1})");
    CHECK(json["rows"][3]["low_s"].is_null());
    CHECK(validation_json({}).dump() == R"({"groups":[],"all":null,"rows":[]})");
}

TEST_CASE("the gnuplot script draws whatever groups are called") {
    const auto directory = std::filesystem::temp_directory_path() / "fourfold_validation_test";
    std::filesystem::remove_all(directory);
    std::filesystem::create_directories(directory);
    std::vector<ValidationRow> rows = nine_rows();
    rows[4].group = "a_group \"of\" one\\";
    std::ofstream script(directory / "v.gp");
    write_validation_gnuplot(script, rows, "v.svg");
    script.close();
    const auto drawn = run_gnuplot(directory, "v.gp");
    REQUIRE_MESSAGE(drawn.has_value(), (drawn ? "" : drawn.error().what));
    if (*drawn == Drawing::done) CHECK(std::filesystem::file_size(directory / "v.svg") > 1000);
    std::filesystem::remove_all(directory);
}

}  // namespace
}  // namespace fourfold
