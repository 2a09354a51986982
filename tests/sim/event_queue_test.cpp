#include "sim/event_queue.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <random>
#include <vector>

namespace fourfold {
namespace {

Time at(std::int64_t picoseconds) { return Time(Duration(picoseconds)); }

std::uint32_t pop_next(EventQueue& queue) {
    if (queue.instant_drained()) queue.advance();
    return queue.pop().subject;
}

TEST_CASE("equal times come out in the order they were pushed, whenever they were pushed") {
    EventQueue queue;
    queue.push(at(1000), {0, 1});
    queue.push(at(70), {0, 2});
    queue.push(at(1000), {0, 3});
    CHECK(pop_next(queue) == 2);
    queue.push(at(1000), {0, 4});  // another level of the queue than 1 and 3 were pushed to
    queue.push(at(990), {0, 5});
    CHECK(pop_next(queue) == 5);
    queue.push(at(1000), {0, 6});
    CHECK(pop_next(queue) == 1);
    queue.push(at(1000), {0, 7});  // in the instant itself
    for (const std::uint32_t expected : {3U, 4U, 6U, 7U}) CHECK(pop_next(queue) == expected);
    CHECK(queue.empty());
}

TEST_CASE("looking for the minimum changes nothing") {
    EventQueue queue;
    queue.push(at(5'000'000), {0, 1});
    CHECK(queue.min_time() == at(5'000'000));
    CHECK(queue.now() == at(0));
    queue.push(at(4'999'999), {0, 2});  // earlier than what was looked at
    CHECK(queue.min_time() == at(4'999'999));
    CHECK(pop_next(queue) == 2);
    CHECK(queue.min_time() == at(5'000'000));
    CHECK(queue.now() == at(4'999'999));
}

TEST_CASE("the queue holds times up to the clock's limit") {
    EventQueue queue;
    const std::int64_t far = duration_limit.count() - 1;
    queue.push(at(far), {0, 1});
    queue.push(at(far - 1), {0, 2});
    queue.push(at(0), {0, 3});
    for (const std::uint32_t expected : {3U, 2U, 1U}) CHECK(pop_next(queue) == expected);
    CHECK(queue.now() == at(far));
}

// The reference is std::multimap, which keeps equal keys in the order of insertion.
TEST_CASE("in any mixture of push, pop and cancel the order is that of a sorted multimap") {
    for (const std::uint32_t seed : {1U, 2U, 3U, 4U, 5U}) {
        CAPTURE(seed);
        std::mt19937_64 random(seed);
        EventQueue queue;
        using Pending = std::multimap<std::int64_t, std::uint32_t>;
        Pending pending;
        struct Entry {
            EventQueue::Handle handle;
            Pending::iterator place;
        };
        std::map<std::uint32_t, Entry> live;
        std::uint32_t next = 0;
        std::size_t wrong = 0;
        for (int round = 0; round < 100'000; ++round) {
            const std::uint64_t choice = random() % 10;
            if (choice < 5 || pending.empty()) {
                // Near, equal and far times, at any scale.
                const auto distance = static_cast<std::int64_t>(random() >> (random() % 50 + 14));
                const std::int64_t now = queue.now().time_since_epoch().count();
                const std::int64_t time =
                    random() % 4 == 0 && !pending.empty()
                        ? pending.begin()->first
                        : std::min(now + (random() % 8 == 0 ? 0 : distance % (1 << 30)),
                                   duration_limit.count() - 1);
                live[next] = {queue.push(at(time), {7, next}), pending.emplace(time, next)};
                ++next;
            } else if (choice < 7) {
                auto victim = live.lower_bound(static_cast<std::uint32_t>(random() % next));
                if (victim == live.end()) victim = live.begin();
                queue.cancel(victim->second.handle);
                pending.erase(victim->second.place);
                live.erase(victim);
            } else {
                wrong += queue.min_time() == at(pending.begin()->first) ? 0 : 1;
                if (queue.instant_drained()) queue.advance();
                const Event event = queue.pop();
                wrong += event.kind == 7 && event.subject == pending.begin()->second ? 0 : 1;
                wrong += queue.now() == at(pending.begin()->first) ? 0 : 1;
                live.erase(event.subject);
                pending.erase(pending.begin());
            }
            wrong += queue.size() == pending.size() ? 0 : 1;
        }
        CHECK(wrong == 0);
    }
}

}  // namespace
}  // namespace fourfold
