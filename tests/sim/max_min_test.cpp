#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <boost/multiprecision/cpp_int.hpp>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <random>
#include <vector>

#include "tests/support/network.hpp"
#include "tests/support/sharing.hpp"

// Integer sharing: of the links that changed against all of them, bit for bit; against an exact
// solver in rational numbers; alone and within the fluid model.

namespace fourfold {
namespace {

using Rational = boost::multiprecision::cpp_rational;

Rational full_level(const Sharer& sharer) {
    return Rational(sharer.stream.value) / sharer.alone.count();
}

Rational weight(const Sharer& sharer, const LinkUse& use) {
    return Rational(use.bytes.value) / sharer.stream.value;
}

// Levels of all streams rise together; one stops at its full level, or when a link of it is full.
std::vector<Rational> exact_levels(const std::vector<Sharer>& activities,
                                   const std::vector<Rational>& capacities) {
    std::vector<std::optional<Rational>> frozen(activities.size());
    for (std::size_t left = activities.size(); left > 0;) {
        std::vector<Rational> room = capacities, active(capacities.size());
        for (std::size_t i = 0; i < activities.size(); ++i) {
            for (const LinkUse& use : activities[i].uses) {
                const Rational w = weight(activities[i], use);
                if (frozen[i]) {
                    room[use.link.value] -= w * *frozen[i];
                } else {
                    active[use.link.value] += w;
                }
            }
        }
        std::optional<Rational> lowest;
        const auto limit = [&](const Rational& level) {
            if (!lowest || level < *lowest) lowest = level;
        };
        for (std::size_t i = 0; i < activities.size(); ++i) {
            if (!frozen[i]) limit(full_level(activities[i]));
        }
        for (std::size_t l = 0; l < room.size(); ++l) {
            if (active[l] > 0) limit(room[l] / active[l]);
        }
        for (std::size_t i = 0; i < activities.size(); ++i) {
            if (frozen[i]) continue;
            bool stops = full_level(activities[i]) == *lowest;
            for (const LinkUse& use : activities[i].uses) {
                const std::size_t l = use.link.value;
                stops = stops || room[l] / active[l] == *lowest;
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

std::int64_t pick(std::mt19937_64& random, std::int64_t least, std::int64_t most) {
    return least +
           static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(most - least + 1));
}

// Round rates make ties, which must freeze together; others make remainders.
BytesPerSecond random_rate(std::mt19937_64& random) {
    return {pick(random, 0, 1) == 0 ? pick(random, 1, 4) * 1'000'000'000
                                    : pick(random, 1'000'000, 400'000'000'000)};
}

struct Play {
    ComparedSharing sharing;
    std::function<Sharer()> next;
};

// Links of any rates, activities with any bytes on any of them.
Play any_links(std::mt19937_64& random) {
    Rates rates;
    for (std::int64_t i = pick(random, 1, 12); i > 0; --i) rates.push_back(random_rate(random));
    const std::int64_t rarity = pick(random, 1, 5);
    const Bytes least{pick(random, 0, 1) == 0 ? 1 : 500'000'000};
    const auto next = [=, &random] {
        Sharer made;
        const bool plain = pick(random, 0, 1) == 0;
        const Bytes bytes = least * pick(random, 1, 3);
        for (const LinkId link : rates.keys()) {
            if (pick(random, 0, rarity) != 0) continue;
            add_use(made, link, plain ? bytes : least * pick(random, 1, 4) + Bytes{link.value},
                    rates);
        }
        for (const LinkUse& use : made.uses) made.stream = std::max(made.stream, use.bytes);
        // Slower than its links: its full level is below its share of some.
        if (pick(random, 0, 2) == 0) made.alone = made.alone * pick(random, 5, 30) / 4;
        return made;
    };
    return {ComparedSharing(rates), next};
}

// Hosts below leaves below a core, with less bandwidth above: messages between any two hosts, and
// rings of some hosts, in node order or not, which may go through an uplink many times.
Play tree(std::mt19937_64& random) {
    const auto leaves = static_cast<std::uint32_t>(pick(random, 2, 6));
    const auto below = static_cast<std::uint32_t>(pick(random, 1, 6));
    const std::uint32_t hosts = leaves * below;
    const std::int64_t oversubscription = pick(random, 1, 4);
    const BytesPerSecond port = random_rate(random);
    const BytesPerSecond up{std::max(port.value, port.value * below / oversubscription)};
    // Links: up and down of each host, then of each leaf.
    Rates rates(2 * std::size_t{hosts} + 2 * std::size_t{leaves}, port);
    for (std::uint32_t leaf = 0; leaf < leaves; ++leaf) {
        rates[LinkId{2 * hosts + 2 * leaf}] = rates[LinkId{2 * hosts + 2 * leaf + 1}] = up;
    }
    const auto add_path = [=](Sharer& sharer, std::uint32_t from, std::uint32_t to, Bytes bytes) {
        add_use(sharer, LinkId{2 * from}, bytes, rates);
        if (from / below != to / below) {
            add_use(sharer, LinkId{2 * hosts + 2 * (from / below)}, bytes, rates);
            add_use(sharer, LinkId{2 * hosts + 2 * (to / below) + 1}, bytes, rates);
        }
        add_use(sharer, LinkId{2 * to + 1}, bytes, rates);
    };
    const auto next = [=, &random] {
        Sharer made;
        made.stream = Bytes{pick(random, 1, 1'000'000'000)};
        std::vector<std::uint32_t> ring;
        for (std::uint32_t host = 0; host < hosts; ++host) ring.push_back(host);
        std::shuffle(ring.begin(), ring.end(), random);
        ring.resize(static_cast<std::size_t>(pick(random, 0, 2) == 0 ? pick(random, 2, hosts)
                                                                     : std::int64_t{2}));
        if (ring.size() == 2) {
            add_path(made, ring[0], ring[1], made.stream);
            return made;
        }
        for (std::size_t i = 0; i < ring.size(); ++i) {
            add_path(made, ring[i], ring[(i + 1) % ring.size()], made.stream);
        }
        return made;
    };
    return {ComparedSharing(rates), next};
}

// Activities come and go, one or several at a time; `check` after each solve.
template <class Check>
void play(std::mt19937_64& random, Play game, Check check) {
    const std::int64_t crowd = pick(random, 1, 16);
    for (int change = 0; change < 20; ++change) {
        for (std::int64_t i = pick(random, 0, 3) == 0 ? pick(random, 2, 6) : 1; i > 0; --i) {
            const auto running = static_cast<std::int64_t>(game.sharing.sharers().size());
            if (running > 0 && pick(random, 0, 2 * crowd) < running) {
                game.sharing.end(static_cast<std::size_t>(pick(random, 0, running - 1)));
            } else if (Sharer sharer = game.next(); !sharer.uses.empty()) {
                game.sharing.start(std::move(sharer));
            }
        }
        check(game.sharing.solve(), game.sharing);
    }
}

TEST_CASE("sharing from the links that changed equals sharing from nothing, to the bit") {
    int solved = 0, shared = 0;
    for (const std::uint64_t seed : {1U, 2U, 3U}) {
        CAPTURE(seed);
        std::mt19937_64 random(seed);
        for (int round = 0; round < 400; ++round) {
            CAPTURE(round);
            Play game = round % 2 == 0 ? any_links(random) : tree(random);
            play(random, std::move(game),
                 [&](const std::string& difference, const ComparedSharing& sharing) {
                     REQUIRE(difference.empty());
                     ++solved;
                     for (std::size_t i = 0; i < sharing.sharers().size(); ++i) {
                         shared += sharing.speed(i) < MaxMin::full_speed ? 1 : 0;
                     }
                 });
        }
    }
    CHECK(solved == 24'000);
    CHECK(shared > 50'000);
}

TEST_CASE("links that slow down and recover are shared to the bit as from nothing") {
    std::mt19937_64 random(9);
    for (int round = 0; round < 200; ++round) {
        CAPTURE(round);
        ComparedSharing sharing = [&] {
            Play game = round % 2 == 0 ? any_links(random) : tree(random);
            for (std::int64_t i = pick(random, 1, 12); i > 0; --i) {
                if (Sharer sharer = game.next(); !sharer.uses.empty()) {
                    game.sharing.start(std::move(sharer));
                }
            }
            return std::move(game.sharing);
        }();
        REQUIRE(sharing.solve() == "");
        const Rates rates = sharing.rates();
        for (int change = 0; change < 10; ++change) {
            const LinkId link{static_cast<std::uint32_t>(
                pick(random, 0, static_cast<std::int64_t>(rates.size()) - 1))};
            const std::int64_t part = pick(random, 1, 10);
            sharing.set_rate(link, {std::max<std::int64_t>(1, rates[link].value * part / 10)});
            REQUIRE(sharing.solve() == "");
        }
    }
}

// Bertsekas and Gallager 1992, sec. 6.5.2: who is below the full level crosses a link that is full
// to the last unit and on which nobody has more.
TEST_CASE("no link carries more than it can, and who is slowed has one that can carry no more") {
    using Wide = MaxMin::Wide;
    std::mt19937_64 random(4);
    int slowed = 0;
    for (int round = 0; round < 200; ++round) {
        CAPTURE(round);
        Play game = round % 2 == 0 ? any_links(random) : tree(random);
        play(random, std::move(game), [&](const std::string&, const ComparedSharing& sharing) {
            const std::vector<Sharer>& sharers = sharing.sharers();
            IdVector<LinkId, Rational> load(sharing.rates().size());
            IdVector<LinkId, Wide> taken(load.size()), highest(load.size()), more(load.size());
            const auto for_each_use = [&](auto visit) {
                for (std::size_t i = 0; i < sharers.size(); ++i) {
                    for (const LinkUse& use : sharers[i].uses) {
                        const Wide stream = sharers[i].stream.value;
                        visit(i, use.link, ((Wide{use.bytes.value} << 32) + stream - 1) / stream);
                    }
                }
            };
            for (std::size_t i = 0; i < sharers.size(); ++i) {
                const Rational speed = Rational(sharing.speed(i)) / MaxMin::full_speed;
                for (const LinkUse& use : sharers[i].uses) {
                    load[use.link] += speed * use.bytes.value / sharers[i].alone.count();
                }
            }
            for_each_use([&](std::size_t i, LinkId link, Wide weight) {
                taken[link] += weight * sharing.level(i);
                highest[link] = std::max(highest[link], sharing.level(i));
            });
            for_each_use([&](std::size_t i, LinkId link, Wide weight) {
                if (sharing.level(i) == highest[link]) more[link] += weight;
            });
            for (const LinkId link : load.keys()) {
                CHECK(load[link] * 1'000'000'000'000 <= sharing.rates()[link].value);
            }
            for (std::size_t i = 0; i < sharers.size(); ++i) {
                if (sharing.speed(i) == MaxMin::full_speed) continue;
                ++slowed;
                CHECK(std::ranges::any_of(sharers[i].uses, [&](const LinkUse& use) {
                    const LinkId link = use.link;
                    const Wide capacity = Wide{sharing.rates()[link].value} << 48;
                    return highest[link] == sharing.level(i) && taken[link] + more[link] > capacity;
                }));
            }
        });
    }
    CHECK(slowed > 5'000);
}

TEST_CASE("levels depend neither on the names of links nor on the order of activities") {
    std::mt19937_64 random(5);
    for (int round = 0; round < 200; ++round) {
        CAPTURE(round);
        Play game = round % 2 == 0 ? any_links(random) : tree(random);
        play(random, std::move(game), [&](const std::string&, const ComparedSharing& sharing) {
            std::vector<std::uint32_t> names(sharing.rates().size()), order;
            std::iota(names.begin(), names.end(), 0U);
            std::shuffle(names.begin(), names.end(), random);
            order.resize(sharing.sharers().size());
            std::iota(order.begin(), order.end(), 0U);
            std::shuffle(order.begin(), order.end(), random);

            Rates rates(names.size());
            for (const LinkId link : rates.keys()) {
                rates[LinkId{names[link.value]}] = sharing.rates()[link];
            }
            MaxMin renamed(rates);
            for (const std::uint32_t i : order) {
                Sharer sharer = sharing.sharers()[i];
                for (LinkUse& use : sharer.uses) use.link = LinkId{names[use.link.value]};
                std::shuffle(sharer.uses.begin(), sharer.uses.end(), random);
                renamed.start(renamed.add_kind(sharer.alone, sharer.stream, sharer.uses));
                if (i % 2 == 0) renamed.solve_locally();
            }
            renamed.solve_locally();
            for (std::uint32_t place = 0; place < order.size(); ++place) {
                CHECK((renamed.level(ActivityId{place}) == sharing.level(order[place])));
            }
        });
    }
}

// A macro-flow that crosses the link of 12 GB/s twice, and a plain message: both
// get 4 GB/s a stream, 8 of the link's 12 for the first. Another message: 12 / 4 = 3 each.
TEST_CASE("a macro-flow weighs on a link as often as it crosses it") {
    const Rates rates(1, 12_GBps);
    ComparedSharing sharing(rates);
    constexpr Bytes bytes{1'200'000'000};  // 100 ms alone
    Sharer twice{{}, bytes, {}}, once{{}, bytes, {}};
    add_use(twice, LinkId{0}, bytes, rates);
    add_use(twice, LinkId{0}, bytes, rates);
    add_use(once, LinkId{0}, bytes, rates);
    const auto levels = [&] {
        CHECK(sharing.solve().empty());
        std::vector<std::int64_t> made;
        for (std::size_t i = 0; i < sharing.sharers().size(); ++i) {
            made.push_back(static_cast<std::int64_t>(sharing.level(i) >> 16));
        }
        return made;
    };
    sharing.start(twice);
    sharing.start(once);
    CHECK(levels() == std::vector<std::int64_t>{4'000'000'000, 4'000'000'000});
    sharing.start(once);
    CHECK(levels() == std::vector<std::int64_t>{3'000'000'000, 3'000'000'000, 3'000'000'000});
    sharing.end(0);
    CHECK(levels() == std::vector<std::int64_t>{6'000'000'000, 6'000'000'000});
    sharing.end(0);
    CHECK(levels() == std::vector<std::int64_t>{12'000'000'000});
}

TEST_CASE("an activity with copies is shared as if they were there") {
    std::mt19937_64 random(11);
    for (int round = 0; round < 300; ++round) {
        CAPTURE(round);
        const Play game = round % 2 == 0 ? any_links(random) : tree(random);
        MaxMin whole(game.sharing.rates()), folded(game.sharing.rates());
        std::vector<ActivityId> in_whole, in_folded;
        for (int i = 0; i < 6; ++i) {
            Sharer sharer = game.next();
            if (sharer.uses.empty()) continue;
            const auto copies = static_cast<std::int64_t>(random() % 4 + 1);
            const ActivityKindId plain = whole.add_kind(sharer.alone, sharer.stream, sharer.uses);
            for (std::int64_t copy = 0; copy < copies; ++copy)
                in_whole.push_back(whole.start(plain));
            for (LinkUse& use : sharer.uses) use.copies = copies;
            const ActivityId one =
                folded.start(folded.add_kind(sharer.alone, sharer.stream, sharer.uses));
            in_folded.insert(in_folded.end(), static_cast<std::size_t>(copies), one);
        }
        whole.solve();
        folded.solve();
        for (std::size_t i = 0; i < in_whole.size(); ++i) {
            CHECK((whole.level(in_whole[i]) == folded.level(in_folded[i])));
            CHECK(whole.speed(in_whole[i]) == folded.speed(in_folded[i]));
        }
    }
}

TEST_CASE("levels are those of rational numbers to 1e-9") {
    std::mt19937_64 random(6);
    int compared = 0, unfair = 0;
    for (int round = 0; round < 100; ++round) {
        play(random, any_links(random), [&](const std::string&, const ComparedSharing& sharing) {
            // Smaller ones do not have 9 digits.
            const auto is_small = [](const Sharer& s) { return s.stream.value < 500'000'000; };
            if (std::ranges::any_of(sharing.sharers(), is_small)) return;
            std::vector<Rational> capacities;
            for (const BytesPerSecond rate : sharing.rates()) {
                capacities.push_back(Rational(rate.value) / 1'000'000'000'000);
            }
            const auto exact = exact_levels(sharing.sharers(), capacities);
            for (std::size_t i = 0; i < exact.size(); ++i) {
                const Rational level(static_cast<std::int64_t>(sharing.level(i)));
                const Rational ratio = level / 65'536 / 1'000'000'000'000 / exact[i];
                const Rational tolerance = Rational(1) / 1'000'000'000;
                unfair += ratio < 1 - tolerance || ratio > 1 + tolerance ? 1 : 0;
                ++compared;
            }
        });
    }
    CHECK(compared > 2'000);
    CHECK(unfair == 0);
}

struct Case {
    Graph graph;
    std::vector<Sharer> activities;
    Program program;
};

// Transfers of any weights on any links of a star: paths do not matter to the fluid model.
Case random_case(std::mt19937_64& random) {
    std::string text;
    const std::int64_t devices = pick(random, 2, 4);
    for (std::int64_t i = 0; i < devices; ++i) {
        text += fmt::format("d{} -- sw: {} B/s, 0 us\n", i, random_rate(random).value);
    }
    Case made{graph_of(text), {}, {}};
    ProgramDraft draft;
    const std::int64_t count = pick(random, 1, 8);
    for (std::int64_t i = 0; i < count; ++i) {
        Sharer activity;
        const bool plain = pick(random, 0, 1) == 0;
        const Bytes plain_bytes{pick(random, 1, 3) * 500'000'000};
        for (const LinkId link : ids<LinkId>(made.graph.links().size())) {
            if (pick(random, 0, 2) != 0) continue;
            // Weights are 32-bit fractions of the stream: a quarter of it is right to 1e-9.
            const Bytes bytes =
                plain ? plain_bytes : Bytes{pick(random, 500'000'000, 2'000'000'000)};
            activity.uses.push_back({link, bytes});
            activity.stream = std::max(activity.stream, bytes);
            activity.alone = std::max(activity.alone, bytes / made.graph[link].rate);
        }
        if (activity.uses.empty()) continue;
        if (!plain) activity.alone += Duration(pick(random, 0, activity.alone.count() / 2));
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
                const Sharer& activity = made.activities[i];
                const Rational speed =
                    Rational(speeds.at(static_cast<std::uint32_t>(i))) / (std::int64_t{1} << 48);
                for (const LinkUse& use : activity.uses) {
                    load[use.link.value] += speed * use.bytes.value / activity.alone.count();
                }
                const Rational ratio = speed * full_level(activity) / exact[i];
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
