// `fourfold calibrate` as a user meets it: tables in, a device and a link that the catalog reads
// out.

#include "results/calibrate.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>

#include "scenarios/catalog.hpp"
#include "tests/support/program.hpp"

namespace fourfold {
namespace {

using nlohmann::json;

Catalog shipped() {
    auto catalog = embedded_catalog();
    REQUIRE_MESSAGE(catalog.has_value(), to_text(catalog.error()));
    return std::move(*catalog);
}

/// A table of what a device and a link of these constants would measure.
std::string measured_table(const Device& device, const LinkConstants& link) {
    std::string text = "kernel,m,n,k,bytes,ranks,time_us\n";
    for (const std::int64_t m : {1024, 4096}) {
        for (const std::int64_t n : {576, 5120, 12'288}) {
            for (const std::int64_t k : {128, 512, 2048, 8192}) {
                text += fmt::format("gemm,{},{},{},,,{}\n", m, n, k,
                                    1e6 * gemm_time({m, n, k, 1}, device));
            }
        }
    }
    for (std::int64_t bytes = 1 << 16; bytes <= 1 << 30; bytes *= 4) {
        text += fmt::format("memory,,,,{},,{}\n", bytes,
                            1e6 * memory_time(static_cast<double>(bytes), device));
        text += fmt::format("point_to_point,,,,{},,{}\n", bytes, 1e6 * message_time({bytes}, link));
        for (const std::uint32_t ranks : {2, 4, 8}) {
            text += fmt::format("all_reduce,,,,{},{},{}\n", bytes, ranks,
                                1e6 * all_reduce_time(ranks, {bytes}, link));
        }
    }
    return text;
}

void check_refused(const std::string& arguments, const std::string& message) {
    const Finished run = run_program("calibrate " + arguments);
    CHECK(run.exit_code == 2);
    CHECK(run.out.empty());
    CHECK(run.err == message);
}

/// The folder of published measurements, or empty after saying that the test does nothing.
std::string published_data() {
    const char* folder = std::getenv("FOURFOLD_PUBLISHED_DATA");
    if (folder == nullptr) MESSAGE("skipped: FOURFOLD_PUBLISHED_DATA names no folder");
    return folder == nullptr ? "" : folder;
}

}  // namespace

TEST_CASE("calibrate writes a device and a link that the catalog reads, with their sources") {
    const Catalog catalog = shipped();
    Device device = *find_device(catalog, "a100-sxm-80gb");
    device.memory_efficiency = 0.8;
    device.gemm.cap = 0.7;
    const LinkKind nvlink3 = *find_link(catalog, "nvlink3");
    LinkConstants link{nvlink3.spec, nvlink3.costs};
    link.spec.efficiency = 0.7;
    link.costs.message_overhead = 20_us;

    const Folder folder;
    std::filesystem::create_directories(folder.file("devices"));
    std::filesystem::create_directories(folder.file("links"));
    const std::string table = folder.file("kernels.csv");
    const std::string mine = folder.file("devices/mine.yaml"), my = folder.file("links/my.yaml");
    write_text(table, measured_table(device, link));
    const std::string arguments = "calibrate " + table + " --device a100-sxm-80gb --out " + mine +
                                  " --link nvlink3 --link-out " + my;
    const Finished run = run_program(arguments);
    REQUIRE_MESSAGE(run.exit_code == 0, run.err);
    CHECK(run.out.starts_with("memory: 8 rows, 8 different sizes, of kernels.csv\n"));
    CHECK(run.out.ends_with("\nwrote " + mine + ": a100-sxm-80gb with these constants\nwrote " +
                            my + ": nvlink3 with these constants\n"));

    const auto with_mine = with_directory(catalog, folder.file(""));
    REQUIRE_MESSAGE(with_mine.has_value(), to_text(with_mine.error()));
    const Device read = *find_device(*with_mine, "mine");
    CHECK(read.name == "mine");
    CHECK(read.fitted);
    CHECK(read.peak == device.peak);
    CHECK(read.multiprocessors == device.multiprocessors);
    CHECK(read.gemm.power == device.gemm.power);
    CHECK(read.memory_efficiency == doctest::Approx(0.8).epsilon(0.01));
    CHECK(read.gemm.cap == doctest::Approx(0.7).epsilon(0.01));
    const LinkKind read_link = *find_link(*with_mine, "my");
    CHECK(read_link.name == "my");
    CHECK(read_link.spec.bandwidth == link.spec.bandwidth);
    CHECK(read_link.spec.efficiency == doctest::Approx(0.7).epsilon(0.01));
    CHECK(to_seconds(read_link.costs.message_overhead) == doctest::Approx(20e-6).epsilon(0.02));

    const std::string text = read_text(mine);
    CHECK(
        text.starts_with("# a100-sxm-80gb with constants that fourfold calibrate fitted on "
                         "measured kernels.\nname: \"mine\"\npeak: 312 TFLOP/s\n"));
    CHECK(text.find("\n  memory_efficiency: \"kernel-fit on 8 rows of kernels.csv, mean error ") !=
          std::string::npos);
    CHECK(text.find("\n  fitted: \"kernel-fit: as gemm\"\n") != std::string::npos);
    CHECK(text.find("\n  peak: \"sheet, ") != std::string::npos);

    // The same rows make the same bytes; JSON says the same; what was written can be a base.
    const Finished again = run_program(arguments + " --json");
    CHECK(read_text(mine) == text);
    const json report = json::parse(again.out);
    CHECK(report["rows_not_used"] == 0);
    CHECK(report["files"][0]["file"] == mine);
    CHECK(report["files"][0]["base"] == "a100-sxm-80gb");
    CHECK(report["files"][0]["fits"]["gemm"]["rows"] == 24);
    CHECK(report["files"][0]["fits"]["gemm"]["origin"] == "kernels.csv");
    CHECK(report["files"][1]["fits"]["all_reduce"]["constants"]["efficiency"]["fitted"]
              .get<double>() == doctest::Approx(0.7).epsilon(0.01));
    const Finished third =
        run_program("calibrate " + table + " --device " + mine + " --out " + mine);
    REQUIRE_MESSAGE(third.exit_code == 0, third.err);
    CHECK(third.out.find("\nrows not used: 32\n") != std::string::npos);
}

TEST_CASE("calibrate tells wrong usage, wrong tables and wrong bases, all at once") {
    const Folder folder;
    const std::string out = " --out " + folder.file("mine.yaml");
    const std::string table = folder.file("k.csv");
    write_text(table, "kernel,bytes,time_us\nmemory,1048576,2.5\nmemory,2097152,3.5\n");

    const std::string help = "\nSee fourfold --help.\n";
    check_refused("--device h100-sxm-80gb", "fourfold: error: TABLE is required" + help);
    check_refused(table + " --device h100-sxm-80gb",
                  "fourfold: error: --device requires --out" + help);
    check_refused(table + " --link-out x.yaml",
                  "fourfold: error: --link-out requires --link" + help);
    check_refused(table,
                  "fourfold: error: nothing to fit; give --device and --out, --link and "
                  "--link-out, or all four\n");
    check_refused("no.csv --device h100-sxm-8gb" + out,
                  "no.csv: error: no such file; check its name and folder\n"
                  "--device h100-sxm-8gb: error: unknown device 'h100-sxm-8gb'; did you mean "
                  "'h100-sxm-80gb'?\n");
    check_refused(table + " --device no.yaml" + out,
                  "no.yaml: error: no such file; check its name and folder\n");
    check_refused(table + " --device h100-sxm-80gb" + out,
                  table +
                      ": error: 2 different sizes in 2 memory rows; to fit 2 constants, "
                      "measure at least 4\n");
    check_refused(table + " --link nvlink3 --link-out " + folder.file("my.yaml"),
                  "fourfold: error: --link: no all_reduce and no point_to_point rows to fit; leave "
                  "--link and --link-out out\n");
    write_text(table, "device,gpus,bytes,time_us\na,2,3,4\n");
    check_refused(table + " --device h100-sxm-80gb" + out,
                  "fourfold: error: --device: no gemm and no memory rows to fit; leave --device "
                  "and --out out\n");

    const std::string base = folder.file("base.yaml");
    write_text(base, "peak: 312\nmemory: 80 GB\n");
    check_refused(table + " --device " + base + out,
                  base +
                      ":1:1: error: missing key 'memory_bandwidth'; write for example "
                      "'memory_bandwidth: 25 GB/s'\n"
                      "    peak: 312\n"
                      "    ^\n" +
                      base +
                      ":1:7: error: '312' has no unit; write for example '312 TFLOP/s'\n"
                      "    peak: 312\n"
                      "          ^\n");
    write_text(base, "");
    check_refused(table + " --device " + base + out,
                  base + ": error: empty; a base has constants\n");
    CHECK_FALSE(std::filesystem::exists(folder.file("mine.yaml")));
}

TEST_CASE("calibrate leaves alone what the rows do not tell, and its source") {
    const Folder folder;
    const std::string table = folder.file("k.csv"), mine = folder.file("mine.yaml");
    std::string text = "kernel,bytes,time_us\n";
    // From 64 GiB on at 1,600 GB/s, where a launch of 2 us is nothing.
    for (const std::int64_t gib : {64, 80, 96, 112}) {
        text += fmt::format("memory,{},{}\n", gib << 30, static_cast<double>(gib << 30) / 1600e3);
    }
    write_text(table, text);
    const Finished run =
        run_program("calibrate " + table + " --device a100-sxm-80gb --out " + mine);
    REQUIRE_MESSAGE(run.exit_code == 0, run.err);
    // 1,600 of 2,039 GB/s
    CHECK(run.out ==
          "memory: 4 rows, 4 different sizes, of k.csv\n"
          "  constant           base  fitted  folds from      to\n"
          "  memory_efficiency  0.85  0.7847      0.7847  0.7847\n"
          "  memory_launch      2 us    2 us        2 us    2 us  not seen in these rows: kept\n"
          "\n"
          "  mean error       rows   base  fitted  cross-validated\n"
          "  all                 4  7.7 %   0.0 %            0.0 %\n"
          "  64 MiB and more     4  7.7 %   0.0 %            0.0 %\n"
          "\n"
          "wrote " +
              mine + ": a100-sxm-80gb with these constants\n");
    const std::string device = read_text(mine);
    CHECK(device.find("\nmemory_launch: 2 us\n") != std::string::npos);
    CHECK(device.find("\n  memory_launch: \"typical: start and end of a small kernel\"\n") !=
          std::string::npos);
}

TEST_CASE(
    "calibrate keeps measured shapes where others gain from them, and drops those of the base") {
    const Catalog catalog = shipped();
    const Device a100 = *find_device(catalog, "a100-sxm-80gb");
    const Folder folder;
    std::filesystem::create_directories(folder.file("devices"));
    const std::string table = folder.file("k.csv"), mine = folder.file("devices/mine.yaml");
    // What the formula does not see: which of m and n is the larger.
    const std::string header = "kernel,m,n,k,layout,time_us\n";
    std::string text, plain, backwards;
    for (const std::int64_t m : {1024, 2048, 4096}) {
        for (const std::int64_t n : {768, 1536, 3072, 6144}) {
            for (const std::int64_t k : {512, 1024, 2048, 4096}) {
                const double time = 1e6 * gemm_time({m, n, k, 1}, a100);
                const double octaves = std::log2(static_cast<double>(m) / static_cast<double>(n));
                const double tuned = time * (1 + 0.1 * std::sin(octaves));
                const std::string row = fmt::format("gemm,{},{},{},tn,{:.6f}\n", m, n, k, tuned);
                text += row;
                backwards = row + backwards;
                plain += fmt::format("gemm,{},{},{},tn,{:.6f}\n", m, n, k, time);
            }
        }
    }
    write_text(table, header + text);
    const Finished run =
        run_program("calibrate " + table + " --device a100-sxm-80gb --out " + mine);
    REQUIRE_MESSAGE(run.exit_code == 0, run.err);
    CHECK(
        run.out.find("\n  48 measured shapes and layouts are kept: with them others are predicted "
                     "better\n") != std::string::npos);
    const std::string file = read_text(mine);
    CHECK(file.find("\n  shapes:\n    - [1024, 768, 512, 1, tn, ") != std::string::npos);
    CHECK(file.find("\n  gemm.shapes: >-\n    kernel-fit: the 48 shapes and layouts of gemm, "
                    "medians; with them cross-validated ") != std::string::npos);

    const auto with_mine = with_directory(catalog, folder.file(""));
    REQUIRE_MESSAGE(with_mine.has_value(), to_text(with_mine.error()));
    const Device read = *find_device(*with_mine, "mine");
    CHECK(read.gemm_residuals.size() == 48);
    // log2(1024 / 6144) = -2.585
    const Gemm wide{.m = 1024, .n = 6144, .k = 4096, .batch = 1, .layout = GemmLayout::tn};
    CHECK(gemm_time(wide, read) ==
          doctest::Approx(gemm_time(wide, a100) * (1 + 0.1 * std::sin(-2.585)))
              .scale(0)
              .epsilon(1e-3));

    // The same rows make the same bytes, in whatever order.
    write_text(table, header + backwards);
    REQUIRE(run_program("calibrate " + table + " --device a100-sxm-80gb --out " + mine).exit_code ==
            0);
    CHECK(read_text(mine) == file);

    // Where the formula says it all, the table of the base goes too.
    write_text(table, header + plain);
    const std::string other = folder.file("devices/other.yaml");
    const Finished again =
        run_program("calibrate " + table + " --device " + mine + " --json --out " + other);
    REQUIRE_MESSAGE(again.exit_code == 0, again.err);
    CHECK(json::parse(again.out)["files"][0]["fits"]["gemm"]["shapes"] == 0);
    CHECK(read_text(other).find("shapes:") == std::string::npos);
}

TEST_CASE("calibrate that cannot write says so, and exits with 1") {
    const Folder folder;
    const std::string table = folder.file("k.csv");
    std::string text = "kernel,bytes,time_us\n";
    for (int i = 1; i <= 8; ++i) text += fmt::format("memory,{},{}\n", i << 24, 2 + 10 * i);
    write_text(table, text);
    const std::string out = folder.file("absent/mine.yaml");
    const Finished run = run_program("calibrate " + table + " --device a100-sxm-80gb --out " + out);
    CHECK(run.exit_code == 1);
    CHECK(run.err == out + ": error: cannot be written\n");
}

TEST_CASE("From SimuMax's shapes calibrate finds the A100's GEMM constants as good as shipped") {
    const std::string data = published_data();
    if (data.empty()) return;
    const Folder folder;
    const Finished run = run_program("calibrate " + data + "/simumax_gemm_efficiency.csv" +
                                     " --only a100_pcie --device a100-pcie-80gb --json --out " +
                                     folder.file("mine.yaml"));
    REQUIRE_MESSAGE(run.exit_code == 0, run.err);
    const json report = json::parse(run.out);
    CHECK(report["rows_not_used"] == 36);  // attention and grouped GEMMs
    const json gemm = report["files"][0]["fits"]["gemm"];
    CHECK(gemm["rows"] == 183);
    CHECK(gemm["errors"][0]["base"].get<double>() == doctest::Approx(0.0353).epsilon(0.01));
    CHECK(gemm["errors"][0]["fitted"].get<double>() <= 0.0353);
    CHECK(gemm["errors"][0]["cross_validated"].get<double>() < 0.0375);
    CHECK(gemm["constants"]["cap"]["fitted"].get<double>() ==
          doctest::Approx(0.755).epsilon(0.005));
    CHECK(gemm["errors"][0]["with_shapes"].get<double>() < 0.0295);
    CHECK(gemm["shapes"] == 183);  // each layout of each shape was measured once
}

TEST_CASE("From SimuMax's shapes of a B200 calibrate keeps a table that predicts others better") {
    const std::string data = published_data();
    if (data.empty()) return;
    const Folder folder;
    const Finished run = run_program("calibrate " + data + "/simumax_gemm_efficiency.csv" +
                                     " --only b200_bf16_ceperm --device b200-180gb --json --out " +
                                     folder.file("mine.yaml"));
    REQUIRE_MESSAGE(run.exit_code == 0, run.err);
    const json gemm = json::parse(run.out)["files"][0]["fits"]["gemm"];
    CHECK(gemm["rows"] == 514);
    CHECK(gemm["errors"][0]["cross_validated"].get<double>() < 0.103);
    CHECK(gemm["errors"][0]["with_shapes"].get<double>() < 0.093);
    CHECK(gemm["shapes"] == 432);
}

TEST_CASE(
    "From vTrain's table calibrate finds the constants of NVLink 3, whatever it starts from") {
    const std::string data = published_data();
    if (data.empty()) return;
    const Folder folder;
    const std::string plain = folder.file("plain.yaml");
    write_text(plain, "bandwidth: 300 GB/s\nlatency: 0 us\n");
    for (const std::string& base : {std::string("nvlink3"), plain}) {
        const Finished run =
            run_program("calibrate " + data + "/vtrain_allreduce_lut.csv" + " --only a100 --link " +
                        base + " --json --link-out " + folder.file("my.yaml"));
        REQUIRE_MESSAGE(run.exit_code == 0, run.err);
        const json fit = json::parse(run.out)["files"][0]["fits"]["all_reduce"];
        const auto fitted = [&fit](const char* key) {
            return fit["constants"][key]["fitted"].get<double>();
        };
        CHECK(fit["rows"] == 140);
        CHECK(fit["errors"][0]["fitted"].get<double>() == doctest::Approx(0.0387).epsilon(0.01));
        CHECK(fit["errors"][0]["cross_validated"].get<double>() < 0.045);
        CHECK(fitted("collective_start_s") == doctest::Approx(29e-6).epsilon(0.02));
        CHECK(4 * fitted("latency_s") == doctest::Approx(4.52e-6).epsilon(0.01));
        CHECK(fitted("collective_per_sqrt_mib_s") == doctest::Approx(4.86e-6).epsilon(0.03));
        CHECK(300e9 * fitted("efficiency") == doctest::Approx(244e9).epsilon(0.003));
        CHECK(fitted("collective_edge") == doctest::Approx(0.346).epsilon(0.02));
    }
}

}  // namespace fourfold
