// The commands that compute nothing: init, check, list.

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <span>
#include <variant>

#include "results/table.hpp"
#include "scenarios/arguments.hpp"
#include "scenarios/commands.hpp"
#include "scenarios/embedded.hpp"
#include "scenarios/loading.hpp"
#include "topology/closest.hpp"
#include "topology/shapes/shape.hpp"
#include "workloads/collectives/collective.hpp"
#include "workloads/schedules/schedule.hpp"

namespace fourfold {
namespace {

std::string list_text(std::string_view title,
                      const std::vector<std::pair<std::string, std::string>>& rows) {
    std::size_t width = 0;
    for (const auto& [name, summary] : rows) width = std::max(width, name.size());
    std::string text = fmt::format("{}\n", title);
    for (const auto& [name, summary] : rows) {
        text += fmt::format("  {:<{}}  {}\n", name, width, summary);
    }
    return text;
}

template <class Entry>
std::string catalog_text(std::string_view title, std::span<const Entry* const> entries) {
    std::vector<std::pair<std::string, std::string>> rows;
    for (const Entry* entry : entries) {
        rows.emplace_back(std::string(entry->name), std::string(entry->summary));
    }
    return list_text(title, rows);
}

std::string default_text(const ShapeParameter& parameter) {
    static const ShapeParameters unset;
    struct Text {
        std::string operator()(std::vector<std::int64_t> ShapeParameters::* /*sizes*/) const {
            return "needed";
        }
        std::string operator()(LinkSpec ShapeParameters::* /*link*/) const { return "needed"; }
        std::string operator()(bool ShapeParameters::*truth) const {
            return fmt::format("{}", unset.*truth);
        }
        std::string operator()(double ShapeParameters::*ratio) const {
            return fmt::format("{}", unset.*ratio);
        }
        std::string operator()(std::int64_t ShapeParameters::*count) const {
            return fmt::format("{}", unset.*count);
        }
    };
    return std::visit(Text{}, parameter.field);
}

// Each with the parameters that it takes, and its picture.
std::string shapes_text() {
    std::string text = "shapes\n";
    for (const Shape* shape : shapes()) {
        text += fmt::format("\n  {}: {}\n", shape->name, shape->summary);
        std::vector<std::vector<std::string>> rows;
        for (const ShapeParameter& each : shape->parameters) {
            rows.push_back({std::string(each.name), default_text(each), std::string(each.meaning)});
        }
        if (!rows.empty()) text += "\n" + indented(aligned(rows, {0, 2}), "    ");
        text += indented(std::string(shape->picture), "      ");
    }
    return text;
}

std::string devices_text(const Catalog& catalog) {
    std::vector<std::pair<std::string, std::string>> rows;
    for (const auto& [name, device] : catalog.devices) {
        rows.emplace_back(
            name, fmt::format("{:>6.1f} TFLOP/s  {:>6.0f} GB/s  {:>6}  {}", device.peak * 1e-12,
                              device.memory_bandwidth * 1e-9, to_text(device.memory),
                              device.fitted ? "kernels measured" : "data sheet"));
    }
    return list_text("devices", rows);
}

std::string links_text(const Catalog& catalog) {
    std::vector<std::pair<std::string, std::string>> rows;
    for (const auto& [name, link] : catalog.links) {
        rows.emplace_back(
            name, fmt::format("{:>10}  {:>8}  efficiency {:.3f}", to_text(link.spec.bandwidth),
                              to_text(link.spec.latency), link.spec.efficiency));
    }
    return list_text("links", rows);
}

std::string clusters_text(const Catalog& catalog) {
    std::vector<std::pair<std::string, std::string>> rows;
    for (const auto& [name, cluster] : catalog.clusters) {
        const std::string port =
            cluster.fabric ? to_text(cluster.fabric->link.bandwidth) : std::string("none");
        rows.emplace_back(name, fmt::format("{} x {} per node, network {} per device",
                                            cluster.devices_per_node, cluster.device.name, port));
    }
    return list_text("clusters", rows);
}

std::string frameworks_text(const Catalog& catalog) {
    const auto seen = [](const std::optional<bool>& overlaps) {
        return overlaps.value_or(true) ? "overlapped" : "not overlapped";
    };
    std::vector<std::pair<std::string, std::string>> rows;
    for (const auto& [name, profile] : catalog.frameworks) {
        const bool sharded = profile.sharding.value_or(Sharding::none) != Sharding::none;
        rows.emplace_back(
            name, fmt::format("{} gradients {}{}{}",
                              profile.gradient_bytes.value_or(4) == 4 ? "32 bit" : "16 bit",
                              seen(profile.overlap_gradients), sharded ? ", sharded state" : "",
                              profile.software.tensor_overlap > 0 ? ", user buffers" : ""));
    }
    return list_text("frameworks", rows);
}

// One line per number: where it stands, what it is, where it is from.
int print_constants(const Catalog& catalog, std::string_view what) {
    std::size_t entry = 0, key = 0, value = 0;
    std::vector<const Constant*> shown;
    for (const Constant& each : catalog.constants) {
        const bool wanted = what.empty() || each.entry.substr(0, each.entry.find('/')) == what;
        if (!wanted) continue;
        shown.push_back(&each);
        entry = std::max(entry, each.entry.size());
        key = std::max(key, each.key.size());
        value = std::max(value, each.value.size());
    }
    if (shown.empty()) {
        return refuse({"--constants",
                       fmt::format("{} have no constants; devices, links, clusters and frameworks "
                                   "have",
                                   what)});
    }
    std::string text;
    for (const Constant* each : shown) {
        text += fmt::format("{:<{}}  {:<{}}  {:>{}}  {:<10}  {}\n", each->entry, entry, each->key,
                            key, each->value, value, each->origin, each->reference);
    }
    std::cout << text;
    return std::cout.flush() ? done : failed;
}

std::string models_text(const Catalog& catalog) {
    std::vector<std::pair<std::string, std::string>> rows;
    for (const auto& [name, model] : catalog.models) {
        rows.emplace_back(
            name,
            fmt::format("{:>7.1f} B parameters  {:>3} layers  hidden {:>5}  {}",
                        static_cast<double>(parameters(model)) * 1e-9, model.layers, model.hidden,
                        model.mlp == Mlp::swiglu ? "Llama style" : "GPT style"));
    }
    return list_text("models", rows);
}

}  // namespace

int init_command(const std::string& file) {
    const auto files = embedded_files();
    const auto quickstart = std::find_if(files.begin(), files.end(), [](const EmbeddedFile& each) {
        return each.path == "quickstart.yaml";
    });
    if (file.empty()) {
        std::cout << quickstart->text;
        return std::cout.flush() ? done : failed;
    }
    std::error_code ignored;
    if (std::filesystem::exists(file, ignored)) {
        fmt::print(stderr, "{}: error: is already there and is not overwritten\n", file);
        return bad_input;
    }
    std::ofstream out(file, std::ios::binary);
    out << quickstart->text;
    out.close();
    if (!out) {
        fmt::print(stderr, "{}: error: cannot be written\n", file);
        return failed;
    }
    fmt::print("wrote {}; next: fourfold run {}\n", file, file);
    return done;
}

int check_command(const ScenarioOptions& options) {
    const auto loaded = load(options);
    if (!loaded) return bad_input;
    for (const Scenario& scenario : loaded->scenarios) {
        fmt::print("{}: ok, {} devices, {} links\n", scenario.name, scenario.graph.devices().size(),
                   scenario.graph.links().size());
    }
    return done;
}

int list_command(const std::string& what, bool constants, const std::string& catalog_folder) {
    static constexpr std::string_view known[] = {"shapes",    "devices",    "links",
                                                 "clusters",  "frameworks", "models",
                                                 "schedules", "collectives"};
    if (!what.empty() && std::find(std::begin(known), std::end(known), what) == std::end(known)) {
        return refuse({"", unknown("list", what, known)});
    }
    const auto catalog = load_catalog(catalog_folder);
    if (!catalog) return bad_input;
    if (constants) return print_constants(*catalog, what);
    const auto wanted = [&](std::string_view name) { return what.empty() || what == name; };
    std::string text;
    if (what.empty()) text += catalog_text("shapes", shapes());
    if (what == "shapes") text += shapes_text();
    if (wanted("devices")) text += devices_text(*catalog);
    if (wanted("links")) text += links_text(*catalog);
    if (wanted("clusters")) text += clusters_text(*catalog);
    if (wanted("frameworks")) text += frameworks_text(*catalog);
    if (wanted("models")) text += models_text(*catalog);
    if (wanted("schedules")) text += catalog_text("schedules", schedules());
    if (wanted("collectives")) text += catalog_text("collectives", algorithms());
    std::cout << text;
    return std::cout.flush() ? done : failed;
}

}  // namespace fourfold
