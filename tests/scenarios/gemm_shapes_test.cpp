#include "scenarios/gemm_shapes.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "scenarios/scenario.hpp"
#include "scenarios/yaml_text.hpp"
#include "tests/support/catalog.hpp"
#include "tests/support/program.hpp"

// What is wrong in a table and how it is told: tests/golden/bad/gemm_shapes_*.yaml.

namespace fourfold {
namespace {

constexpr Gemm square{.m = 4096, .n = 4096, .k = 4096, .batch = 1, .layout = GemmLayout::tn};

/// A device of the catalog with this below its `gemm`.
std::string scenario(const std::string& gemm, const std::string& device = "base: a100-sxm-80gb") {
    return fmt::format(R"(
model: {{layers: 8, hidden: 512, heads: 8, ffn: 2048, vocab: 1024, sequence: 128}}
cluster:
  device: {{{}, gemm: {{{}}}}}
  nodes: 2
  devices_per_node: 4
  node:   {{shape: switch, bandwidth: 300 GB/s, latency: 1.5 us}}
  fabric: {{shape: switch, bandwidth: 25 GB/s, latency: 2.5 us}}
batch: {{global: 16}}
)",
                       device, gemm);
}

tl::expected<Scenario, Diagnostics> parse(const std::string& text, const Catalog& known,
                                          const std::vector<Setting>& settings = {}) {
    return parse_scenario(text, "test.yaml", settings, known);
}

Device device_of(const std::string& text, const Catalog& known,
                 const std::vector<Setting>& settings = {}) {
    const auto parsed = parse(text, known, settings);
    REQUIRE_MESSAGE(parsed, to_text(parsed.error()));
    return parsed->step.device;
}

/// A catalog that also has `tuned`, an A100 on which the square takes 700 us.
Catalog with_tuned() {
    const Folder folder;
    std::filesystem::create_directories(folder.file("devices"));
    write_text(folder.file("devices/tuned.yaml"),
               "peak: 312 TFLOP/s\nmemory_bandwidth: 2039 GB/s\nmemory: 80 GB\n"
               "multiprocessors: 108\ngemm:\n  cap: 0.7\n  shapes:\n"
               "    - [4096, 4096, 4096, 1, tn, 700 us]\n"
               "sources: {gemm: \"kernel-fit: on my shapes\"}\n");
    auto known = with_directory(catalog(), folder.file(""));
    REQUIRE_MESSAGE(known, to_text(known.error()));
    return std::move(*known);
}

}  // namespace

TEST_CASE("a measured shape takes its time, wherever in the device's mapping its constants stand") {
    const Device before = device_of(
        scenario("cap: 0.6, shapes: [[4096, 4096, 4096, 1, tn, 700 us]], power: 0.9"), catalog());
    CHECK(before.gemm.power == 0.9);
    CHECK(gemm_time(square, before) == doctest::Approx(700e-6).scale(0).epsilon(1e-9));
    const Device device = device_of(
        scenario("shapes: [[4096, 4096, 4096, 1, tn, 700 us], [8192, 4096, 4096, 1, nn, 1.2 ms]]",
                 "memory_efficiency: 0.7, base: a100-sxm-80gb"),
        catalog());
    CHECK(device.gemm_residuals.size() == 2);
    CHECK(gemm_time(square, device) == doctest::Approx(700e-6).scale(0).epsilon(1e-9));
}

TEST_CASE("a what-if on a device with measured shapes changes their times like all others") {
    const Catalog known = with_tuned();
    const Device tuned = device_of(scenario("", "base: tuned"), known);
    CHECK(gemm_time(square, tuned) == doctest::Approx(700e-6).scale(0).epsilon(1e-9));
    const Device twice = device_of(scenario("", "base: tuned, peak: 624 TFLOP/s"), known);
    CHECK(gemm_time(square, twice) == doctest::Approx(350e-6).scale(0).epsilon(0.01));
    const Device set =
        device_of(scenario("", "base: tuned"), known, {{"cluster.device.peak", "624 TFLOP/s"}});
    CHECK(gemm_time(square, set) == gemm_time(square, twice));
    // A table of its own replaces the base's.
    const Device mine =
        device_of(scenario("shapes: [[64, 64, 64, 1, any, 3 us]]", "base: tuned"), known);
    REQUIRE(mine.gemm_residuals.size() == 1);
    CHECK(gemm_time({.m = 64, .n = 64, .k = 64}, mine) ==
          doctest::Approx(3e-6).scale(0).epsilon(1e-9));
}

TEST_CASE("a table of measured shapes is one constant with a source") {
    const Catalog known = with_tuned();
    const auto found = std::ranges::find_if(known.constants, [](const Constant& one) {
        return one.entry == "devices/tuned" && one.key == "gemm.shapes";
    });
    REQUIRE(found != known.constants.end());
    CHECK(found->value == "1 row");
    CHECK(found->origin == "kernel-fit");
    CHECK(found->reference == "on my shapes");
}

TEST_CASE("measured shapes are read as they were written") {
    const std::vector<GemmSample> shapes{{square, 700e-6},
                                         {{.m = 8, .n = 16, .k = 24, .batch = 32}, 1.25e-3}};
    YamlNode gemm;
    gemm.kind = YamlNode::Kind::mapping;
    set_value(gemm, "shapes", gemm_shapes_node(shapes));
    CHECK(yaml_text(gemm) ==
          "shapes:\n"
          "  - [4096, 4096, 4096, 1, tn, 700 us]\n"
          "  - [8, 16, 24, 32, any, 1.25 ms]\n");
}

TEST_CASE("a table of more than 10,000 shapes is refused") {
    const auto table = [](int rows) {
        std::string text = "shapes: [";
        for (int i = 1; i <= rows; ++i) text += fmt::format("[{}, 8, 8, 1, tn, 2 us],\n    ", i);
        return scenario(text + "]");
    };
    CHECK(device_of(table(10'000), catalog()).gemm_residuals.size() == 10'000);
    const auto refused = parse(table(10'001), catalog());
    REQUIRE_FALSE(refused);
    REQUIRE(refused.error().size() == 1);
    CHECK(refused.error().front().line == 4);
    CHECK(refused.error().front().message == "10001 measured shapes; write at most 10000");
}

}  // namespace fourfold
