#pragma once

// Reads one YAML mapping, key by key. Every problem goes to the report and reading goes on, so that
// a user sees all of them at once.

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "scenarios/document.hpp"
#include "topology/result.hpp"
#include "topology/units.hpp"

namespace fourfold {

enum class Need : std::uint8_t { required, optional };

/// Whole numbers, and one of them that a message may show.
struct Integers {
    std::int64_t min = 0, max = 0;
    std::int64_t example = 0;
};

/// A range of real numbers, and one of them that a message may show.
struct Reals {
    double min = 0, max = 0;
    bool above_min = true;  // min itself is not allowed
    std::string_view example;
};

struct Durations {
    Duration min{}, max{};
};
/// No step of a training run, and no part of one, takes longer than a day.
inline constexpr Durations any_duration{Duration(0), Duration(86'400'000'000'000'000)};

/// The readers of values leave `into` as it was where the key is absent or wrong, and return
/// whether they set it. An optional key that is absent is no problem. Keys that nobody asked for
/// are reported when a Fields ends.
class Fields {
  public:
    /// `path` names the mapping in messages ("cluster.fabric"; empty: the whole file). `place` is
    /// what messages about absent keys point to.
    Fields(const YamlNode& node, Place place, std::string path, Report& report);
    /// The mapping at `key` of `parent`. Where it is absent or no mapping (which is reported), this
    /// one is absent, and nothing in it is missed.
    Fields(Fields& parent, std::string_view key, Need need, std::string_view example);
    ~Fields();
    Fields(const Fields&) = delete;
    Fields& operator=(const Fields&) = delete;

    [[nodiscard]] bool present() const { return node_ != nullptr; }
    /// Whether the key is there, whatever its value.
    bool has(std::string_view key);
    /// The value of a key, of any kind, or nullptr.
    const YamlNode* value(std::string_view key, Need need, std::string_view example);
    /// The items of a list; none where the key is absent or no list.
    const std::vector<YamlNode>& list(std::string_view key, Need need, std::string_view example);

    /// The items of a list of plain values; others are reported and left out.
    std::vector<const YamlNode*> words(std::string_view key, Need need, std::string_view example);
    bool integers(std::string_view key, Need need, std::vector<std::int64_t>& into, Integers range,
                  std::string_view example);

    bool integer(std::string_view key, Need need, std::int64_t& into, Integers range);
    bool number(std::string_view key, Need need, double& into, const Reals& range);
    bool boolean(std::string_view key, Need need, bool& into);
    bool text(std::string_view key, Need need, std::string& into, std::string_view example);
    bool bytes(std::string_view key, Need need, Bytes& into, std::string_view example);
    bool rate(std::string_view key, Need need, BytesPerSecond& into);
    bool duration(std::string_view key, Need need, Duration& into, Durations range);
    bool flops_rate(std::string_view key, Need need, double& into);

    /// One of a few names; `kind` says of what.
    template <class T>
    bool choice(std::string_view key, std::string_view kind, Need need, T& into,
                std::initializer_list<std::pair<std::string_view, T>> names) {
        std::vector<std::string_view> known;
        for (const auto& [name, meaning] : names) known.push_back(name);
        const std::size_t chosen = choose(key, kind, need, known);
        if (chosen == known.size()) return false;
        into = (names.begin() + chosen)->second;
        return true;
    }
    /// One of a catalog's names: find(name) is a Result whose problem offers the closest name.
    template <class T, class Find>
    bool look_up(std::string_view key, Need need, T& into, std::string_view example, Find find) {
        std::string name;
        if (!text(key, need, name, example)) return false;
        auto found = find(name);
        if (found) into = std::move(*found);
        if (!found) error(key, found.error().what);
        return found.has_value();
    }

    /// At the value of `key`; at the mapping itself if there is none.
    void error(std::string_view key, std::string message);
    /// At a key's name.
    void error_at_key(std::string_view key, std::string message);
    /// Reports a key that nobody asked for, if it is there, once.
    void refuse(std::string_view key, std::string message);
    [[nodiscard]] Report& report() const { return *report_; }
    [[nodiscard]] Place place() const { return place_; }
    /// Of the value of a key, or of this mapping where there is none.
    [[nodiscard]] Place place(std::string_view key) const;
    /// "cluster.fabric.shape"
    [[nodiscard]] std::string path(std::string_view key) const;

  private:
    const YamlNode* node_;  // borrowed from the document, which outlives its readers
    Place place_;
    std::string path_;
    Report* report_;
    std::vector<std::string> known_, refused_;

    const YamlNode* look(std::string_view key);
    bool read_integer(const YamlNode& node, std::string_view key, std::string_view example,
                      Integers range, std::int64_t& into);
    const YamlNode* scalar(std::string_view key, Need need, std::string_view what,
                           std::string_view example);
    std::size_t choose(std::string_view key, std::string_view kind, Need need,
                       const std::vector<std::string_view>& names);
    template <class T>
    bool quantity(std::string_view key, Need need, T& into, std::string_view what,
                  std::string_view example, Result<T> (*parse)(std::string_view));
};

}  // namespace fourfold
