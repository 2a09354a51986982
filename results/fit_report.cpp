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

std::vector<std::string> row_of(const MeanErrors& errors) {
    return {std::string(errors.of), fmt::format("{}", errors.samples), percent(errors.base),
            percent(errors.fitted), percent(errors.cross_validated)};
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

std::string to_text(const FitReport& report, std::string_view origin) {
    std::vector<std::vector<std::string>> constants{
        {"constant", "base", "fitted", "folds from", "to", ""}};
    for (const FittedConstant& one : report.constants) constants.push_back(row_of(one));
    std::vector<std::vector<std::string>> errors{
        {"mean error", "rows", "base", "fitted", "cross-validated"}};
    for (const MeanErrors& one : report.errors) errors.push_back(row_of(one));
    const bool describes = report.errors.front().fitted <= mean_error_max;
    return fmt::format("{}: {} rows, {} different {}, of {}\n{}\n{}{}", report.kernel,
                       report.samples, report.different, report.different_what, origin,
                       aligned(constants, {0, 5}), aligned(errors, {0}),
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
    }
    return {{"rows", report.samples},
            {"different", report.different},
            {"constants", std::move(constants)},
            {"errors", std::move(errors)}};
}

}  // namespace fourfold
