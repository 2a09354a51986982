#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "results/report.hpp"
#include "results/table.hpp"

namespace fourfold {
namespace {

// 145642823680 -> "145.6 B"
std::string short_count(double count) {
    static constexpr std::pair<double, std::string_view> scales[] = {
        {1e12, "T"}, {1e9, "B"}, {1e6, "M"}, {1e3, "k"}};
    for (const auto& [scale, suffix] : scales) {
        if (count >= scale) return fmt::format("{:.4g} {}", count / scale, suffix);
    }
    return fmt::format("{:.4g}", count);
}

std::string_view name_of(Sharding sharding) {
    static constexpr std::string_view names[] = {"none", "optimizer", "gradients", "weights"};
    return names[static_cast<std::size_t>(sharding)];
}
std::string_view name_of(Recompute recompute) {
    static constexpr std::string_view names[] = {"none", "selective", "full"};
    return names[static_cast<std::size_t>(recompute)];
}
std::string_view name_of(SplitAxis axis) {
    static constexpr std::string_view names[] = {"tensor", "context", "pipeline", "data"};
    return names[static_cast<std::size_t>(axis)];
}

std::string order_text(const Split& split) {
    std::string text;
    for (const SplitAxis axis : split.order) {
        if (axis == SplitAxis::context && split.context == 1) continue;
        text += fmt::format(" {}", name_of(axis));
    }
    return text;
}

std::string network_text(const Report& report) {
    std::string text = report.links == LinkModel::flows ? "flows" : "messages";
    const Routing& routing = report.graph.routing();
    if (routing.kind == Routing::Kind::ecmp) {
        text += fmt::format(", routing ecmp (seed {})", routing.seed);
    }
    return text;
}

std::string configuration(const Report& report) {
    const TrainingStep& step = report.step;
    const Transformer& model = step.model;
    const Split& split = step.split;
    std::set<std::uint32_t> nodes;
    for (const VertexId device : report.graph.devices()) nodes.insert(report.graph[device].node);

    std::string text = fmt::format(
        "  model     {}: {} parameters, {} layers, hidden {}, {} heads, vocabulary {}, sequence "
        "{}\n",
        model.name.empty() ? "transformer" : model.name,
        short_count(static_cast<double>(parameters(model))), model.layers, model.hidden,
        model.heads, model.vocab, model.sequence);
    text +=
        fmt::format("  cluster   {} x {} in {} node{}\n", grouped(report.graph.devices().size()),
                    step.device.name, grouped(nodes.size()), nodes.size() == 1 ? "" : "s");
    text += fmt::format("  split     tensor {}{}{} x pipeline {} x data {}, sharding {}, order{}\n",
                        split.tensor, split.sequence_parallel ? " (sequence parallel)" : "",
                        split.context > 1 ? fmt::format(" x context {}", split.context) : "",
                        split.pipeline, split.data, name_of(split.sharding), order_text(split));
    text +=
        fmt::format("  batch     {} sequences, {} micro-batch{} of {} on each data rank\n",
                    grouped(static_cast<std::uint64_t>(step.global_batch)), step.micro_batches(),
                    step.micro_batches() == 1 ? "" : "es", step.micro_batch);
    text += fmt::format("  schedule  {}{}, point-to-point {}, recompute {}; network {}\n",
                        step.schedule->name,
                        step.chunks > 1 ? fmt::format(", {} chunks", step.chunks) : "",
                        step.point_to_point == PointToPoint::blocking ? "blocking" : "overlapped",
                        name_of(step.recompute), network_text(report));
    text += fmt::format("  software  {}\n", step.framework.name);
    return text;
}

std::string background_text(const Report& report) {
    constexpr std::size_t shown = 8;
    const std::vector<BackgroundFlow>& flows = report.step.background;
    if (flows.empty()) return "";
    const auto device_name = [&](DeviceId device) {
        return report.graph[report.graph.devices()[device.value]].name;
    };
    std::vector<std::vector<std::string>> rows{{"from", "to", "each", "at", "every", "arrived"}};
    for (std::size_t i = 0; i < std::min(shown, flows.size()); ++i) {
        const BackgroundFlow& flow = flows[i];
        rows.push_back({device_name(flow.from), device_name(flow.to), to_text(flow.bytes),
                        to_text(flow.at),
                        flow.every > Duration::zero() ? to_text(flow.every) : "once",
                        grouped(report.evaluation.background[i])});
    }
    std::string text = "\n  messages of others, no part of the step\n" + aligned(rows, {0, 1});
    if (flows.size() > shown) text += fmt::format("  and {} more flows\n", flows.size() - shown);
    return text;
}

double error_of(const Report& report) {
    return to_seconds(report.evaluation.measures.step_time) / to_seconds(*report.published) - 1;
}

std::string speed(const Report& report) {
    const Measures& measures = report.evaluation.measures;
    std::string text = fmt::format("  step time    {}", to_text(measures.step_time));
    if (report.published) {
        text += fmt::format("   (published {}: {:+.1f} %)", to_text(*report.published),
                            100 * error_of(report));
    }
    text += "\n";
    text += fmt::format(
        "  speed        {} tokens/s; per device {:.1f} TFLOP/s of the model, {:.1f} with "
        "recomputation\n",
        short_count(measures.tokens_per_second), measures.flops_per_device * 1e-12,
        measures.hardware_flops_per_device * 1e-12);
    text += fmt::format("  efficiency   MFU {} ({} attention), HFU {}\n", percent(measures.mfu),
                        measures.convention == FlopsConvention::full ? "full" : "causal",
                        percent(measures.hfu));
    text += fmt::format("  idle         {} of the step, pipeline bubble {}\n",
                        percent(measures.idle_fraction), percent(measures.bubble_fraction));
    return text;
}

std::string how_certain(const Uncertainty& known) {
    std::string text =
        fmt::format("  90 % within  {} .. {}\n", to_text(known.low), to_text(known.high));
    constexpr std::size_t shown = 3;
    for (std::size_t i = 0; i < std::min(shown, known.elasticities.size()); ++i) {
        const Elasticity& each = known.elasticities[i];
        const double cost = each.cost_of_ten_percent();
        if (cost < 0.0005) break;
        text += fmt::format("  {:<12} 10 % slower {} cost{} {:.1f} %\n", i == 0 ? "depends on" : "",
                            each.name, each.name.back() == 's' ? "" : "s", 100 * cost);
    }
    return text;
}

std::string where_time_goes(const Measures& measures) {
    std::string text = "  where the time goes (mean over devices)\n";
    for (std::size_t i = 0; i < time_class_count; ++i) {
        if (measures.time[i] <= 0) continue;
        const auto bar = static_cast<std::size_t>(std::lround(40 * measures.time[i]));
        text += fmt::format("    {:<16} {:>7}{}{}\n", name_of(static_cast<TimeClass>(i)),
                            percent(measures.time[i]), bar > 0 ? "  " : "", std::string(bar, '#'));
    }
    return text;
}

// The class of time that changed most, in seconds per step.
std::string largest_change(const Measures& before, const Measures& after) {
    std::size_t most = 0;
    double change = 0;
    for (std::size_t i = 0; i < time_class_count; ++i) {
        const double seconds = after.time[i] * to_seconds(after.step_time) -
                               before.time[i] * to_seconds(before.step_time);
        if (std::abs(seconds) <= std::abs(change)) continue;
        most = i;
        change = seconds;
    }
    if (change == 0) return "nothing changes";
    return fmt::format("{} {}{}", name_of(static_cast<TimeClass>(most)), change > 0 ? "+" : "-",
                       to_text(from_seconds(std::abs(change))));
}

}  // namespace

std::string traffic_text(const Report& report) {
    std::vector<std::vector<std::string>> rows;
    rows.push_back({"axis", "operation", "per step", "each", "on the wire", "kind", "waits",
                    "moving", "can hide in", "link", "share"});
    for (const TrafficRow& row : report.evaluation.traffic) {
        const Bytes each{std::llround(row.bytes_per_operation())};
        rows.push_back({std::string(fourfold::name_of(row.axis)), row.operation,
                        grouped(row.operations), to_text(each), to_text(row.wire_bytes),
                        row.point_to_point ? "point-to-point" : "collective",
                        row.blocking ? "yes" : "no", to_text(row.transfer), to_text(row.window),
                        report.graph.name(row.link), percent(row.link_share)});
    }
    if (rows.size() == 1) return "  no traffic\n";
    return "  traffic of the busiest device, per step\n" + aligned(rows, {0, 1, 5, 6, 9});
}

std::string to_text(const Report& report) {
    const Evaluation& evaluation = report.evaluation;
    std::string text = report.name + "\n" + configuration(report) + "\n" + speed(report);
    if (evaluation.uncertainty) text += how_certain(*evaluation.uncertainty);
    text += "\n" + where_time_goes(evaluation.measures) + "\n" + traffic_text(report) +
            background_text(report);
    if (!evaluation.warnings.empty()) text += "\n";
    for (const std::string& warning : evaluation.warnings) {
        text += fmt::format("  warning: {}\n", warning);
    }
    return text;
}

std::string to_text(const JobsReport& report) {
    std::vector<std::vector<std::string>> rows;
    rows.push_back({"job", "devices", "alone", "together", "slowdown"});
    for (std::size_t i = 0; i < report.jobs.size(); ++i) {
        const JobEvaluation& job = report.evaluations[i];
        rows.push_back({report.jobs[i].name, grouped(job.evaluation.measures.devices),
                        to_text(job.alone), to_text(job.evaluation.measures.step_time),
                        fmt::format("{:.3f}", job.slowdown())});
    }
    std::string text = report.name + "\n" + aligned(rows, {0});
    for (const Report& job : report.jobs) text += "\n" + to_text(job);
    return text;
}

std::string table_text(std::span<const Report> reports) {
    std::vector<std::vector<std::string>> rows;
    rows.push_back({"scenario", "devices", "step time", "published", "error", "TFLOP/s", "MFU",
                    "idle", "bubble"});
    double sum = 0, worst = 0;
    std::size_t compared = 0;
    for (const Report& report : reports) {
        const Measures& measures = report.evaluation.measures;
        std::string published, error;
        if (report.published) {
            published = to_text(*report.published);
            error = fmt::format("{:+.1f} %", 100 * error_of(report));
            sum += std::abs(error_of(report));
            worst = std::max(worst, std::abs(error_of(report)));
            ++compared;
        }
        rows.push_back({report.name, grouped(measures.devices), to_text(measures.step_time),
                        published, error,
                        fmt::format("{:.1f}", measures.hardware_flops_per_device * 1e-12),
                        percent(measures.mfu), percent(measures.idle_fraction),
                        percent(measures.bubble_fraction)});
    }
    std::string text = aligned(rows, {0});
    text += "  TFLOP/s per device, recomputation included\n";
    if (compared > 0) {
        text +=
            fmt::format("  against {} published step times: mean absolute error {}, largest {}\n",
                        compared, percent(sum / static_cast<double>(compared)), percent(worst));
    }
    return text;
}

std::string comparison_text(std::span<const Report> reports) {
    std::vector<std::vector<std::string>> rows;
    rows.push_back({"what if", "step time", "change", "MFU", "idle", "bubble", "mostly"});
    const Measures& base = reports.front().evaluation.measures;
    for (const Report& report : reports) {
        const Measures& measures = report.evaluation.measures;
        const bool is_base = &report == &reports.front();
        const double change = to_seconds(measures.step_time) / to_seconds(base.step_time) - 1;
        rows.push_back({report.name, to_text(measures.step_time),
                        is_base ? "" : fmt::format("{:+.1f} %", 100 * change),
                        percent(measures.mfu), percent(measures.idle_fraction),
                        percent(measures.bubble_fraction),
                        is_base ? "" : largest_change(base, measures)});
    }
    return aligned(rows, {0, 6});
}

}  // namespace fourfold
