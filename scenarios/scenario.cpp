#include "scenarios/scenario.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <set>
#include <string>
#include <utility>

#include "scenarios/background_section.hpp"
#include "scenarios/cluster_section.hpp"
#include "scenarios/document.hpp"
#include "scenarios/fields.hpp"
#include "scenarios/jobs_section.hpp"
#include "scenarios/reading.hpp"
#include "scenarios/settings.hpp"
#include "topology/closest.hpp"
#include "workloads/fold.hpp"

// One function per section of the file, in the order in which quickstart.yaml explains them. Each
// reads on after a mistake. What only several sections together can say (whether the split fits the
// model and the devices, whether the graph hangs together) is checked once those are sound.

namespace fourfold {
namespace {

constexpr std::int64_t degree_max = std::int64_t{1} << 20;
constexpr std::int64_t micro_batches_max = 65'536;
constexpr Reals slowdown{.min = 0, .max = 1e6, .above_min = true, .example = "1.3"};

// `profile`: what the framework makes of a model, unless the scenario says otherwise.
void read_model_key(Fields& scenario, const Catalog& catalog, const FrameworkProfile& profile,
                    Transformer& into) {
    const auto find = [&catalog](std::string_view name) { return find_model(catalog, name); };
    const YamlNode* node = scenario.value("model", Need::required, "gpt3-175b");
    if (node == nullptr) return;
    if (node->kind != YamlNode::Kind::mapping) {
        scenario.look_up("model", Need::required, into, "gpt3-175b", find);
        apply(profile, into);
        return;
    }
    Fields fields(scenario, "model", Need::required, "gpt3-175b");
    into.name = "custom";
    if (fields.look_up("base", Need::optional, into, "gpt3-175b", find) && node->keys.size() > 1) {
        into.name += " (changed)";
    }
    apply(profile, into);
    read_model(fields, fields.has("base"), into);
}

FrameworkProfile read_framework_key(Fields& scenario, const Catalog& catalog) {
    FrameworkProfile profile;
    const auto find = [&catalog](std::string_view name) { return find_framework(catalog, name); };
    const YamlNode* node = scenario.value("framework", Need::optional, "mcore-2024");
    if (node == nullptr) return profile;
    if (node->kind != YamlNode::Kind::mapping) {
        scenario.look_up("framework", Need::optional, profile, "mcore-2024", find);
        return profile;
    }
    Fields fields(scenario, "framework", Need::optional, "mcore-2024");
    profile.software.name = "custom";
    if (fields.look_up("base", Need::optional, profile, "mcore-2024", find) &&
        node->keys.size() > 1) {
        profile.software.name += " (changed)";
    }
    read_profile(fields, profile);
    return profile;
}

// ----------------------------------------------------------------------------------- the split

void read_order(Fields& parallel, Split& split) {
    const std::string_view example =
        split.context == 1 ? "[tensor, data, pipeline]" : "[tensor, context, data, pipeline]";
    constexpr std::pair<std::string_view, SplitAxis> axes[] = {{"tensor", SplitAxis::tensor},
                                                               {"context", SplitAxis::context},
                                                               {"pipeline", SplitAxis::pipeline},
                                                               {"data", SplitAxis::data}};
    const std::string_view names[] = {"tensor", "context", "pipeline", "data"};
    const std::size_t errors = parallel.report().errors();
    std::vector<SplitAxis> order;
    for (const YamlNode* word : parallel.words("order", Need::optional, example)) {
        const auto axis = std::ranges::find(axes, std::string_view(word->text),
                                            &std::pair<std::string_view, SplitAxis>::first);
        if (axis == std::end(axes)) {
            parallel.report().error(word->place, unknown("axis", shortened(word->text), names));
        } else if (std::ranges::find(order, axis->second) != order.end()) {
            parallel.report().error(
                word->place,
                fmt::format("axis '{}' is named twice; write for example {}", word->text, example));
        } else {
            order.push_back(axis->second);
        }
    }
    if (!parallel.has("order") || parallel.report().errors() > errors) return;
    // Where the sequence is not cut, the context axis need not be named.
    if (std::ranges::find(order, SplitAxis::context) == order.end() && split.context == 1) {
        order.push_back(SplitAxis::context);
    }
    if (order.size() != split.order.size()) {
        const std::string axes_named = split.context == 1
                                           ? fmt::format("{} of the 3 axes", order.size() - 1)
                                           : fmt::format("{} of the 4 axes", order.size());
        parallel.error("order",
                       fmt::format("'order' names {}; write for example {}", axes_named, example));
        return;
    }
    std::ranges::copy(order, split.order.begin());
}

// How layers are dealt to stages, until the number of stages is known.
struct StageLayout {
    bool lighter_ends = false;
    std::vector<std::int64_t> layers;
};

void read_stage_layers(Fields& parallel, StageLayout& layout) {
    constexpr std::string_view example = "[2, 3, 3, 2]";
    const YamlNode* node = parallel.value("stage_layers", Need::optional, example);
    if (node == nullptr) return;
    if (node->kind == YamlNode::Kind::list) {
        parallel.integers("stage_layers", Need::optional, layout.layers, {0, 1 << 14, 2}, example);
        return;
    }
    const bool is_number = node->kind == YamlNode::Kind::scalar &&
                           node->text.find_first_not_of("0123456789") == std::string::npos;
    if (is_number) {
        parallel.error("stage_layers",
                       fmt::format("'stage_layers' is one number; write one for each stage, for "
                                   "example {}",
                                   example));
        return;
    }
    parallel.choice<bool>("stage_layers", "way to deal layers to stages", Need::optional,
                          layout.lighter_ends, {{"even", false}, {"lighter_ends", true}});
}

// The first and the last stage have a layer less, in place of the embedding and the head (Qi et al.
// 2024, sec. 5.1; Megatron-LM, --account-for-embedding-in-pipeline-split).
void deal_layers(const StageLayout& layout, const YamlNode& tree, TrainingStep& step,
                 Report& report) {
    step.stage_layers = layout.layers;
    const std::int64_t stages = step.stages();
    if (!layout.lighter_ends || stages == 1) return;
    if ((step.model.layers + 2) % stages != 0 || step.model.layers + 2 < 2 * stages) {
        report.error(locate(tree, "parallel.stage_layers"),
                     fmt::format("{} layers and two for embedding and head do not make {} equal "
                                 "stages of at least 2; write a list of {} numbers",
                                 step.model.layers, stages, stages));
        return;
    }
    step.stage_layers.assign(static_cast<std::size_t>(stages), (step.model.layers + 2) / stages);
    --step.stage_layers.front();
    --step.stage_layers.back();
}

// Returns: whether the file says how many ways data is split; else what is left over is.
bool read_parallel(Fields& scenario, TrainingStep& step, StageLayout& layout) {
    Fields parallel(scenario, "parallel", Need::optional, "{tensor: 8, pipeline: 2}");
    Split& split = step.split;
    parallel.integer("tensor", Need::optional, split.tensor, {1, degree_max, 8});
    parallel.integer("context", Need::optional, split.context, {1, degree_max, 2});
    parallel.integer("pipeline", Need::optional, split.pipeline, {1, degree_max, 2});
    const bool has_data = parallel.has("data");
    parallel.integer("data", Need::optional, split.data, {1, degree_max, 2});
    read_sharding(parallel, split.sharding);
    parallel.choice<ShardUnit>("shard_unit", "shard unit", Need::optional, split.shard_unit,
                               {{"layer", ShardUnit::layer}, {"model", ShardUnit::model}});
    parallel.boolean("sequence_parallel", Need::optional, split.sequence_parallel);
    parallel.boolean("scatter_gather", Need::optional, split.scatter_gather);
    parallel.boolean("vocabulary_parallel", Need::optional, split.vocabulary_parallel);
    parallel.bytes("bucket", Need::optional, step.bucket, "25 MiB");
    read_order(parallel, split);
    read_stage_layers(parallel, layout);
    return has_data;
}

void read_batch(Fields& scenario, TrainingStep& step) {
    Fields batch(scenario, "batch", Need::required, "{global: 512, micro: 1}");
    batch.integer("global", Need::required, step.global_batch, {1, 1 << 24, 512});
    batch.integer("micro", Need::optional, step.micro_batch, {1, 1 << 16, 1});
}

void read_schedule(Fields& scenario, TrainingStep& step) {
    const auto plain = find_schedule("1f1b");
    if (plain) step.schedule = *plain;
    Fields schedule(scenario, "schedule", Need::optional, "{kind: 1f1b}");
    schedule.look_up("kind", Need::required, step.schedule, "1f1b", find_schedule);
    schedule.integer("chunks", Need::optional, step.chunks, {1, 1024, 2});
    read_point_to_point(schedule, step.point_to_point);
    schedule.boolean("defer_head_gradient", Need::optional, step.defer_head_gradient);
}

void read_details(Fields& scenario, TrainingStep& step) {
    scenario.choice<Recompute>("recompute", "recomputation", Need::optional, step.recompute,
                               {{"none", Recompute::none},
                                {"selective", Recompute::selective},
                                {"full", Recompute::full}});
    // Both halves are as wide: the choice shows in nothing that is simulated.
    int bits = 16;
    scenario.choice<int>("precision", "precision", Need::optional, bits,
                         {{"bf16", 16}, {"fp16", 16}});
    read_gradient_precision(scenario, step.gradient_bytes);
    Fields overlap(scenario, "overlap", Need::optional, "{gradients: true, parameters: true}");
    overlap.boolean("gradients", Need::optional, step.overlap_gradients);
    overlap.boolean("parameters", Need::optional, step.overlap_parameters);
    overlap.boolean("optimizer", Need::optional, step.overlap_optimizer);
    read_tensor_overlap(overlap, step.framework.tensor_overlap);
    scenario.boolean("gradient_clipping", Need::optional, step.gradient_norm);

    Fields collectives(scenario, "collectives", Need::optional, "{algorithm: ring}");
    const YamlNode* algorithm = collectives.value("algorithm", Need::required, "auto");
    if (algorithm == nullptr || algorithm->text == "auto") return;
    collectives.look_up("algorithm", Need::required, step.algorithm, "auto", find_algorithm);
}

void read_quantum(Fields& scenario, Bytes& into) {
    if (!scenario.bytes("quantum", Need::optional, into, "4 MiB")) return;
    if (const auto fine = check_quantum(into); !fine) scenario.error("quantum", fine.error().what);
}

void read_routing(Fields& scenario, Routing& into) {
    constexpr std::string_view example = "{kind: ecmp, seed: 1}";
    const auto read_kind = [&into](Fields& fields, std::string_view key) {
        fields.choice<Routing::Kind>(
            key, "routing", Need::required, into.kind,
            {{"balanced", Routing::Kind::balanced}, {"ecmp", Routing::Kind::ecmp}});
    };
    const YamlNode* node = scenario.value("routing", Need::optional, example);
    if (node == nullptr) return;
    if (node->kind != YamlNode::Kind::mapping) return read_kind(scenario, "routing");
    Fields fields(scenario, "routing", Need::optional, example);
    read_kind(fields, "kind");
    std::int64_t seed = 0;
    fields.integer("seed", Need::optional, seed, {0, 0xffff'ffff, 1});
    into.seed = static_cast<std::uint64_t>(seed);
    const YamlNode* kind = fields.value("kind", Need::optional, "ecmp");
    if (kind == nullptr || kind->text != "balanced" || !fields.has("seed")) return;
    fields.error_at_key("seed", "balanced routing leaves nothing to chance; remove 'seed'");
}

// ------------------------------------------------------------------------ measured, perturbed

std::optional<MeasuredTimes> read_times(Fields& measured, std::string_view key) {
    Fields fields(measured, key, Need::optional,
                  "{forward: 2 ms, input_gradient: 2 ms, weight_gradient: 2 ms}");
    if (!fields.present()) return std::nullopt;
    MeasuredTimes times;
    fields.duration("forward", Need::required, times.forward, any_duration);
    fields.duration("input_gradient", Need::required, times.input_gradient, any_duration);
    fields.duration("weight_gradient", Need::required, times.weight_gradient, any_duration);
    return times;
}

void read_measured(Fields& scenario, Measured& into) {
    Fields measured(scenario, "measured", Need::optional, "{optimizer: 5 ms}");
    into.stage = read_times(measured, "stage");
    into.layer = read_times(measured, "layer");
    into.embedding = read_times(measured, "embedding");
    into.head = read_times(measured, "head");
    Duration optimizer{};
    if (measured.duration("optimizer", Need::optional, optimizer, any_duration)) {
        into.optimizer = optimizer;
    }
    if (!measured.has("stage")) return;
    for (const std::string_view key : {"layer", "embedding", "head"}) {
        if (!measured.has(key)) continue;
        measured.error_at_key(key, fmt::format("the times of a 'stage' include those of its '{}'; "
                                               "remove one of them",
                                               key));
    }
}

// The ends at `key`, and when it happens.
SlowLink read_link(Fields& item, std::string_view key) {
    SlowLink slow;
    {
        Fields ends(item, key, Need::required, "{from: node0.device0, to: node0.switch}");
        ends.text("from", Need::required, slow.from, "node0.device0");
        ends.text("to", Need::required, slow.to, "node0.switch");
        slow.place = ends.place();
        slow.from_place = ends.place("from");
        slow.to_place = ends.place("to");
    }
    Duration at{};
    if (item.duration("at", Need::optional, at, any_duration)) slow.at = at;
    return slow;
}

SlowLink read_slow_link(Fields& item) {
    SlowLink slow = read_link(item, "slow_link");
    item.number("bandwidth", Need::optional, slow.bandwidth,
                {.min = 0, .max = 1, .above_min = true, .example = "0.5"});
    item.number("latency", Need::optional, slow.latency, slowdown);
    if (!item.has("bandwidth") && !item.has("latency")) {
        item.error("",
                   "a slow link needs 'bandwidth' or 'latency', which are factors; write for "
                   "example 'bandwidth: 0.5'");
    }
    if (slow.at && item.has("latency")) {
        item.error_at_key("latency",
                          "only 'bandwidth' changes at a time; remove 'latency' or 'at'");
    }
    return slow;
}

SlowLink read_failed_link(Fields& item, const Scenario& scenario) {
    SlowLink failed = read_link(item, "fail_link");
    failed.bandwidth = 0;
    if (!failed.at) return failed;
    if (scenario.links == LinkModel::flows) {
        item.error_at_key("at",
                          "flows do not leave a link that fails at a time; write 'network: "
                          "messages', or remove 'at': then it is not there from the start");
    } else if (scenario.quantum > Bytes{}) {
        item.error_at_key("at",
                          "messages in turns do not leave a link that fails at a time; remove "
                          "'quantum', or 'at': then it is not there from the start");
    }
    return failed;
}

SlowDevice read_slow_device(Fields& item, std::int64_t devices) {
    SlowDevice slow;
    std::int64_t device = 0;
    // Where the number of devices is not known, any that is possible will do.
    const std::int64_t last = (devices > 0 ? devices : degree_max) - 1;
    item.integer("slow_device", Need::required, device, {0, last, 0});
    item.number("factor", Need::required, slow.factor, slowdown);
    slow.device = static_cast<std::uint32_t>(device);
    return slow;
}

void read_jitter(Fields& scenario, Jitter& into) {
    constexpr Reals spread{.min = 0, .max = 1, .above_min = false, .example = "0.02"};
    Fields jitter(scenario, "jitter", Need::optional, "{compute: 0.02, links: 0.01, seed: 7}");
    if (!jitter.present()) return;
    jitter.number("compute", Need::optional, into.compute, spread);
    jitter.number("links", Need::optional, into.links, spread);
    std::int64_t seed = 0;
    jitter.integer("seed", Need::optional, seed, {0, std::int64_t{1} << 53, 7});
    into.seed = static_cast<std::uint64_t>(seed);
    if (jitter.has("compute") || jitter.has("links")) return;
    jitter.error("",
                 "jitter needs 'compute' or 'links', which are relative standard deviations; write "
                 "for example 'compute: 0.02'");
}

std::vector<SlowLink> read_perturb(Fields& scenario, std::int64_t devices, Scenario& into) {
    TrainingStep& step = into.step;
    std::vector<SlowLink> slow_links;
    std::set<std::uint32_t> slow_devices;
    const auto& items = scenario.list("perturb", Need::optional, "[{slow_device: 0, factor: 1.3}]");
    for (std::size_t i = 0; i < items.size(); ++i) {
        Fields item(items[i], items[i].place, fmt::format("perturb.{}", i), scenario.report());
        if (!item.present()) continue;
        const std::size_t errors = scenario.report().errors();
        if (item.has("slow_link") || item.has("fail_link")) {
            SlowLink slow =
                item.has("slow_link") ? read_slow_link(item) : read_failed_link(item, into);
            if (scenario.report().errors() == errors) slow_links.push_back(std::move(slow));
            continue;
        }
        if (!item.has("slow_device")) {
            item.has("factor");
            item.error("", "nothing is slow here; write for example 'slow_device: 0, factor: 1.3'");
            continue;
        }
        const SlowDevice slow = read_slow_device(item, devices);
        if (scenario.report().errors() > errors) continue;
        if (!slow_devices.insert(slow.device).second) {
            item.error("slow_device",
                       fmt::format("device {} is slowed twice; multiply the factors", slow.device));
        }
        step.slow_devices.push_back(slow);
    }
    return slow_links;
}

std::optional<Published> read_published(Fields& scenario) {
    Fields fields(scenario, "published", Need::optional, "{step_time: 24.8 s, source: its paper}");
    if (!fields.present()) return std::nullopt;
    Published published;
    fields.duration("step_time", Need::required, published.step_time,
                    {Duration(1), any_duration.max});
    fields.text("source", Need::required, published.source, "its paper, table");
    fields.text("group", Need::optional, published.group, "its paper");
    return published;
}

// ------------------------------------------------------------------------------- all together

// Bytes are counted in 64 bits, and so are micro-batches in memory: sizes that no machine holds
// are refused before anything multiplies them.
bool check_sizes(const TrainingStep& step, const YamlNode& tree, Report& report) {
    const auto real = [](std::int64_t n) { return static_cast<double>(n); };
    const Transformer& model = step.model;
    const double tokens = real(model.sequence) * real(step.micro_batch);
    const double widest = real(std::max({model.hidden, model.ffn, model.vocab}));
    const double scores = real(model.heads) * real(model.sequence);
    constexpr double elements_max = 0x1p56;  // of one tensor
    if (tokens * std::max(widest, scores) > elements_max) {
        report.error(
            locate(tree, "batch.micro"),
            fmt::format("{} sequences of {} tokens make a tensor of {:.2g} elements; use "
                        "smaller micro-batches",
                        step.micro_batch, model.sequence, tokens * std::max(widest, scores)));
        return false;
    }
    if (step.micro_batches() > micro_batches_max) {
        report.error(locate(tree, "batch.global"),
                     fmt::format("{} micro-batches in a step; at most {}: use a smaller "
                                 "batch or larger micro-batches",
                                 step.micro_batches(), micro_batches_max));
        return false;
    }
    return true;
}

void check_step(const TrainingStep& step, std::size_t devices, const YamlNode& tree,
                Report& report) {
    if (!check_sizes(step, tree, report)) return;
    const Result<void> sound = check(step, devices);
    if (!sound) report.error(locate(tree, sound.error().where), sound.error().what);
}

}  // namespace

std::optional<std::uint32_t> open_source(const std::string& file, Report& report) {
    const FileText read = read_file(file);
    const std::uint32_t source = report.add_source(file, read.text.value_or(""));
    if (read.text) return source;
    report.error(source, read.why_not);
    return std::nullopt;
}

std::optional<YamlNode> read_tree(std::uint32_t source, Report& report) {
    const std::size_t errors = report.errors();
    auto tree = parse_yaml({source, 0, 0}, report);
    const bool empty = !tree || tree->kind == YamlNode::Kind::empty;
    if (empty && report.errors() == errors) {
        report.error(source, "the file is empty; `fourfold init` writes a scenario to start from");
    }
    if (empty) return std::nullopt;
    return tree;
}

void apply_settings(const std::vector<Setting>& settings, YamlNode& tree, Report& report) {
    for (const Setting& setting : settings) {
        if (const auto change = parse_setting(setting, report)) apply(*change, tree, report);
    }
}

std::optional<Scenario> read_scenario(const YamlNode& tree, std::string_view name,
                                      const Catalog& catalog, Report& report) {
    const bool has_jobs = tree.kind == YamlNode::Kind::mapping && tree.find("jobs") != nullptr;
    return has_jobs ? read_jobs(tree, name, catalog, report)
                    : read_plain_scenario(tree, name, {}, catalog, report);
}

std::optional<Scenario> read_plain_scenario(const YamlNode& tree, std::string_view name,
                                            const std::vector<DeviceId>& devices,
                                            const Catalog& catalog, Report& report) {
    const std::size_t errors = report.errors();
    if (tree.kind != YamlNode::Kind::mapping) {
        const Fields complains(tree, tree.place, "", report);
        return std::nullopt;
    }
    Scenario scenario;
    scenario.name = name;
    TrainingStep& step = scenario.step;
    ClusterSection cluster;
    Routing routing;
    std::vector<NamedFlow> background;
    std::vector<SlowLink> slow_links;
    bool step_sound = false;
    {
        Fields fields(tree, tree.place, "", report);
        fields.text("name", Need::optional, scenario.name, "my scenario");
        const FrameworkProfile profile = read_framework_key(fields, catalog);
        apply(profile, step);
        read_model_key(fields, catalog, profile, step.model);
        const std::size_t errors_of_model = report.errors() - errors;

        cluster = read_cluster(fields, catalog);
        step.device = cluster.device;
        step.node = cluster.node;
        step.fabric = cluster.fabric;

        const std::size_t before_step = report.errors();
        StageLayout layout;
        const bool has_data = read_parallel(fields, step, layout);
        const std::int64_t others = step.split.tensor * step.split.context * step.split.pipeline;
        step.devices = devices;
        const std::int64_t own = devices.empty() ? cluster.devices : std::ssize(devices);
        if (!has_data && own > 0) step.split.data = std::max<std::int64_t>(1, own / others);
        read_batch(fields, step);
        read_schedule(fields, step);
        read_details(fields, step);
        read_measured(fields, step.measured);
        if (errors_of_model == 0 && report.errors() == before_step) {
            deal_layers(layout, tree, step, report);
        }
        step_sound = errors_of_model == 0 && report.errors() == before_step;

        fields.choice<LinkModel>("network", "network model", Need::optional, scenario.links,
                                 {{"flows", LinkModel::flows}, {"messages", LinkModel::messages}});
        read_quantum(fields, scenario.quantum);
        read_jitter(fields, step.jitter);
        read_routing(fields, routing);
        background = read_background(fields);
        if (scenario.quantum > Bytes{} && !background.empty()) {
            fields.error("quantum", "messages in turns know no background; remove one of them");
        }
        slow_links = read_perturb(fields, cluster.devices, scenario);
        scenario.published = read_published(fields);
    }
    if (step_sound && cluster.devices > 0) check_step(step, cluster.devices, tree, report);
    // A scenario that is wrong elsewhere still hears of its links, but not while building them is
    // large work for nothing.
    constexpr std::uint32_t built_anyway = 4096;
    if (!cluster.sound || (report.errors() > errors && cluster.devices > built_anyway)) {
        return std::nullopt;
    }
    auto graph = build_graph(cluster, routing, slow_links, tree, report);
    if (graph) step.background = look_up(background, graph->graph, report);
    if (!graph || report.errors() > errors) return std::nullopt;
    scenario.graph = std::move(graph->graph);
    scenario.changes = std::move(graph->changes);
    const bool folds = scenario.links == LinkModel::flows;
    const auto fold = folds ? fold_of(step, scenario.graph) : std::nullopt;
    if (const auto fits = check_tasks(step, fold); !fits) {
        report.error(locate(tree, fits.error().where), fits.error().what);
        return std::nullopt;
    }
    return scenario;
}

namespace {

tl::expected<Scenario, Diagnostics> read(std::uint32_t source, std::string_view name,
                                         const std::vector<Setting>& settings,
                                         const Catalog& catalog, Report& report) {
    std::optional<Scenario> scenario;
    if (auto tree = read_tree(source, report)) {
        apply_settings(settings, *tree, report);
        scenario = read_scenario(*tree, name, catalog, report);
    }
    if (report.errors() > 0 || !scenario) return tl::unexpected(report.diagnostics());
    return std::move(*scenario);
}

}  // namespace

tl::expected<Scenario, Diagnostics> load_scenario(const std::filesystem::path& file,
                                                  const std::vector<Setting>& settings,
                                                  const Catalog& catalog) {
    Report report;
    const auto source = open_source(file.string(), report);
    if (!source) return tl::unexpected(report.diagnostics());
    return read(*source, file.stem().string(), settings, catalog, report);
}

tl::expected<Scenario, Diagnostics> parse_scenario(std::string_view text, std::string_view file,
                                                   const std::vector<Setting>& settings,
                                                   const Catalog& catalog) {
    Report report;
    const std::uint32_t source = report.add_source(std::string(file), text);
    return read(source, std::filesystem::path(file).stem().string(), settings, catalog, report);
}

}  // namespace fourfold
