#include "scenarios/catalog.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <system_error>
#include <utility>

#include "scenarios/cluster_section.hpp"
#include "scenarios/document.hpp"
#include "scenarios/embedded.hpp"
#include "scenarios/fields.hpp"
#include "scenarios/gemm_shapes.hpp"
#include "topology/closest.hpp"

namespace fourfold {
namespace {

// The moon is 1.3 s away.
constexpr Durations link_duration{Duration(0), Duration(10'000'000'000'000)};
constexpr Reals fraction{.min = 0, .max = 1, .above_min = true, .example = "0.9"};

template <class T>
Result<T> find(const std::map<std::string, T, std::less<>>& entries, std::string_view kind,
               std::string_view name) {
    const auto found = entries.find(name);
    if (found != entries.end()) return found->second;
    std::vector<std::string_view> names;
    for (const auto& [known, entry] : entries) names.push_back(known);
    return problem("", unknown(kind, shortened(name), names));
}

Need unless(bool has_base) { return has_base ? Need::optional : Need::required; }

void read_seconds(Fields& fields, std::string_view key, double& into) {
    Duration duration{};
    if (fields.duration(key, Need::optional, duration, any_duration)) into = to_seconds(duration);
}

// "sources: {peak: a text, ...}": where each figure is from, for people. A text begins with the
// kind of its origin: "sheet, dense bf16".
void read_sources(Fields& fields) {
    const YamlNode* sources = fields.value("sources", Need::optional, "{peak: data sheet}");
    if (sources == nullptr) return;
    const bool are_texts = sources->kind == YamlNode::Kind::mapping &&
                           std::ranges::all_of(sources->values, [](const YamlNode& one) {
                               return one.kind == YamlNode::Kind::scalar;
                           });
    if (!are_texts) {
        fields.error("sources",
                     "'sources' must map keys to texts; write for example "
                     "'sources: {peak: data sheet}'");
    }
}

// The source of a key is that of the nearest mapping around it.
const YamlNode* source_of(const YamlNode& sources, std::string path) {
    while (true) {
        if (const YamlNode* found = sources.find(path)) return found;
        const std::size_t dot = path.rfind('.');
        if (dot == std::string::npos) return nullptr;
        path.resize(dot);
    }
}

void add_constants(const std::string& entry, const YamlNode& mapping, const std::string& prefix,
                   const YamlNode& sources, std::vector<Constant>& into) {
    for (std::size_t i = 0; i < mapping.keys.size(); ++i) {
        const std::string& key = mapping.keys[i].text;
        const YamlNode& value = mapping.values[i];
        const bool about_itself = prefix.empty() && (key == "name" || key == "sources");
        if (about_itself) continue;
        if (value.kind == YamlNode::Kind::mapping) {
            add_constants(entry, value, prefix + key + ".", sources, into);
            continue;
        }
        // A table counts as one: "183 rows".
        const bool is_table = value.kind == YamlNode::Kind::list && !value.values.empty() &&
                              value.values.front().kind == YamlNode::Kind::list;
        const bool is_number = value.kind == YamlNode::Kind::scalar && !value.text.empty() &&
                               value.text.find_first_of("0123456789") == 0;
        if (!is_number && !is_table) continue;
        const YamlNode* source = source_of(sources, prefix + key);
        const std::string_view text = source == nullptr ? std::string_view{} : source->text;
        const std::size_t end = text.find_first_of(" ,:;(");
        const std::size_t next = text.find_first_not_of(" ,:;", std::min(end, text.size()));
        into.push_back(
            {.entry = entry,
             .key = prefix + key,
             .value = is_table ? fmt::format("{} row{}", value.values.size(),
                                             value.values.size() == 1 ? "" : "s")
                               : value.text,
             .origin = std::string(text.substr(0, end)),
             .reference = std::string(next == std::string_view::npos ? std::string_view{}
                                                                     : text.substr(next))});
    }
}

void read_gemm(Fields& gemm, GemmConstants& into) {
    const Reals wide{.min = 0, .max = 1e6, .above_min = false, .example = "80"};
    gemm.number("tile_efficiency", Need::optional, into.tile_efficiency,
                {.min = 0, .max = 10, .above_min = true, .example = "1.494"});
    gemm.number("tile_half", Need::optional, into.tile_half, wide);
    gemm.number("k_ramp", Need::optional, into.k_ramp, wide);
    gemm.number("wave_quantization", Need::optional, into.wave_quantization,
                {.min = 0, .max = 1, .above_min = false, .example = "0.635"});
    gemm.number("cap", Need::optional, into.cap, fraction);
    gemm.number("power", Need::optional, into.power,
                {.min = 0, .max = 10, .above_min = true, .example = "1"});
    read_seconds(gemm, "launch", into.launch_s);
}

void read_fractions(Fields& flash, AttentionConstants& into) {
    flash.number("forward", Need::optional, into.forward, fraction);
    flash.number("backward", Need::optional, into.backward, fraction);
    constexpr Reals blocks{.min = 0, .max = 100, .above_min = false, .example = "0.85"};
    flash.number("forward_tail", Need::optional, into.forward_tail, blocks);
    flash.number("backward_tail", Need::optional, into.backward_tail, blocks);
}

enum class Entry { device, link, cluster, framework, model };

// In this order: clusters name devices and links.
constexpr std::pair<std::string_view, Entry> folders[] = {{"devices", Entry::device},
                                                          {"links", Entry::link},
                                                          {"clusters", Entry::cluster},
                                                          {"frameworks", Entry::framework},
                                                          {"models", Entry::model}};

void read_entry(Entry entry, std::string_view folder, const std::string& file,
                std::string_view text, Catalog& catalog, Report& report) {
    const std::uint32_t source = report.add_source(file, text);
    const auto tree = parse_yaml({source, 0, 0}, report);
    if (!tree) return;
    const std::string stem = std::filesystem::path(file).stem().string();
    if (entry != Entry::model && tree->kind == YamlNode::Kind::mapping) {
        static const YamlNode none;
        const YamlNode* sources = tree->find("sources");
        add_constants(fmt::format("{}/{}", folder, stem), *tree, "",
                      sources == nullptr ? none : *sources, catalog.constants);
    }
    Fields fields(*tree, tree->place, "", report);
    switch (entry) {
        case Entry::device: {
            Device device;
            device.name = stem;
            read_device(fields, false, device);
            catalog.devices.insert_or_assign(stem, std::move(device));
            break;
        }
        case Entry::link: {
            LinkKind link{.name = stem, .spec = {}, .costs = {}};
            fields.text("name", Need::optional, link.name, stem);
            read_link(fields, false, link.spec);
            read_costs(fields, link.costs);
            read_sources(fields);
            catalog.links.insert_or_assign(stem, std::move(link));
            break;
        }
        case Entry::cluster: {
            ClusterKind cluster;
            std::string name;
            fields.text("name", Need::optional, name, stem);
            read_cluster_kind(fields, catalog, cluster);
            read_sources(fields);
            catalog.clusters.insert_or_assign(stem, std::move(cluster));
            break;
        }
        case Entry::framework: {
            FrameworkProfile profile;
            profile.software.name = stem;
            read_profile(fields, profile);
            read_sources(fields);
            catalog.frameworks.insert_or_assign(stem, std::move(profile));
            break;
        }
        case Entry::model: {
            Transformer model;
            model.name = stem;
            read_model(fields, false, model);
            catalog.models.insert_or_assign(stem, std::move(model));
            break;
        }
    }
}

std::vector<std::filesystem::path> yaml_files(const std::filesystem::path& folder) {
    namespace fs = std::filesystem;
    std::vector<fs::path> files;
    std::error_code code;
    for (fs::directory_iterator entry(folder, code), end; !code && entry != end;
         entry.increment(code)) {
        if (entry->path().extension() == ".yaml") files.push_back(entry->path());
    }
    std::ranges::sort(files);
    return files;
}

}  // namespace

Result<Device> find_device(const Catalog& catalog, std::string_view name) {
    return find(catalog.devices, "device", name);
}

Result<LinkKind> find_link(const Catalog& catalog, std::string_view name) {
    return find(catalog.links, "link", name);
}

Result<ClusterKind> find_cluster(const Catalog& catalog, std::string_view name) {
    return find(catalog.clusters, "cluster", name);
}

Result<FrameworkProfile> find_framework(const Catalog& catalog, std::string_view name) {
    return find(catalog.frameworks, "framework", name);
}

Result<Transformer> find_model(const Catalog& catalog, std::string_view name) {
    return find(catalog.models, "model", name);
}

void read_device(Fields& fields, bool has_base, Device& into) {
    const Need need = unless(has_base);
    const std::size_t errors = fields.report().errors();
    fields.text("name", Need::optional, into.name, "my-device");
    fields.flops_rate("peak", need, into.peak);
    BytesPerSecond memory_bandwidth;
    if (fields.rate("memory_bandwidth", need, memory_bandwidth)) {
        into.memory_bandwidth = static_cast<double>(memory_bandwidth.value);
    }
    fields.bytes("memory", need, into.memory, "80 GiB");
    std::int64_t multiprocessors = into.multiprocessors;
    if (fields.integer("multiprocessors", Need::optional, multiprocessors, {1, 1'000'000, 108})) {
        into.multiprocessors = static_cast<int>(multiprocessors);
    }
    fields.number("memory_efficiency", Need::optional, into.memory_efficiency, fraction);
    read_seconds(fields, "memory_launch", into.memory_launch_s);
    {
        Fields gemm(fields, "gemm", Need::optional, "{cap: 0.755}");
        read_gemm(gemm, into.gemm);
        read_gemm_shapes(fields, gemm, fields.report().errors() == errors, into);
    }
    {
        Fields flash(fields, "flash", Need::optional, "{forward: 0.55, backward: 0.45}");
        read_fractions(flash, into.flash);
        read_seconds(flash, "launch_forward", into.flash_launch_forward_s);
        read_seconds(flash, "launch_backward", into.flash_launch_backward_s);
    }
    {
        Fields flash(fields, "flash-1", Need::optional, "{forward: 0.35, backward: 0.27}");
        read_fractions(flash, into.flash_1);
    }

    fields.boolean("fitted", Need::optional, into.fitted);
    read_sources(fields);
}

void read_model(Fields& fields, bool has_base, Transformer& into) {
    const Need need = unless(has_base);
    const std::size_t errors = fields.report().errors();
    const bool grouped = into.kv_heads != into.heads;
    fields.text("name", Need::optional, into.name, "my-model");
    // Bounds that no model comes near, so that no size can be mistaken for a count of bytes.
    fields.integer("layers", need, into.layers, {1, 16'384, 24});
    fields.integer("hidden", need, into.hidden, {1, 1 << 20, 2048});
    fields.integer("heads", need, into.heads, {1, 1 << 16, 16});
    // Without grouped-query attention there are as many as heads, also where a base is changed.
    if (!grouped) into.kv_heads = into.heads;
    fields.integer("kv_heads", Need::optional, into.kv_heads, {1, 1 << 16, 8});
    fields.integer("head_dim", Need::optional, into.head_dim, {1, 1 << 16, 128});
    fields.integer("ffn", need, into.ffn, {1, 1 << 24, 8192});
    fields.integer("vocab", need, into.vocab, {1, 1 << 26, 51'200});
    fields.integer("sequence", need, into.sequence, {1, 1 << 26, 2048});
    fields.choice<Mlp>("mlp", "mlp", Need::optional, into.mlp,
                       {{"gelu", Mlp::gelu}, {"swiglu", Mlp::swiglu}});
    fields.choice<Norm>("norm", "norm", Need::optional, into.norm,
                        {{"layernorm", Norm::layernorm}, {"rmsnorm", Norm::rmsnorm}});
    fields.choice<Positions>("positions", "positions", Need::optional, into.positions,
                             {{"learned", Positions::learned}, {"rotary", Positions::rotary}});
    read_attention(fields, into.attention);
    fields.boolean("tied_embeddings", Need::optional, into.tied_embeddings);
    fields.boolean("bias", Need::optional, into.bias);
    fields.boolean("dropout", Need::optional, into.dropout);
    std::string source;
    fields.text("source", Need::optional, source, "its paper");
    if (fields.report().errors() > errors) return;
    const Result<void> sound = check(into);
    if (!sound) fields.error(sound.error().where, sound.error().what);
}

void read_link(Fields& fields, bool has_base, LinkSpec& into) {
    const Need need = unless(has_base);
    fields.rate("bandwidth", need, into.bandwidth);
    fields.duration("latency", need, into.latency, link_duration);
    fields.number("efficiency", Need::optional, into.efficiency, fraction);
}

void read_costs(Fields& fields, TransportCosts& into) {
    const Need need = Need::optional;
    fields.duration("message_overhead", need, into.message_overhead, link_duration);
    fields.rate("message_rate", need, into.message_rate);
    fields.duration("collective_start", need, into.collective_start, link_duration);
    fields.duration("collective_per_sqrt_mib", need, into.collective_per_sqrt_mib, link_duration);
    fields.number("collective_edge", need, into.collective_edge,
                  {.min = 0, .max = 0.99, .above_min = false, .example = "0.25"});
}

tl::expected<Catalog, Diagnostics> embedded_catalog() {
    Catalog catalog;
    Report report;
    for (const auto& [name, entry] : folders) {
        for (const EmbeddedFile& file : embedded_files()) {
            const std::string folder = std::filesystem::path(file.path).parent_path().filename();
            if (folder != name) continue;
            read_entry(entry, name, std::string(file.path), file.text, catalog, report);
        }
    }
    if (report.errors() > 0) return tl::unexpected(report.diagnostics());
    return catalog;
}

tl::expected<Catalog, Diagnostics> with_directory(Catalog catalog,
                                                  const std::filesystem::path& directory) {
    Report report;
    std::size_t files = 0;
    for (const auto& [name, entry] : folders) {
        for (const std::filesystem::path& path : yaml_files(directory / name)) {
            ++files;
            const FileText file = read_file(path.string());
            if (file.text) read_entry(entry, name, path.string(), *file.text, catalog, report);
            if (!file.text) report.error(report.add_source(path.string(), ""), file.why_not);
        }
    }
    if (files == 0) {
        report.error(report.add_source(directory.string(), ""),
                     "no catalog; it needs .yaml files in devices/, links/, clusters/, "
                     "frameworks/ or models/");
    }
    if (report.errors() > 0) return tl::unexpected(report.diagnostics());
    return catalog;
}

}  // namespace fourfold
