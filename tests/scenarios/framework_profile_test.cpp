#include "scenarios/framework_profile.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <set>
#include <string>
#include <string_view>

#include "results/evaluate.hpp"
#include "scenarios/catalog.hpp"
#include "scenarios/scenario.hpp"
#include "tests/support/catalog.hpp"

namespace fourfold {
namespace {

Scenario parse(const std::string& text) {
    auto scenario = parse_scenario(text, "test.yaml", {}, catalog());
    REQUIRE_MESSAGE(scenario, to_text(scenario.error()));
    return std::move(*scenario);
}

constexpr std::string_view model =
    "{layers: 8, hidden: 512, heads: 8, ffn: 2048, vocab: 1024, sequence: 128}";

/// Eight devices, and what `more` says.
std::string scenario_with(const std::string& more, std::string_view of = model) {
    return fmt::format(
        "model: {}\n"
        "cluster:\n"
        "  device: a100-sxm-80gb\n"
        "  nodes: 2\n"
        "  devices_per_node: 4\n"
        "  node: {{shape: switch, link: nvlink3}}\n"
        "  fabric: {{shape: switch, link: hdr}}\n"
        "batch: {{global: 16}}\n"
        "{}",
        of, more);
}

/// A profile in which each key has a value that a plain run does not have.
constexpr std::string_view all_keys = R"(
framework:
  name: mine
  attention: flash-1
  dropout: false
  sharding: gradients
  bucket: 7 MiB
  point_to_point: blocking
  gradient_precision: bf16
  gradient_clipping: false
  overlap: {gradients: false, parameters: false, optimizer: true, tensor: 0.4}
  host: {forward_launch: 11 us, backward_launch: 12 us, micro_batch: 13 us, step: 14 us,
         blocking: true, wait: 15 us}
  fused_softmax: false
  loss_forward_bytes: 21
  loss_backward_bytes: 22
  accumulate_bytes: 23
  optimizer_bytes: 24
  norm_forward: 0.6
  norm_backward: 0.4
  sharding_contention: 0.25
)";

}  // namespace

TEST_CASE("every profile of the catalog has a name and can be used") {
    REQUIRE(catalog().frameworks.size() >= 7);
    for (const auto& [name, profile] : catalog().frameworks) {
        CAPTURE(name);
        CHECK(profile.software.name == name);
        const Scenario scenario = parse(scenario_with("framework: " + name));
        CHECK(scenario.step.framework.name == name);
        CHECK(scenario.step.framework.host.forward_launch > Duration::zero());
        const auto evaluation = evaluate(scenario.step, scenario.graph, {.audit = true});
        REQUIRE(evaluation.has_value());
        CHECK(evaluation->measures.time[static_cast<std::size_t>(TimeClass::host)] > 0);
    }
}

TEST_CASE("without a framework the software costs nothing") {
    const Framework& none = parse(scenario_with("")).step.framework;
    CHECK(none.name == "none");
    CHECK(none.host.forward_launch == Duration::zero());
    CHECK(none.host.step == Duration::zero());
    CHECK(none.tensor_overlap == 0);
    CHECK_FALSE(none.accumulate_bytes.has_value());
}

TEST_CASE("every key of a framework reaches the field it is named after") {
    const TrainingStep step = parse(scenario_with(std::string(all_keys))).step;
    CHECK(step.framework.name == "mine");
    CHECK(step.model.attention == Attention::flash_1);
    CHECK_FALSE(step.model.dropout);
    CHECK(step.split.sharding == Sharding::gradients);
    CHECK(step.bucket == 7_MiB);
    CHECK(step.point_to_point == PointToPoint::blocking);
    CHECK(step.gradient_bytes == 2);
    CHECK_FALSE(step.gradient_norm);
    CHECK_FALSE(step.overlap_gradients);
    CHECK_FALSE(step.overlap_parameters);
    CHECK(step.overlap_optimizer);
    CHECK(step.framework.tensor_overlap == 0.4);
    const Host& host = step.framework.host;
    CHECK(host.forward_launch == 11_us);
    CHECK(host.backward_launch == 12_us);
    CHECK(host.micro_batch == 13_us);
    CHECK(host.step == 14_us);
    CHECK(host.blocking);
    CHECK(host.wait == 15_us);
    CHECK_FALSE(step.framework.fused_softmax);
    CHECK(step.framework.loss_forward_bytes == 21);
    CHECK(step.framework.loss_backward_bytes == 22);
    CHECK(step.framework.accumulate_bytes == 23.0);
    CHECK(step.framework.optimizer_bytes == 24);
    CHECK(step.framework.norm_forward == 0.6);
    CHECK(step.framework.norm_backward == 0.4);
    CHECK(step.framework.sharding_contention == 0.25);
}

TEST_CASE("what a scenario says itself is stronger than its framework") {
    const std::string_view own =
        "{layers: 8, hidden: 512, heads: 8, ffn: 2048, vocab: 1024, sequence: 128, "
        "attention: unfused, dropout: true}";
    const TrainingStep step =
        parse(scenario_with(std::string(all_keys) + "parallel: {sharding: optimizer, bucket: 9 "
                                                    "MiB}\n"
                                                    "schedule: {kind: 1f1b, point_to_point: "
                                                    "overlapped}\n"
                                                    "gradient_precision: fp32\n"
                                                    "gradient_clipping: true\n"
                                                    "overlap: {gradients: true, parameters: "
                                                    "true, optimizer: false, tensor: 0.1}\n",
                            own))
            .step;
    CHECK(step.model.attention == Attention::unfused);
    CHECK(step.model.dropout);
    CHECK(step.split.sharding == Sharding::optimizer);
    CHECK(step.bucket == 9_MiB);
    CHECK(step.point_to_point == PointToPoint::overlapped);
    CHECK(step.gradient_bytes == 4);
    CHECK(step.gradient_norm);
    CHECK(step.overlap_gradients);
    CHECK(step.overlap_parameters);
    CHECK_FALSE(step.overlap_optimizer);
    CHECK(step.framework.tensor_overlap == 0.1);
    CHECK(step.framework.host.forward_launch == 11_us);  // the rest is the framework's
}

TEST_CASE("a framework decides the attention of a model of the catalog") {
    const std::string_view named = "megatron-1.7b";
    const TrainingStep flash = parse(scenario_with("framework: mcore-2024", named)).step;
    const TrainingStep unfused = parse(scenario_with("framework: megatron-2021", named)).step;
    CHECK(flash.model.attention == Attention::flash);
    CHECK_FALSE(flash.model.dropout);
    CHECK(unfused.model.attention == Attention::unfused);
    CHECK(unfused.model.dropout);
    // Not that of one that says it itself.
    const TrainingStep own =
        parse(scenario_with("framework: megatron-2021", "{base: megatron-1.7b, attention: flash}"))
            .step;
    CHECK(own.model.attention == Attention::flash);
    CHECK(own.model.dropout);
}

TEST_CASE("a framework with a base changes only what it names") {
    const FrameworkProfile& base = catalog().frameworks.at("mcore-2024");
    const TrainingStep step =
        parse(scenario_with("framework: {base: mcore-2024, host: {forward_launch: 9 us}}")).step;
    CHECK(step.framework.name == "mcore-2024 (changed)");
    CHECK(step.framework.host.forward_launch == 9_us);
    CHECK(step.framework.host.backward_launch == base.software.host.backward_launch);
    CHECK(step.framework.host.step == base.software.host.step);
    CHECK(step.framework.tensor_overlap == base.software.tensor_overlap);
    CHECK(step.framework.loss_forward_bytes == base.software.loss_forward_bytes);
    CHECK(step.bucket == base.bucket);
    CHECK(step.split.sharding == base.sharding);
    // Changing nothing changes the name neither.
    CHECK(parse(scenario_with("framework: {base: mcore-2024}")).step.framework.name ==
          "mcore-2024");
}

TEST_CASE("every number of the hardware catalog says where it is from") {
    const std::set<std::string> origins{"sheet", "kernel-fit", "step-fit", "typical", "site"};
    std::set<std::string> folders;
    std::size_t numbers = 0;
    for (const Constant& constant : catalog().constants) {
        folders.insert(constant.entry.substr(0, constant.entry.find('/')));
        const bool is_number = constant.value.find_first_of("0123456789") == 0;
        // What is no number may say it too, but not something else.
        if (!is_number && constant.origin.empty()) continue;
        numbers += is_number ? 1 : 0;
        CHECK_MESSAGE(origins.contains(constant.origin), constant.entry, " ", constant.key, ": '",
                      constant.origin, "'");
        CHECK_MESSAGE(!constant.reference.empty(), constant.entry, " ", constant.key);
    }
    CHECK(folders == std::set<std::string>{"clusters", "devices", "frameworks", "links"});
    CHECK(numbers > 250);
}

}  // namespace fourfold
