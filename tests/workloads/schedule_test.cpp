#include "workloads/schedules/schedule.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <random>
#include <sstream>
#include <tuple>

// An executor of its own: runs the lists by the dependencies of a pipeline and nothing else. Stage
// s is on rank s mod p; a rank works through its list in order.
//   F(s, k)    after F(s - 1, k)              + hop if on another rank
//   I, B(s, k) after F(s, k), I, B(s + 1, k)  + hop if on another rank
//   W(s, k)    after I(s, k)

namespace fourfold {
namespace {

struct Run {
    bool finished = true;
    Duration makespan{};
    std::vector<Duration> busy, first;
};

std::vector<std::vector<Action>> lists_of(const Schedule& schedule, const PipelineShape& shape) {
    std::vector<std::vector<Action>> lists;
    for (std::uint32_t rank = 0; rank < shape.ranks; ++rank) {
        lists.push_back(schedule.actions(shape, rank));
    }
    return lists;
}

Run execute(const std::vector<std::vector<Action>>& lists, const PipelineShape& shape,
            const ChunkTimes& times) {
    constexpr Duration never{-1};
    const std::uint32_t p = shape.ranks;
    const std::uint32_t stages = p * shape.chunks;
    const std::size_t m = shape.micro_batches;
    std::vector<Duration> forward(stages * m, never), gradient(stages * m, never);
    std::vector<std::size_t> next(p, 0);
    std::vector<Duration> free_at(p);
    Run run;
    run.busy.resize(p);
    run.first.resize(p, never);
    const Duration hop = p > 1 ? times.hop : Duration{};

    for (bool moved = true; moved;) {
        moved = false;
        for (std::uint32_t rank = 0; rank < p; ++rank) {
            while (next[rank] < lists[rank].size()) {
                const Action& action = lists[rank][next[rank]];
                const std::uint32_t stage = action.chunk * p + rank;
                const std::size_t at = stage * m + action.micro_batch;
                Duration ready{};
                Duration takes{};
                Duration* done = nullptr;
                switch (action.kind) {
                    case ActionKind::forward:
                        if (stage > 0) ready = forward[at - m];
                        if (stage > 0 && ready != never) ready += hop;
                        takes = times.forward;
                        done = &forward[at];
                        break;
                    case ActionKind::backward:
                    case ActionKind::input_gradient:
                        ready = forward[at];
                        if (stage + 1 < stages) {
                            const Duration from = gradient[at + m];
                            ready = from == never || ready == never ? never
                                                                    : std::max(ready, from + hop);
                        }
                        takes = times.input_gradient;
                        if (action.kind == ActionKind::backward) takes += times.weight_gradient;
                        done = &gradient[at];
                        break;
                    case ActionKind::weight_gradient:
                        ready = gradient[at];
                        takes = times.weight_gradient;
                        break;
                }
                if (ready == never) break;
                const Duration start = std::max(ready, free_at[rank]);
                if (next[rank] == 0) run.first[rank] = start;
                free_at[rank] = start + takes;
                run.busy[rank] += takes;
                if (done != nullptr) *done = free_at[rank];
                run.makespan = std::max(run.makespan, free_at[rank]);
                ++next[rank];
                moved = true;
            }
        }
    }
    for (std::uint32_t rank = 0; rank < p; ++rank) {
        run.finished = run.finished && next[rank] == lists[rank].size();
    }
    return run;
}

// Every chunk and micro-batch forward once and backward once, whole or in its two halves.
bool is_complete(const std::vector<Action>& list, const PipelineShape& shape, bool split) {
    std::map<std::tuple<ActionKind, std::uint32_t, std::uint32_t>, int> seen;
    for (const Action& action : list) ++seen[{action.kind, action.chunk, action.micro_batch}];
    std::vector<ActionKind> kinds = {ActionKind::forward, ActionKind::backward};
    if (split) {
        kinds = {ActionKind::forward, ActionKind::input_gradient, ActionKind::weight_gradient};
    }
    for (const ActionKind kind : kinds) {
        for (std::uint32_t chunk = 0; chunk < shape.chunks; ++chunk) {
            for (std::uint32_t k = 0; k < shape.micro_batches; ++k) {
                if (seen[{kind, chunk, k}] != 1) return false;
            }
        }
    }
    return list.size() == kinds.size() * shape.chunks * shape.micro_batches;
}

const Schedule& find(std::string_view name) {
    const auto found = find_schedule(name);
    REQUIRE(found.has_value());
    return **found;
}

std::vector<std::uint32_t> peaks_of(const Schedule& schedule, const PipelineShape& shape) {
    std::vector<std::uint32_t> peaks;
    for (const auto& list : lists_of(schedule, shape)) peaks.push_back(peak_in_flight(list));
    return peaks;
}

// "7,5,3" or, where all ranks agree, "7".
std::vector<std::int64_t> per_rank(const std::string& text, std::uint32_t ranks) {
    std::vector<std::int64_t> values;
    std::istringstream stream(text);
    for (std::string item; std::getline(stream, item, ',');) values.push_back(std::stoll(item));
    if (values.size() == 1) values.resize(ranks, values.front());
    REQUIRE(values.size() == ranks);
    return values;
}

}  // namespace

TEST_CASE("Schedules give the makespan, busy time, first start and peak of the golden cases") {
    std::ifstream file(FOURFOLD_SOURCE_DIR "/tests/golden/schedules.txt");
    REQUIRE(file.is_open());
    int cases = 0;
    int refused = 0;
    int closed = 0;
    for (std::string line; std::getline(file, line);) {
        if (line.empty() || line.front() == '#') continue;
        CAPTURE(line);
        std::istringstream fields(line);
        std::string name, word;
        PipelineShape shape;
        fields >> name >> shape.ranks >> shape.chunks >> shape.micro_batches >> word;
        const Schedule& schedule = find(name);
        if (word == "refused") {
            CHECK(schedule.refuse(shape).has_value());
            ++refused;
            continue;
        }
        std::int64_t input = 0, weight = 0, hop = 0, makespan = 0;
        std::string busy, first, peak;
        fields >> input >> weight >> hop >> makespan >> busy >> first >> peak;
        REQUIRE(!fields.fail());
        const ChunkTimes times{.forward = Duration(std::stoll(word)),
                               .input_gradient = Duration(input),
                               .weight_gradient = Duration(weight),
                               .hop = Duration(hop)};
        REQUIRE_FALSE(schedule.refuse(shape).has_value());
        const auto lists = lists_of(schedule, shape);
        const Run run = execute(lists, shape, times);
        CHECK(run.finished);
        CHECK(run.makespan.count() == makespan);
        const auto busy_expected = per_rank(busy, shape.ranks);
        const auto first_expected = per_rank(first, shape.ranks);
        const auto peak_expected = per_rank(peak, shape.ranks);
        for (std::uint32_t rank = 0; rank < shape.ranks; ++rank) {
            CHECK(run.busy[rank].count() == busy_expected[rank]);
            CHECK(run.first[rank].count() == first_expected[rank]);
            CHECK(peak_in_flight(lists[rank]) == peak_expected[rank]);
            CHECK(is_complete(lists[rank], shape, schedule.splits_backward));
        }
        if (const auto formula = schedule.makespan(shape, times)) {
            CHECK(formula->count() == makespan);
            ++closed;
        }
        ++cases;
    }
    CHECK(cases == 1'920);
    CHECK(refused == 4);
    CHECK(closed > 1'000);  // the closed forms are not silent
}

TEST_CASE("Every schedule runs each shape that it does not refuse, and its closed form holds") {
    constexpr std::uint32_t seed = 20'240'607;
    INFO("seed ", seed);
    std::mt19937 random(seed);
    const auto up_to = [&](std::uint32_t most) {
        return 1 + static_cast<std::uint32_t>(random() % most);
    };
    for (const Schedule* schedule : schedules()) {
        int ran = 0;
        int closed = 0;
        for (int i = 0; i < 3'000; ++i) {
            const PipelineShape shape{
                .ranks = up_to(7), .chunks = up_to(4), .micro_batches = up_to(21)};
            const bool instant = random() % 3 == 0;
            const ChunkTimes times{.forward = Duration(up_to(20)),
                                   .input_gradient = Duration(up_to(20)),
                                   .weight_gradient = Duration(up_to(20)),
                                   .hop = Duration(instant ? 0 : up_to(40))};
            INFO(schedule->name, " p ", shape.ranks, " v ", shape.chunks, " m ",
                 shape.micro_batches, " f ", times.forward.count(), " i ",
                 times.input_gradient.count(), " w ", times.weight_gradient.count(), " hop ",
                 times.hop.count());
            if (const auto reason = schedule->refuse(shape)) {
                CHECK(reason->starts_with(schedule->name));
                continue;
            }
            ++ran;
            const auto lists = lists_of(*schedule, shape);
            const Run run = execute(lists, shape, times);
            REQUIRE(run.finished);
            for (const auto& list : lists) {
                REQUIRE(is_complete(list, shape, schedule->splits_backward));
            }
            if (const auto formula = schedule->makespan(shape, times)) {
                ++closed;
                REQUIRE(formula->count() == run.makespan.count());
            }
        }
        INFO(schedule->name);
        CHECK(ran > 300);
        CHECK(closed > 50);
        CHECK(&find(schedule->name) == schedule);
        CHECK_FALSE(schedule->summary.empty());
        for (const PipelineShape none : {PipelineShape{.ranks = 0}, PipelineShape{.chunks = 0},
                                         PipelineShape{.micro_batches = 0}}) {
            CHECK(schedule->refuse(none).has_value());
        }
        CHECK(schedule->refuse({.ranks = 2, .chunks = 70'000, .micro_batches = 2}).has_value());
        CHECK(schedule->refuse({.ranks = 2, .chunks = 2, .micro_batches = 1U << 31}).has_value());
    }
}

// From the reference simulator, 4 ranks and 8 micro-batches.
TEST_CASE("The action lists are those of the papers, word for word") {
    const auto list = [](std::string_view name, std::uint32_t chunks, std::uint32_t rank) {
        const PipelineShape shape{.ranks = 4, .chunks = chunks, .micro_batches = 8};
        return to_text(find(name).actions(shape, rank), shape, rank);
    };
    CHECK(list("gpipe", 1, 0) == "0F0 0F1 0F2 0F3 0F4 0F5 0F6 0F7 0B0 0B1 0B2 0B3 0B4 0B5 0B6 0B7");
    CHECK(list("1f1b", 1, 0) == "0F0 0F1 0F2 0F3 0B0 0F4 0B1 0F5 0B2 0F6 0B3 0F7 0B4 0B5 0B6 0B7");
    CHECK(list("1f1b", 1, 1) == "1F0 1F1 1F2 1B0 1F3 1B1 1F4 1B2 1F5 1B3 1F6 1B4 1F7 1B5 1B6 1B7");
    CHECK(list("1f1b", 1, 3) == "3F0 3B0 3F1 3B1 3F2 3B2 3F3 3B3 3F4 3B4 3F5 3B5 3F6 3B6 3F7 3B7");
    CHECK(list("interleaved_1f1b", 2, 0) ==
          "0F0 0F1 0F2 0F3 4F0 4F1 4F2 4F3 0F4 0F5 0F6 4B0 0F7 4B1 4F4 4B2 4F5 4B3 4F6 0B0 4F7 "
          "0B1 0B2 0B3 4B4 4B5 4B6 4B7 0B4 0B5 0B6 0B7");
    CHECK(list("interleaved_1f1b", 2, 1) ==
          "1F0 1F1 1F2 1F3 5F0 5F1 5F2 5F3 1F4 5B0 1F5 5B1 1F6 5B2 1F7 5B3 5F4 1B0 5F5 1B1 5F6 "
          "1B2 5F7 1B3 5B4 5B5 5B6 5B7 1B4 1B5 1B6 1B7");
    CHECK(list("interleaved_1f1b", 2, 2) ==
          "2F0 2F1 2F2 2F3 6F0 6F1 6F2 6B0 6F3 6B1 2F4 6B2 2F5 6B3 2F6 2B0 2F7 2B1 6F4 2B2 6F5 "
          "2B3 6F6 6B4 6F7 6B5 6B6 6B7 2B4 2B5 2B6 2B7");
    CHECK(list("interleaved_1f1b", 2, 3) ==
          "3F0 3F1 3F2 3F3 7F0 7B0 7F1 7B1 7F2 7B2 7F3 7B3 3F4 3B0 3F5 3B1 3F6 3B2 3F7 3B3 7F4 "
          "7B4 7F5 7B5 7F6 7B6 7F7 7B7 3B4 3B5 3B6 3B7");
    CHECK(list("zb1p", 1, 0) ==
          "0F0 0F1 0F2 0F3 0I0 0W0 0F4 0I1 0W1 0F5 0I2 0W2 0F6 0I3 0W3 0F7 0I4 0W4 0I5 0W5 0I6 "
          "0W6 0I7 0W7");
    CHECK(list("zb1p", 1, 1) ==
          "1F0 1F1 1F2 1I0 1F3 1I1 1W0 1F4 1I2 1W1 1F5 1I3 1W2 1F6 1I4 1W3 1F7 1I5 1W4 1I6 1W5 "
          "1I7 1W6 1W7");
    CHECK(list("zb1p", 1, 2) ==
          "2F0 2F1 2I0 2F2 2I1 2F3 2I2 2W0 2F4 2I3 2W1 2F5 2I4 2W2 2F6 2I5 2W3 2F7 2I6 2W4 2I7 "
          "2W5 2W6 2W7");
    CHECK(list("zb1p", 1, 3) ==
          "3F0 3I0 3F1 3I1 3F2 3I2 3F3 3I3 3W0 3F4 3I4 3W1 3F5 3I5 3W2 3F6 3I6 3W3 3F7 3I7 3W4 "
          "3W5 3W6 3W7");
    CHECK(list("zb1p", 2, 0) ==
          "0F0 0F1 0F2 0F3 4F0 4F1 4F2 4F3 4I0 4W0 0F4 4I1 4W1 0F5 4I2 4W2 0F6 4I3 4W3 0F7 0I0 "
          "0W0 4F4 0I1 0W1 4F5 0I2 0W2 4F6 0I3 0W3 4F7 4I4 4W4 4I5 4W5 4I6 4W6 4I7 4W7 0I4 0W4 "
          "0I5 0W5 0I6 0W6 0I7 0W7");
    CHECK(list("zb1p", 2, 3) ==
          "3F0 3F1 3F2 3F3 7F0 7I0 7F1 7I1 7F2 7I2 7F3 7I3 7W0 3F4 3I0 7W1 3F5 3I1 7W2 3F6 3I2 "
          "7W3 3F7 3I3 3W0 7F4 7I4 3W1 7F5 7I5 3W2 7F6 7I6 3W3 7F7 7I7 7W4 3I4 7W5 3I5 7W6 3I6 "
          "7W7 3I7 3W4 3W5 3W6 3W7");
}

TEST_CASE("1F1B with fewer micro-batches than ranks warms up with what there is") {
    const PipelineShape shape{.ranks = 3, .chunks = 1, .micro_batches = 2};
    const Schedule& schedule = find("1f1b");
    CHECK(to_text(schedule.actions(shape, 0), shape, 0) == "0F0 0F1 0B0 0B1");
    CHECK(to_text(schedule.actions(shape, 1), shape, 1) == "1F0 1F1 1B0 1B1");
    CHECK(to_text(schedule.actions(shape, 2), shape, 2) == "2F0 2B0 2F1 2B1");
}

// Megatron-LM issues 169 and 675 ask about the factor 2: 2 (p - 1 - r) + (v - 1) p.
TEST_CASE("Interleaved 1F1B on 4 ranks with 2 chunks warms up with 10, 8, 6 and 4 forwards") {
    const PipelineShape shape{.ranks = 4, .chunks = 2, .micro_batches = 8};
    const Schedule& schedule = find("interleaved_1f1b");
    std::vector<std::size_t> warm_ups;
    for (const auto& list : lists_of(schedule, shape)) {
        const auto first_backward =
            std::ranges::find(list, ActionKind::backward, &Action::kind) - list.begin();
        // The last forward before it belongs to the first pair.
        warm_ups.push_back(static_cast<std::size_t>(first_backward) - 1);
    }
    CHECK(warm_ups == std::vector<std::size_t>{10, 8, 6, 4});
    CHECK(peaks_of(schedule, shape) == std::vector<std::uint32_t>{11, 9, 7, 5});
}

TEST_CASE("1F1B holds at most `ranks` activations, GPipe all, ZB1P `ranks` everywhere") {
    const PipelineShape shape{.ranks = 4, .chunks = 1, .micro_batches = 8};
    using Peaks = std::vector<std::uint32_t>;
    CHECK(peaks_of(find("gpipe"), shape) == Peaks{8, 8, 8, 8});
    CHECK(peaks_of(find("1f1b"), shape) == Peaks{4, 3, 2, 1});
    CHECK(peaks_of(find("zb1p"), shape) == Peaks{4, 4, 4, 4});
    const PipelineShape doubled{.ranks = 4, .chunks = 2, .micro_batches = 8};
    CHECK(peaks_of(find("zb1p"), doubled) == Peaks{8, 8, 8, 8});
}

// DeepSeek-V3 issue 724 asks whether ZB1P's bubble is F + B - 2W or F + B - W: it depends on
// whether B holds W. With f = i = w = 1, p 4, m 8: 8 * 3 + 3 * (1 + 1 - 1) = 27.
TEST_CASE("ZB1P on 4 ranks with 8 micro-batches takes 27 where 1F1B takes 33") {
    const PipelineShape shape{.ranks = 4, .chunks = 1, .micro_batches = 8};
    const ChunkTimes times{Duration(1), Duration(1), Duration(1), Duration(0)};
    CHECK(find("zb1p").makespan(shape, times) == Duration(27));
    CHECK(find("1f1b").makespan(shape, times) == Duration(33));
    CHECK(find("gpipe").makespan(shape, times) == Duration(33));
}

// 4 ranks, 8 micro-batches, f = b = 10, hop 1. GPipe: 11 * 20 + 6 * 1 = 226.
// 1F1B: 220 + 2 * floor(3 * 11 / 4) = 236: it pays the hop in every round.
TEST_CASE("1F1B pays the latency of a hop in every round, GPipe once") {
    const PipelineShape shape{.ranks = 4, .chunks = 1, .micro_batches = 8};
    const ChunkTimes times{Duration(10), Duration(6), Duration(4), Duration(1)};
    CHECK(find("gpipe").makespan(shape, times) == Duration(226));
    CHECK(find("1f1b").makespan(shape, times) == Duration(236));
}

TEST_CASE("A closed form keeps silent outside its conditions") {
    const Schedule& interleaved = find("interleaved_1f1b");
    const PipelineShape two{.ranks = 4, .chunks = 2, .micro_batches = 8};
    CHECK(interleaved.makespan(two, {Duration(5), Duration(5), Duration(5), Duration(5)}));
    CHECK_FALSE(interleaved.makespan(two, {Duration(5), Duration(5), Duration(5), Duration(6)}));
    CHECK_FALSE(interleaved.makespan(two, {Duration(9), Duration(3), Duration(2), Duration(6)}));

    const Schedule& zb1p = find("zb1p");
    const PipelineShape one{.ranks = 4, .chunks = 1, .micro_batches = 4};
    CHECK(zb1p.makespan(one, {Duration(5), Duration(4), Duration(4), Duration(0)}));
    CHECK_FALSE(zb1p.makespan(one, {Duration(5), Duration(4), Duration(4), Duration(1)}));
    CHECK_FALSE(zb1p.makespan(one, {Duration(5), Duration(4), Duration(5), Duration(0)}));
    CHECK_FALSE(zb1p.makespan(one, {Duration(3), Duration(4), Duration(4), Duration(0)}));
    CHECK_FALSE(zb1p.makespan({.ranks = 4, .chunks = 1, .micro_batches = 3},
                              {Duration(5), Duration(4), Duration(4), Duration(0)}));
    // 10 micro-batches on 4 ranks run in 2 rounds of 5, for which no form is known.
    CHECK_FALSE(zb1p.refuse({.ranks = 4, .chunks = 2, .micro_batches = 10}));
    CHECK_FALSE(zb1p.makespan({.ranks = 4, .chunks = 2, .micro_batches = 10},
                              {Duration(5), Duration(4), Duration(4), Duration(0)}));
    // Beyond the longest duration there is no answer either, and no overflow.
    for (const Schedule* schedule : schedules()) {
        const PipelineShape& shape = schedule == &interleaved ? two : one;
        CHECK_FALSE(schedule->makespan(
            shape, {duration_limit, duration_limit, duration_limit, Duration(0)}));
    }
}

TEST_CASE("A schedule that cannot run says why") {
    const auto reason = [](std::string_view name, PipelineShape shape) {
        return find(name).refuse(shape).value_or("runs");
    };
    CHECK(reason("interleaved_1f1b", {.ranks = 4, .chunks = 3, .micro_batches = 5}) ==
          "interleaved_1f1b takes micro-batches in groups of 4, one for each rank, and 5 "
          "micro-batches leave a last group of 1, in which ranks can wait for each other for ever; "
          "use a multiple of 4 micro-batches");
    CHECK(reason("interleaved_1f1b", {.ranks = 4, .chunks = 1, .micro_batches = 8}) ==
          "interleaved_1f1b needs at least 2 chunks on each rank, not 1; with 1 chunk use 1f1b");
    CHECK(reason("interleaved_1f1b", {.ranks = 1, .chunks = 2, .micro_batches = 8}) ==
          "interleaved_1f1b needs at least 2 ranks to interleave, not 1");
    CHECK(reason("zb1p", {.ranks = 1, .chunks = 2, .micro_batches = 8}) ==
          "zb1p with 2 chunks needs at least 2 ranks to interleave, not 1");
    CHECK(reason("zb1p", {.ranks = 2, .chunks = 3, .micro_batches = 5}) ==
          "zb1p with 3 chunks takes 5 micro-batches on 2 ranks in 2 rounds, which cannot be equal; "
          "use a multiple of 2 micro-batches");
    CHECK(reason("zb1p", {.ranks = 2, .chunks = 1, .micro_batches = 5}) == "runs");
    CHECK(reason("gpipe", {.ranks = 4, .chunks = 2, .micro_batches = 8}) ==
          "gpipe runs 1 chunk on each rank, not 2; interleaved_1f1b and zb1p run several");
    CHECK(reason("1f1b", {.ranks = 4, .chunks = 2, .micro_batches = 8}) ==
          "1f1b runs 1 chunk on each rank, not 2; interleaved_1f1b and zb1p run several");
    CHECK(reason("1f1b", {.ranks = 4, .chunks = 1, .micro_batches = 0}) ==
          "1f1b: a pipeline needs at least 1 rank, 1 chunk and 1 micro-batch, but has 4, 1 and 0");
    CHECK(reason("zb1p", {.ranks = 4, .chunks = 70'000, .micro_batches = 8}) ==
          "zb1p: 4 ranks of 70000 chunks with 8 micro-batches are too many: at most 65535 chunks, "
          "268435456 stages, and 268435456 forwards on a rank");
}

TEST_CASE("An unknown schedule's message offers the closest name") {
    const auto near = find_schedule("1f1");
    REQUIRE_FALSE(near.has_value());
    CHECK(near.error().what == "unknown schedule '1f1'; did you mean '1f1b'?");
    const auto far = find_schedule("interleaved");
    REQUIRE_FALSE(far.has_value());
    CHECK(far.error().what.starts_with("unknown schedule 'interleaved'; "));
}

}  // namespace fourfold
