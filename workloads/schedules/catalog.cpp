#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>

#include "topology/check.hpp"
#include "topology/closest.hpp"
#include "workloads/schedules/rules.hpp"
#include "workloads/schedules/schedule.hpp"

namespace fourfold {

#define SCHEDULE(name) extern const Schedule name##_schedule;
#include "workloads/schedules/catalog.def"
#undef SCHEDULE

namespace {

#define SCHEDULE(name) &name##_schedule,
constexpr std::array all_schedules = {
#include "workloads/schedules/catalog.def"
};
#undef SCHEDULE

char letter_of(ActionKind kind) {
    switch (kind) {
        case ActionKind::forward:
            return 'F';
        case ActionKind::backward:
            return 'B';
        case ActionKind::input_gradient:
            return 'I';
        case ActionKind::weight_gradient:
            return 'W';
    }
    FOURFOLD_CHECK(false, "action kind {}", static_cast<int>(kind));
}

}  // namespace

std::span<const Schedule* const> schedules() { return all_schedules; }

Result<const Schedule*> find_schedule(std::string_view name) {
    std::vector<std::string_view> names;
    for (const Schedule* schedule : all_schedules) {
        if (schedule->name == name) return schedule;
        names.push_back(schedule->name);
    }
    return problem("", unknown("schedule", name, names));
}

std::uint32_t peak_in_flight(std::span<const Action> actions) {
    std::uint32_t alive = 0;
    std::uint32_t peak = 0;
    for (const Action& action : actions) {
        switch (action.kind) {
            case ActionKind::forward:
                peak = std::max(peak, ++alive);
                break;
            case ActionKind::backward:
            case ActionKind::weight_gradient:
                FOURFOLD_CHECK(alive > 0, "an activation is released that was never made");
                --alive;
                break;
            case ActionKind::input_gradient:
                break;
        }
    }
    return peak;
}

std::string to_text(std::span<const Action> actions, const PipelineShape& shape,
                    std::uint32_t rank) {
    std::string text;
    for (const Action& action : actions) {
        fmt::format_to(std::back_inserter(text), "{}{}{}{}", text.empty() ? "" : " ",
                       action.chunk * shape.ranks + rank, letter_of(action.kind),
                       action.micro_batch);
    }
    return text;
}

std::optional<std::string> refuse_counts(const PipelineShape& shape) {
    if (shape.ranks == 0 || shape.chunks == 0 || shape.micro_batches == 0) {
        return fmt::format(
            "a pipeline needs at least 1 rank, 1 chunk and 1 micro-batch, but has {}, {} and {}",
            shape.ranks, shape.chunks, shape.micro_batches);
    }
    // Actions are counted in 32 bits and chunks in 16; a real pipeline has some thousand of them.
    constexpr std::uint64_t most = std::uint64_t{1} << 28;
    const std::uint64_t stages = std::uint64_t{shape.ranks} * shape.chunks;
    const std::uint64_t forwards = std::uint64_t{shape.micro_batches} * shape.chunks;
    if (shape.chunks > 65'535 || stages > most || forwards > most) {
        return fmt::format(
            "{} ranks of {} chunks with {} micro-batches are too many: at most 65535 chunks, {} "
            "stages, and {} forwards on a rank",
            shape.ranks, shape.chunks, shape.micro_batches, most, most);
    }
    return std::nullopt;
}

std::optional<Duration> total(std::initializer_list<Term> terms) {
    __extension__ using Wide = unsigned __int128;
    Wide sum = 0;
    for (const Term& term : terms) {
        sum += Wide{term.count} * static_cast<std::uint64_t>(term.duration.count());
    }
    if (sum > static_cast<std::uint64_t>(duration_limit.count())) return std::nullopt;
    return Duration(static_cast<std::int64_t>(sum));
}

}  // namespace fourfold
