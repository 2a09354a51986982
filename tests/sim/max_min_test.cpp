#include <doctest/doctest.h>
#include <fmt/format.h>

#include <boost/multiprecision/cpp_int.hpp>
#include <map>
#include <optional>
#include <random>
#include <vector>

#include "tests/support/network.hpp"

// The fluid model's integer rates against an exact solver in rational numbers.

namespace fourfold {
namespace {

using Rational = boost::multiprecision::cpp_rational;

struct Activity {
    std::vector<LinkUse> uses;
    Bytes stream{};
    Duration alone{};

    [[nodiscard]] Rational full_level() const { return Rational(stream.value) / alone.count(); }
    [[nodiscard]] Rational weight(const LinkUse& use) const {
        return Rational(use.bytes.value) / stream.value;
    }
};

// Levels of all streams rise together; one stops at its full level, or when a link of it is full.
std::vector<Rational> exact_levels(const std::vector<Activity>& activities,
                                   const std::vector<Rational>& capacities) {
    std::vector<std::optional<Rational>> frozen(activities.size());
    for (std::size_t left = activities.size(); left > 0;) {
        std::vector<Rational> room = capacities, weight(capacities.size());
        for (std::size_t i = 0; i < activities.size(); ++i) {
            for (const LinkUse& use : activities[i].uses) {
                const Rational w = activities[i].weight(use);
                if (frozen[i]) {
                    room[use.link.value] -= w * *frozen[i];
                } else {
                    weight[use.link.value] += w;
                }
            }
        }
        std::optional<Rational> lowest;
        const auto limit = [&](const Rational& level) {
            if (!lowest || level < *lowest) lowest = level;
        };
        for (std::size_t i = 0; i < activities.size(); ++i) {
            if (!frozen[i]) limit(activities[i].full_level());
        }
        for (std::size_t l = 0; l < room.size(); ++l) {
            if (weight[l] > 0) limit(room[l] / weight[l]);
        }
        for (std::size_t i = 0; i < activities.size(); ++i) {
            if (frozen[i]) continue;
            bool stops = activities[i].full_level() == *lowest;
            for (const LinkUse& use : activities[i].uses) {
                const std::size_t l = use.link.value;
                stops = stops || room[l] / weight[l] == *lowest;
            }
            if (!stops) continue;
            frozen[i] = lowest;
            --left;
        }
    }
    std::vector<Rational> levels;
    for (const auto& level : frozen) levels.push_back(*level);
    return levels;
}

struct Case {
    Graph graph;
    std::vector<Activity> activities;
    Program program;
};

// Transfers of any weights on any links of a star: paths do not matter to the fluid model.
Case random_case(std::mt19937_64& random) {
    const auto pick = [&](std::int64_t least, std::int64_t most) {
        return least +
               static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(most - least + 1));
    };
    std::string text;
    const std::int64_t devices = pick(2, 4);
    for (std::int64_t i = 0; i < devices; ++i) {
        // Round rates make ties, which must freeze together; others make remainders.
        const std::int64_t rate =
            pick(0, 1) == 0 ? pick(1, 4) * 1'000'000'000 : pick(1'000'000, 400'000'000'000);
        text += fmt::format("d{} -- sw: {} B/s, 0 us\n", i, rate);
    }
    Case made{graph_of(text), {}, {}};
    ProgramDraft draft;
    const std::int64_t count = pick(1, 8);
    for (std::int64_t i = 0; i < count; ++i) {
        Activity activity;
        const bool plain = pick(0, 1) == 0;
        const Bytes plain_bytes{pick(1, 3) * 500'000'000};
        for (const LinkId link : ids<LinkId>(made.graph.links().size())) {
            if (pick(0, 2) != 0) continue;
            // Weights are 32-bit fractions of the stream: a quarter of it is right to 1e-9.
            const Bytes bytes = plain ? plain_bytes : Bytes{pick(500'000'000, 2'000'000'000)};
            activity.uses.push_back({link, bytes});
            activity.stream = std::max(activity.stream, bytes);
            activity.alone = std::max(activity.alone, bytes / made.graph[link].rate);
        }
        if (activity.uses.empty()) continue;
        if (!plain) activity.alone += Duration(pick(0, activity.alone.count() / 2));
        Transfer transfer;
        transfer.alone = activity.alone;
        transfer.bytes = transfer.stream_bytes = activity.stream;
        transfer.uses = activity.uses;
        const TaskId send =
            draft.send(draft.add_stream(DeviceId{0}, 0), draft.add_transfer(std::move(transfer)));
        draft.connect(send, draft.receive(draft.add_stream(DeviceId{1}, 0)), activity.stream);
        made.activities.push_back(std::move(activity));
    }
    made.program = *seal(std::move(draft));
    return made;
}

TEST_CASE("the fluid model's rates are max-min fair, and never beyond a link's capacity") {
    for (const std::uint64_t seed : {11U, 12U, 13U}) {
        CAPTURE(seed);
        std::mt19937_64 random(seed);
        int unfair = 0, beyond = 0, compared = 0;
        for (int round = 0; round < 300; ++round) {
            const Case made = random_case(random);
            if (made.activities.empty()) continue;
            const Timeline timeline = run_audited(made.graph, made.program, LinkModel::flows);

            // The speeds after the first instant, in which all start: sends are tasks 0, 2, 4, ...
            std::map<std::uint32_t, std::int64_t> speeds;
            for (const Timeline::Rate& rate : timeline.rates) {
                if (rate.at == Time{}) speeds[rate.subject / 2] = rate.speed;
            }
            std::vector<Rational> capacities;
            for (const Link& link : made.graph.links()) {
                capacities.push_back(Rational(link.rate.value) / 1'000'000'000'000);
            }
            const std::vector<Rational> exact = exact_levels(made.activities, capacities);
            std::vector<Rational> load(capacities.size());
            for (std::size_t i = 0; i < made.activities.size(); ++i) {
                const Activity& activity = made.activities[i];
                const Rational speed =
                    Rational(speeds.at(static_cast<std::uint32_t>(i))) / (std::int64_t{1} << 48);
                for (const LinkUse& use : activity.uses) {
                    load[use.link.value] += speed * use.bytes.value / activity.alone.count();
                }
                const Rational ratio = speed * activity.full_level() / exact[i];
                const Rational tolerance = Rational(1) / 1'000'000'000;
                unfair += ratio < 1 - tolerance || ratio > 1 + tolerance ? 1 : 0;
                ++compared;
            }
            for (std::size_t l = 0; l < load.size(); ++l) beyond += load[l] > capacities[l] ? 1 : 0;
        }
        CHECK(compared > 500);
        CHECK(unfair == 0);
        CHECK(beyond == 0);
    }
}

}  // namespace
}  // namespace fourfold
