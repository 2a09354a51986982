// The commands that compute nothing: init, check, list.

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <span>

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

void print_list(std::string_view title,
                const std::vector<std::pair<std::string, std::string>>& rows) {
    std::size_t width = 0;
    for (const auto& [name, summary] : rows) width = std::max(width, name.size());
    fmt::print("{}\n", title);
    for (const auto& [name, summary] : rows) fmt::print("  {:<{}}  {}\n", name, width, summary);
}

template <class Entry>
void print_catalog(std::string_view title, std::span<const Entry* const> entries) {
    std::vector<std::pair<std::string, std::string>> rows;
    for (const Entry* entry : entries) {
        rows.emplace_back(std::string(entry->name), std::string(entry->summary));
    }
    print_list(title, rows);
}

void print_devices(const Catalog& catalog) {
    std::vector<std::pair<std::string, std::string>> rows;
    for (const auto& [name, device] : catalog.devices) {
        rows.emplace_back(
            name, fmt::format("{:>6.1f} TFLOP/s  {:>6.0f} GB/s  {:>6}  {}", device.peak * 1e-12,
                              device.memory_bandwidth * 1e-9, to_text(device.memory),
                              device.fitted ? "kernels measured" : "data sheet"));
    }
    print_list("devices", rows);
}

void print_links(const Catalog& catalog) {
    std::vector<std::pair<std::string, std::string>> rows;
    for (const auto& [name, link] : catalog.links) {
        rows.emplace_back(
            name, fmt::format("{:>10}  {:>8}  efficiency {:.3f}", to_text(link.spec.bandwidth),
                              to_text(link.spec.latency), link.spec.efficiency));
    }
    print_list("links", rows);
}

void print_models(const Catalog& catalog) {
    std::vector<std::pair<std::string, std::string>> rows;
    for (const auto& [name, model] : catalog.models) {
        rows.emplace_back(
            name,
            fmt::format("{:>7.1f} B parameters  {:>3} layers  hidden {:>5}  {}",
                        static_cast<double>(parameters(model)) * 1e-9, model.layers, model.hidden,
                        model.mlp == Mlp::swiglu ? "Llama style" : "GPT style"));
    }
    print_list("models", rows);
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

int list_command(const std::string& what, const std::string& catalog_folder) {
    static constexpr std::string_view known[] = {"shapes", "devices",   "links",
                                                 "models", "schedules", "collectives"};
    if (!what.empty() && std::find(std::begin(known), std::end(known), what) == std::end(known)) {
        return refuse({"", unknown("list", what, known)});
    }
    const auto catalog = load_catalog(catalog_folder);
    if (!catalog) return bad_input;
    const auto wanted = [&](std::string_view name) { return what.empty() || what == name; };
    if (wanted("shapes")) print_catalog("shapes", shapes());
    if (wanted("devices")) print_devices(*catalog);
    if (wanted("links")) print_links(*catalog);
    if (wanted("models")) print_models(*catalog);
    if (wanted("schedules")) print_catalog("schedules", schedules());
    if (wanted("collectives")) print_catalog("collectives", algorithms());
    return done;
}

}  // namespace fourfold
