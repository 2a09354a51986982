// `fourfold calibrate`: tables of measured kernels and a base in; a device file and a link file
// with fitted constants out, and how well they predict.

#include "results/calibrate.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>

#include "scenarios/arguments.hpp"
#include "scenarios/catalog.hpp"
#include "scenarios/commands.hpp"
#include "scenarios/document.hpp"
#include "scenarios/embedded.hpp"
#include "scenarios/fields.hpp"
#include "scenarios/gemm_shapes.hpp"
#include "scenarios/kernel_table.hpp"
#include "scenarios/progress.hpp"
#include "scenarios/yaml_text.hpp"
#include "topology/closest.hpp"

namespace fourfold {
namespace {

namespace fs = std::filesystem;

// ---- Reading

std::optional<std::vector<KernelTable>> read_tables(const CalibrateOptions& options) {
    std::vector<KernelTable> tables;
    for (const std::string& file : options.files) {
        auto table = read_kernel_table(file, options.only);
        if (table) tables.push_back(std::move(*table));
        if (!table) fmt::print(stderr, "{}", to_text(table.error()));
    }
    if (tables.size() < options.files.size()) return std::nullopt;
    return tables;
}

/// What the fitted constants replace, as it was read, so that all else stays as it is.
template <class Constants>
struct BaseFile {
    YamlNode tree;
    Constants constants;
};

// Where bases of a kind are looked for, in messages and in the catalog.
struct BaseKind {
    std::string_view option, name, folder;
};
constexpr BaseKind device_kind{"--device", "device", "hardware/devices"};
constexpr BaseKind link_kind{"--link", "link", "hardware/links"};

// The text of a .yaml file, or of the catalog's entry of that name; nothing after a report.
std::optional<std::uint32_t> open_base(const BaseKind& kind, const std::string& base,
                                       Report& report) {
    if (base.ends_with(".yaml")) {
        const FileText file = read_file(base);
        const std::uint32_t source = report.add_source(base, file.text.value_or(""));
        if (file.text) return source;
        report.error(source, file.why_not);
        return std::nullopt;
    }
    std::vector<std::string> names;
    for (const EmbeddedFile& file : embedded_files()) {
        const fs::path path(file.path);
        if (path.parent_path() != kind.folder) continue;
        names.push_back(path.stem().string());
        if (names.back() == base) return report.add_source(std::string(file.path), file.text);
    }
    const std::vector<std::string_view> known(names.begin(), names.end());
    report.error(report.add_source(fmt::format("{} {}", kind.option, shortened(base)), ""),
                 unknown(kind.name, shortened(base), known));
    return std::nullopt;
}

void read_constants(Fields& fields, Device& into) { read_device(fields, false, into); }
void read_constants(Fields& fields, LinkConstants& into) {
    std::string name;
    fields.text("name", Need::optional, name, "my-link");
    fields.value("sources", Need::optional, "{latency: data sheet}");
    read_link(fields, false, into.spec);
    read_costs(fields, into.costs);
}

// Nothing after printing what is wrong.
template <class Constants>
std::optional<BaseFile<Constants>> read_base(const BaseKind& kind, const std::string& base) {
    Report report;
    BaseFile<Constants> read;
    if (const auto source = open_base(kind, base, report)) {
        const Place begin{*source, 0, 0};
        auto tree = parse_yaml(begin, report);
        if (!tree && report.errors() == 0) report.error(*source, "empty; a base has constants");
        if (tree) {
            Fields fields(*tree, tree->place, "", report);
            read_constants(fields, read.constants);
        }
        if (tree) read.tree = std::move(*tree);
    }
    if (report.errors() == 0) return read;
    fmt::print(stderr, "{}", to_text(report.diagnostics()));
    return std::nullopt;
}

// ---- Fitting

// All rows of one kernel, and the files that they are from.
template <class Sample>
struct Rows {
    std::vector<Sample> samples;
    std::vector<std::string> files;   // as given
    std::vector<std::string> origin;  // "kernels.csv (a100)"

    [[nodiscard]] std::string origins() const { return fmt::format("{}", fmt::join(origin, ", ")); }
};

template <class Sample>
Rows<Sample> gather(std::vector<KernelTable>& tables, std::vector<Sample> KernelTable::*of_kernel) {
    Rows<Sample> rows;
    for (KernelTable& table : tables) {
        std::vector<Sample>& some = table.*of_kernel;
        if (some.empty()) continue;
        rows.files.push_back(table.file);
        const std::string name = fs::path(table.file).filename().string();
        rows.origin.push_back(table.device.empty() ? name
                                                   : fmt::format("{} ({})", name, table.device));
        if (rows.samples.empty()) {
            rows.samples = std::move(some);
        } else {
            rows.samples.insert(rows.samples.end(), some.begin(), some.end());
        }
    }
    return rows;
}

/// The fits of one file that is written, in the order in which they were made.
struct NamedReport {
    FitReport report;
    std::string origins;
};

// Replaces some of `constants`; false after printing what is wrong.
template <class Sample, class Constants, class FitKernel>
bool fit_rows(Rows<Sample> rows, FitKernel fit_kernel, Progress& progress, Constants& constants,
              std::vector<NamedReport>& reports) {
    if (rows.samples.empty()) return true;
    progress.next(rows.origins());
    auto fit = fit_kernel(std::move(rows.samples), constants);
    if (!fit) {
        const std::string files = fmt::format("{}", fmt::join(rows.files, ", "));
        fmt::print(stderr, "{}\n", to_text(Diagnostic{files, 0, 0, fit.error().what, {}}));
        return false;
    }
    constants = std::move(fit->constants);
    reports.push_back({std::move(fit->report), rows.origins()});
    return true;
}

// Memory first: its efficiency bounds a matrix multiplication from below, too. Likewise a message
// goes no faster than the link does in collectives.
bool fit_device(std::vector<KernelTable>& tables, Progress& progress, Device& device,
                std::vector<NamedReport>& reports) {
    const bool memory =
        fit_rows(gather(tables, &KernelTable::memory), fit_memory, progress, device, reports);
    const bool gemm =
        fit_rows(gather(tables, &KernelTable::gemm), fit_gemm, progress, device, reports);
    return memory && gemm;
}
bool fit_link(std::vector<KernelTable>& tables, Progress& progress, LinkConstants& link,
              std::vector<NamedReport>& reports) {
    const bool collective =
        fit_rows(gather(tables, &KernelTable::all_reduce), fit_all_reduce, progress, link, reports);
    const bool message = fit_rows(gather(tables, &KernelTable::point_to_point), fit_messages,
                                  progress, link, reports);
    return collective && message;
}

// ---- Writing

// What the rows do not tell stays as it is, and so does its source.
void set_constants(const NamedReport& fit, YamlNode& values) {
    for (const FittedConstant& constant : fit.report.constants) {
        if (!constant.is_seen) continue;
        set_scalar(values, constant.key, value_text(constant.unit, constant.fitted), Scalar::plain);
    }
}

// One source stands for what is fitted of `gemm`, as in the catalog; `power` keeps its own.
void set_gemm(const NamedReport& fit, YamlNode& tree) {
    set_constants(fit, submapping(tree, "gemm"));
    set_scalar(tree, "fitted", "true", Scalar::plain);
    YamlNode& sources = submapping(tree, "sources");
    const YamlNode* before = sources.find("gemm");
    if (before != nullptr && sources.find("gemm.power") == nullptr) {
        set_scalar(sources, "gemm.power", std::string(before->text), Scalar::text);
    }
    for (const FittedConstant& constant : fit.report.constants) {
        erase_key(sources, fmt::format("gemm.{}", constant.key));
    }
    set_scalar(sources, "gemm", source_text(fit.report, fit.origins), Scalar::text);
    set_scalar(sources, "fitted", "kernel-fit: as gemm", Scalar::text);
    erase_key(submapping(tree, "gemm"), "shapes");
    erase_key(sources, "gemm.shapes");
    if (fit.report.shapes.empty()) return;
    set_value(submapping(tree, "gemm"), "shapes", gemm_shapes_node(fit.report.shapes));
    set_scalar(sources, "gemm.shapes", shapes_source_text(fit.report), Scalar::text);
}

void set_others(const NamedReport& fit, YamlNode& tree) {
    set_constants(fit, tree);
    YamlNode& sources = submapping(tree, "sources");
    for (const FittedConstant& constant : fit.report.constants) {
        if (!constant.is_seen) continue;
        set_scalar(sources, constant.key, source_text(fit.report, fit.origins), Scalar::text);
    }
}

/// One of the two files that are written, and what it is made of.
struct Product {
    std::string base, out;
    YamlNode tree;
    std::vector<NamedReport> reports;
};

bool write_product(Product& product) {
    set_scalar(product.tree, "name", fs::path(product.out).stem().string(), Scalar::text);
    for (const NamedReport& fit : product.reports) {
        const bool is_gemm = fit.report.kernel == "gemm";
        (is_gemm ? set_gemm : set_others)(fit, product.tree);
    }
    std::ofstream file(product.out, std::ios::binary);
    file << fmt::format("# {} with constants that fourfold calibrate fitted on measured kernels.\n",
                        fs::path(product.base).stem().string())
         << yaml_text(product.tree);
    file.close();
    if (!file) fmt::print(stderr, "{}: error: cannot be written\n", product.out);
    return static_cast<bool>(file);
}

// ---- Printing

std::string to_text(const std::vector<Product>& products, std::size_t rows_left) {
    std::string text;
    for (const Product& product : products) {
        for (const NamedReport& fit : product.reports) {
            text += to_text(fit.report, fit.origins) + '\n';
        }
    }
    if (rows_left > 0) text += fmt::format("rows not used: {}\n", rows_left);
    for (const Product& product : products) {
        text += fmt::format("wrote {}: {} with these constants\n", product.out, product.base);
    }
    return text;
}

nlohmann::ordered_json to_json(const std::vector<Product>& products, std::size_t rows_left) {
    nlohmann::ordered_json files = nlohmann::ordered_json::array();
    for (const Product& product : products) {
        nlohmann::ordered_json fits = nlohmann::ordered_json::object();
        for (const NamedReport& fit : product.reports) {
            nlohmann::ordered_json one = {{"origin", fit.origins}};
            one.update(to_json(fit.report));
            fits[std::string(fit.report.kernel)] = std::move(one);
        }
        files.push_back({{"file", product.out}, {"base", product.base}, {"fits", std::move(fits)}});
    }
    return {{"files", std::move(files)}, {"rows_not_used", rows_left}};
}

// Rows that nothing can be fitted on, or that belong to a file that is not asked for.
std::size_t rows_left_of(const std::vector<KernelTable>& tables, bool device, bool link) {
    std::size_t rows = 0;
    for (const KernelTable& table : tables) {
        rows += table.others;
        if (!device) rows += table.gemm.size() + table.memory.size();
        if (!link) rows += table.all_reduce.size() + table.point_to_point.size();
    }
    return rows;
}

}  // namespace

int calibrate_command(const CalibrateOptions& options) {
    const bool device_asked = !options.device.empty(), link_asked = !options.link.empty();
    if (!device_asked && !link_asked) {
        return refuse({"",
                       "nothing to fit; give --device and --out, --link and --link-out, or "
                       "all four"});
    }
    auto tables = read_tables(options);
    const auto device =
        device_asked ? read_base<Device>(device_kind, options.device) : std::nullopt;
    const auto link = link_asked ? read_base<LinkConstants>(link_kind, options.link) : std::nullopt;
    if (!tables || (device_asked && !device) || (link_asked && !link)) return bad_input;

    std::vector<Product> products;
    const std::size_t rows_left = rows_left_of(*tables, device_asked, link_asked);
    constexpr std::size_t fits_max = 4;
    Progress progress(fits_max);
    bool sound = true;
    if (device) {
        products.push_back({options.device, options.out, device->tree, {}});
        Device constants = device->constants;
        sound = fit_device(*tables, progress, constants, products.back().reports) && sound;
    }
    if (link) {
        products.push_back({options.link, options.link_out, link->tree, {}});
        LinkConstants constants = link->constants;
        sound = fit_link(*tables, progress, constants, products.back().reports) && sound;
    }
    if (!sound) return bad_input;
    if (device && products.front().reports.empty()) {
        return refuse(
            {"--device", "no gemm and no memory rows to fit; leave --device and --out out"});
    }
    if (link && products.back().reports.empty()) {
        return refuse({"--link",
                       "no all_reduce and no point_to_point rows to fit; leave --link and "
                       "--link-out out"});
    }
    for (Product& product : products) {
        if (!write_product(product)) return failed;
    }
    if (options.json) {
        std::cout << to_json(products, rows_left).dump(2) << "\n";
    } else {
        std::cout << to_text(products, rows_left);
    }
    return std::cout.flush() ? done : failed;
}

}  // namespace fourfold
