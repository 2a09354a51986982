#include "scenarios/kernel_table.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <utility>

#include "scenarios/document.hpp"
#include "scenarios/kernel_cells.hpp"
#include "scenarios/nccl_table.hpp"
#include "scenarios/table_lines.hpp"
#include "topology/closest.hpp"

namespace fourfold {
namespace {

constexpr std::int64_t ranks_max = 1 << 20;
constexpr std::size_t devices_max = 100;  // that a message lists
constexpr std::string_view example_header = "kernel,m,n,k,batch,bytes,ranks,time_us";

// ---- Which device's rows

// A file's devices, and whose rows are kept: those of the chosen one, or of the first.
class Devices {
  public:
    explicit Devices(const std::vector<std::string>& only) : only_(&only) {}

    bool keeps(std::string_view device) {
        if (device.empty()) return true;
        if (device == last_) return last_kept_;
        last_ = device;
        if (names_.size() < devices_max) names_.emplace(device);
        last_kept_ = only_->empty() ? first_or(device) == device
                                    : std::ranges::find(*only_, device) != only_->end();
        return last_kept_;
    }
    /// The device whose rows were kept, after all of them; reports where that is not one.
    std::string chosen(Findings& findings) const {
        std::vector<std::string> kept;
        for (const std::string& name : names_) {
            const bool wanted = only_->empty() || std::ranges::find(*only_, name) != only_->end();
            if (wanted) kept.push_back(name);
        }
        if (names_.empty()) return "";
        if (kept.size() == 1) return kept.front();
        if (kept.empty()) {
            const std::vector<std::string_view> known(names_.begin(), names_.end());
            findings.error("--only: " + unknown("device", shortened(only_->front()), known));
        } else {
            findings.error(fmt::format("has rows of {}; choose one, as in --only {}",
                                       fmt::join(kept, ", "), kept.front()));
        }
        return "";
    }

  private:
    const std::vector<std::string>* only_;  // the caller's
    std::set<std::string, std::less<>> names_;
    std::string first_, last_;
    bool last_kept_ = false;

    const std::string& first_or(std::string_view device) {
        if (first_.empty()) first_ = device;
        return first_;
    }
};

// ---- Headers

struct Format {
    std::span<const std::string_view> columns;  // all that mean something
    std::size_t required;                       // so many of the first must be there
    std::string_view mark;                      // a column that no other format has
};

constexpr std::array<std::string_view, 10> our_columns = {
    "kernel", "time_us", "m", "n", "k", "batch", "layout", "bytes", "ranks", "device"};
constexpr std::array<std::string_view, 5> simumax_columns = {"system", "op", "peak_tflops", "shape",
                                                             "efficiency"};
constexpr std::array<std::string_view, 4> vtrain_columns = {"device", "gpus", "bytes", "time_us"};

constexpr std::array<Format, 3> formats{
    {{our_columns, 2, "kernel"}, {simumax_columns, 5, "efficiency"}, {vtrain_columns, 4, "gpus"}}};
constexpr const Format* ours = &formats[0];
constexpr const Format* simumax = &formats[1];

// By its mark, or else by most of its columns.
const Format* format_of(std::span<const std::string_view> header) {
    const Format* best = nullptr;
    std::ptrdiff_t best_hits = 1;
    for (const Format& format : formats) {
        if (std::ranges::find(header, format.mark) != header.end()) return &format;
        const auto hits = std::ranges::count_if(format.columns, [&header](std::string_view name) {
            return std::ranges::find(header, name) != header.end();
        });
        if (hits > best_hits) {
            best = &format;
            best_hits = hits;
        }
    }
    return best;
}

// Reports missing and doubled columns, and strange ones that look like a missing one.
bool check_header(const TableLine& line, std::span<const std::string_view> header,
                  const Format& format, Findings& findings) {
    const std::size_t errors = findings.errors();
    std::vector<std::string_view> missing;
    for (const std::string_view name : format.columns) {
        const auto count = std::ranges::count(header, name);
        if (count == 0) missing.push_back(name);
        if (count > 1) {
            const auto first = std::ranges::find(header, name);
            const auto second = std::find(first + 1, header.end(), name);
            findings.error(line, *second,
                           fmt::format("a second column '{}'; remove one of them", name));
        }
    }
    for (const std::string_view name : header) {
        if (std::ranges::find(format.columns, name) != format.columns.end()) continue;
        const auto meant = name.size() > 2 ? closest(name, missing) : std::nullopt;
        if (!meant) continue;
        findings.error(line, name, unknown("column", shortened(name), missing));
        std::erase(missing, *meant);
    }
    for (const std::string_view name : format.columns.first(format.required)) {
        if (std::ranges::find(missing, name) == missing.end()) continue;
        findings.error(line, line.text,
                       fmt::format("missing column '{}'; the columns are {}", name,
                                   fmt::join(format.columns, ", ")));
    }
    return findings.errors() == errors;
}

// ---- Rows

// One data line of a CSV.
class Row {
  public:
    Row(const TableLine& line, const Format& format, std::span<const std::size_t> positions,
        std::span<const std::string_view> cells, Findings& findings)
        : line_(&line),
          format_(&format),
          positions_(positions),
          cells_(cells),
          findings_(&findings) {}

    [[nodiscard]] const TableLine& line() const { return *line_; }
    [[nodiscard]] Findings& findings() const { return *findings_; }
    /// Empty where there is no such column.
    [[nodiscard]] std::string_view text(std::string_view name) const { return cell(name).text; }

    [[nodiscard]] Cell cell(std::string_view name) const {
        const std::size_t at = position(name);
        return {name, at < cells_.size() ? cells_[at] : std::string_view{}};
    }
    /// Also reports where there is no such column.
    [[nodiscard]] std::optional<std::int64_t> count(std::string_view name, std::int64_t min) const {
        if (position(name) < cells_.size()) {
            return read_count(*line_, cell(name), min, *findings_);
        }
        findings_->error(*line_, line_->text,
                         fmt::format("this row needs a column '{}'; add it to the header", name));
        return std::nullopt;
    }
    [[nodiscard]] std::optional<double> time(std::string_view name) const {
        return read_time(*line_, cell(name), *findings_);
    }
    /// Also reports what is beyond any cluster.
    [[nodiscard]] std::optional<std::uint32_t> ranks(std::string_view name) const {
        const auto ranks = count(name, 2);
        if (!ranks) return std::nullopt;
        if (*ranks <= ranks_max) return static_cast<std::uint32_t>(*ranks);
        findings_->error(*line_, text(name),
                         fmt::format("'{}' is {}; no more than {} ranks", name, *ranks, ranks_max));
        return std::nullopt;
    }

  private:
    const TableLine* line_;  // all borrowed for the time of a line
    const Format* format_;
    std::span<const std::size_t> positions_;
    std::span<const std::string_view> cells_;
    Findings* findings_;

    [[nodiscard]] std::size_t position(std::string_view name) const {
        const auto known = std::ranges::find(format_->columns, name) - format_->columns.begin();
        return positions_[static_cast<std::size_t>(known)];
    }
};

// "TN" or "tn"; empty where it is not known.
std::optional<GemmLayout> read_layout(const Row& row, std::string_view text) {
    std::string name;
    for (const char c : text) name += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    if (name.empty()) return GemmLayout::any;
    const auto found = std::ranges::find(gemm_layout_names, name);
    if (found != gemm_layout_names.end()) {
        return static_cast<GemmLayout>(found - gemm_layout_names.begin());
    }
    row.findings().error(row.line(), text, unknown("layout", shortened(text), gemm_layout_names));
    return std::nullopt;
}

void read_gemm(const Row& row, KernelTable& table) {
    const auto m = row.count("m", 1), n = row.count("n", 1), k = row.count("k", 1);
    const auto batch = row.text("batch").empty() ? std::int64_t{1} : row.count("batch", 1);
    const auto layout = read_layout(row, row.text("layout"));
    const auto time = row.time("time_us");
    if (!m || !n || !k || !batch || !layout || !time) return;
    table.gemm.push_back({{*m, *n, *k, *batch, *layout}, *time});
}

void read_memory(const Row& row, KernelTable& table) {
    const auto bytes = row.count("bytes", 1);
    const auto time = row.time("time_us");
    if (bytes && time) table.memory.push_back({{*bytes}, *time});
}

void read_all_reduce(const Row& row, std::string_view ranks_column, KernelTable& table) {
    const auto ranks = row.ranks(ranks_column);
    const auto bytes = row.count("bytes", 1);
    const auto time = row.time("time_us");
    if (ranks && bytes && time) table.all_reduce.push_back({*ranks, {*bytes}, *time});
}

void read_message(const Row& row, KernelTable& table) {
    const auto bytes = row.count("bytes", 1);
    const auto time = row.time("time_us");
    if (bytes && time) table.point_to_point.push_back({{*bytes}, *time});
}

void read_our_row(const Row& row, KernelTable& table) {
    static constexpr std::string_view kernels[] = {"gemm", "memory", "all_reduce",
                                                   "point_to_point"};
    const std::string_view kernel = row.text("kernel");
    if (kernel == "gemm") return read_gemm(row, table);
    if (kernel == "memory") return read_memory(row, table);
    if (kernel == "all_reduce") return read_all_reduce(row, "ranks", table);
    if (kernel == "point_to_point") return read_message(row, table);
    row.findings().error(row.line(), kernel, unknown("kernel", shortened(kernel), kernels));
}

// "b=1  m=4096  k=5120  n=1536  layout=TN"
void read_simumax_row(const Row& row, KernelTable& table) {
    if (row.text("op") != "matmul") {
        ++table.others;
        return;
    }
    std::vector<std::string_view> words;
    split_at_spaces(row.text("shape"), words);
    const auto value = [&words](std::string_view name) -> std::optional<std::string_view> {
        for (const std::string_view word : words) {
            const std::size_t equals = word.find('=');
            if (word.substr(0, equals) != name || equals == std::string_view::npos) continue;
            return word.substr(equals + 1);
        }
        return std::nullopt;
    };
    const auto size = [&](std::string_view name) -> std::optional<std::int64_t> {
        if (const auto text = value(name)) {
            return read_count(row.line(), {name, *text}, 1, row.findings());
        }
        row.findings().error(row.line(), row.text("shape"),
                             fmt::format("no '{}=' in this shape; write for example "
                                         "'b=1 m=4096 k=5120 n=1536'",
                                         name));
        return std::nullopt;
    };
    const auto b = size("b"), m = size("m"), k = size("k"), n = size("n");
    const auto layout = read_layout(row, value("layout").value_or(""));
    constexpr Bounds peak_bounds{.min = 1e-3, .max = 1e6};
    constexpr Bounds efficiency_bounds{.min = 1e-6, .max = 1};
    const auto peak = read_within(row.line(), row.cell("peak_tflops"), peak_bounds, row.findings());
    const auto efficiency =
        read_within(row.line(), row.cell("efficiency"), efficiency_bounds, row.findings());
    if (!b || !m || !k || !n || !layout || !peak || !efficiency) return;
    const Gemm gemm{*m, *n, *k, *b, *layout};
    table.gemm.push_back({gemm, flops(gemm) / (*efficiency * *peak * 1e12)});
}

// A CSV below its header.
class Csv {
  public:
    Csv(const Format& format, std::span<const std::string_view> header)
        : format_(&format), columns_(header.size()) {
        for (const std::string_view name : format.columns) {
            positions_.push_back(
                static_cast<std::size_t>(std::ranges::find(header, name) - header.begin()));
        }
        has_devices_ = positions_[device_column()] < header.size();
    }

    void take(const TableLine& line, Devices& devices, KernelTable& table, Findings& findings) {
        split_at_commas(line.text, cells_);
        if (cells_.size() != columns_) return report_width(line, findings);
        const Row row(line, *format_, positions_, cells_, findings);
        if (has_devices_ && !devices.keeps(cells_[positions_[device_column()]])) return;
        if (format_ == ours) return read_our_row(row, table);
        if (format_ == simumax) return read_simumax_row(row, table);
        read_all_reduce(row, "gpus", table);
    }

  private:
    const Format* format_;
    std::size_t columns_;
    std::vector<std::size_t> positions_;  // of each of the format's columns in a line
    std::vector<std::string_view> cells_;
    bool has_devices_ = false;

    [[nodiscard]] std::size_t device_column() const {
        return format_ == ours ? our_columns.size() - 1 : 0;
    }

    void report_width(const TableLine& line, Findings& findings) const {
        if (cells_.size() > columns_) {
            return findings.error(line, cells_[columns_],
                                  fmt::format("{} columns, but the header has {}; remove what is "
                                              "too much",
                                              cells_.size(), columns_));
        }
        findings.error(line, cells_.back(),
                       fmt::format("{} of {} columns; {}", cells_.size(), columns_,
                                   line.ended ? "fill in the line, or remove it"
                                              : "the file ends in the middle of this line"));
    }
};

bool is_blank(std::string_view line) {
    return line.find_first_not_of(" \t") == std::string_view::npos;
}

// The first lines, up to the one that tells the format. Neither, where there is none: reported.
struct Beginning {
    bool is_nccl = false;
    std::optional<Csv> csv;
};
Beginning read_beginning(TableReader& reader, Findings& findings) {
    bool is_empty = true;
    std::vector<std::string_view> header;
    while (reader.next()) {
        const TableLine& line = reader.line();
        if (is_blank(line.text)) continue;
        is_empty = false;
        if (begins_nccl_output(line.text)) return {.is_nccl = true, .csv = {}};
        if (line.text.front() == '#' || line.text.find(',') == std::string_view::npos) continue;
        split_at_commas(line.text, header);
        const Format* format = format_of(header);
        if (format == nullptr) {
            findings.error(line, line.text,
                           fmt::format("no table of kernels; a header names columns, as in {}",
                                       example_header));
            return {};
        }
        if (!check_header(line, header, *format, findings)) return {};
        return {.is_nccl = false, .csv = Csv(*format, header)};
    }
    if (findings.errors() > 0) return {};
    findings.error(is_empty ? "empty; a table of kernels begins with a header"
                            : fmt::format("no table of kernels; a header names columns, as in {}",
                                          example_header));
    return {};
}

std::size_t rows_of(const KernelTable& table) {
    return table.gemm.size() + table.memory.size() + table.all_reduce.size() +
           table.point_to_point.size();
}

}  // namespace

tl::expected<KernelTable, Diagnostics> read_kernel_table(std::istream& text,
                                                         const std::string& file,
                                                         const std::vector<std::string>& only) {
    Findings findings(file);
    KernelTable table;
    table.file = file;
    TableReader reader(text, findings);
    Beginning beginning = read_beginning(reader, findings);
    Devices devices(only);
    if (beginning.is_nccl) {
        NcclOutput output(table, findings);
        do {
            output.take(reader.line());
        } while (reader.next());
        output.end();
    }
    while (beginning.csv && reader.next()) {
        const TableLine& line = reader.line();
        if (is_blank(line.text) || line.text.front() == '#') continue;
        beginning.csv->take(line, devices, table, findings);
    }
    table.device = devices.chosen(findings);
    if (findings.errors() == 0 && rows_of(table) == 0) {
        findings.error("no rows of kernels below the header");
    }
    if (findings.errors() > 0) return tl::unexpected(findings.diagnostics());
    return table;
}

tl::expected<KernelTable, Diagnostics> read_kernel_table(const std::string& file,
                                                         const std::vector<std::string>& only) {
    const auto refuse = [&file](std::string why) {
        Findings findings(file);
        findings.error(std::move(why));
        return tl::unexpected(findings.diagnostics());
    };
    std::error_code code;
    if (std::filesystem::is_directory(file, code)) return refuse("a directory; name a file in it");
    if (!std::filesystem::exists(file, code)) {
        return refuse("no such file; check its name and folder");
    }
    std::ifstream stream(file, std::ios::binary);
    if (!stream) return refuse("cannot be opened; check its permissions");
    return read_kernel_table(stream, file, only);
}

}  // namespace fourfold
