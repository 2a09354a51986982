// The event queue against std::priority_queue, side by side in one run, so that the state of the
// machine cannot flatter either. The hold model (Jones 1986): with n events pending, take the first
// and push it again a while later; the time of one such pair is what counts.
//
// Both queues get the same events and must return them in the same order, equal times in the order
// in which they were pushed: for that the priority queue compares a sequence number too.
//
// `reschedule` gives eight pending events another time before each such pair, as when links are
// shared anew. The priority queue keeps their old times and drops them when they come.

#include <benchmark/benchmark.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <queue>
#include <random>
#include <vector>

#include "sim/event_queue.hpp"
#include "tests/bench/measuring.hpp"

namespace fourfold {
namespace {

struct RadixQueue {
    explicit RadixQueue(std::uint32_t /*subjects*/) {}
    EventQueue queue;

    void push(Time at, std::uint32_t subject) { queue.push(at, {0, subject}); }
    std::pair<Time, std::uint32_t> pop() {
        if (queue.instant_drained()) queue.advance();
        const Event event = queue.pop();
        return {queue.now(), event.subject};
    }
};

struct PriorityQueue {
    struct Entry {
        Time time;
        std::uint64_t sequence;
        Event event;
        bool operator>(const Entry& other) const {
            return time != other.time ? time > other.time : sequence > other.sequence;
        }
    };
    explicit PriorityQueue(std::uint32_t /*subjects*/) {}
    std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue;
    std::uint64_t pushed = 0;

    void push(Time at, std::uint32_t subject) { queue.push({at, pushed++, {0, subject}}); }
    std::pair<Time, std::uint32_t> pop() {
        const Entry entry = queue.top();
        queue.pop();
        return {entry.time, entry.event.subject};
    }
};

class ReschedulingRadixQueue {
  public:
    explicit ReschedulingRadixQueue(std::uint32_t subjects)
        : radix_(subjects), handles_(subjects) {}

    void push(Time at, std::uint32_t subject) {
        handles_[subject] = radix_.queue.push_cancellable(at, {0, subject});
    }
    void reschedule(Time at, std::uint32_t subject) {
        radix_.queue.cancel(handles_[subject]);
        push(at, subject);
    }
    std::pair<Time, std::uint32_t> pop() { return radix_.pop(); }

  private:
    RadixQueue radix_;
    std::vector<EventQueue::Handle> handles_;
};

class ReschedulingPriorityQueue {
  public:
    explicit ReschedulingPriorityQueue(std::uint32_t subjects)
        : priority_(subjects), last_(subjects) {}

    void push(Time at, std::uint32_t subject) {
        last_[subject] = priority_.pushed;
        priority_.push(at, subject);
    }
    void reschedule(Time at, std::uint32_t subject) { push(at, subject); }
    std::pair<Time, std::uint32_t> pop() {
        auto& queue = priority_.queue;
        while (queue.top().sequence != last_[queue.top().event.subject]) queue.pop();
        return priority_.pop();
    }

  private:
    PriorityQueue priority_;
    std::vector<std::uint64_t> last_;  // of each subject, the sequence number that counts
};

// How far ahead events are pushed while a training step is simulated: what becomes ready at once;
// latencies of links; messages of few sizes at 25 GB/s; kernels of few kinds; and a few times that
// are like no other (a perturbed device). Most are equal to some other.
std::vector<Duration> training_mix() {
    constexpr std::array latencies = {1'500_ns, 2'500_ns, 5'000_ns};
    constexpr std::array messages = {2'621'440_ps, 41'943'040_ps, 671'088'640_ps};
    std::mt19937_64 random(1);
    std::array<Duration, 64> kernels{};
    for (Duration& kernel : kernels) {
        kernel = Duration(static_cast<std::int64_t>(20'000'000 + random() % 2'000'000'000));
    }
    std::vector<Duration> mix(std::size_t{1} << 16);
    for (Duration& ahead : mix) {
        const std::uint64_t percent = random() % 100;
        const std::uint64_t which = random();
        if (percent < 10) {
            ahead = Duration(0);
        } else if (percent < 35) {
            ahead = latencies[which % latencies.size()];
        } else if (percent < 70) {
            ahead = messages[which % messages.size()];
        } else if (percent < 95) {
            ahead = kernels[which % kernels.size()];
        } else {
            ahead = Duration(static_cast<std::int64_t>(which % 5'000'000'000));
        }
    }
    return mix;
}

template <class Queue, int reschedules>
class Hold {
  public:
    Hold(const std::vector<Duration>& mix, std::uint32_t pending)
        : mix_(mix), pending_(pending), queue_(pending) {
        for (std::uint32_t subject = 0; subject < pending; ++subject) {
            queue_.push(Time(next()), subject);
        }
    }

    /// Returns: nanoseconds of CPU time per pair of pop and push, with what precedes it.
    double run(std::int64_t pairs) {
        const double begin = cpu_seconds();
        for (std::int64_t i = 0; i < pairs; ++i) {
            if constexpr (reschedules > 0) {
                for (int k = 0; k < reschedules; ++k) queue_.reschedule(now_ + next(), any());
            }
            const auto [now, subject] = queue_.pop();
            now_ = now;
            order_ = order_ * 1'099'511'628'211U + subject;
            queue_.push(now + next(), subject);
        }
        return (cpu_seconds() - begin) * 1e9 / static_cast<double>(pairs);
    }

    /// Of all events so far.
    [[nodiscard]] std::uint64_t order() const { return order_; }

  private:
    Duration next() { return mix_[at_++ % mix_.size()]; }
    std::uint32_t any() { return static_cast<std::uint32_t>(random_()) % pending_; }

    const std::vector<Duration>& mix_;  // the benchmark's
    std::uint32_t pending_;
    std::size_t at_ = 0;
    std::minstd_rand random_;
    Time now_{};
    std::uint64_t order_ = 0;
    Queue queue_;
};

template <class Radix, class Priority, int reschedules>
void compare(benchmark::State& state) {
    constexpr std::int64_t pairs = (std::int64_t{1} << 18) / (1 + reschedules);
    const std::vector<Duration> mix = training_mix();
    const auto pending = static_cast<std::uint32_t>(state.range(0));
    Hold<Radix, reschedules> radix(mix, pending);
    Hold<Priority, reschedules> priority(mix, pending);
    // Until the pending events are spread as they stay.
    radix.run(3 * state.range(0));
    priority.run(3 * state.range(0));
    double radix_ns = std::numeric_limits<double>::infinity();
    double priority_ns = std::numeric_limits<double>::infinity();
    for ([[maybe_unused]] auto _ : state) {
        const double ns = radix.run(pairs);
        radix_ns = std::min(radix_ns, ns);
        priority_ns = std::min(priority_ns, priority.run(pairs));
        state.SetIterationTime(ns * 1e-9 * static_cast<double>(pairs));
    }
    if (radix.order() != priority.order()) state.SkipWithError("the orders differ");
    state.SetItemsProcessed(state.iterations() * pairs);
    state.counters["radix_ns"] = radix_ns;
    state.counters["priority_queue_ns"] = priority_ns;
    state.counters["ratio"] = priority_ns / radix_ns;
}

void hold(benchmark::State& state) { compare<RadixQueue, PriorityQueue, 0>(state); }
void reschedule(benchmark::State& state) {
    compare<ReschedulingRadixQueue, ReschedulingPriorityQueue, 8>(state);
}
BENCHMARK(hold)
    ->RangeMultiplier(10)
    ->Range(100, 1'000'000)
    ->Iterations(20)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK(reschedule)
    ->RangeMultiplier(10)
    ->Range(100, 100'000)
    ->Iterations(20)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace fourfold
