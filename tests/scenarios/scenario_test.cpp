#include "scenarios/scenario.hpp"

#include <doctest/doctest.h>

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/catalog.hpp"
#include "scenarios/embedded.hpp"
#include "tests/support/catalog.hpp"

namespace fourfold {
namespace {

Scenario parse(std::string_view text, const std::vector<Setting>& settings = {}) {
    auto scenario = parse_scenario(text, "test.yaml", settings, catalog());
    REQUIRE_MESSAGE(scenario, to_text(scenario.error()));
    return std::move(*scenario);
}

std::string errors(std::string_view text, const std::vector<Setting>& settings = {}) {
    const auto scenario = parse_scenario(text, "test.yaml", settings, catalog());
    return scenario ? "no errors" : to_text(scenario.error());
}

std::string_view quickstart() {
    for (const EmbeddedFile& file : embedded_files()) {
        if (file.path == "quickstart.yaml") return file.text;
    }
    FAIL("quickstart.yaml is not embedded");
    return {};
}

// Eight devices, nothing optional.
constexpr std::string_view plain = R"(
model: {layers: 8, hidden: 512, heads: 8, ffn: 2048, vocab: 1024, sequence: 128}
cluster:
  device: a100-sxm-80gb
  nodes: 2
  devices_per_node: 4
  node:   {shape: switch, bandwidth: 300 GB/s, latency: 1.5 us}
  fabric: {shape: switch, bandwidth: 25 GB/s, latency: 2.5 us}
batch: {global: 16}
)";

const Link& link_between(const Scenario& scenario, std::string_view from, std::string_view to) {
    for (const Link& link : scenario.graph.links()) {
        if (scenario.graph[link.from].name == from && scenario.graph[link.to].name == to) {
            return link;
        }
    }
    FAIL("no link ", from, " -> ", to);
    return scenario.graph.links().front();
}

}  // namespace

TEST_CASE("the quickstart is a scenario of two nodes, split in two three times") {
    const Scenario scenario = parse(quickstart());
    CHECK(scenario.name == "quickstart");
    CHECK(scenario.graph.devices().size() == 8);
    CHECK(scenario.step.split.tensor == 2);
    CHECK(scenario.step.split.pipeline == 2);
    CHECK(scenario.step.split.data == 2);
    CHECK(scenario.step.micro_batches() == 8);
    CHECK(scenario.step.schedule->name == "1f1b");
    CHECK(scenario.step.device.memory == Bytes{80'000'000'000});
    CHECK(scenario.links == LinkModel::flows);
}

TEST_CASE("the keys that the quickstart comments out can be used as they stand there") {
    // From the first "# measured:" on, a comment that ends in a key or a list item is YAML.
    std::string text(quickstart());
    for (std::size_t at = text.find("# measured:"); at != std::string::npos;
         at = text.find("\n# ", at)) {
        if (text[at] == '\n') ++at;
        const std::string_view line = std::string_view(text).substr(at, text.find('\n', at) - at);
        const bool is_yaml = line.ends_with(':') || line.ends_with('}') || line.ends_with(" ms");
        const bool is_prose = line.starts_with("# What");
        if (is_yaml && !is_prose) text.erase(at, 2);
    }
    const Scenario scenario = parse(text);
    REQUIRE(scenario.step.measured.layer);
    CHECK(scenario.step.measured.layer->forward == Duration(1'200'000'000));
    REQUIRE(scenario.step.measured.head);
    CHECK(scenario.step.measured.optimizer == 5_ms);
    CHECK(scenario.step.slow_devices.size() == 1);
    CHECK(scenario.step.background.size() == 2);
    CHECK(link_between(scenario, "node0.device0", "leaf0").spec.bandwidth ==
          BytesPerSecond{12'500'000'000});
    REQUIRE(scenario.published);
    CHECK(scenario.published->source == "paper, table");
}

TEST_CASE("what a scenario leaves out has the value that a plain run would use") {
    const Scenario scenario = parse(plain);
    const TrainingStep& step = scenario.step;
    CHECK(scenario.name == "test");
    CHECK(step.split.tensor == 1);
    CHECK(step.split.pipeline == 1);
    CHECK(step.split.data == 8);  // all that is left over
    CHECK(step.split.sharding == Sharding::none);
    CHECK(step.model.kv_heads == 8);
    CHECK(step.model.name == "custom");
    CHECK(step.micro_batch == 1);
    CHECK(step.schedule->name == "1f1b");
    CHECK(step.recompute == Recompute::none);
    CHECK(step.gradient_bytes == 4);
    CHECK(step.algorithm == nullptr);
    CHECK(step.gradient_norm);
    CHECK_FALSE(step.measured.stage);
    CHECK_FALSE(scenario.published);
}

TEST_CASE("every key reaches the field it is named after") {
    const Scenario scenario = parse(R"(
name: all keys
model:
  {name: tiny, layers: 8, hidden: 512, heads: 8, kv_heads: 4, head_dim: 32, ffn: 2048, vocab: 1024,
   sequence: 128, mlp: swiglu, norm: rmsnorm, positions: rotary, attention: flash,
   tied_embeddings: false, bias: false, dropout: false, source: none}
cluster:
  device:
    name: toy
    peak: 100 TFLOP/s
    memory_bandwidth: 1 TB/s
    memory: 16 GiB
    multiprocessors: 80
    memory_efficiency: 0.8
    memory_launch: 3 us
    gemm: {tile_efficiency: 1.5, tile_half: 70, k_ramp: 150, wave_quantization: 0.5, cap: 0.7,
           launch: 0.5 us, power: 0.9}
    flash: {forward: 0.6, backward: 0.5, launch_forward: 4 us, launch_backward: 6 us}
    fitted: true
    sources: {peak: invented}
  nodes: 4
  devices_per_node: 4
  node: {shape: torus, dimensions: [2, 2], bandwidth: 100 GB/s, latency: 1 us, efficiency: 0.9,
         message_overhead: 1 us, collective_start: 2 us, collective_per_sqrt_mib: 3 us,
         collective_edge: 0.25}
  fabric: {shape: fat_tree, bandwidth: 200 Gb/s, latency: 2 us, oversubscription: 2, leaf_ports: 8}
parallel: {tensor: 2, pipeline: 2, data: 4, sharding: optimizer, shard_unit: model,
           sequence_parallel: true, scatter_gather: false, vocabulary_parallel: false,
           bucket: 50 MiB, order: [pipeline, data, tensor]}
batch: {global: 32, micro: 2}
schedule: {kind: interleaved_1f1b, chunks: 2, point_to_point: blocking}
recompute: selective
precision: bf16
gradient_precision: bf16
overlap: {gradients: false, parameters: false}
gradient_clipping: false
collectives: {algorithm: ring}
network: messages
routing: {kind: ecmp, seed: 7}
quantum: 4 MiB
jitter: {compute: 0.02, links: 0.01, seed: 7}
measured:
  stage: {forward: 3 ms, input_gradient: 2 ms, weight_gradient: 1 ms}
  optimizer: 4 ms
perturb:
  - {slow_device: 3, factor: 1.5}
  - {slow_link: {from: node0.device0, to: leaf0}, bandwidth: 0.5, latency: 3}
  - {slow_link: {from: node0.device1, to: leaf0}, bandwidth: 0.5, at: 2 s}
published: {step_time: 1.5 s, source: a guess}
)");
    CHECK(scenario.name == "all keys");
    CHECK(scenario.links == LinkModel::messages);
    CHECK(scenario.graph.routing() == Routing{.kind = Routing::Kind::ecmp, .seed = 7});
    CHECK(scenario.quantum == 4_MiB);
    REQUIRE(scenario.changes.size() == 1);
    CHECK(scenario.graph.name(scenario.changes[0].link) == "node0.device1 -> leaf0");
    CHECK(scenario.changes[0].at == Time(2'000_ms));
    CHECK(scenario.changes[0].bandwidth == 0.5);
    CHECK(scenario.step.jitter.compute == 0.02);
    CHECK(scenario.step.jitter.links == 0.01);
    CHECK(scenario.step.jitter.seed == 7);
    CHECK(scenario.published->step_time == 1500_ms);
    CHECK(scenario.published->source == "a guess");

    const TrainingStep& step = scenario.step;
    const Transformer& model = step.model;
    CHECK(model.name == "tiny");
    CHECK(model.layers == 8);
    CHECK(model.hidden == 512);
    CHECK(model.heads == 8);
    CHECK(model.kv_heads == 4);
    CHECK(model.head_dim == 32);
    CHECK(model.ffn == 2048);
    CHECK(model.vocab == 1024);
    CHECK(model.sequence == 128);
    CHECK(model.mlp == Mlp::swiglu);
    CHECK(model.norm == Norm::rmsnorm);
    CHECK(model.positions == Positions::rotary);
    CHECK(model.attention == Attention::flash);
    CHECK_FALSE(model.tied_embeddings);
    CHECK_FALSE(model.bias);
    CHECK_FALSE(model.dropout);

    const Device& device = step.device;
    CHECK(device.name == "toy");
    CHECK(device.peak == 100e12);
    CHECK(device.memory_bandwidth == 1e12);
    CHECK(device.memory == 16 * 1024 * 1_MiB);
    CHECK(device.multiprocessors == 80);
    CHECK(device.memory_efficiency == 0.8);
    CHECK(device.memory_launch_s == doctest::Approx(3e-6));
    CHECK(device.gemm.tile_efficiency == 1.5);
    CHECK(device.gemm.tile_half == 70);
    CHECK(device.gemm.k_ramp == 150);
    CHECK(device.gemm.wave_quantization == 0.5);
    CHECK(device.gemm.cap == 0.7);
    CHECK(device.gemm.launch_s == doctest::Approx(0.5e-6));
    CHECK(device.gemm.power == 0.9);
    CHECK(device.flash.forward == 0.6);
    CHECK(device.flash.backward == 0.5);
    CHECK(device.flash_launch_forward_s == doctest::Approx(4e-6));
    CHECK(device.flash_launch_backward_s == doctest::Approx(6e-6));
    CHECK(device.fitted);

    const Split& split = step.split;
    CHECK(split.tensor == 2);
    CHECK(split.pipeline == 2);
    CHECK(split.data == 4);
    CHECK(split.sharding == Sharding::optimizer);
    CHECK(split.shard_unit == ShardUnit::model);
    CHECK(split.sequence_parallel);
    CHECK_FALSE(split.scatter_gather);
    CHECK_FALSE(split.vocabulary_parallel);
    CHECK(split.order ==
          std::array{SplitAxis::pipeline, SplitAxis::data, SplitAxis::tensor, SplitAxis::context});

    CHECK(step.global_batch == 32);
    CHECK(step.micro_batch == 2);
    CHECK(step.schedule->name == "interleaved_1f1b");
    CHECK(step.chunks == 2);
    CHECK(step.point_to_point == PointToPoint::blocking);
    CHECK(step.recompute == Recompute::selective);
    CHECK(step.gradient_bytes == 2);
    CHECK(step.bucket == 50_MiB);
    CHECK_FALSE(step.overlap_gradients);
    CHECK_FALSE(step.overlap_parameters);
    CHECK_FALSE(step.gradient_norm);
    CHECK(step.algorithm->name == "ring");
    CHECK(step.node.message_overhead == 1_us);
    CHECK(step.node.collective_start == 2_us);
    CHECK(step.node.collective_per_sqrt_mib == 3_us);
    CHECK(step.node.collective_edge == 0.25);
    CHECK(step.fabric.collective_edge == 0);
    CHECK(step.measured.stage->forward == 3_ms);
    CHECK(step.measured.stage->input_gradient == 2_ms);
    CHECK(step.measured.stage->weight_gradient == 1_ms);
    CHECK(step.measured.optimizer == 4_ms);
    REQUIRE(step.slow_devices.size() == 1);
    CHECK(step.slow_devices[0].device == 3);
    CHECK(step.slow_devices[0].factor == 1.5);

    const Link& inside = link_between(scenario, "node0.device0", "node0.device1");
    CHECK(inside.spec.bandwidth == 100_GBps);
    CHECK(inside.spec.latency == 1_us);
    CHECK(inside.rate == 90_GBps);
    CHECK(link_between(scenario, "node0.device1", "leaf0").rate == 25_GBps);  // 200 Gb/s
    const Link& slow = link_between(scenario, "node0.device0", "leaf0");
    CHECK(slow.rate.value == 12'500'000'000);
    CHECK(slow.spec.latency == 6_us);
    CHECK(link_between(scenario, "leaf0", "node0.device0").rate == 25_GBps);  // the way back is not
}

TEST_CASE("routing is balanced where nothing is said, and ecmp by name has seed 0") {
    CHECK(parse(plain).graph.routing() == Routing{});
    CHECK(parse(plain, {{"routing", "ecmp"}}).graph.routing() ==
          Routing{.kind = Routing::Kind::ecmp, .seed = 0});
}

TEST_CASE("background flows are messages, once or again and again, or a constant stream") {
    const std::string text = std::string(plain) + R"(
background:
  - {from: node0.device1, to: node1.device3, bytes: 1 GiB}
  - {from: node0.device0, to: node1.device0, bytes: 1 MB, at: 3 ms, every: 10 ms}
  - {from: node0.device0, to: node1.device0, rate: 5 GB/s}
)";
    const auto flows = parse(text).step.background;
    REQUIRE(flows.size() == 3);
    CHECK(flows[0].from == DeviceId{1});
    CHECK(flows[0].to == DeviceId{7});
    CHECK(flows[0].bytes == 1024 * 1_MiB);
    CHECK(flows[0].at == Duration::zero());
    CHECK(flows[0].every == Duration::zero());
    CHECK(flows[1].bytes == Bytes{1'000'000});
    CHECK(flows[1].at == 3_ms);
    CHECK(flows[1].every == 10_ms);
    CHECK_FALSE(flows[1].steady);
    // 4 MiB every 4194304 / 5e9 s.
    CHECK(flows[2].steady);
    CHECK(flows[2].bytes == 4 * 1_MiB);
    CHECK(flows[2].every == Duration(838'860'800));
}

TEST_CASE("jobs have the common keys, their own ones and their own devices") {
    const std::string text = std::string(plain) + R"(
name: two of them
jobs:
  - {name: a, devices: [0, 5..6, 1]}
  - {name: b, nodes: 1, batch: {global: 8}, parallel: {tensor: 2}}
)";
    CHECK(errors(text) ==
          "test.yaml:14:22: error: device 5 belongs to job 'a' already\n"
          "    - {name: b, nodes: 1, batch: {global: 8}, parallel: {tensor: 2}}\n"
          "                       ^\n");
    const Scenario scenario =
        parse(text, {{"jobs.0.devices", "0..3"}, {"jobs.1.recompute", "full"}});
    CHECK(scenario.name == "two of them");
    REQUIRE(scenario.jobs.size() == 2);
    const TrainingStep& a = scenario.jobs[0].step;
    const TrainingStep& b = scenario.jobs[1].step;
    CHECK(scenario.jobs[0].name == "a");
    CHECK(a.devices == std::vector<DeviceId>{{0}, {1}, {2}, {3}});
    CHECK(a.split.data == 4);
    CHECK(a.global_batch == 16);
    CHECK(a.recompute == Recompute::none);
    CHECK(scenario.jobs[1].name == "b");
    CHECK(b.devices == std::vector<DeviceId>{{4}, {5}, {6}, {7}});
    CHECK(b.split.tensor == 2);
    CHECK(b.split.data == 2);
    CHECK(b.global_batch == 8);
    CHECK(b.recompute == Recompute::full);
}

TEST_CASE("context ranks cut the sequence and what is left over is data") {
    const Scenario scenario = parse(std::string(plain) + "parallel: {tensor: 2, context: 2}\n");
    CHECK(scenario.step.split.context == 2);
    CHECK(scenario.step.split.data == 2);
    CHECK(scenario.step.tokens() == 64);
}

TEST_CASE("the order of the axes names context where the sequence is cut") {
    using enum SplitAxis;
    const auto order_of = [](std::string_view keys) {
        return parse(std::string(plain) + "parallel: {" + std::string(keys) + "}\n")
            .step.split.order;
    };
    CHECK(order_of("tensor: 2") == std::array{tensor, context, data, pipeline});
    CHECK(order_of("order: [data, pipeline, tensor]") ==
          std::array{data, pipeline, tensor, context});
    CHECK(order_of("order: [data, context, pipeline, tensor]") ==
          std::array{data, context, pipeline, tensor});
    CHECK(order_of("context: 2, order: [pipeline, context, data, tensor]") ==
          std::array{pipeline, context, data, tensor});
}

TEST_CASE("layers are dealt to stages evenly, less at the ends, or as a list says") {
    using Layers = std::vector<std::int64_t>;
    const auto layers = [](std::string_view keys, std::string_view count = "8") {
        const Scenario scenario =
            parse(std::string(plain) + "parallel: {" + std::string(keys) + "}\n",
                  {{"model.layers", std::string(count)}});
        return scenario.step.stage_layers;
    };
    CHECK(layers("pipeline: 4").empty());  // as many on each
    CHECK(layers("pipeline: 4, stage_layers: even").empty());
    CHECK(layers("pipeline: 4, stage_layers: [1, 3, 3, 1]") == Layers{1, 3, 3, 1});
    CHECK(layers("pipeline: 2, stage_layers: [0, 8]") == Layers{0, 8});
    // 14 + 2 in 4 parts.
    CHECK(layers("pipeline: 4, stage_layers: lighter_ends", "14") == Layers{3, 4, 4, 3});
    CHECK(layers("pipeline: 2, stage_layers: lighter_ends") == Layers{4, 4});
    CHECK(layers("stage_layers: lighter_ends").empty());  // one stage has both ends

    const Scenario chunks = parse(std::string(plain) +
                                      "parallel: {pipeline: 2, stage_layers: lighter_ends}\n"
                                      "schedule: {kind: interleaved_1f1b, chunks: 2}\n",
                                  {{"model.layers", "6"}});
    CHECK(chunks.step.stage_layers == Layers{1, 2, 2, 1});
}

TEST_CASE("a published time may name the runs that it is compared with") {
    const Scenario scenario = parse(
        std::string(plain) + "published: {step_time: 1 s, source: a table, group: its paper}\n");
    REQUIRE(scenario.published);
    CHECK(scenario.published->group == "its paper");
    CHECK(parse(std::string(plain) + "published: {step_time: 1 s, source: a table}\n")
              .published->group.empty());
}

TEST_CASE("a graph names its vertices, and its links have one direction") {
    const Scenario scenario = parse(R"(
model: {layers: 8, hidden: 512, heads: 8, ffn: 2048, vocab: 1024, sequence: 128}
cluster:
  device: a100-sxm-80gb
  graph:
    vertices: [a, {name: b, node: 1}, {name: s, kind: switch}]
    links:
      - {from: a, to: s, bandwidth: 25 GB/s, latency: 5 us, both_ways: true}
      - {from: s, to: b, bandwidth: 10 GB/s, latency: 1 us, efficiency: 0.5}
      - {from: b, to: s, bandwidth: 20 GB/s, latency: 1 us}
batch: {global: 16}
)");
    REQUIRE(scenario.graph.devices().size() == 2);
    CHECK(scenario.graph.links().size() == 4);
    CHECK(scenario.graph.node_of(DeviceId{0}) == 0);
    CHECK(scenario.graph.node_of(DeviceId{1}) == 1);
    CHECK(link_between(scenario, "s", "a").rate == 25_GBps);
    CHECK(link_between(scenario, "s", "b").rate == 5_GBps);
    CHECK(link_between(scenario, "b", "s").rate == 20_GBps);
    CHECK(scenario.step.split.data == 2);
}

TEST_CASE("a mapping with a base changes only what it names") {
    std::string text(plain);
    text.replace(text.find("{layers"), text.find('}') - text.find("{layers") + 1,
                 "{base: gpt3-175b, layers: 8, heads: 48}");
    text.replace(text.find("a100-sxm-80gb"), 13, "{base: a100-sxm-80gb, memory: 40 GiB}");
    const Scenario scenario = parse(text);
    const Transformer& base = catalog().models.at("gpt3-175b");
    CHECK(scenario.step.model.layers == 8);
    CHECK(scenario.step.model.heads == 48);
    CHECK(scenario.step.model.kv_heads == 48);  // still one for each head
    CHECK(scenario.step.model.hidden == base.hidden);
    CHECK(scenario.step.model.name == base.name + " (changed)");
    CHECK(scenario.step.device.memory == 40 * 1024 * 1_MiB);
    CHECK(scenario.step.device.peak == catalog().devices.at("a100-sxm-80gb").peak);
}

TEST_CASE("a link of the catalog gives what a fabric does not say") {
    REQUIRE_FALSE(catalog().links.empty());
    const auto& [name, kind] = *catalog().links.begin();
    std::string text(plain);
    text.replace(text.find("bandwidth: 25 GB/s, latency: 2.5 us"), 35,
                 "link: " + name + ", latency: 7 us");
    const Scenario scenario = parse(text);
    const Link& link = link_between(scenario, "node0.device0", "switch");
    CHECK(link.spec.bandwidth == kind.spec.bandwidth);
    CHECK(link.spec.efficiency == kind.spec.efficiency);
    CHECK(link.spec.latency == 7_us);
    CHECK(scenario.step.fabric.message_overhead == kind.costs.message_overhead);
    CHECK(scenario.step.fabric.collective_start == kind.costs.collective_start);
}

TEST_CASE("a setting changes a value, makes what is missing, and adds to lists") {
    const Scenario scenario = parse(plain, {{"cluster.fabric.bandwidth", "50 GB/s"},
                                            {"parallel.tensor", "4"},
                                            {"schedule", "{kind: gpipe}"},
                                            {"perturb.0.slow_device", "2"},
                                            {"perturb.0.factor", "1.5"},
                                            {"perturb.1", "{slow_device: 3, factor: 2}"},
                                            {"perturb.1.factor", "3"},
                                            {"cluster.device.memory", "40 GiB"}});
    CHECK(link_between(scenario, "node0.device0", "switch").rate == 50_GBps);
    CHECK(scenario.step.split.tensor == 4);
    CHECK(scenario.step.split.data == 2);
    CHECK(scenario.step.schedule->name == "gpipe");
    REQUIRE(scenario.step.slow_devices.size() == 2);
    CHECK(scenario.step.slow_devices[0].factor == 1.5);
    CHECK(scenario.step.slow_devices[1].device == 3);
    CHECK(scenario.step.slow_devices[1].factor == 3);
    CHECK(scenario.step.device.memory == 40 * 1024 * 1_MiB);  // a catalog name became a base
}

TEST_CASE("a message about a setting points into the setting") {
    CHECK(errors(plain, {{"cluster.fabric.bandwidth", "50"}}) ==
          "--set cluster.fabric.bandwidth=50:1:26: error: '50' has no unit; write for example "
          "'25 GB/s'\n"
          "    cluster.fabric.bandwidth=50\n"
          "                             ^\n");
}

TEST_CASE("a scenario with a byte order mark and Windows line ends reads like any other") {
    std::string text = "\xEF\xBB\xBF";
    for (const char c : plain) text += c == '\n' ? std::string("\r\n") : std::string(1, c);
    CHECK(parse(text).graph.devices().size() == 8);
}

TEST_CASE("a text that would cost yaml-cpp its stack, memory or patience is refused") {
    CHECK(errors(std::string(100'000, '[')).find("nested more than 64 levels deep") !=
          std::string::npos);
    CHECK(errors(std::string(100'000, '{')).find("nested more than 64 levels deep") !=
          std::string::npos);
    std::string dashes;
    for (int i = 0; i < 20'000; ++i) dashes += "- ";
    CHECK(errors(dashes).find("nested more than 64 levels deep") != std::string::npos);
    std::string questions;
    for (int i = 0; i < 20'000; ++i) questions += "? ";
    CHECK(errors(questions) != "no errors");
    CHECK(errors(std::string(70'000, 'a')).find("a line of more than 65536 bytes") !=
          std::string::npos);
    CHECK(errors(std::string((std::size_t{8} << 20) + 1, '\n')).find("larger than 8 MiB") !=
          std::string::npos);
    std::string many = "a:\n";
    for (int i = 0; i < 1'100'000; ++i) many += "- 1\n";
    CHECK(errors(many).find("more than 1000000 values") != std::string::npos);
}

TEST_CASE("a file of ten thousand mistakes gives fifty messages and the number of the others") {
    std::string text(plain);
    for (int i = 0; i < 10'000; ++i) text += "key" + std::to_string(i) + ": 1\n";
    const auto scenario = parse_scenario(text, "test.yaml", {}, catalog());
    REQUIRE_FALSE(scenario);
    CHECK(scenario.error().size() == 51);
    CHECK(scenario.error().back().message.find("more errors; correct these first") !=
          std::string::npos);
}

}  // namespace fourfold
