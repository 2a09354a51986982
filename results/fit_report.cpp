#include "results/fit_report.hpp"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "results/table.hpp"
#include "topology/units.hpp"

namespace fourfold {
namespace {

constexpr double mean_error_max = 0.2;  // beyond it a fit is of no use

std::string_view suffix(ConstantUnit unit) {
    switch (unit) {
        case ConstantUnit::none:
            return "";
        case ConstantUnit::seconds:
            return "_s";
        case ConstantUnit::bytes_per_second:
            return "_bytes_per_s";
    }
    return "";
}

std::vector<std::string> row_of(const FittedConstant& constant) {
    const auto text = [&constant](double value) { return value_text(constant.unit, value); };
    return {std::string(constant.key), text(constant.base),
            text(constant.fitted),     text(constant.fold_min),
            text(constant.fold_max),   constant.is_seen ? "" : "not seen in these rows: kept"};
}

std::vector<std::string> row_of(const MeanErrors& errors, bool with_shapes) {
    std::vector<std::string> row{std::string(errors.of), fmt::format("{}", errors.samples),
                                 percent(errors.base), percent(errors.fitted),
                                 percent(errors.cross_validated)};
    if (with_shapes) row.push_back(percent(errors.with_shapes));
    return row;
}

std::string shapes_text(const FitReport& report) {
    if (!report.tries_shapes) return "";
    if (report.shapes.empty()) {
        return "  measured shapes are not kept: the constants alone predict others as well\n";
    }
    return fmt::format(
        "  {} measured shapes and layouts are kept: with them others are predicted better\n",
        report.shapes.size());
}

}  // namespace

std::string value_text(ConstantUnit unit, double value) {
    switch (unit) {
        case ConstantUnit::none:
            return fmt::format("{:.4g}", value);
        case ConstantUnit::seconds:
            return to_text(from_seconds(value));
        case ConstantUnit::bytes_per_second:
            return to_text(BytesPerSecond{std::llround(value)});
    }
    return "";
}

std::string source_text(const FitReport& report, std::string_view origin) {
    const MeanErrors& all = report.errors.front();
    return fmt::format("kernel-fit on {} rows of {}, mean error {}, cross-validated {}",
                       report.samples, origin, percent(all.fitted), percent(all.cross_validated));
}

std::string shapes_source_text(const FitReport& report) {
    return fmt::format(
        "kernel-fit: the {} shapes and layouts of gemm, medians; with them cross-validated {}",
        report.shapes.size(), percent(report.errors.front().with_shapes));
}

std::string to_text(const FitReport& report, std::string_view origin) {
    std::vector<std::vector<std::string>> constants{
        {"constant", "base", "fitted", "folds from", "to", ""}};
    for (const FittedConstant& one : report.constants) constants.push_back(row_of(one));
    std::vector<std::vector<std::string>> errors{
        {"mean error", "rows", "base", "fitted", "cross-validated"}};
    if (report.tries_shapes) errors.front().emplace_back("with shapes");
    for (const MeanErrors& one : report.errors) {
        errors.push_back(row_of(one, report.tries_shapes));
    }
    const bool describes = report.errors.front().fitted <= mean_error_max;
    return fmt::format("{}: {} rows, {} different {}, of {}\n{}\n{}{}{}", report.kernel,
                       report.samples, report.different, report.different_what, origin,
                       aligned(constants, {0, 5}), aligned(errors, {0}), shapes_text(report),
                       describes ? "" : "  no constants make the formula describe these rows\n");
}

nlohmann::ordered_json to_json(const FitReport& report) {
    nlohmann::ordered_json constants = nlohmann::ordered_json::object();
    for (const FittedConstant& one : report.constants) {
        constants[fmt::format("{}{}", one.key, suffix(one.unit))] = {{"base", one.base},
                                                                     {"fitted", one.fitted},
                                                                     {"fold_min", one.fold_min},
                                                                     {"fold_max", one.fold_max},
                                                                     {"seen", one.is_seen}};
    }
    nlohmann::ordered_json errors = nlohmann::ordered_json::array();
    for (const MeanErrors& one : report.errors) {
        errors.push_back({{"of", one.of},
                          {"rows", one.samples},
                          {"base", one.base},
                          {"fitted", one.fitted},
                          {"cross_validated", one.cross_validated}});
        if (report.tries_shapes) errors.back()["with_shapes"] = one.with_shapes;
    }
    nlohmann::ordered_json json = {{"rows", report.samples},
                                   {"different", report.different},
                                   {"constants", std::move(constants)},
                                   {"errors", std::move(errors)}};
    if (report.tries_shapes) json["shapes"] = report.shapes.size();
    return json;
}

}  // namespace fourfold
