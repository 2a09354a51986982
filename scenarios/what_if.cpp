#include "scenarios/what_if.hpp"

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <system_error>
#include <utility>

#include "scenarios/document.hpp"
#include "scenarios/fields.hpp"
#include "scenarios/reading.hpp"
#include "scenarios/settings.hpp"

namespace fourfold {
namespace {

// Each entry is a scenario with a graph of its own; a sweep is for more.
constexpr std::size_t entries_max = 1000;

struct Entry {
    std::string name;
    std::vector<Change> changes;
};

struct WhatIf {
    std::filesystem::path base;  // as opened
    Place base_place;
    std::vector<Entry> entries;
};

// Either key makes a what-if file, so that one with a key missing is told which.
bool is_what_if(const YamlNode& tree) {
    return tree.find("what_if") != nullptr || tree.find("base") != nullptr;
}

std::optional<Entry> read_entry(const YamlNode& item, std::size_t index, Report& report) {
    const std::size_t errors = report.errors();
    Entry entry;
    Fields fields(item, item.place, fmt::format("what_if.{}", index), report);
    fields.text("name", Need::required, entry.name, "twice the network");
    constexpr std::string_view example = "{cluster.fabric.bandwidth: 50 GB/s}";
    const YamlNode* set = fields.value("set", Need::required, example);
    const bool is_mapping = set != nullptr && set->kind == YamlNode::Kind::mapping;
    if (set != nullptr && (!is_mapping || set->keys.empty())) {
        fields.error(
            "set",
            fmt::format("'set' must map paths to values; write for example 'set: {}'", example));
    }
    for (std::size_t i = 0; is_mapping && i < set->keys.size(); ++i) {
        entry.changes.push_back({set->keys[i].text, set->keys[i].place, set->values[i]});
    }
    if (report.errors() > errors) return std::nullopt;
    return entry;
}

std::vector<Entry> read_entries(Fields& fields, Report& report) {
    constexpr std::string_view example =
        "[{name: twice the network, set: {cluster.fabric.bandwidth: 50 GB/s}}]";
    std::vector<Entry> entries;
    std::set<std::string> names;
    const auto& items = fields.list("what_if", Need::required, example);
    if (items.size() > entries_max) {
        fields.error("what_if", fmt::format("{} entries; at most {}", items.size(), entries_max));
        return entries;
    }
    for (std::size_t i = 0; i < items.size(); ++i) {
        auto entry = read_entry(items[i], i, report);
        if (!entry) continue;
        if (!names.insert(entry->name).second) {
            report.error(locate(items[i], "name"), fmt::format("two entries are named {}; names "
                                                               "must differ",
                                                               in_quotes(entry->name)));
        }
        entries.push_back(std::move(*entry));
    }
    return entries;
}

std::optional<WhatIf> read_what_if(const YamlNode& tree, const std::filesystem::path& file,
                                   Report& report) {
    const std::size_t errors = report.errors();
    WhatIf what_if;
    {
        Fields fields(tree, tree.place, "", report);
        std::string base;
        if (fields.text("base", Need::required, base, "my_scenario.yaml")) {
            what_if.base = file.parent_path() / base;
            what_if.base_place = locate(tree, "base");
        }
        what_if.entries = read_entries(fields, report);
    }
    if (report.errors() > errors) return std::nullopt;
    return what_if;
}

// The tree of the scenario that a what-if file changes. A chain of what-if files would hide what is
// compared with what, and could be a circle; so the base is a plain scenario.
std::optional<YamlNode> read_base(const WhatIf& what_if, Report& report) {
    const std::string name = what_if.base.string();
    const FileText read = read_file(name);
    if (!read.text) {
        report.error(what_if.base_place, fmt::format("base {}: {}", in_quotes(name), read.why_not));
        return std::nullopt;
    }
    auto tree = read_tree(report.add_source(name, *read.text), report);
    if (!tree) return std::nullopt;
    if (is_what_if(*tree)) {
        report.error(what_if.base_place, fmt::format("base {} is a what-if file itself; name a "
                                                     "scenario",
                                                     in_quotes(name)));
        return std::nullopt;
    }
    return tree;
}

std::vector<Scenario> read_variations(const WhatIf& what_if, const YamlNode& base,
                                      const Catalog& catalog, std::uint32_t home, Report& report) {
    std::vector<Scenario> scenarios;
    for (const Entry& entry : what_if.entries) {
        // A change can make a key of the base wrong: the message must then name the change.
        report.set_remark(home, fmt::format(" (what-if {})", in_quotes(entry.name)));
        YamlNode tree = base;
        const std::size_t errors = report.errors();
        for (const Change& change : entry.changes) apply(change, tree, report);
        if (report.errors() > errors) continue;
        auto scenario = read_scenario(tree, entry.name, catalog, report);
        if (!scenario) continue;
        scenario->name = entry.name;
        scenarios.push_back(std::move(*scenario));
    }
    return scenarios;
}

}  // namespace

tl::expected<std::vector<Scenario>, Diagnostics> load_scenarios(
    const std::filesystem::path& file, const std::vector<Setting>& settings,
    const Catalog& catalog) {
    Report report;
    const auto failed = [&report] { return tl::unexpected(report.diagnostics()); };
    const auto source = open_source(file.string(), report);
    if (!source) return failed();
    const auto tree = read_tree(*source, report);
    if (!tree) return failed();

    std::optional<WhatIf> what_if;
    std::optional<YamlNode> base = tree;
    std::string name = file.stem().string();
    if (is_what_if(*tree)) {
        what_if = read_what_if(*tree, file, report);
        if (!what_if) return failed();
        name = what_if->base.stem().string();
        base = read_base(*what_if, report);
        if (!base) return failed();
    }
    apply_settings(settings, *base, report);
    std::vector<Scenario> scenarios;
    if (auto scenario = read_scenario(*base, name, catalog, report)) {
        scenarios.push_back(std::move(*scenario));
    }
    if (report.errors() > 0) return failed();
    if (what_if) {
        auto variations = read_variations(*what_if, *base, catalog, *source, report);
        for (Scenario& variation : variations) scenarios.push_back(std::move(variation));
    }
    if (report.errors() > 0) return failed();
    return scenarios;
}

}  // namespace fourfold
