#include "results/ring_curves.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "results/curves.hpp"

namespace fourfold {
namespace {

RingQuestion question_of(std::vector<std::uint32_t> ranks) {
    RingQuestion question;
    for (const char* name : {"ring", "tree", "direct", "central"}) {
        question.algorithms.push_back(*find_algorithm(name));
    }
    question.ranks = std::move(ranks);
    question.bytes = 64_MiB;
    question.network = {.shape = *find_shape("switch"),
                        .link = {.bandwidth = 25_GBps, .latency = 5_us, .efficiency = 1.0},
                        .parameters = {}};
    return question;
}

TEST_CASE("every point of the ring curves lies on its closed form and above the bound") {
    RingQuestion question = question_of({1, 2, 3, 8, 24, 64});
    for (const LinkModel links : {LinkModel::flows, LinkModel::messages}) {
        question.links = links;
        const auto rows = ring_curves(question);
        REQUIRE(rows.has_value());
        CHECK(rows->size() == 4 * 6);
        for (const RingRow& row : *rows) {
            CAPTURE(row.algorithm);
            CAPTURE(row.ranks);
            CHECK(row.closed_form == row.time);
            CHECK(row.time >= row.bound);
        }
    }
}

TEST_CASE("nobody is in charge in a ring, and that is why it scales") {
    // From 8 ranks to 64 the central one serves 9 times as many (7 -> 63), a ring 9/8 of the bytes.
    const auto rows = ring_curves(question_of({8, 64}));
    REQUIRE(rows.has_value());
    std::map<std::string_view, std::vector<double>> times;
    for (const RingRow& row : *rows) times[row.algorithm].push_back(to_seconds(row.time));
    CHECK(times["central"][1] / times["central"][0] == doctest::Approx(9).epsilon(0.01));
    CHECK(times["ring"][1] / times["ring"][0] < 1.4);
    CHECK(times["central"][1] / times["ring"][1] > 50);
}

TEST_CASE("ring.csv has exact seconds") {
    RingQuestion question = question_of({1, 8});
    question.algorithms = {*find_algorithm("ring")};
    const auto rows = ring_curves(question);
    REQUIRE(rows.has_value());
    std::ostringstream out;
    write_ring_csv(out, *rows);
    // The bound: 14/8 * 64 MiB at 25 GB/s and 10 us.
    CHECK(out.str() ==
          "algorithm,ranks,time_s,closed_form_s,bound_s,busbw_bytes_per_s,messages\n"
          "ring,1,0,0,0,0,0\n"
          "ring,8,0.00483762048,0.00483762048,0.00470762048,24276503807.1,112\n");
}

TEST_CASE("where no closed form holds its field is empty") {
    RingQuestion question = question_of({8});
    question.algorithms = {*find_algorithm("tree")};
    question.network.shape = *find_shape("ring");
    const auto rows = ring_curves(question);
    REQUIRE(rows.has_value());
    CHECK_FALSE(rows->front().closed_form.has_value());
    std::ostringstream out;
    write_ring_csv(out, *rows);
    CHECK(out.str().find(",,") != std::string::npos);
}

TEST_CASE("ring.gp draws ring.svg and ring.png beside itself") {
    const auto directory = std::filesystem::temp_directory_path() / "fourfold_ring_curves_test";
    std::filesystem::remove_all(directory);
    std::filesystem::create_directories(directory);
    const RingQuestion question = question_of({1, 2, 4, 8, 16});
    const auto rows = ring_curves(question);
    REQUIRE(rows.has_value());
    std::ofstream csv(directory / "ring.csv");
    write_ring_csv(csv, *rows);
    csv.close();
    std::ofstream script(directory / "ring.gp");
    write_ring_gnuplot(script, question, *rows);
    script.close();
    const auto drawn = run_gnuplot(directory, "ring.gp");
    REQUIRE_MESSAGE(drawn.has_value(), (drawn ? "" : drawn.error().what));
    if (*drawn == Drawing::done) {
        CHECK(std::filesystem::file_size(directory / "ring.svg") > 1000);
        CHECK(std::filesystem::file_size(directory / "ring.png") > 1000);
    }
    std::filesystem::remove_all(directory);
}

}  // namespace
}  // namespace fourfold
