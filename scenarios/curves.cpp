// The commands about schedules and collectives alone: curves idle, curves ring, collective.

#include "results/curves.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>

#include "results/idle_curves.hpp"
#include "results/ring_curves.hpp"
#include "scenarios/arguments.hpp"
#include "scenarios/commands.hpp"
#include "scenarios/drawing.hpp"
#include "scenarios/progress.hpp"

namespace fourfold {
namespace {

// Draws `stem`.gp in `folder`, whose CSV is beside it.
int draw_curves(const std::filesystem::path& folder, const std::string& stem) {
    const int code = draw(folder / (stem + ".gp"));
    if (code == done) {
        fmt::print("wrote {0}.csv, {0}.gp, {0}.svg and {0}.png in {1}\n", stem, folder.string());
    }
    return code;
}

// The first problem of several results, if any has one.
template <class... Results>
std::optional<Problem> first_problem(const Results&... results) {
    std::optional<Problem> found;
    const auto look = [&](const auto& result) {
        if (!found && !result) found = result.error();
    };
    (look(results), ...);
    return found;
}

template <class Entry>
Result<std::vector<const Entry*>> entries(std::string_view option, const std::string& text,
                                          Result<const Entry*> (*find)(std::string_view)) {
    const auto names = name_list(option, text);
    if (!names) return tl::unexpected(names.error());
    std::vector<const Entry*> found;
    for (const std::string& name : *names) {
        const Result<const Entry*> entry = find(name);
        if (!entry) return problem(std::string(option), entry.error().what);
        found.push_back(*entry);
    }
    return found;
}

Result<std::optional<CollectiveQuestion::Nodes>> nodes_of(const CollectiveOptions& options) {
    if (options.per_node.empty()) return std::nullopt;
    const auto ranks = number_list("--per-node", options.per_node);
    const auto bandwidth = rate_argument("--node-bandwidth", options.node_bandwidth);
    const auto latency = duration_argument("--node-latency", options.node_latency);
    const auto shape = find_shape("switch");
    if (const auto wrong = first_problem(ranks, bandwidth, latency, shape)) {
        return tl::unexpected(*wrong);
    }
    if (ranks->size() != 1) return problem("--per-node", "one number, as in 8");
    return CollectiveQuestion::Nodes{
        .ranks = ranks->front(),
        .network = {.shape = *shape,
                    .link = {.bandwidth = *bandwidth, .latency = *latency},
                    .parameters = {}}};
}

}  // namespace

int idle_curve_command(const IdleCurveOptions& options) {
    const auto schedules = entries("--schedule", options.schedules, find_schedule);
    const auto pipeline = number_list("--pipeline", options.pipelines);
    const auto micro_batches = number_list("--micro-batches", options.micro_batches);
    const auto chunks = number_list("--chunks", options.chunks);
    const auto forward = duration_argument("--forward", options.forward);
    const auto input = duration_argument("--input-gradient", options.input_gradient);
    const auto weight = duration_argument("--weight-gradient", options.weight_gradient);
    const auto hop = duration_argument("--hop-latency", options.hop_latency);
    if (const auto wrong = first_problem(schedules, pipeline, micro_batches, chunks, forward, input,
                                         weight, hop)) {
        return refuse(*wrong);
    }
    std::vector<IdleRow> rows;
    Progress progress(schedules->size() * pipeline->size());
    for (const Schedule* schedule : *schedules) {
        for (const std::uint32_t depth : *pipeline) {
            progress.next(fmt::format("{} on {} ranks", schedule->name, depth));
            const auto some = idle_curves({.schedules = {schedule},
                                           .pipeline = {depth},
                                           .chunks = *chunks,
                                           .micro_batches = *micro_batches,
                                           .forward = *forward,
                                           .input_gradient = *input,
                                           .weight_gradient = *weight,
                                           .hop_latency = *hop});
            if (!some) return refuse(some.error());
            rows.insert(rows.end(), some->begin(), some->end());
        }
    }
    const std::filesystem::path folder = options.out;
    const bool written =
        write_file(folder / "idle.csv", [&](std::ostream& out) { write_idle_csv(out, rows); }) &&
        write_file(folder / "idle.gp", [&](std::ostream& out) { write_idle_gnuplot(out, rows); });
    return written ? draw_curves(folder, "idle") : failed;
}

int ring_curve_command(const RingCurveOptions& options) {
    const auto algorithms = entries("--algorithm", options.algorithms, find_algorithm);
    const auto ranks = number_list("--ranks", options.ranks);
    const auto bytes = bytes_argument("--bytes", options.bytes);
    const auto bandwidth = rate_argument("--bandwidth", options.bandwidth);
    const auto latency = duration_argument("--latency", options.latency);
    const auto network = link_model(options.network);
    const auto shape = find_shape("switch");
    if (const auto wrong =
            first_problem(algorithms, ranks, bytes, bandwidth, latency, network, shape)) {
        return refuse(*wrong);
    }
    const RingQuestion question{.kind = CollectiveKind::all_reduce,
                                .algorithms = *algorithms,
                                .ranks = *ranks,
                                .bytes = *bytes,
                                .network = {.shape = *shape,
                                            .link = {.bandwidth = *bandwidth, .latency = *latency},
                                            .parameters = {}},
                                .links = *network};
    const auto rows = ring_curves(question);
    if (!rows) return refuse(rows.error());
    const std::filesystem::path folder = options.out;
    const bool written =
        write_file(folder / "ring.csv", [&](std::ostream& out) { write_ring_csv(out, *rows); }) &&
        write_file(folder / "ring.gp",
                   [&](std::ostream& out) { write_ring_gnuplot(out, question, *rows); });
    return written ? draw_curves(folder, "ring") : failed;
}

int collective_command(const CollectiveOptions& options) {
    const auto kind = find_collective_kind(options.kind);
    const bool chooses = options.algorithm == "auto";
    const Result<const Algorithm*> algorithm =
        chooses ? Result<const Algorithm*>(nullptr) : find_algorithm(options.algorithm);
    const auto ranks = number_list("--ranks", options.ranks);
    const auto bytes = bytes_argument("--bytes", options.bytes);
    const auto shape = find_shape(options.shape);
    const auto bandwidth = rate_argument("--bandwidth", options.bandwidth);
    const auto latency = duration_argument("--latency", options.latency);
    const auto nodes = nodes_of(options);
    const auto network = link_model(options.network);
    const auto quantum = quantum_argument("--quantum", options.quantum);
    const auto routing = routing_argument(options.routing);
    if (const auto wrong = first_problem(kind, algorithm, ranks, bytes, shape, bandwidth, latency,
                                         nodes, network, quantum, routing)) {
        return refuse(*wrong);
    }
    if (ranks->size() != 1) {
        return refuse({"--ranks", "one number, as in 64; curves ring takes a list"});
    }
    if (*quantum > Bytes{} && *network == LinkModel::flows) {
        fmt::print(stderr, "fourfold: warning: --quantum: {}\n", quantum_of_flows);
    }
    const auto run =
        run_collective({.kind = *kind,
                        .algorithm = *algorithm,
                        .ranks = ranks->front(),
                        .bytes = *bytes,
                        .root = 0,
                        .network = {.shape = *shape,
                                    .link = {.bandwidth = *bandwidth, .latency = *latency},
                                    .parameters = options.parameters},
                        .nodes = *nodes,
                        .links = *network,
                        .quantum = *quantum,
                        .routing = *routing,
                        .start = {}});
    if (!run) return refuse(run.error());

    const auto seconds = [](Duration duration) { return to_seconds(duration); };
    if (options.json) {
        nlohmann::ordered_json json = {
            {"kind", options.kind},
            {"algorithm", run->algorithm},
            {"ranks", ranks->front()},
            {"ranks_per_node", *nodes ? (*nodes)->ranks : ranks->front()},
            {"bytes", bytes->value},
            {"network", options.network},
            {"routing", options.routing},
            {"time_s", seconds(run->time)},
            {"closed_form_s", run->closed_form ? nlohmann::ordered_json(seconds(*run->closed_form))
                                               : nlohmann::ordered_json(nullptr)},
            {"bound_s", seconds(run->bound)},
            {"messages", run->messages},
            {"wire_bytes_per_rank", run->wire_bytes_per_rank.value},
            {"algbw_bytes_per_s", run->algorithm_bandwidth},
            {"busbw_bytes_per_s", run->bus_bandwidth},
            {"events", run->events},
            {"seconds", run->seconds},
            {"peak_memory_bytes", run->peak_memory_bytes},
        };
        std::cout << json.dump(2) << "\n";
    } else {
        std::cout << fmt::format(
            "{} of {} by {} over {} ranks{}, {}\n"
            "  time             {}\n"
            "  closed form      {}\n"
            "  bound            {}\n"
            "  algbw            {:.2f} GB/s\n"
            "  busbw            {:.2f} GB/s\n"
            "  messages         {}\n"
            "  sent by a rank   {}\n",
            options.kind, to_text(*bytes), run->algorithm, ranks->front(),
            *nodes ? fmt::format(" in nodes of {}", (*nodes)->ranks) : "", options.network,
            to_text(run->time),
            run->closed_form ? to_text(*run->closed_form) : "none on this shape",
            to_text(run->bound), run->algorithm_bandwidth * 1e-9, run->bus_bandwidth * 1e-9,
            run->messages, to_text(run->wire_bytes_per_rank));
    }
    return std::cout.flush() ? done : failed;
}

}  // namespace fourfold
