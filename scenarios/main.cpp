// The command line. Every command is a function in commands.hpp; only this file exits.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <variant>
#include <vector>

#include "scenarios/commands.hpp"
#include "topology/closest.hpp"
#include "topology/memory.hpp"

namespace fourfold {
namespace {

void add_scenario_options(CLI::App& command, ScenarioOptions& options) {
    command.add_option("SCENARIO", options.files, "scenario or what-if files (YAML)")->required();
    command.add_option("--set", options.settings, "change a key before reading: path=value")
        ->type_name("PATH=VALUE")
        ->allow_extra_args(false);
    command.add_option("--network", options.network, "link model: flows or messages");
    command.add_option("--catalog", options.catalog,
                       "folder with devices/, links/ and models/ of your own");
}

/// An option for a parameter of a shape, or two if it is a link.
struct ShapeOption {
    template <class Value>
    void operator()(Value ShapeParameters::*member) const {
        command.add_option(option, into.*member, meaning);
    }
    void operator()(LinkSpec ShapeParameters::*link) const {
        add("-bandwidth", (into.*link).bandwidth, parse_rate);
        add("-latency", (into.*link).latency, parse_duration);
    }
    template <class Value>
    void add(const char* suffix, Value& value, Result<Value> (*parse)(std::string_view)) const {
        const auto read = [&value, parse](const std::string& text) {
            const Result<Value> parsed = parse(text);
            if (parsed) value = *parsed;
            return parsed ? std::string() : parsed.error().what;
        };
        command.add_option(option + suffix)->description(meaning)->check(read);
    }
    CLI::App& command;
    const std::string& option;
    const std::string& meaning;
    ShapeParameters& into;
};

/// "--leaf-ports" for `leaf_ports`, and so on.
void add_shape_options(CLI::App& command, ShapeParameters& into) {
    for (const Shape* shape : shapes()) {
        for (const ShapeParameter& each : shape->parameters) {
            std::string option = fmt::format("--{}", each.name);
            std::ranges::replace(option, '_', '-');
            if (command.get_option_no_throw(option) != nullptr) continue;  // another shape's, too
            const std::string meaning = fmt::format("{}: {}", shape->name, each.meaning);
            std::visit(ShapeOption{command, option, meaning, into}, each.field);
        }
    }
}

// CLI11 takes a mistyped command or option for an extra argument: say what was meant.
std::string usage_message(const CLI::App& app, const CLI::ParseError& error,
                          std::span<char* const> arguments) {
    const CLI::App* at = &app;  // the innermost command that was recognised
    for (const CLI::App* next = at; next != nullptr;) {
        const auto chosen = at->get_subcommands();
        next = chosen.empty() ? nullptr : chosen.front();
        if (next != nullptr) at = next;
    }
    std::vector<std::string> names;
    const auto known = [&] { return std::vector<std::string_view>(names.begin(), names.end()); };
    for (const CLI::App* command : at->get_subcommands({})) names.push_back(command->get_name());
    const std::size_t depth = at == &app ? 0 : 1;
    const bool lacks_command = !names.empty() && arguments.size() > depth;
    if (lacks_command && arguments[depth][0] != '-') {
        return unknown("command", arguments[depth], known());
    }
    names.clear();
    for (const CLI::Option* option : at->get_options()) {
        for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    }
    for (const std::string_view argument : arguments) {
        const std::string_view name = argument.substr(0, argument.find('='));
        if (!name.starts_with("--") || std::ranges::find(names, name) != names.end()) continue;
        return unknown("option", name, known());
    }
    return error.what();
}

int usage_error(const CLI::App& app, const CLI::ParseError& error,
                std::span<char* const> arguments) {
    const bool is_help = error.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success);
    if (is_help) return app.exit(error);
    fmt::print(stderr, "fourfold: error: {}\nSee fourfold --help.\n",
               usage_message(app, error, arguments));
    return bad_input;
}

int run_main(int argc, char** argv) {
    CLI::App app("Simulates one training step of a large model on a cluster that you describe.",
                 "fourfold");
    app.require_subcommand(1);
    app.set_version_flag("--version", "fourfold 0.1.0");
    int code = done;

    std::string init_file;
    CLI::App* init = app.add_subcommand("init", "write a commented scenario");
    init->add_option("FILE", init_file, "where to; standard output if left out");
    init->callback([&] { code = init_command(init_file); });

    RunOptions run_options;
    CLI::App* run = app.add_subcommand("run", "simulate scenarios and print what they take");
    add_scenario_options(*run, run_options.scenarios);
    run->add_flag("--json", run_options.json, "print JSON");
    run->add_flag("--audit", run_options.audit, "check the timeline by independent code");
    run->add_flag("!--no-fold", run_options.fold, "simulate devices that behave alike, too");
    run->add_option("--trace", run_options.trace, "write a Chrome trace (opens in Perfetto)")
        ->type_name("FILE.json");
    run->callback([&] { code = run_command(run_options); });

    ScenarioOptions traffic_options;
    bool traffic_as_json = false;
    CLI::App* traffic = app.add_subcommand("traffic", "print the traffic of each axis");
    add_scenario_options(*traffic, traffic_options);
    traffic->add_flag("--json", traffic_as_json, "print JSON");
    traffic->callback([&] { code = traffic_command(traffic_options, traffic_as_json); });

    TopologyOptions topology_options;
    CLI::App* topology = app.add_subcommand(
        "topology", "print what the cluster is made of, its diameter, bisection and a route");
    add_scenario_options(*topology, topology_options.scenarios);
    topology->add_option("--route", topology_options.route, "two ranks or devices, as in 0,9");
    topology->add_option("--dot", topology_options.dot, "write the graph for Graphviz")
        ->type_name("FILE.dot");
    topology->add_flag("--json", topology_options.json, "print JSON");
    topology->callback([&] { code = topology_command(topology_options); });

    ValidateOptions validate_options;
    validate_options.jobs = std::max(1U, std::thread::hardware_concurrency());
    CLI::App* validate =
        app.add_subcommand("validate", "compare predicted with published step times");
    add_scenario_options(*validate, validate_options.scenarios);
    validate->get_option("SCENARIO")->description("scenario files (YAML), or folders of them");
    validate->add_flag("--rows", validate_options.rows, "print a line for each scenario, too");
    validate->add_flag("--json", validate_options.json, "print JSON");
    validate->add_option("--csv", validate_options.csv, "write a line for each scenario")
        ->type_name("FILE.csv");
    validate->add_option("--plot", validate_options.plot, "draw predicted over measured (gnuplot)")
        ->type_name("FILE.svg");
    validate->add_option("--jobs", validate_options.jobs, "scenarios simulated at a time")
        ->check(CLI::Range(1U, 1024U));
    validate->callback([&] { code = validate_command(validate_options); });

    CalibrateOptions calibrate_options;
    CLI::App* calibrate = app.add_subcommand(
        "calibrate", "fit a device's and a link's constants on measured kernels");
    calibrate->add_option("TABLE", calibrate_options.files, "CSV, or what nccl-tests printed")
        ->required();
    CLI::Option* base = calibrate->add_option("--device", calibrate_options.device,
                                              "what to start from: a catalog's name or a .yaml");
    CLI::Option* base_out =
        calibrate->add_option("--out", calibrate_options.out, "device to write");
    base->type_name("BASE")->needs(base_out->type_name("FILE.yaml")->needs(base));
    CLI::Option* link = calibrate->add_option("--link", calibrate_options.link,
                                              "what to start from: a catalog's name or a .yaml");
    CLI::Option* link_out =
        calibrate->add_option("--link-out", calibrate_options.link_out, "link to write");
    link->type_name("BASE")->needs(link_out->type_name("FILE.yaml")->needs(link));
    calibrate->add_option("--only", calibrate_options.only, "whose rows, where a table has several")
        ->type_name("NAME")
        ->allow_extra_args(false);
    calibrate->add_flag("--json", calibrate_options.json, "print JSON");
    calibrate->callback([&] { code = calibrate_command(calibrate_options); });

    ScenarioOptions check_options;
    CLI::App* check =
        app.add_subcommand("check", "read scenarios and report what is wrong in them");
    add_scenario_options(*check, check_options);
    check->callback([&] { code = check_command(check_options); });

    std::string list_what, list_catalog;
    bool list_constants = false;
    CLI::App* list = app.add_subcommand("list", "print what scenarios can name");
    list->add_option("WHAT", list_what,
                     "shapes, devices, links, clusters, frameworks, models, schedules or "
                     "collectives; all if left out");
    list->add_flag("--constants", list_constants,
                   "every number of devices, links, clusters and frameworks with its source");
    list->add_option("--catalog", list_catalog, "folder with devices/, links/ and models/");
    list->callback([&] { code = list_command(list_what, list_constants, list_catalog); });

    CollectiveOptions collective_options{.kind = {},
                                         .algorithm = "auto",
                                         .ranks = {},
                                         .bytes = {},
                                         .shape = "switch",
                                         .bandwidth = {},
                                         .latency = {},
                                         .network = "flows",
                                         .routing = "balanced",
                                         .per_node = {},
                                         .node_bandwidth = {},
                                         .node_latency = {},
                                         .quantum = {},
                                         .parameters = {}};
    CLI::App* collective = app.add_subcommand("collective", "time one collective");
    collective
        ->add_option("KIND", collective_options.kind,
                     "all_reduce, reduce_scatter, all_gather, all_to_all or broadcast")
        ->required();
    collective->add_option("--algorithm", collective_options.algorithm,
                           "see fourfold list collectives, or auto");
    collective->add_option("--ranks", collective_options.ranks)->required();
    collective->add_option("--bytes", collective_options.bytes, "for example 64MiB")->required();
    collective->add_option("--shape", collective_options.shape, "see fourfold list shapes");
    collective->add_option("--bandwidth", collective_options.bandwidth, "of each link")->required();
    collective->add_option("--latency", collective_options.latency, "of each link")->required();
    add_shape_options(*collective, collective_options.parameters);
    CLI::Option* per_node = collective->add_option("--per-node", collective_options.per_node,
                                                   "ranks in each node, on a switch of their own");
    CLI::Option* node_bandwidth = collective->add_option(
        "--node-bandwidth", collective_options.node_bandwidth, "of each link in a node");
    CLI::Option* node_latency = collective->add_option(
        "--node-latency", collective_options.node_latency, "of each link in a node");
    per_node->needs(node_bandwidth)->needs(node_latency);
    node_bandwidth->needs(per_node);
    node_latency->needs(per_node);
    collective->add_option("--network", collective_options.network, "flows or messages");
    collective->add_option("--quantum", collective_options.quantum,
                           "with messages: links serve those that wait in turns of, as in 4MiB");
    collective->add_option("--routing", collective_options.routing, "balanced or ecmp");
    collective->add_flag("--json", collective_options.json, "print JSON");
    collective->callback([&] { code = collective_command(collective_options); });

    CLI::App* curves = app.add_subcommand("curves", "write curves as CSV and plots");
    curves->require_subcommand(1);

    IdleCurveOptions idle_options{.out = {},
                                  .schedules = "gpipe,1f1b,interleaved_1f1b,zb1p",
                                  .pipelines = "2,4,8,16,32",
                                  .micro_batches = "1..256",
                                  .chunks = "1,2",
                                  .forward = "1ms",
                                  .input_gradient = "1ms",
                                  .weight_gradient = "1ms",
                                  .hop_latency = "0us"};
    CLI::App* idle = curves->add_subcommand("idle", "idle fraction of pipeline schedules");
    idle->add_option("--out", idle_options.out, "folder")->required();
    idle->add_option("--schedule", idle_options.schedules, "names, comma-separated");
    idle->add_option("--pipeline", idle_options.pipelines, "depths, as in 2,4,8");
    idle->add_option("--micro-batches", idle_options.micro_batches, "as in 1..256 or 8,16");
    idle->add_option("--chunks", idle_options.chunks, "model chunks of a rank, as in 2,4");
    idle->add_option("--forward", idle_options.forward, "of a whole stage and micro-batch");
    idle->add_option("--input-gradient", idle_options.input_gradient);
    idle->add_option("--weight-gradient", idle_options.weight_gradient);
    idle->add_option("--hop-latency", idle_options.hop_latency, "between stages");
    idle->callback([&] { code = idle_curve_command(idle_options); });

    RingCurveOptions ring_options{.out = {},
                                  .ranks = "2,4,8,16,32,64,128,256,512,1024",
                                  .algorithms = "ring,tree,direct,central",
                                  .bytes = "64MiB",
                                  .bandwidth = "25GB/s",
                                  .latency = "5us",
                                  .network = "flows"};
    CLI::App* ring = curves->add_subcommand("ring", "all-reduce time against the number of ranks");
    ring->add_option("--out", ring_options.out, "folder")->required();
    ring->add_option("--ranks", ring_options.ranks, "as in 2,4,8 or 2..64");
    ring->add_option("--algorithm", ring_options.algorithms, "names, comma-separated");
    ring->add_option("--bytes", ring_options.bytes);
    ring->add_option("--bandwidth", ring_options.bandwidth, "of each link");
    ring->add_option("--latency", ring_options.latency, "of each link");
    ring->add_option("--network", ring_options.network, "flows or messages");
    ring->callback([&] { code = ring_curve_command(ring_options); });

    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        return usage_error(app, error, {argv + 1, static_cast<std::size_t>(argc) - 1});
    }
    return code;
}

}  // namespace
}  // namespace fourfold

int main(int argc, char** argv) {
    std::signal(SIGPIPE, SIG_IGN);  // a closed pipe is a failed write, not a crash
    fourfold::keep_freed_memory();
    return fourfold::run_main(argc, argv);
}
