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

TEST_CASE("equal times of one sort come out in the order they were pushed, whenever that was") {
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

TEST_CASE("looking whether the instant is over does not end it") {
    EventQueue queue;
    queue.push(at(5'000'000), {0, 1});
    CHECK(queue.instant_drained());
    CHECK(queue.now() == at(0));
    queue.push(at(4'999'999), {0, 2});  // earlier than what was there
    CHECK(pop_next(queue) == 2);
    CHECK(queue.instant_drained());
    CHECK(queue.now() == at(4'999'999));
    queue.push(at(4'999'999), {0, 3});  // in the instant that seemed over
    CHECK(pop_next(queue) == 3);
    CHECK(pop_next(queue) == 1);
}

TEST_CASE("time passes over instants whose events were all cancelled") {
    EventQueue queue;
    const EventQueue::Handle same = queue.push_cancellable(at(0), {0, 1});
    const EventQueue::Handle near = queue.push_cancellable(at(10), {0, 2});
    const EventQueue::Handle far = queue.push_cancellable(at(70'000), {0, 3});
    queue.push(at(70'001), {0, 4});
    for (const EventQueue::Handle handle : {same, near, far}) queue.cancel(handle);
    CHECK(queue.size() == 1);
    CHECK(queue.instant_drained());
    CHECK(pop_next(queue) == 4);
    CHECK(queue.now() == at(70'001));
    CHECK(queue.empty());
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
TEST_CASE("in any mixture of push, pop and cancel each sort comes in the order of a multimap") {
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
        const auto can_be_cancelled = [](std::uint32_t subject) { return subject % 4 != 0; };
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
                live[next].place = pending.emplace(time, next);
                if (can_be_cancelled(next)) {
                    live[next].handle = queue.push_cancellable(at(time), {7, next});
                } else {
                    queue.push(at(time), {7, next});
                }
                ++next;
            } else if (choice < 7) {
                auto victim = live.lower_bound(static_cast<std::uint32_t>(random() % next));
                if (victim == live.end()) victim = live.begin();
                if (!can_be_cancelled(victim->first)) continue;
                queue.cancel(victim->second.handle);
                pending.erase(victim->second.place);
                live.erase(victim);
            } else {
                if (queue.instant_drained()) queue.advance();
                const Event event = queue.pop();
                wrong += queue.now() == at(pending.begin()->first) ? 0 : 1;
                const auto first =
                    std::find_if(pending.begin(), pending.end(), [&](const auto& waiting) {
                        return can_be_cancelled(waiting.second) == can_be_cancelled(event.subject);
                    });
                const bool is_right = event.kind == 7 && first != pending.end() &&
                                      first->first == pending.begin()->first &&
                                      first->second == event.subject;
                REQUIRE(is_right);
                live.erase(event.subject);
                pending.erase(first);
            }
            wrong += queue.size() == pending.size() ? 0 : 1;
        }
        CHECK(wrong == 0);
    }
}

}  // namespace
}  // namespace fourfold
