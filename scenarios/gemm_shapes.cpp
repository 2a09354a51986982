#include "scenarios/gemm_shapes.hpp"

#include <fmt/format.h>

#include <array>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "results/fit_report.hpp"

namespace fourfold {
namespace {

constexpr std::int64_t size_max = 1'000'000'000'000'000;  // as in a table of kernels
constexpr Durations measured_time{Duration(1), any_duration.max};
constexpr std::string_view example = "[[4096, 5120, 1536, 1, tn, 421 us]]";
constexpr std::array<std::string_view, 6> items{"m", "n", "k", "batch", "layout", "time"};

YamlNode scalar(std::string text) {
    YamlNode node;
    node.kind = YamlNode::Kind::scalar;
    node.text = std::move(text);
    return node;
}

YamlNode list() {
    YamlNode node;
    node.kind = YamlNode::Kind::list;
    return node;
}

// The row as a mapping of its items' names, which is what all values are read from.
YamlNode named(const YamlNode& row) {
    YamlNode mapping;
    mapping.kind = YamlNode::Kind::mapping;
    mapping.place = row.place;
    for (const std::string_view item : items) mapping.keys.push_back(scalar(std::string(item)));
    mapping.values = row.values;
    return mapping;
}

// Whether all of it was read.
bool read_row(const YamlNode& row, Report& report, GemmSample& into) {
    const std::size_t count = row.kind == YamlNode::Kind::list ? row.values.size() : 0;
    if (count != items.size()) {
        report.error(row.place,
                     fmt::format("a measured shape has {} items: m, n, k, batch, layout, time; "
                                 "write for example '- {}'",
                                 items.size(), example.substr(1, example.size() - 2)));
        return false;
    }
    const YamlNode mapping = named(row);
    Fields fields(mapping, row.place, "shapes", report);
    const std::size_t errors = report.errors();
    const Integers size{.min = 1, .max = size_max, .example = 4096};
    fields.integer("m", Need::required, into.gemm.m, size);
    fields.integer("n", Need::required, into.gemm.n, size);
    fields.integer("k", Need::required, into.gemm.k, size);
    fields.integer("batch", Need::required, into.gemm.batch, {1, size_max, 1});
    using enum GemmLayout;
    const auto name = [](GemmLayout layout) {
        return gemm_layout_names.at(static_cast<std::size_t>(layout));
    };
    fields.choice<GemmLayout>("layout", "layout", Need::required, into.gemm.layout,
                              {{name(tn), tn}, {name(nn), nn}, {name(nt), nt}, {name(any), any}});
    Duration time{};
    if (fields.duration("time", Need::required, time, measured_time)) {
        into.time_s = to_seconds(time);
    }
    return report.errors() == errors;
}

// A time in another unit is the likeliest mistake.
void check_time(const YamlNode& row, const GemmSample& sample, const Device& device,
                Report& report) {
    const double ratio = gemm_ratio(sample, device);
    if (ratio <= gemm_ratio_max && ratio * gemm_ratio_max >= 1) return;
    report.error(row.values.back().place,
                 fmt::format("{} is {:.3g} times what the device's constants give for this shape; "
                             "check its unit, no formula is {:g} times off",
                             row.values.back().text, ratio, gemm_ratio_max));
}

// What is set from outside on a mapping that has shapes would not touch their times.
void refuse_changes(Fields& device, const YamlNode& shapes) {
    const auto refuse = [&](std::string_view key, const YamlNode* value) {
        if (value == nullptr || value->place.source == shapes.place.source) return;
        device.report().error(
            value->place,
            fmt::format("'{}' is changed, but the times in 'gemm.shapes' were measured without "
                        "that; put the device into a catalog and change it there by its name",
                        key));
    };
    for (const std::string_view key :
         {"peak", "memory_bandwidth", "multiprocessors", "memory_efficiency"}) {
        if (device.has(key)) refuse(key, device.value(key, Need::optional, ""));
    }
    const YamlNode* gemm = device.value("gemm", Need::optional, "");
    for (std::size_t i = 0; gemm != nullptr && i < gemm->keys.size(); ++i) {
        refuse(gemm->keys[i].text, &gemm->values[i]);
    }
}

}  // namespace

void read_gemm_shapes(Fields& device_fields, Fields& gemm, bool are_sound, Device& device) {
    Report& report = gemm.report();
    const std::vector<YamlNode>& rows = gemm.list("shapes", Need::optional, example);
    if (rows.empty()) return;
    if (rows.size() > gemm_shapes_max) {
        return gemm.error("shapes", fmt::format("{} measured shapes; write at most {}", rows.size(),
                                                gemm_shapes_max));
    }
    std::vector<GemmSample> samples;
    std::map<Gemm, std::uint32_t> lines;
    for (const YamlNode& row : rows) {
        GemmSample sample;
        if (!read_row(row, report, sample)) continue;
        const auto [first, is_new] = lines.emplace(sample.gemm, row.place.line + 1);
        if (!is_new) {
            report.error(row.place, fmt::format("the same shape as in line {}; keep one of them",
                                                first->second));
        }
        samples.push_back(sample);
        if (are_sound) check_time(row, sample, device, report);
    }
    refuse_changes(device_fields, *gemm.value("shapes", Need::optional, example));
    if (are_sound) device.gemm_residuals = gemm_residuals(std::move(samples), device);
}

YamlNode gemm_shapes_node(std::span<const GemmSample> shapes) {
    YamlNode rows = list();
    for (const auto& [gemm, time_s] : shapes) {
        YamlNode row = list();
        for (const std::int64_t size : {gemm.m, gemm.n, gemm.k, gemm.batch}) {
            row.values.push_back(scalar(fmt::format("{}", size)));
        }
        row.values.push_back(
            scalar(std::string(gemm_layout_names.at(static_cast<std::size_t>(gemm.layout)))));
        row.values.push_back(scalar(value_text(ConstantUnit::seconds, time_s)));
        rows.values.push_back(std::move(row));
    }
    return rows;
}

}  // namespace fourfold
