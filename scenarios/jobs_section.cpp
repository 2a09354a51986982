#include "scenarios/jobs_section.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "scenarios/cluster_section.hpp"
#include "scenarios/fields.hpp"
#include "scenarios/reading.hpp"

namespace fourfold {
namespace {

constexpr std::string_view jobs_example =
    "[{name: a, nodes: 0..1}, {name: b, nodes: 2..3, batch: {global: 64}}]";
// Each is simulated alone and with the others.
constexpr std::size_t jobs_max = 1000;

// Of the network, and so the same for all jobs.
constexpr std::string_view shared_keys[] = {"cluster", "network",    "quantum",
                                            "routing", "background", "perturb"};
// Of the list, not of the job's scenario.
constexpr std::string_view list_keys[] = {"name", "scenario", "devices", "nodes"};

bool is_among(std::span<const std::string_view> names, std::string_view name) {
    return std::ranges::find(names, name) != names.end();
}

void put(const YamlNode& key, const YamlNode& value, YamlNode& mapping) {
    if (YamlNode* old = mapping.find(key.text)) {
        *old = value;
        return;
    }
    mapping.keys.push_back(key);
    mapping.values.push_back(value);
}

template <class Keeps>
YamlNode filtered(const YamlNode& mapping, Keeps keeps) {
    YamlNode kept = mapping;
    kept.keys.clear();
    kept.values.clear();
    for (std::size_t i = 0; i < mapping.keys.size(); ++i) {
        if (keeps(mapping.keys[i].text)) put(mapping.keys[i], mapping.values[i], kept);
    }
    return kept;
}

// ------------------------------------------------------------------------------------ placement

/// Which node each device is in.
std::vector<std::uint32_t> nodes_of(const ClusterSection& cluster) {
    std::vector<std::uint32_t> nodes;
    if (cluster.shape) {
        for (std::uint32_t device = 0; device < cluster.devices; ++device) {
            nodes.push_back(device / cluster.shape->devices_per_node);
        }
        return nodes;
    }
    for (const Vertex& vertex : cluster.graph->vertices) {
        if (vertex.is_device) nodes.push_back(vertex.node);
    }
    return nodes;
}

/// "7" or "0..3".
std::optional<std::pair<std::uint32_t, std::uint32_t>> range_of(std::string_view text) {
    const auto number = [](std::string_view part) -> std::optional<std::uint32_t> {
        std::uint32_t value = 0;
        const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), value);
        if (part.empty() || error != std::errc() || end != part.data() + part.size()) return {};
        return value;
    };
    const std::size_t dots = text.find("..");
    const auto first = number(text.substr(0, dots));
    const auto last = dots == std::string_view::npos ? first : number(text.substr(dots + 2));
    if (!first || !last || *first > *last) return std::nullopt;
    return std::pair(*first, *last);
}

/// The numbers below `count` at a key: "0..3", 7, or a list of such; ascending.
std::vector<std::uint32_t> read_numbers(Fields& item, std::string_view key, std::size_t count) {
    const std::string_view what = key.substr(0, key.size() - 1);  // device, node
    Report& report = item.report();
    std::vector<std::uint32_t> numbers;
    const auto add = [&](const YamlNode& word) {
        const auto range = word.kind == YamlNode::Kind::scalar ? range_of(word.text) : std::nullopt;
        if (!range) {
            const std::string shown =
                word.kind == YamlNode::Kind::scalar ? in_quotes(word.text) : "an item";
            report.error(word.place,
                         fmt::format("{} is no number or range; write for example '{}: 0..3' or "
                                     "'{}: [0, 2, 4..7]'",
                                     shown, key, key));
        } else if (range->second >= count) {
            report.error(word.place, fmt::format("there is no {} {}; the cluster has {}, counted "
                                                 "from 0",
                                                 what, range->second, count));
        } else {
            for (std::uint32_t n = range->first; n <= range->second; ++n) numbers.push_back(n);
        }
    };
    const YamlNode* node = item.value(key, Need::required, "0..3");
    if (node == nullptr) return numbers;
    if (node->kind == YamlNode::Kind::list) {
        std::ranges::for_each(node->values, add);
    } else {
        add(*node);
    }
    std::ranges::sort(numbers);
    if (const auto twice = std::ranges::adjacent_find(numbers); twice != numbers.end()) {
        item.error(key, fmt::format("{} {} is named twice", what, *twice));
        numbers.erase(std::unique(twice, numbers.end()), numbers.end());
    }
    return numbers;
}

std::vector<DeviceId> read_devices(Fields& item, const std::vector<std::uint32_t>& nodes) {
    std::vector<DeviceId> devices;
    if (item.has("devices") && item.has("nodes")) {
        item.error_at_key("nodes", "'devices' and 'nodes' both say where the job runs; remove one");
        return devices;
    }
    if (!item.has("devices") && !item.has("nodes")) {
        item.error("", "a job needs 'devices' or 'nodes'; write for example 'nodes: 0..1'");
        return devices;
    }
    if (item.has("devices")) {
        for (const std::uint32_t n : read_numbers(item, "devices", nodes.size())) {
            devices.push_back({n});
        }
        return devices;
    }
    const std::size_t count = nodes.empty() ? 0 : std::ranges::max(nodes) + std::size_t{1};
    const std::vector<std::uint32_t> chosen = read_numbers(item, "nodes", count);
    for (const DeviceId device : ids<DeviceId>(nodes.size())) {
        if (std::ranges::binary_search(chosen, nodes[device.value])) devices.push_back(device);
    }
    return devices;
}

// ---------------------------------------------------------------------------------------- a job

/// The scenario file that a job names, without what is the network's.
std::optional<YamlNode> read_file_of(const YamlNode& tree, const std::string& file, Place place,
                                     Report& report) {
    const std::filesystem::path home = report.name(tree.place.source);
    const std::string path = (home.parent_path() / file).string();
    const FileText read = read_file(path);
    if (!read.text) {
        report.error(place, fmt::format("scenario {}: {}", in_quotes(path), read.why_not));
        return std::nullopt;
    }
    auto other = read_tree(report.add_source(path, *read.text), report);
    if (!other) return std::nullopt;
    const bool is_plain = other->kind == YamlNode::Kind::mapping && !other->find("jobs") &&
                          !other->find("what_if") && !other->find("base");
    if (!is_plain) {
        report.error(place, fmt::format("scenario {} is no scenario of one job", in_quotes(path)));
        return std::nullopt;
    }
    return filtered(*other, [](std::string_view key) {
        return !is_among(shared_keys, key) && key != "name" && key != "published";
    });
}

/// The job's scenario as a file of its own would have it.
std::optional<YamlNode> tree_of(const YamlNode& tree, const YamlNode& item, Fields& fields,
                                Report& report) {
    std::optional<YamlNode> job;
    std::string file;
    if (fields.has("scenario")) {
        if (!fields.text("scenario", Need::required, file, "other.yaml")) return std::nullopt;
        job = read_file_of(tree, file, fields.place("scenario"), report);
        if (!job) return std::nullopt;
        for (std::size_t i = 0; i < tree.keys.size(); ++i) {
            if (is_among(shared_keys, tree.keys[i].text)) put(tree.keys[i], tree.values[i], *job);
        }
    } else {
        job = filtered(tree, [](std::string_view key) { return key != "jobs" && key != "name"; });
    }
    for (std::size_t i = 0; i < item.keys.size(); ++i) {
        const std::string& key = item.keys[i].text;
        if (is_among(list_keys, key)) continue;
        fields.has(key);  // read with the rest of the scenario
        if (is_among(shared_keys, key)) {
            fields.error_at_key(key, fmt::format("'{}' is the same for all jobs; write it beside "
                                                 "'jobs'",
                                                 key));
            continue;
        }
        put(item.keys[i], item.values[i], *job);
    }
    return job;
}

class JobReader {
  public:
    JobReader(const YamlNode& tree, const ClusterSection& cluster, const Catalog& catalog,
              Report& report)
        : tree_(tree), catalog_(catalog), report_(report), nodes_(nodes_of(cluster)) {}

    std::optional<Scenario> read(const YamlNode& item, std::size_t index) {
        const std::size_t errors = report_.errors();
        std::string name;
        std::vector<DeviceId> devices;
        std::optional<YamlNode> job;
        {
            Fields fields(item, item.place, fmt::format("jobs.{}", index), report_);
            if (!fields.present()) return std::nullopt;
            if (fields.text("name", Need::required, name, "a") && !names_.insert(name).second) {
                fields.error("name", fmt::format("two jobs are named {}; names must differ",
                                                 in_quotes(name)));
            }
            devices = read_devices(fields, nodes_);
            const std::string_view key = fields.has("nodes") ? "nodes" : "devices";
            for (const DeviceId device : devices) {
                const auto [owner, is_new] = owners_.emplace(device, name);
                if (is_new) continue;
                fields.error(key, fmt::format("device {} belongs to job {} already", device.value,
                                              in_quotes(owner->second)));
                break;
            }
            reads_common_ = reads_common_ || !fields.has("scenario");
            job = tree_of(tree_, item, fields, report_);
        }
        if (!job || report_.errors() > errors) return std::nullopt;
        auto scenario = read_plain_scenario(*job, name, devices, catalog_, report_);
        if (scenario) scenario->name = name;
        return scenario;
    }

    /// Keys of the file that no job has read.
    void check_common() {
        if (reads_common_) return;
        for (const YamlNode& key : tree_.keys) {
            if (is_among(shared_keys, key.text) || key.text == "name" || key.text == "jobs")
                continue;
            report_.error(key.place,
                          fmt::format("no job reads {}: each has a scenario file; remove "
                                      "it or correct its name",
                                      in_quotes(key.text)));
        }
    }

  private:
    const YamlNode& tree_;
    const Catalog& catalog_;
    Report& report_;
    std::vector<std::uint32_t> nodes_;
    std::set<std::string> names_;
    std::map<DeviceId, std::string> owners_;
    bool reads_common_ = false;
};

}  // namespace

std::optional<Scenario> read_jobs(const YamlNode& tree, std::string_view name,
                                  const Catalog& catalog, Report& report) {
    const std::size_t errors = report.errors();
    const YamlNode own = filtered(tree, [](std::string_view key) {
        return key == "name" || key == "cluster" || key == "jobs";
    });
    std::string own_name(name);
    std::optional<Scenario> first;
    std::vector<Job> jobs;
    {
        Fields fields(own, own.place, "", report);
        fields.text("name", Need::optional, own_name, "my jobs");
        const ClusterSection cluster = read_cluster(fields, catalog);
        const auto& items = fields.list("jobs", Need::required, jobs_example);
        if (report.errors() > errors || !cluster.sound) return std::nullopt;
        if (items.empty() || items.size() > jobs_max) {
            fields.error("jobs", fmt::format("{} jobs; write 1 to {}", items.size(), jobs_max));
            return std::nullopt;
        }
        JobReader reader(tree, cluster, catalog, report);
        for (std::size_t i = 0; i < items.size(); ++i) {
            auto scenario = reader.read(items[i], i);
            if (!scenario) continue;
            jobs.push_back({scenario->name, scenario->step});
            if (!first) first = std::move(scenario);
        }
        if (report.errors() == errors) reader.check_common();
    }
    if (report.errors() > errors) return std::nullopt;
    first->name = std::move(own_name);
    first->jobs = std::move(jobs);
    first->published.reset();
    return first;
}

}  // namespace fourfold
