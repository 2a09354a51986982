#include "scenarios/arguments.hpp"

#include <fmt/format.h>

#include <charconv>
#include <optional>

#include "scenarios/commands.hpp"
#include "topology/closest.hpp"

namespace fourfold {
namespace {

constexpr std::uint32_t number_max = 1U << 20;
constexpr std::size_t list_max = 1U << 16;

std::vector<std::string_view> split(std::string_view text, char separator) {
    std::vector<std::string_view> parts;
    while (true) {
        const std::size_t end = text.find(separator);
        parts.push_back(text.substr(0, end));
        if (end == std::string_view::npos) return parts;
        text.remove_prefix(end + 1);
    }
}

std::optional<std::uint32_t> number(std::string_view text) {
    std::uint32_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
    if (value < 1 || value > number_max) return std::nullopt;
    return value;
}

template <class T>
Result<T> named(Result<T> result, std::string_view option) {
    if (!result) result.error().where = std::string(option);
    return result;
}

}  // namespace

Result<std::vector<std::uint32_t>> number_list(std::string_view option, std::string_view text) {
    std::vector<std::uint32_t> numbers;
    for (const std::string_view part : split(text, ',')) {
        const std::size_t dots = part.find("..");
        const auto first = number(part.substr(0, dots));
        const auto last = dots == std::string_view::npos ? first : number(part.substr(dots + 2));
        if (!first || !last || *last < *first) {
            return problem(std::string(option),
                           fmt::format("'{}' is no number or range from 1 to {}, as in 8 or 1..256",
                                       part, number_max));
        }
        if (numbers.size() + (*last - *first) >= list_max) {
            return problem(std::string(option), fmt::format("more than {} numbers", list_max));
        }
        for (std::uint32_t value = *first; value <= *last; ++value) numbers.push_back(value);
    }
    return numbers;
}

Result<std::vector<std::string>> name_list(std::string_view option, std::string_view text) {
    std::vector<std::string> names;
    for (const std::string_view part : split(text, ',')) {
        if (part.empty()) {
            return problem(std::string(option),
                           fmt::format("'{}' has an empty name; write names as in a,b", text));
        }
        names.emplace_back(part);
    }
    return names;
}

Result<LinkModel> link_model(std::string_view text) {
    if (text == "flows") return LinkModel::flows;
    if (text == "messages") return LinkModel::messages;
    static constexpr std::string_view known[] = {"flows", "messages"};
    return problem("--network", unknown("link model", text, known));
}

Result<Routing> routing_argument(std::string_view text) {
    if (text == "balanced") return Routing{};
    if (text == "ecmp") return Routing{.kind = Routing::Kind::ecmp};
    static constexpr std::string_view known[] = {"balanced", "ecmp"};
    return problem("--routing", unknown("routing", text, known));
}

Result<Bytes> bytes_argument(std::string_view option, std::string_view text) {
    return named(parse_bytes(text), option);
}
Result<Bytes> quantum_argument(std::string_view option, std::string_view text) {
    if (text.empty()) return Bytes{};
    const Result<Bytes> quantum = bytes_argument(option, text);
    if (!quantum) return quantum;
    const Result<void> fine = check_quantum(*quantum);
    return fine ? quantum : problem(std::string(option), fine.error().what);
}
Result<BytesPerSecond> rate_argument(std::string_view option, std::string_view text) {
    return named(parse_rate(text), option);
}
Result<Duration> duration_argument(std::string_view option, std::string_view text) {
    return named(parse_duration(text), option);
}

int refuse(const Problem& problem) {
    fmt::print(stderr, "fourfold: error: {}{}{}\n", problem.where,
               problem.where.empty() ? "" : ": ", problem.what);
    return bad_input;
}

}  // namespace fourfold
