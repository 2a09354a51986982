#include "results/validation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "results/curves.hpp"
#include "results/table.hpp"
#include "topology/check.hpp"

namespace fourfold {
namespace {

constexpr std::size_t worst_rows = 3;
constexpr std::size_t residual_rows_min = 8;  // fewer say little about a single value

struct Attribute {
    std::string_view name;
    std::int64_t ValidationRow::*value;
};
constexpr Attribute attributes[] = {{"tensor", &ValidationRow::tensor},
                                    {"pipeline", &ValidationRow::pipeline},
                                    {"micro-batch", &ValidationRow::micro_batch},
                                    {"devices", &ValidationRow::devices}};

std::string signed_percent(double fraction) { return fmt::format("{:+.1f} %", 100 * fraction); }

double mean(std::span<const double> values) {
    double sum = 0;
    for (const double value : values) sum += value;
    return sum / static_cast<double>(values.size());
}

// From 1.
std::vector<double> mean_ranks(std::span<const double> values) {
    std::vector<double> ranks;
    for (const double value : values) {
        const auto less = std::ranges::count_if(values, [&](double each) { return each < value; });
        const auto equal = std::ranges::count(values, value);
        ranks.push_back(static_cast<double>(less) + static_cast<double>(equal + 1) / 2);
    }
    return ranks;
}

std::optional<double> coverage(std::span<const ValidationRow> rows) {
    std::size_t with_interval = 0, inside = 0;
    for (const ValidationRow& row : rows) {
        if (!row.interval) continue;
        ++with_interval;
        if (row.interval->low <= row.measured && row.measured <= row.interval->high) ++inside;
    }
    if (with_interval == 0) return std::nullopt;
    return static_cast<double>(inside) / static_cast<double>(with_interval);
}

std::vector<std::string> summary_cells(const ValidationSummary& summary) {
    return {summary.group,
            fmt::format("{}", summary.rows),
            percent(summary.mean),
            percent(summary.median),
            percent(summary.p90),
            percent(summary.max),
            signed_percent(summary.bias),
            summary.rank_correlation ? fmt::format("{:.3f}", *summary.rank_correlation) : "-",
            summary.coverage ? percent(*summary.coverage) : "-",
            summary.max_name};
}

std::string attribute_line(std::string_view name, std::string_view text) {
    return fmt::format("    {:<13}{}\n", name, text);
}

std::string worst_text(std::vector<ValidationRow> rows) {
    std::ranges::stable_sort(rows, std::ranges::greater(), [](const ValidationRow& row) {
        return std::abs(relative_error(row));
    });
    std::string text;
    for (const ValidationRow& row : std::span(rows).first(std::min(worst_rows, rows.size()))) {
        text +=
            attribute_line(text.empty() ? "worst" : "",
                           fmt::format("{:>8}  {}", signed_percent(relative_error(row)), row.name));
    }
    return text;
}

std::string residuals_text(std::span<const ValidationRow> rows, const Attribute& attribute) {
    std::vector<std::string> parts;
    for (const Residual& each : residuals(rows, attribute.value)) {
        parts.push_back(
            fmt::format("{}: {} ({})", each.value, signed_percent(each.bias), each.rows));
    }
    // One value alone would repeat the group's bias.
    if (parts.size() < 2) return "";
    return attribute_line(attribute.name, fmt::format("{}", fmt::join(parts, ", ")));
}

nlohmann::ordered_json to_json(const ValidationSummary& summary) {
    nlohmann::ordered_json json = {{"group", summary.group},       {"rows", summary.rows},
                                   {"mape", summary.mean},         {"median", summary.median},
                                   {"p90", summary.p90},           {"max", summary.max},
                                   {"max_name", summary.max_name}, {"bias", summary.bias},
                                   {"rank_correlation", nullptr},  {"coverage", nullptr}};
    if (summary.rank_correlation) json["rank_correlation"] = *summary.rank_correlation;
    if (summary.coverage) json["coverage"] = *summary.coverage;
    return json;
}

nlohmann::ordered_json to_json(const ValidationRow& row) {
    nlohmann::ordered_json json = {{"group", row.group},
                                   {"name", row.name},
                                   {"file", row.file},
                                   {"measured_s", to_seconds(row.measured)},
                                   {"predicted_s", to_seconds(row.predicted)},
                                   {"error", relative_error(row)},
                                   {"low_s", nullptr},
                                   {"high_s", nullptr},
                                   {"devices", row.devices},
                                   {"tensor", row.tensor},
                                   {"context", row.context},
                                   {"pipeline", row.pipeline},
                                   {"data", row.data},
                                   {"micro_batch", row.micro_batch},
                                   {"micro_batches", row.micro_batches}};
    if (row.interval) {
        json["low_s"] = to_seconds(row.interval->low);
        json["high_s"] = to_seconds(row.interval->high);
    }
    return json;
}

}  // namespace

double relative_error(const ValidationRow& row) {
    return to_seconds(row.predicted) / to_seconds(row.measured) - 1;
}

double percentile(std::vector<double> values, double share) {
    FOURFOLD_CHECK(!values.empty());
    std::ranges::sort(values);
    const double place = share * static_cast<double>(values.size() - 1);
    const auto below = static_cast<std::size_t>(place);
    const std::size_t above = std::min(below + 1, values.size() - 1);
    return values[below] + (place - static_cast<double>(below)) * (values[above] - values[below]);
}

std::optional<double> rank_correlation(std::span<const double> a, std::span<const double> b) {
    FOURFOLD_CHECK(a.size() == b.size());
    const std::vector<double> x = mean_ranks(a), y = mean_ranks(b);
    const double middle = static_cast<double>(a.size() + 1) / 2;
    double xx = 0, yy = 0, xy = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
        xx += (x[i] - middle) * (x[i] - middle);
        yy += (y[i] - middle) * (y[i] - middle);
        xy += (x[i] - middle) * (y[i] - middle);
    }
    if (xx == 0 || yy == 0) return std::nullopt;
    return xy / std::sqrt(xx * yy);
}

ValidationSummary summarize(std::string_view group, std::span<const ValidationRow> rows) {
    FOURFOLD_CHECK(!rows.empty());
    std::vector<double> errors, sizes, measured, predicted;
    for (const ValidationRow& row : rows) {
        errors.push_back(relative_error(row));
        sizes.push_back(std::abs(errors.back()));
        measured.push_back(to_seconds(row.measured));
        predicted.push_back(to_seconds(row.predicted));
    }
    const auto worst = std::ranges::max_element(sizes);
    return {.group = std::string(group),
            .rows = rows.size(),
            .mean = mean(sizes),
            .median = percentile(sizes, 0.5),
            .p90 = percentile(sizes, 0.9),
            .max = *worst,
            .max_name = rows[static_cast<std::size_t>(worst - sizes.begin())].name,
            .bias = mean(errors),
            .rank_correlation = rank_correlation(predicted, measured),
            .coverage = coverage(rows)};
}

std::vector<Residual> residuals(std::span<const ValidationRow> rows,
                                std::int64_t ValidationRow::*attribute) {
    std::map<std::int64_t, std::vector<double>> errors;
    for (const ValidationRow& row : rows) errors[row.*attribute].push_back(relative_error(row));
    std::vector<Residual> all;
    all.reserve(errors.size());
    for (const auto& [value, some] : errors) all.push_back({value, mean(some), some.size()});
    return all;
}

std::vector<ValidationGroup> groups_of(std::span<const ValidationRow> rows) {
    std::vector<ValidationGroup> groups;
    for (const ValidationRow& row : rows) {
        auto group = std::ranges::find(groups, row.group, &ValidationGroup::name);
        if (group == groups.end()) group = groups.insert(group, {row.group, {}});
        group->rows.push_back(row);
    }
    return groups;
}

std::string validation_text(std::span<const ValidationRow> rows) {
    const std::vector<ValidationGroup> groups = groups_of(rows);
    std::vector<std::vector<std::string>> table = {
        {"group", "rows", "mean", "median", "90 %", "max", "bias", "rank", "covered", "worst"}};
    for (const ValidationGroup& group : groups) {
        table.push_back(summary_cells(summarize(group.name, group.rows)));
    }
    table.push_back(summary_cells(summarize("all", rows)));
    std::string text = aligned(table, {0, 9});
    text +=
        "  mean to max: of the absolute errors; bias: mean of the signed errors (+: predicted too "
        "slow);\n"
        "  rank: Spearman's correlation; covered: measurements inside their 90 % interval\n";
    for (const ValidationGroup& group : groups) {
        text += fmt::format("\n  {}\n", group.name) + worst_text(group.rows);
        if (group.rows.size() < residual_rows_min) continue;
        for (const Attribute& each : attributes) text += residuals_text(group.rows, each);
    }
    return text;
}

std::string validation_rows_text(std::span<const ValidationRow> rows) {
    std::vector<std::vector<std::string>> table = {
        {"scenario", "measured", "predicted", "error", "90 % interval"}};
    for (const ValidationRow& row : rows) {
        table.push_back({row.name, to_text(row.measured), to_text(row.predicted),
                         signed_percent(relative_error(row)),
                         row.interval
                             ? to_text(row.interval->low) + " .. " + to_text(row.interval->high)
                             : "-"});
    }
    return aligned(table, {0});
}

nlohmann::ordered_json validation_json(std::span<const ValidationRow> rows) {
    nlohmann::ordered_json json = {{"groups", nlohmann::ordered_json::array()},
                                   {"all", nullptr},
                                   {"rows", nlohmann::ordered_json::array()}};
    for (const ValidationGroup& group : groups_of(rows)) {
        json["groups"].push_back(to_json(summarize(group.name, group.rows)));
    }
    if (!rows.empty()) json["all"] = to_json(summarize("all", rows));
    for (const ValidationRow& row : rows) json["rows"].push_back(to_json(row));
    return json;
}

void write_validation_csv(std::ostream& out, std::span<const ValidationRow> rows) {
    out << "group,name,file,measured_s,predicted_s,error,low_s,high_s,devices,tensor,context,"
           "pipeline,data,micro_batch,micro_batches\n";
    for (const ValidationRow& row : rows) {
        out << fmt::format("{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}\n", csv_field(row.group),
                           csv_field(row.name), csv_field(row.file), exact_seconds(row.measured),
                           exact_seconds(row.predicted), twelve_digits(relative_error(row)),
                           row.interval ? exact_seconds(row.interval->low) : "",
                           row.interval ? exact_seconds(row.interval->high) : "", row.devices,
                           row.tensor, row.context, row.pipeline, row.data, row.micro_batch,
                           row.micro_batches);
    }
}

void write_validation_gnuplot(std::ostream& out, std::span<const ValidationRow> rows,
                              std::string_view svg) {
    FOURFOLD_CHECK(!rows.empty());
    Duration least = rows.front().measured, most = least;
    for (const ValidationRow& row : rows) {
        least = std::min({least, row.measured, row.predicted});
        most = std::max({most, row.measured, row.predicted});
    }
    const std::vector<ValidationGroup> groups = groups_of(rows);
    out << "# Predicted over measured step times, in seconds. Run it in its folder.\n\n";
    for (std::size_t i = 0; i < groups.size(); ++i) {
        out << fmt::format("$group{} << END\n", i);
        for (const ValidationRow& row : groups[i].rows) {
            out << fmt::format("{} {}\n", exact_seconds(row.measured),
                               exact_seconds(row.predicted));
        }
        out << "END\n";
    }
    // "podo": colours that colour-blind readers tell apart.
    constexpr std::size_t colours = 8;
    out << fmt::format(R"(
set terminal svg size 760,720 dynamic noenhanced background rgb 'white' font 'Helvetica,13'
set output {}
set encoding utf8
set colorsequence podo
set logscale xy
set size square
set xrange [{}:{}]
set yrange [{}:{}]
set xlabel 'measured step time (s)'
set ylabel 'predicted step time (s)'
set grid lc rgb '#dddddd'
set tics nomirror out
set key top left Left reverse
)",
                       gnuplot_text(svg), twelve_digits(to_seconds(least) / 1.25),
                       twelve_digits(to_seconds(most) * 1.25),
                       twelve_digits(to_seconds(least) / 1.25),
                       twelve_digits(to_seconds(most) * 1.25));
    out << "plot x with lines lc rgb '#555555' title 'equal', \\\n"
           "    1.1 * x with lines dt 2 lc rgb '#888888' title '+-10 %', \\\n"
           "    0.9 * x with lines dt 2 lc rgb '#888888' notitle";
    for (std::size_t i = 0; i < groups.size(); ++i) {
        // Dots, then squares where the colours begin again.
        const int point = i < colours ? 7 : 5;
        out << fmt::format(", \\\n    $group{} using 1:2 with points pt {} ps 0.7 lt {} title {}",
                           i, point, i % colours + 1, gnuplot_text(groups[i].name));
    }
    out << "\nunset output\n";
}

}  // namespace fourfold
