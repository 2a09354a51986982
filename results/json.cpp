#include <nlohmann/json.hpp>

#include "results/report.hpp"

namespace fourfold {

nlohmann::ordered_json traffic_json(const Report& report) {
    nlohmann::ordered_json rows = nlohmann::ordered_json::array();
    for (const TrafficRow& row : report.evaluation.traffic) {
        rows.push_back({{"axis", name_of(row.axis)},
                        {"operation", row.operation},
                        {"operations", row.operations},
                        {"bytes_per_operation", row.bytes_per_operation()},
                        {"bytes_min", row.bytes_min.value},
                        {"bytes_max", row.bytes_max.value},
                        {"wire_bytes", row.wire_bytes.value},
                        {"kind", row.point_to_point ? "point_to_point" : "collective"},
                        {"blocking", row.blocking},
                        {"transfer_s", to_seconds(row.transfer)},
                        {"window_s", to_seconds(row.window)},
                        {"device", row.device.value},
                        {"link", report.graph.name(row.link)},
                        {"link_share", row.link_share}});
    }
    return rows;
}

nlohmann::ordered_json to_json(const Report& report) {
    const Evaluation& evaluation = report.evaluation;
    const Measures& measures = evaluation.measures;
    nlohmann::ordered_json time;
    for (std::size_t i = 0; i < time_class_count; ++i) {
        time[std::string(name_of(static_cast<TimeClass>(i)))] = measures.time[i];
    }
    const bool is_balanced = report.graph.routing().kind == Routing::Kind::balanced;
    nlohmann::ordered_json json = {
        {"name", report.name},
        {"network", report.links == LinkModel::flows ? "flows" : "messages"},
        {"routing", is_balanced ? "balanced" : "ecmp"},
        {"devices", measures.devices},
        {"parameters", parameters(report.step.model)},
        {"micro_batches", report.step.micro_batches()},
        {"step_time_s", to_seconds(measures.step_time)},
        {"tokens_per_second", measures.tokens_per_second},
        {"model_flops_per_step", measures.model_flops},
        {"flops_convention", measures.convention == FlopsConvention::full ? "full" : "causal"},
        {"model_flops_per_second_per_device", measures.flops_per_device},
        {"hardware_flops_per_second_per_device", measures.hardware_flops_per_device},
        {"mfu", measures.mfu},
        {"hfu", measures.hfu},
        {"idle_fraction", measures.idle_fraction},
        {"bubble_fraction", measures.bubble_fraction},
        {"time", std::move(time)},
        {"traffic", traffic_json(report)},
        {"warnings", evaluation.warnings},
    };
    const auto device_name = [&](DeviceId device) {
        return report.graph[report.graph.devices()[device.value]].name;
    };
    for (std::size_t i = 0; i < evaluation.background.size(); ++i) {
        const BackgroundFlow& flow = report.step.background[i];
        json["background"].push_back({{"from", device_name(flow.from)},
                                      {"to", device_name(flow.to)},
                                      {"bytes_per_message", flow.bytes.value},
                                      {"at_s", to_seconds(flow.at)},
                                      {"every_s", to_seconds(flow.every)},
                                      {"messages", evaluation.background[i]}});
    }
    if (report.published) {
        const double published = to_seconds(*report.published);
        json["published_step_time_s"] = published;
        json["published_error"] = to_seconds(measures.step_time) / published - 1;
    }
    if (evaluation.uncertainty) {
        const Uncertainty& known = *evaluation.uncertainty;
        json["interval_s"] = {to_seconds(known.low), to_seconds(known.high)};
        nlohmann::ordered_json& all = json["elasticities"] = nlohmann::ordered_json::array();
        for (const Elasticity& each : known.elasticities) {
            all.push_back(
                {{"constant", each.name}, {"elasticity", each.value}, {"spread", each.spread}});
        }
    }
    json["simulator"] = {{"events", evaluation.events},
                         {"tasks", evaluation.tasks},
                         {"classes", evaluation.classes},
                         {"seconds", evaluation.seconds},
                         {"peak_memory_bytes", evaluation.peak_memory}};
    return json;
}

nlohmann::ordered_json to_json(const JobsReport& report) {
    nlohmann::ordered_json jobs = nlohmann::ordered_json::array();
    for (std::size_t i = 0; i < report.jobs.size(); ++i) {
        nlohmann::ordered_json job = to_json(report.jobs[i]);
        job["alone_step_time_s"] = to_seconds(report.evaluations[i].alone);
        job["slowdown"] = report.evaluations[i].slowdown();
        jobs.push_back(std::move(job));
    }
    return {{"name", report.name}, {"jobs", std::move(jobs)}};
}

}  // namespace fourfold
