#include "workloads/collectives/collective.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <deque>
#include <map>
#include <queue>
#include <random>
#include <tuple>
#include <utility>
#include <vector>

namespace fourfold {
namespace {

constexpr std::uint32_t nobody = Step::nobody;

std::vector<CollectiveKind> all_kinds() {
    std::vector<CollectiveKind> kinds;
    for (const std::string_view name : collective_kinds()) {
        kinds.push_back(*find_collective_kind(name));
    }
    return kinds;
}

const Algorithm& find(std::string_view name) {
    const auto found = find_algorithm(name);
    REQUIRE(found.has_value());
    return **found;
}

CollectiveCall call_of(CollectiveKind kind, std::uint32_t members, Bytes bytes) {
    return {.kind = kind, .members = members, .bytes = bytes};
}

constexpr EqualLinks port_25{.rate = 25_GBps, .latency = 10_us};

// Every hop on equal links.
auto equal_hop(const EqualLinks& links) {
    return [links](std::uint32_t, std::uint32_t, Bytes bytes) {
        return Hop{bytes / links.rate, links.latency};
    };
}

// ---- An executor of its own: members round a switch, one link to it and one from it for each. A
// link serves messages first come first served; cut-through: the head goes on half the latency
// after it started, the tail arrives half the latency after it passed the second link.

class Star {
  public:
    Star(const StepRule& rule, const StepPlan& plan, const EqualLinks& links)
        : rule_(rule),
          plan_(plan),
          links_(links),
          lanes_(std::size_t{plan.members} * plan.channels),
          up_free_(plan.members),
          down_free_(plan.members) {}

    // The last arrival; `unfinished` lists are those that never got to their end.
    Duration run() {
        for (std::uint32_t lane = 0; lane < lanes_.size(); ++lane) advance(lane, {});
        while (!events_.empty()) {
            const auto [now, order, index] = events_.top();
            events_.pop();
            Message& message = messages_[index];
            if (!message.on_last_link) {
                const Duration start = std::max(now, down_free_[message.to]);
                down_free_[message.to] = start + serialise(message.bytes);
                message.on_last_link = true;
                push(down_free_[message.to] + links_.latency - links_.latency / 2, index);
                continue;
            }
            end_ = std::max(end_, now);
            deliver(message, now);
        }
        for (std::uint32_t lane = 0; lane < lanes_.size(); ++lane) {
            if (lanes_[lane].next < count(lane)) ++unfinished;
        }
        return end_;
    }

    std::uint32_t unfinished = 0;

  private:
    struct Lane {
        std::uint32_t next = 0;
        std::uint32_t inbox[2] = {0, 0};
        // Rendezvous: the round that it is in, and its halves that are not done.
        bool entered = false;
        int open = 0;
    };
    struct Message {
        std::uint32_t channel, from, to;
        Bytes bytes;
        std::uint8_t inbox;
        bool on_last_link = false;
    };

    Duration serialise(Bytes bytes) const { return bytes / links_.rate; }
    std::uint32_t lane_of(std::uint32_t channel, std::uint32_t member) const {
        return channel * plan_.members + member;
    }
    std::uint32_t count(std::uint32_t lane) const {
        return rule_.count(plan_, lane / plan_.members, lane % plan_.members);
    }
    Step step(std::uint32_t lane) const {
        return rule_.step(plan_, lane / plan_.members, lane % plan_.members, lanes_[lane].next);
    }
    void push(Duration at, std::size_t index) { events_.push({at, order_++, index}); }

    void send(std::uint32_t lane, const Step& step, Duration now) {
        const std::uint32_t from = lane % plan_.members;
        const Duration start = std::max(now, up_free_[from]);
        up_free_[from] = start + serialise(step.bytes);
        messages_.push_back({lane / plan_.members, from, step.to, step.bytes, step.inbox});
        push(start + links_.latency / 2, messages_.size() - 1);
    }

    void advance(std::uint32_t lane, Duration now) {
        if (rule_.pace == Pace::eager) {
            for (Lane& state = lanes_[lane]; state.next < count(lane); ++state.next) {
                const Step next = step(lane);
                if (state.inbox[next.wait_inbox] < next.arrived) return;
                if (next.to != nobody) send(lane, next, now);
            }
            return;
        }
        for (Lane& state = lanes_[lane]; !state.entered && state.next < count(lane);) {
            const Step next = step(lane);
            state.entered = true;
            state.open = (next.to != nobody ? 1 : 0) + (next.from != nobody ? 1 : 0);
            if (next.to != nobody) meet(lane, lane_of(lane / plan_.members, next.to), now);
            if (next.from != nobody) meet(lane_of(lane / plan_.members, next.from), lane, now);
            if (state.open > 0) return;
            state.entered = false;
            ++state.next;
        }
    }

    // Starts the message between two lanes if both are in its round.
    void meet(std::uint32_t from, std::uint32_t to, Duration now) {
        if (!lanes_[from].entered || !lanes_[to].entered || lanes_[from].next != lanes_[to].next) {
            return;
        }
        REQUIRE(step(from).to == to % plan_.members);
        REQUIRE(step(to).from == from % plan_.members);
        send(from, step(from), now);
    }

    void deliver(const Message message, Duration now) {
        const std::uint32_t to = lane_of(message.channel, message.to);
        if (rule_.pace == Pace::eager) {
            ++lanes_[to].inbox[message.inbox];
            advance(to, now);
            return;
        }
        for (const std::uint32_t lane : {lane_of(message.channel, message.from), to}) {
            if (--lanes_[lane].open > 0) continue;
            lanes_[lane].entered = false;
            ++lanes_[lane].next;
            advance(lane, now);
        }
    }

    const StepRule& rule_;
    const StepPlan& plan_;
    EqualLinks links_;
    std::vector<Lane> lanes_;
    std::vector<Duration> up_free_, down_free_;
    std::deque<Message> messages_;
    using Event = std::tuple<Duration, std::uint64_t, std::size_t>;
    std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
    std::uint64_t order_ = 0;
    Duration end_{};
};

// ---- What the steps say in all

struct Traffic {
    std::vector<Bytes> sent, received;  // by member
    std::int64_t messages = 0;
    Bytes total() const {
        Bytes sum{};
        for (const Bytes bytes : sent) sum += bytes;
        return sum;
    }
};

Traffic traffic_of(const Algorithm& algorithm, const StepPlan& plan) {
    Traffic traffic{std::vector<Bytes>(plan.members), std::vector<Bytes>(plan.members)};
    for (std::uint32_t channel = 0; channel < plan.channels; ++channel) {
        for (std::uint32_t member = 0; member < plan.members; ++member) {
            const std::uint32_t steps = algorithm.rule.count(plan, channel, member);
            for (std::uint32_t k = 0; k < steps; ++k) {
                const Step step = algorithm.rule.step(plan, channel, member, k);
                if (step.to == nobody) continue;
                REQUIRE(step.to < plan.members);
                REQUIRE(step.to != member);
                traffic.sent[member] += step.bytes;
                traffic.received[step.to] += step.bytes;
                ++traffic.messages;
            }
        }
    }
    return traffic;
}

// Bytes that must cross the wire in all, with S / n padded to whole bytes, of algorithms that move
// no byte twice.
Bytes least_wire(CollectiveKind kind, std::int64_t n, Bytes s) {
    const Bytes piece = ceil_div(s, n);
    switch (kind) {
        case CollectiveKind::all_reduce:
            return piece * (2 * n * (n - 1));
        case CollectiveKind::reduce_scatter:
        case CollectiveKind::all_gather:
        case CollectiveKind::all_to_all:
            return piece * (n * (n - 1));
        case CollectiveKind::broadcast:
            return s * (n - 1);
    }
    return {};
}

constexpr std::uint32_t group_sizes[] = {1,  2,  3,  4,  5,  6,  7,  8,  9, 10,
                                         11, 12, 13, 14, 15, 16, 17, 24, 64};
constexpr Bytes buffer_sizes[] = {0_B, 1_B, 7_B, 64_KiB, 1_MiB + 1_B, 64_MiB};

// A hierarchy: any that the members can be in. Others: no nodes, rotated rings are tested below.
std::vector<std::uint32_t> node_sizes(const Algorithm& algorithm, std::uint32_t members) {
    if (algorithm.name != "hierarchical") return {1};
    std::vector<std::uint32_t> sizes;
    for (std::uint32_t size = 1; size <= members; ++size) {
        if (members % size == 0) sizes.push_back(size);
    }
    return sizes;
}

// Calls `test(algorithm, call)` for every entry of the catalog, kind and size that is not refused.
template <class Test>
void for_each_call(Test test) {
    for (const Algorithm* algorithm : algorithms()) {
        for (const CollectiveKind kind : all_kinds()) {
            for (const std::uint32_t members : group_sizes) {
                for (const Bytes bytes : buffer_sizes) {
                    CollectiveCall call = call_of(kind, members, bytes);
                    call.root = members / 3;
                    for (const std::uint32_t per_node : node_sizes(*algorithm, members)) {
                        call.per_node = per_node;
                        if (algorithm->refuse(call)) continue;
                        INFO(algorithm->name, " ", name_of(kind), " members ", members,
                             " per node ", per_node, " bytes ", bytes.value);
                        test(*algorithm, call);
                    }
                }
            }
        }
    }
}

// The longest path of an eager algorithm in which every member has one partner to send to and one
// to receive from, straight from the steps: no port is shared.
Duration eager_recursion(const Algorithm& algorithm, const CollectiveCall& call, HopFinder hop) {
    const StepPlan plan = algorithm.plan(call);
    Duration end{};
    for (std::uint32_t channel = 0; channel < plan.channels; ++channel) {
        std::vector<std::vector<Duration>> arrivals(plan.members);  // in order, by receiver
        std::vector<std::uint32_t> next(plan.members, 0);
        std::vector<Duration> free_at(plan.members);
        for (bool moved = true; moved;) {
            moved = false;
            for (std::uint32_t member = 0; member < plan.members; ++member) {
                while (next[member] < algorithm.rule.count(plan, channel, member)) {
                    const Step step = algorithm.rule.step(plan, channel, member, next[member]);
                    if (arrivals[member].size() < step.arrived) break;
                    Duration start = free_at[member];
                    if (step.arrived > 0) {
                        start = std::max(start, arrivals[member][step.arrived - 1]);
                    }
                    const Hop edge = hop(member, step.to, step.bytes);
                    free_at[member] = start + edge.serialise;
                    arrivals[step.to].push_back(free_at[member] + edge.latency);
                    end = std::max(end, arrivals[step.to].back());
                    ++next[member];
                    moved = true;
                }
            }
        }
        for (std::uint32_t member = 0; member < plan.members; ++member) {
            REQUIRE(next[member] == algorithm.rule.count(plan, channel, member));
        }
    }
    return end;
}

// The same of a rendezvous algorithm, round by round.
Duration round_recursion(const Algorithm& algorithm, const CollectiveCall& call, HopFinder hop) {
    const StepPlan plan = algorithm.plan(call);
    std::vector<Duration> finish(plan.members);
    for (std::uint32_t k = 0; k < algorithm.rule.count(plan, 0, 0); ++k) {
        const std::vector<Duration> before = finish;
        for (std::uint32_t member = 0; member < plan.members; ++member) {
            const Step step = algorithm.rule.step(plan, 0, member, k);
            if (step.to == nobody) continue;
            const Hop edge = hop(member, step.to, step.bytes);
            const Duration end =
                std::max(before[member], before[step.to]) + edge.serialise + edge.latency;
            finish[member] = std::max(finish[member], end);
            finish[step.to] = std::max(finish[step.to], end);
        }
    }
    return std::ranges::max(finish);
}

// Random edges: a few speeds, as in a cluster, or all different.
class RandomHops {
  public:
    explicit RandomHops(std::uint32_t seed) : random_(seed) {}
    Hop operator()(std::uint32_t from, std::uint32_t to, Bytes bytes) {
        const auto [found, is_new] = links_.try_emplace({from, to});
        if (is_new) {
            const std::int64_t speeds = links_.size() % 2 == 0 ? 3 : 1'000;
            found->second = {.rate = {1'000'000'000 * (1 + draw(speeds))},
                             .latency = Duration(draw(3) * 1'000'000 + draw(1'000))};
        }
        return {bytes / found->second.rate, found->second.latency};
    }

  private:
    std::int64_t draw(std::int64_t below) {
        return static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(below));
    }
    std::mt19937 random_;
    std::map<std::pair<std::uint32_t, std::uint32_t>, EqualLinks> links_;
};

}  // namespace

TEST_CASE("Every algorithm takes on equal links what its closed form says, message by message") {
    int calls = 0;
    const EqualLinks odd{.rate = {7'777'777'777}, .latency = 1'234'567_ps};
    for (const EqualLinks& links : {port_25, odd}) {
        for_each_call([&](const Algorithm& algorithm, const CollectiveCall& call) {
            const StepPlan plan = algorithm.plan(call);
            Star star(algorithm.rule, plan, links);
            const Duration executed = star.run();
            const Duration formula = algorithm.closed_form(call, links);
            REQUIRE(star.unfinished == 0);
            REQUIRE(executed.count() == formula.count());
            REQUIRE(algorithm.alone(call, equal_hop(links)).count() == formula.count());
            REQUIRE(formula >= bandwidth_bound(call, links));
            if (call.members == 1) REQUIRE(formula == Duration{});
            ++calls;
        });
    }
    CHECK(calls > 2'000);
}

TEST_CASE("Every message is received, and no byte is sent that need not be") {
    for_each_call([](const Algorithm& algorithm, const CollectiveCall& call) {
        const Traffic traffic = traffic_of(algorithm, algorithm.plan(call));
        Bytes received{};
        for (const Bytes bytes : traffic.received) received += bytes;
        REQUIRE(received == traffic.total());
        if (call.members == 1) REQUIRE(traffic.messages == 0);
        // Padded, nobody sends less than the least of it all.
        const auto needed = [&](Bytes padding) {
            return least_wire(call.kind, call.members, call.bytes) <= traffic.total() + padding;
        };
        REQUIRE(needed({std::int64_t{2} * call.members * call.members}));
    });
}

TEST_CASE("Ring and direct send the least bytes, the same from every member") {
    for (const CollectiveKind kind : all_kinds()) {
        for (const std::uint32_t n : group_sizes) {
            const CollectiveCall call = call_of(kind, n, 1_MiB + 1_B);
            CAPTURE(name_of(kind));
            CAPTURE(n);
            const Traffic direct = traffic_of(find("direct"), find("direct").plan(call));
            CHECK(direct.total() == least_wire(kind, n, call.bytes));
            const Traffic ring = traffic_of(find("ring"), find("ring").plan(call));
            const Bytes piece = ceil_div(call.bytes, n);
            if (kind == CollectiveKind::broadcast) {
                // n padded pieces over n - 1 links.
                CHECK(ring.total() == piece * n * (n - 1));
                for (std::uint32_t member = 1; member < n; ++member) {
                    CHECK(ring.received[member] == piece * n);
                    CHECK(direct.received[member] == call.bytes);
                }
                continue;
            }
            // Round a ring a block of an all-to-all crosses n / 2 edges on average, not one.
            const Bytes expected = kind == CollectiveKind::all_to_all
                                       ? piece * (std::int64_t{n} * n * (n - 1) / 2)
                                       : least_wire(kind, n, call.bytes);
            CHECK(ring.total() == expected);
            for (const Traffic* traffic : {&ring, &direct}) {
                for (std::uint32_t member = 0; member < n; ++member) {
                    CHECK(traffic->sent[member] == traffic->sent[0]);
                    CHECK(traffic->received[member] == traffic->sent[0]);
                }
            }
        }
    }
}

// S = 24, n = 4, root 1; pieces of 6.
TEST_CASE("A central root receives and sends for all") {
    const auto root_traffic = [](CollectiveKind kind) {
        CollectiveCall call = call_of(kind, 4, 24_B);
        call.root = 1;
        const Traffic traffic = traffic_of(find("central"), find("central").plan(call));
        return std::pair(traffic.received[1].value, traffic.sent[1].value);
    };
    using Pair = std::pair<std::int64_t, std::int64_t>;
    CHECK(root_traffic(CollectiveKind::all_reduce) == Pair{3 * 24, 3 * 24});
    CHECK(root_traffic(CollectiveKind::reduce_scatter) == Pair{3 * 24, 3 * 6});
    CHECK(root_traffic(CollectiveKind::all_gather) == Pair{3 * 6, 3 * 24});
    CHECK(root_traffic(CollectiveKind::all_to_all) == Pair{3 * 18, 3 * 18});
    CHECK(root_traffic(CollectiveKind::broadcast) == Pair{0, 3 * 24});
}

TEST_CASE("A ring's steps, member by member") {
    const Algorithm& ring = find("ring");
    const StepPlan plan = ring.plan(call_of(CollectiveKind::all_reduce, 4, 10_B));
    CHECK(ring.rule.count(plan, 0, 3) == 6);
    const Step last = ring.rule.step(plan, 0, 3, 5);
    CHECK(last.to == 0);
    CHECK(last.bytes == 3_B);
    CHECK(last.arrived == 5);
}

// ---- Contents, not only counts: whose data a member's pieces hold, as sets of bits.

TEST_CASE("Halving and doubling bring every member the data of all, once") {
    const Algorithm& algorithm = find("halving_doubling");
    constexpr std::int64_t piece = 1'000;
    struct Holder {
        std::uint32_t first, last;        // the pieces that it works on
        std::vector<std::uint64_t> data;  // by piece: whose
    };
    for (const CollectiveKind kind : all_kinds()) {
        for (const std::uint32_t n : group_sizes) {
            const std::uint32_t core = std::bit_floor(n);
            const CollectiveCall call = call_of(kind, n, {piece * core});
            if (algorithm.refuse(call)) continue;
            CAPTURE(name_of(kind));
            CAPTURE(n);
            const bool gathers = kind == CollectiveKind::all_gather;
            std::vector<Holder> holders;
            for (std::uint32_t member = 0; member < n; ++member) {
                const std::uint64_t own = std::uint64_t{1} << member;
                Holder holder{0, core, std::vector<std::uint64_t>(core, gathers ? 0 : own)};
                if (gathers) {
                    holder = {member, member + 1, holder.data};
                    holder.data[member] = own;
                }
                holders.push_back(holder);
            }
            const StepPlan plan = algorithm.plan(call);
            const std::uint32_t steps = algorithm.rule.count(plan, 0, 0);
            const std::uint32_t folds = n > core ? 1 : 0;
            const auto levels = static_cast<std::uint32_t>(std::bit_width(core)) - 1;
            const std::uint32_t halvings = folds + (gathers ? 0 : levels);
            for (std::uint32_t k = 0; k < steps; ++k) {
                const std::vector<Holder> before = holders;
                for (std::uint32_t member = 0; member < n; ++member) {
                    const Step step = algorithm.rule.step(plan, 0, member, k);
                    if (step.to == nobody) continue;
                    REQUIRE(algorithm.rule.step(plan, 0, step.to, k).from == member);
                    const Holder& sender = before[member];
                    Holder& receiver = holders[step.to];
                    const std::uint32_t size = sender.last - sender.first;
                    const bool unfolds = folds > 0 && k + 1 == steps;
                    if (k < folds) {
                        REQUIRE(step.bytes == call.bytes);
                        holders[member].last = 0;
                    } else if (k < halvings) {  // the lower of two keeps the lower half
                        REQUIRE(step.bytes.value == piece * size / 2);
                        REQUIRE(before[step.to].first == sender.first);
                        REQUIRE(before[step.to].last == sender.last);
                        const std::uint32_t middle = sender.first + size / 2;
                        (step.to < member ? receiver.last : receiver.first) = middle;
                    } else if (unfolds) {
                        REQUIRE(step.bytes == call.bytes);
                        receiver = sender;
                        continue;
                    } else {
                        REQUIRE(step.bytes.value == piece * size);
                        REQUIRE((sender.last == receiver.first || sender.first == receiver.last));
                        receiver.first = std::min(receiver.first, sender.first);
                        receiver.last = std::max(receiver.last, sender.last);
                        for (std::uint32_t at = sender.first; at < sender.last; ++at) {
                            receiver.data[at] = sender.data[at];
                        }
                        continue;
                    }
                    for (std::uint32_t at = receiver.first; at < receiver.last; ++at) {
                        REQUIRE((receiver.data[at] & sender.data[at]) == 0);
                        receiver.data[at] |= sender.data[at];
                    }
                }
            }
            const std::uint64_t all = ~std::uint64_t{0} >> (64 - n);
            for (std::uint32_t member = 0; member < n; ++member) {
                const bool scatters = kind == CollectiveKind::reduce_scatter;
                CHECK(holders[member].first == (scatters ? member : 0));
                CHECK(holders[member].last == (scatters ? member + 1 : core));
                for (std::uint32_t at = holders[member].first; at < holders[member].last; ++at) {
                    CHECK(holders[member].data[at] == (gathers ? std::uint64_t{1} << at : all));
                }
            }
        }
    }
}

// Members of a hierarchy in any order of their steps and of messages on different ways: what a
// member sends is right only if what it needs has arrived.
TEST_CASE("A hierarchy brings every member the data of all, whoever is late") {
    constexpr std::uint32_t seed = 79;
    INFO("seed ", seed);
    std::mt19937 random(seed);
    const Algorithm& algorithm = find("hierarchical");
    for (std::uint32_t i = 0; i < 600; ++i) {
        const auto g = 2 + static_cast<std::uint32_t>(random() % 4);
        const auto m = 1 + static_cast<std::uint32_t>(random() % 5);
        const std::uint32_t n = g * m;
        CollectiveCall call = call_of(all_kinds()[random() % 3], n, {n * 10});
        call.per_node = g;
        CAPTURE(name_of(call.kind));
        CAPTURE(g);
        CAPTURE(m);
        const bool scatters = call.kind != CollectiveKind::all_gather;
        const bool gathers = call.kind != CollectiveKind::reduce_scatter;
        const std::uint32_t in_node = scatters ? g - 1 : 0;
        const std::uint32_t across = scatters && gathers ? 2 * (m - 1) : m - 1;
        // Chunk c of a node's g has the pieces c m .. c m + m - 1, one for each node. After
        // scattering, member a of node b is left with chunk a + 1 and its piece b + 1.
        const auto chunk_of = [&](std::uint32_t member) { return (member % g + 1) % g; };
        const auto piece_of_member = [&](std::uint32_t member) {
            return chunk_of(member) * m + (member / g + 1) % m;
        };
        struct Message {
            std::uint32_t from, to, k;
            std::uint8_t inbox;
            std::vector<std::uint64_t> data;
        };
        struct State {
            std::uint32_t next = 0;
            std::uint32_t inbox[2] = {0, 0};
            std::vector<std::uint64_t> data;
        };
        std::vector<State> members(n);
        for (std::uint32_t member = 0; member < n; ++member) {
            const std::uint64_t own = std::uint64_t{1} << member;
            members[member].data.assign(n, scatters ? own : 0);
            members[member].data[piece_of_member(member)] = own;
        }
        // The pieces that a step sends, and whether they are sums already.
        const auto pieces_of = [&](std::uint32_t member, std::uint32_t k) {
            const auto back = [](std::uint32_t from, std::uint32_t by, std::uint32_t of) {
                return (from + of - by % of) % of;
            };
            std::vector<std::uint32_t> pieces;
            if (k >= in_node && k - in_node < across) {
                const std::uint32_t first = scatters ? member / g : member / g + 1;
                pieces.push_back(chunk_of(member) * m + back(first, k - in_node, m));
            } else {
                const std::uint32_t chunk = k < in_node
                                                ? back(member % g, k, g)
                                                : back(member % g + 1, k - in_node - across, g);
                for (std::uint32_t at = 0; at < m; ++at) pieces.push_back(chunk * m + at);
            }
            return pieces;
        };
        const std::uint32_t reductions = scatters ? in_node + m - 1 : 0;

        const StepPlan plan = algorithm.plan(call);
        std::map<std::pair<std::uint32_t, std::uint32_t>, std::deque<Message>> ways;
        const auto advance = [&](std::uint32_t member) {
            State& state = members[member];
            for (; state.next < algorithm.rule.count(plan, 0, member); ++state.next) {
                const Step step = algorithm.rule.step(plan, 0, member, state.next);
                if (state.inbox[step.wait_inbox] < step.arrived) return;
                Message message{member, step.to, state.next, step.inbox, {}};
                const auto pieces = pieces_of(member, state.next);
                REQUIRE(step.bytes.value == static_cast<std::int64_t>(10 * pieces.size()));
                for (const std::uint32_t at : pieces) message.data.push_back(state.data[at]);
                ways[{member, step.to}].push_back(message);
            }
        };
        std::vector<std::uint32_t> late(n);
        for (std::uint32_t member = 0; member < n; ++member) late[member] = member;
        while (!late.empty() || !ways.empty()) {
            if (!late.empty() && random() % 4 == 0) {
                std::swap(late[random() % late.size()], late.back());
                const std::uint32_t member = late.back();
                late.pop_back();
                advance(member);
                continue;
            }
            if (ways.empty()) continue;
            const auto way =
                std::next(ways.begin(), static_cast<std::int64_t>(random() % ways.size()));
            const Message message = way->second.front();
            way->second.pop_front();
            if (way->second.empty()) ways.erase(way);
            State& receiver = members[message.to];
            ++receiver.inbox[message.inbox];
            const auto pieces = pieces_of(message.from, message.k);
            for (std::size_t at = 0; at < pieces.size(); ++at) {
                std::uint64_t& mine = receiver.data[pieces[at]];
                if (message.k < reductions) REQUIRE((mine & message.data[at]) == 0);
                mine = message.k < reductions ? mine | message.data[at] : message.data[at];
            }
            if (std::ranges::find(late, message.to) == late.end()) advance(message.to);
        }
        const std::uint64_t all = ~std::uint64_t{0} >> (64 - n);
        for (std::uint32_t member = 0; member < n; ++member) {
            REQUIRE(members[member].next == algorithm.rule.count(plan, 0, member));
            for (std::uint32_t other = 0; other < n; ++other) {
                if (!gathers && other != member) continue;
                const std::uint64_t whose = scatters ? all : std::uint64_t{1} << other;
                REQUIRE(members[member].data[piece_of_member(other)] == whose);
            }
        }
    }
}

TEST_CASE("In pairwise rounds every member meets every other once") {
    const Algorithm& algorithm = find("pairwise");
    for (const std::uint32_t n : group_sizes) {
        CAPTURE(n);
        const StepPlan plan = algorithm.plan(call_of(CollectiveKind::all_to_all, n, {n * 10}));
        std::map<std::pair<std::uint32_t, std::uint32_t>, int> met;
        for (std::uint32_t k = 0; k < algorithm.rule.count(plan, 0, 0); ++k) {
            for (std::uint32_t member = 0; member < n; ++member) {
                const Step step = algorithm.rule.step(plan, 0, member, k);
                REQUIRE(algorithm.rule.step(plan, 0, step.to, k).from == member);
                REQUIRE(step.bytes == 10_B);
                if (std::has_single_bit(n)) REQUIRE(step.to == step.from);
                ++met[{member, step.to}];
            }
        }
        CHECK(met.size() == std::size_t{n} * (n - 1));
    }
}

// A block for the member d after its source moves on by 2^k in the rounds k of the 1 bits of d.
TEST_CASE("Bruck's rounds bring every block of an all-to-all where it belongs") {
    const Algorithm& algorithm = find("bruck");
    using Block = std::pair<std::uint32_t, std::uint32_t>;  // from, to
    for (const std::uint32_t n : group_sizes) {
        CAPTURE(n);
        const StepPlan plan = algorithm.plan(call_of(CollectiveKind::all_to_all, n, {n * 10}));
        std::vector<std::vector<Block>> held(n);
        for (std::uint32_t from = 0; from < n; ++from) {
            for (std::uint32_t to = 0; to < n; ++to) held[from].push_back({from, to});
        }
        for (std::uint32_t k = 0; k < algorithm.rule.count(plan, 0, 0); ++k) {
            const auto before = held;
            for (auto& blocks : held) blocks.clear();
            for (std::uint32_t member = 0; member < n; ++member) {
                const Step step = algorithm.rule.step(plan, 0, member, k);
                REQUIRE(algorithm.rule.step(plan, 0, step.to, k).from == member);
                std::int64_t moved = 0;
                for (const Block& block : before[member]) {
                    const bool moves = ((block.second + n - block.first) % n >> k) % 2 == 1;
                    held[moves ? step.to : member].push_back(block);
                    moved += moves ? 1 : 0;
                }
                REQUIRE(step.bytes.value == 10 * moved);
            }
        }
        for (std::uint32_t member = 0; member < n; ++member) {
            CHECK(held[member].size() == n);
            for (const Block& block : held[member]) REQUIRE(block.second == member);
        }
    }
}

TEST_CASE("Bruck's rounds bring every piece of an all-gather to all, once") {
    const Algorithm& algorithm = find("bruck");
    for (const std::uint32_t n : group_sizes) {
        CAPTURE(n);
        const StepPlan plan = algorithm.plan(call_of(CollectiveKind::all_gather, n, {n * 10}));
        std::vector<std::vector<std::uint32_t>> held(n);
        for (std::uint32_t member = 0; member < n; ++member) held[member] = {member};
        for (std::uint32_t k = 0; k < algorithm.rule.count(plan, 0, 0); ++k) {
            const auto before = held;
            for (std::uint32_t member = 0; member < n; ++member) {
                const Step step = algorithm.rule.step(plan, 0, member, k);
                REQUIRE(algorithm.rule.step(plan, 0, step.to, k).from == member);
                const auto first = before[member].begin();
                held[step.to].insert(held[step.to].end(), first, first + step.bytes.value / 10);
            }
        }
        for (std::uint32_t member = 0; member < n; ++member) {
            REQUIRE(held[member].size() == n);
            for (std::uint32_t i = 0; i < n; ++i) CHECK(held[member][i] == (member + i) % n);
        }
    }
}

// ---- Numbers worked by hand: ceil(S / n) / 25 GB/s + 10 us, 2 (n - 1) times.

TEST_CASE("A ring all-reduce of 64 MiB takes 4.837620 ms with 8 members, 25.823466 ms with 1024") {
    const auto time = [](std::uint32_t n) {
        return find("ring")
            .closed_form(call_of(CollectiveKind::all_reduce, n, 64_MiB), port_25)
            .count();
    };
    // 14 (8,388,608 B / 25 GB/s + 10 us) = 14 * 345.54432 us
    CHECK(time(8) == 4'837'620'480);
    CHECK(time(64) == 6'544'823'040);      // 126 * (41.94304 + 10) us
    CHECK(time(256) == 10'447'737'600);    // 510 * (10.48576 + 10) us
    CHECK(time(1'024) == 25'823'466'240);  // 2,046 * (2.62144 + 10) us
    // 10 (1 MiB / 25 GB/s + 10 us)
    CHECK(find("ring").closed_form(call_of(CollectiveKind::all_reduce, 6, 6_MiB), port_25) ==
          519'430'400_ps);
}

// 8 members, 64 MiB: pieces of 8 MiB / 25 GB/s = 335.54432 us, seven of them each way.
// 7 members fold 3 into 4: halves and quarters, 2 * 3/4 * 64 MiB, and twice the whole of it.
TEST_CASE("Halving and doubling takes 2 log2 n latencies and the bytes of a ring") {
    const auto time = [](CollectiveKind kind, std::uint32_t n) {
        return find("halving_doubling").closed_form(call_of(kind, n, 64_MiB), port_25).count();
    };
    CHECK(time(CollectiveKind::all_reduce, 8) == 14LL * 335'544'320 + 6 * 10'000'000);
    CHECK(time(CollectiveKind::reduce_scatter, 8) == 7LL * 335'544'320 + 3 * 10'000'000);
    CHECK(time(CollectiveKind::all_gather, 8) == 7LL * 335'544'320 + 3 * 10'000'000);
    CHECK(time(CollectiveKind::all_reduce, 7) == (12 + 16) * 335'544'320LL + 6 * 10'000'000);
}

// astra-sim issue 150: (2, 8) and (8, 2) differ, and must not. 64 MiB, 16 members:
// 2 in each of 8 nodes: 1/2 S + 2 * 7/8 * S/2 + 1/2 S = 15/8 S and 1 + 14 + 1 latencies;
// 8 in each of 2 nodes: 7/8 S + 2 * 1/2 * S/8 + 7/8 S = 15/8 S and 7 + 2 + 7 latencies.
TEST_CASE("A hierarchy of 2 x 8 takes as long as one of 8 x 2: 5.033165 ms and 16 latencies") {
    const Algorithm& algorithm = find("hierarchical");
    CollectiveCall call = call_of(CollectiveKind::all_reduce, 16, 64_MiB);
    const auto ring = [](CollectiveKind kind, std::uint32_t n, Bytes bytes) {
        return find("ring").closed_form(call_of(kind, n, bytes), port_25);
    };
    for (const std::uint32_t g : {2U, 8U}) {
        CAPTURE(g);
        call.per_node = g;
        CHECK(algorithm.closed_form(call, port_25).count() == 5'033'164'800 + 16 * 10'000'000);
        CHECK(algorithm.closed_form(call, port_25) ==
              ring(CollectiveKind::reduce_scatter, g, call.bytes) +
                  ring(CollectiveKind::all_reduce, 16 / g, {call.bytes.value / g}) +
                  ring(CollectiveKind::all_gather, g, call.bytes));
    }
}

// Blocks of 1 MiB / 25 GB/s = 41.94304 us. All-to-all: pairwise sends one to each of 7; Bruck's
// rounds send 4 each. Of 6 members, the blocks for 1 3 5, 2 3 and 4 5 after: 7 in all.
TEST_CASE("Bruck trades bytes for latencies, pairwise does not") {
    const auto time = [](std::string_view name, CollectiveKind kind, std::uint32_t n) {
        const CollectiveCall call = call_of(kind, n, {std::int64_t{n} << 20});
        return find(name).closed_form(call, port_25).count();
    };
    CHECK(time("pairwise", CollectiveKind::all_to_all, 8) == 7 * (41'943'040 + 10'000'000));
    CHECK(time("pairwise", CollectiveKind::reduce_scatter, 8) == 7 * (41'943'040 + 10'000'000));
    CHECK(time("bruck", CollectiveKind::all_to_all, 8) == 12 * 41'943'040 + 3 * 10'000'000);
    CHECK(time("bruck", CollectiveKind::all_to_all, 6) == 7 * 41'943'040 + 3 * 10'000'000);
    CHECK(time("bruck", CollectiveKind::all_gather, 8) == 7 * 41'943'040 + 3 * 10'000'000);
    CHECK(time("bruck", CollectiveKind::all_gather, 6) == 5 * 41'943'040 + 3 * 10'000'000);
}

TEST_CASE("Twice the bytes take twice the time beyond the latencies") {
    const Algorithm& ring = find("ring");
    const Duration latencies = 14 * 10_us;
    const auto beyond = [&](Bytes bytes) {
        return ring.closed_form(call_of(CollectiveKind::all_reduce, 8, bytes), port_25) - latencies;
    };
    CHECK(beyond(512_MiB) == 2 * beyond(256_MiB));
    // A TiB: 14 * 2^37 / 25e9 = 76.965813944320 s.
    CHECK(beyond({std::int64_t{1} << 40}) == Duration(76'965'813'944'320));
}

TEST_CASE("An enormous collective saturates and does not wrap") {
    const EqualLinks slow{.rate = {1}, .latency = 10_us};
    for (const Algorithm* algorithm : algorithms()) {
        for (const CollectiveKind kind : all_kinds()) {
            const CollectiveCall call = call_of(kind, 64, {std::int64_t{1} << 50});
            if (algorithm->refuse(call)) continue;
            CHECK(algorithm->closed_form(call, slow) == duration_limit);
            CHECK(algorithm->alone(call, equal_hop(slow)) == duration_limit);
            CHECK(bandwidth_bound(call, slow) == duration_limit);
        }
    }
}

TEST_CASE("Small all-reduces are monotone in their size and never below their latencies") {
    for (const Algorithm* algorithm : algorithms()) {
        CAPTURE(algorithm->name);
        Duration last{};
        for (const Bytes bytes : {0_B, 1_B, 7_B, 64_KiB}) {
            CollectiveCall call = call_of(CollectiveKind::all_reduce, 8, bytes);
            call.per_node = 4;
            if (algorithm->refuse(call)) continue;
            const Duration time = algorithm->closed_form(call, port_25);
            CHECK(time >= last);
            CHECK(time >= 2 * 10_us);
            last = time;
        }
    }
    const CollectiveCall none = call_of(CollectiveKind::all_reduce, 8, 0_B);
    CHECK(find("ring").closed_form(none, port_25) == 140_us);
    CHECK(find("direct").closed_form(none, port_25) == 20_us);
}

// astra-sim issue 296: a direct all-reduce twice as fast as a ring.
// 100 MB, 8 members, 50 GB/s: at least 2 * 7/8 * 100 MB / 50 GB/s = 3.5 ms.
TEST_CASE("No algorithm beats the bandwidth of the ports") {
    const EqualLinks links{.rate = 50_GBps, .latency = Duration{}};
    CollectiveCall call = call_of(CollectiveKind::all_reduce, 8, {100'000'000});
    CHECK(bandwidth_bound(call, links) == 3'500_us);
    for (const char* name : {"ring", "direct", "halving_doubling"}) {
        CHECK(find(name).closed_form(call, links) == 3'500_us);
    }
    call.per_node = 4;
    CHECK(find("hierarchical").closed_form(call, links) == 3'500_us);
    for (const Algorithm* algorithm : algorithms()) {
        if (algorithm->refuse(call)) continue;
        CHECK(algorithm->closed_form(call, links) >= 3'500_us);
    }
}

// Nobody is in charge in a ring, and that is why it scales: from 8 to 64 members without latency
// a ring goes from 2 * 7/8 to 2 * 63/64 of S / rate, a parameter server from 14 to 126.
TEST_CASE("A parameter server grows with its members, a ring does not") {
    const EqualLinks links{.rate = 1_GBps, .latency = Duration{}};
    const auto time = [&](std::string_view name, std::uint32_t n) {
        return find(name).closed_form(call_of(CollectiveKind::all_reduce, n, {64'000'000}), links);
    };
    CHECK(time("ring", 8) == 112_ms);
    CHECK(time("ring", 64) == 126_ms);
    CHECK(time("central", 8) == 896_ms);
    CHECK(time("central", 64) == 8'064_ms);
}

// ---- Unequal edges

TEST_CASE("A ring alone takes the longest path through its steps, whatever its edges") {
    constexpr std::uint32_t seed = 77;
    INFO("seed ", seed);
    std::mt19937 random(seed);
    const Algorithm& ring = find("ring");
    for (std::uint32_t i = 0; i < 1'500; ++i) {
        CollectiveCall call;
        call.kind = all_kinds()[random() % 5];
        call.per_node = random() % 3 == 0 ? 1 + static_cast<std::uint32_t>(random() % 4) : 1;
        call.members = call.per_node * (1 + static_cast<std::uint32_t>(random() % 9));
        call.bytes = {static_cast<std::int64_t>(random() % 1'000'000)};
        call.root = static_cast<std::uint32_t>(random() % call.members);
        CAPTURE(name_of(call.kind));
        CAPTURE(call.members);
        CAPTURE(call.per_node);
        RandomHops hops(static_cast<std::uint32_t>(random()));
        const auto hop = [&](std::uint32_t from, std::uint32_t to, Bytes bytes) {
            return hops(from, to, bytes);
        };
        REQUIRE(ring.alone(call, hop).count() == eager_recursion(ring, call, hop).count());
    }
}

// Edges with serialise + latency 5 + 1, 1 + 1, 1 + 1; an all-reduce of 3 has 4 steps. Windows with
// the slow edge last: 6 + 3 * 5 = 21; 2 + 6 + 2 * 5 = 18; 2 + 2 + 6 + 5 = 15; round and over it
// twice: 6 + 2 + 2 + 6 = 16. So 21, and not 4 * 6 = 24.
TEST_CASE("A ring with one slow edge is not as slow as steps times that edge") {
    const auto hop = [](std::uint32_t from, std::uint32_t, Bytes) {
        return Hop{Duration(from == 0 ? 5 : 1), Duration(1)};
    };
    const CollectiveCall call = call_of(CollectiveKind::all_reduce, 3, 3_B);
    CHECK(find("ring").alone(call, hop) == Duration(21));
}

TEST_CASE("A tree alone takes the longest path through its rounds, whatever its edges") {
    constexpr std::uint32_t seed = 78;
    INFO("seed ", seed);
    std::mt19937 random(seed);
    const Algorithm& tree = find("tree");
    for (std::uint32_t i = 0; i < 200; ++i) {
        CollectiveCall call;
        call.kind = i % 2 == 0 ? CollectiveKind::all_reduce : CollectiveKind::broadcast;
        call.members = 1 + static_cast<std::uint32_t>(random() % 40);
        call.bytes = {static_cast<std::int64_t>(random() % 20'000'000)};
        call.root = static_cast<std::uint32_t>(random() % call.members);
        CAPTURE(call.members);
        RandomHops hops(static_cast<std::uint32_t>(random()));
        const auto hop = [&](std::uint32_t from, std::uint32_t to, Bytes bytes) {
            return hops(from, to, bytes);
        };
        REQUIRE(tree.alone(call, hop).count() == round_recursion(tree, call, hop).count());
    }
}

TEST_CASE("Rounds alone take the longest path through them, whatever their edges") {
    constexpr std::uint32_t seed = 80;
    INFO("seed ", seed);
    std::mt19937 random(seed);
    for (std::uint32_t i = 0; i < 600; ++i) {
        CollectiveCall call;
        call.kind = all_kinds()[random() % 5];
        call.members = 1 + static_cast<std::uint32_t>(random() % 40);
        call.bytes = {static_cast<std::int64_t>(random() % 1'000'000)};
        for (const char* name : {"halving_doubling", "pairwise", "bruck"}) {
            const Algorithm& algorithm = find(name);
            if (algorithm.refuse(call)) continue;
            CAPTURE(name);
            CAPTURE(name_of(call.kind));
            CAPTURE(call.members);
            RandomHops hops(static_cast<std::uint32_t>(random()));
            const auto hop = [&](std::uint32_t from, std::uint32_t to, Bytes bytes) {
                return hops(from, to, bytes);
            };
            REQUIRE(algorithm.alone(call, hop).count() ==
                    round_recursion(algorithm, call, hop).count());
        }
    }
}

// Two nodes of 2, pieces of 1 B. Inside nodes 2 B take 2, across 1 B takes 10, member 0's way
// across 30; no latencies. Scatter: all at 2. Across: 0 and 2 exchange, 30 and 10 from 2 on, so
// that member 2 has it at 32 and member 0 at 12; then 0's own port is free at 32, and its second
// message comes at 62, while 2 sends at 32 and 0 has it at 42. Gather: 2 sends at 62.
TEST_CASE("A hierarchy alone takes the longest path through its phases") {
    const auto hop = [](std::uint32_t from, std::uint32_t to, Bytes bytes) {
        const bool across = from / 2 != to / 2;
        return Hop{Duration(bytes.value * (!across ? 1 : from == 0 ? 30 : 10)), Duration{}};
    };
    CollectiveCall call = call_of(CollectiveKind::all_reduce, 4, 4_B);
    call.per_node = 2;
    CHECK(find("hierarchical").alone(call, hop) == Duration(64));
    call.kind = CollectiveKind::reduce_scatter;
    CHECK(find("hierarchical").alone(call, hop) == Duration(32));
    call.kind = CollectiveKind::all_gather;  // across first
    CHECK(find("hierarchical").alone(call, hop) == Duration(32));
}

// Member 0's port is three times as slow. Its 3 sends queue at it: 3 * 30, then the longest
// latency.
TEST_CASE("A direct exchange takes as long as its busiest port") {
    const auto hop = [](std::uint32_t from, std::uint32_t to, Bytes) {
        return Hop{Duration(from == 0 ? 30 : 10), Duration(to == 2 ? 7 : 5)};
    };
    CHECK(find("direct").alone(call_of(CollectiveKind::all_gather, 4, 4_B), hop) == Duration(97));
    CHECK(find("direct").alone(call_of(CollectiveKind::all_reduce, 4, 4_B), hop) == Duration(194));
    // All to member 0 (3 * 10 + 5), and member 0 to all (3 * 30 + 7).
    CHECK(find("central").alone(call_of(CollectiveKind::all_reduce, 4, 4_B), hop) ==
          Duration(35 + 97));
}

// ---- Rotated rings

TEST_CASE("A group with several members per node runs one ring for each") {
    const Algorithm& ring = find("ring");
    CollectiveCall call = call_of(CollectiveKind::all_reduce, 6, 36_B);
    call.per_node = 3;
    const StepPlan plan = ring.plan(call);
    REQUIRE(plan.channels == 3);
    const auto round = [&](std::uint32_t channel, std::uint32_t first) {
        std::vector<std::uint32_t> members;
        for (std::uint32_t at = first; members.size() < 6;) {
            members.push_back(at);
            at = ring.rule.step(plan, channel, at, 0).to;
        }
        return members;
    };
    using Members = std::vector<std::uint32_t>;
    CHECK(round(0, 0) == Members{0, 1, 2, 3, 4, 5});
    CHECK(round(1, 1) == Members{1, 2, 0, 4, 5, 3});
    CHECK(round(2, 2) == Members{2, 0, 1, 5, 3, 4});
    CHECK(ring.rule.step(plan, 1, 0, 0).bytes == 2_B);  // 36 / 3 / 6

    call.members = 3;  // inside one node
    CHECK(ring.plan(call).channels == 1);
    call.members = 7;  // not whole nodes
    CHECK(ring.plan(call).channels == 1);
}

TEST_CASE("Rotated rings that share ports are never faster than their bound, and all finish") {
    for (const CollectiveKind kind : all_kinds()) {
        for (const std::uint32_t per_node : {2U, 4U}) {
            for (const std::uint32_t nodes : {2U, 3U, 6U}) {
                for (const Bytes bytes : buffer_sizes) {
                    CollectiveCall call = call_of(kind, per_node * nodes, bytes);
                    call.per_node = per_node;
                    call.root = per_node + 1;
                    CAPTURE(name_of(kind));
                    CAPTURE(call.members);
                    CAPTURE(bytes.value);
                    const Algorithm& ring = find("ring");
                    const StepPlan plan = ring.plan(call);
                    Star star(ring.rule, plan, port_25);
                    const Duration executed = star.run();
                    CHECK(star.unfinished == 0);
                    const Duration formula = ring.closed_form(call, port_25);
                    CHECK(formula >= bandwidth_bound(call, port_25));
                    CHECK(executed >= formula);
                    CHECK(ring.alone(call, equal_hop(port_25)) <= formula);
                }
            }
        }
    }
}

// ---- Trees

TEST_CASE("In a tree's round a member sends at most one message and receives at most one") {
    const Algorithm& tree = find("tree");
    for (std::uint32_t n = 2; n <= 130; ++n) {
        CAPTURE(n);
        CollectiveCall call = call_of(CollectiveKind::all_reduce, n, 3_MiB);
        call.root = n / 2;
        for (const CollectiveKind kind : {CollectiveKind::all_reduce, CollectiveKind::broadcast}) {
            call.kind = kind;
            const StepPlan plan = tree.plan(call);
            const std::uint32_t rounds = tree.rule.count(plan, 0, 0);
            std::int64_t messages = 0;
            for (std::uint32_t k = 0; k < rounds; ++k) {
                for (std::uint32_t member = 0; member < n; ++member) {
                    const Step step = tree.rule.step(plan, 0, member, k);
                    if (step.to != nobody) {
                        REQUIRE(tree.rule.step(plan, 0, step.to, k).from == member);
                        ++messages;
                    }
                    if (step.from != nobody) {
                        REQUIRE(tree.rule.step(plan, 0, step.from, k).to == member);
                    }
                }
            }
            // n - 1 edges in each of 2 trees, all chunks, up and down.
            const std::int64_t phases = kind == CollectiveKind::all_reduce ? 2 : 1;
            CHECK(messages == phases * 2 * (n - 1) * plan.chunks);
            // 2 chunks and 2 rounds for each level of log2 n: nearly full bandwidth.
            const std::int64_t levels = std::bit_width(n - 1);
            CHECK(rounds <= phases * (2 * plan.chunks + 2 * levels));
        }
    }
}

// Every edge carries all chunks of its tree, up and then down, and everybody but the root hangs
// from a parent in both trees.
TEST_CASE("In a tree every member but the root has two parents, and down mirrors up") {
    const Algorithm& tree = find("tree");
    for (const std::uint32_t n : {2U, 3U, 4U, 5U, 6U, 7U, 8U, 12U, 17U, 24U, 33U}) {
        CAPTURE(n);
        const StepPlan plan = tree.plan(call_of(CollectiveKind::all_reduce, n, 5_MiB));
        const std::uint32_t rounds = tree.rule.count(plan, 0, 0) / 2;
        std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> up, down;
        for (std::uint32_t k = 0; k < 2 * rounds; ++k) {
            for (std::uint32_t member = 0; member < n; ++member) {
                const Step step = tree.rule.step(plan, 0, member, k);
                if (step.to == nobody) continue;
                ++(k < rounds ? up : down)[{member, step.to}];
            }
        }
        // Up and down use the same edges as often, and everybody but the root has two parents.
        std::vector<std::uint32_t> parents(n, 0);
        for (const auto& [edge, times] : up) {
            CHECK(down[{edge.second, edge.first}] == times);
            CHECK(times % plan.chunks == 0);
            parents[edge.first] += times / plan.chunks;
        }
        CHECK(parents[0] == 0);
        for (std::uint32_t member = 1; member < n; ++member) CHECK(parents[member] == 2);
    }
}

// Contents, not only counts: whose data a chunk of a half holds, as a set of bits. The steps do not
// say which half a message carries, so the test works it out from NCCL's definition of the trees:
// in the first a member's parent has its lowest 1 bit cleared and the next set, if there is one;
// the second is the first on other places. Up, an edge carries chunks in order; down, in reverse
// order.
TEST_CASE("A tree all-reduce brings the data of every member to all, once") {
    const Algorithm& tree = find("tree");
    for (const std::uint32_t n : {2U, 3U, 4U, 5U, 6U, 7U, 8U, 12U, 17U, 24U, 33U}) {
        CAPTURE(n);
        const StepPlan plan = tree.plan(call_of(CollectiveKind::all_reduce, n, 5_MiB));
        REQUIRE(plan.chunks > 1);
        const std::uint32_t rounds = tree.rule.count(plan, 0, 0) / 2;
        const auto parent_at = [n](std::uint32_t place) {
            const std::uint32_t lowest = place & (~place + 1);
            const std::uint32_t above = (place ^ lowest) | 2 * lowest;
            return above < n ? above : place ^ lowest;
        };
        const auto first_parent = [&](std::uint32_t member) { return parent_at(member); };
        const auto second_parent = [&](std::uint32_t member) {
            if (n % 2 == 1) {
                const std::uint32_t place = parent_at(n - member);
                return place == 0 ? 0 : n - place;
            }
            const std::uint32_t place = parent_at(member == 1 ? n - 1 : member - 1);
            return place == 0 ? 0 : place == n - 1 ? 1 : place + 1;
        };
        // By child and parity of the round. Where both parents are the same member, the edge used
        // first is that of the tree in which the child is a leaf; even members are not, in the
        // first.
        std::map<std::pair<std::uint32_t, std::uint32_t>, std::size_t> half;
        for (std::uint32_t k = 0; k < rounds; ++k) {
            for (std::uint32_t member = 1; member < n; ++member) {
                const std::uint32_t to = tree.rule.step(plan, 0, member, k).to;
                if (to == nobody || half.contains({member, k % 2})) continue;
                const bool same = first_parent(member) == second_parent(member);
                const bool used_first = !half.contains({member, 1 - k % 2});
                const bool first =
                    same ? used_first == (member % 2 == 1) : to == first_parent(member);
                REQUIRE(to == (first ? first_parent(member) : second_parent(member)));
                half[{member, k % 2}] = first ? 0 : 1;
            }
        }
        REQUIRE(half.size() == 2 * (n - 1));

        std::vector<std::uint64_t> own(n);
        for (std::uint32_t member = 0; member < n; ++member)
            own[member] = std::uint64_t{1} << member;
        const std::uint64_t all = (std::uint64_t{1} << n) - 1;
        std::vector<std::vector<std::uint64_t>> data[2];  // by half, chunk, member
        for (auto& chunks : data) chunks.assign(plan.chunks, own);
        std::map<std::pair<std::uint32_t, std::size_t>, std::uint32_t> sent;  // by child and half
        for (std::uint32_t k = 0; k < 2 * rounds; ++k) {
            const bool up = k < rounds;
            const std::uint32_t parity = (up ? k : 2 * rounds - 1 - k) % 2;
            const auto before = std::to_array({data[0], data[1]});
            for (std::uint32_t member = 0; member < n; ++member) {
                const std::uint32_t to = tree.rule.step(plan, 0, member, k).to;
                if (to == nobody) continue;
                const std::uint32_t child = up ? member : to;
                const std::size_t in = half.at({child, parity});
                const std::uint32_t number = sent[{child, in}]++;
                const std::uint32_t chunk = up ? number : 2 * plan.chunks - 1 - number;
                const std::uint64_t message = before[in][chunk][member];
                std::uint64_t& mine = data[in][chunk][to];
                if (up) REQUIRE((mine & message) == 0);
                if (!up) REQUIRE(message == all);
                mine |= message;
            }
        }
        for (const auto& chunks : data) {
            for (const auto& members : chunks) {
                for (const std::uint64_t bits : members) REQUIRE(bits == all);
            }
        }
    }
}

TEST_CASE("A tree's closed form counts the longest chain for every number of members") {
    const Algorithm& tree = find("tree");
    for (std::uint32_t n = 2; n <= 530; n += n < 140 ? 1 : 13) {
        CAPTURE(n);
        for (const Bytes bytes : {1_B, 2_MiB, 6_MiB, 40_MiB}) {
            CAPTURE(bytes.value);
            const CollectiveCall call = call_of(CollectiveKind::all_reduce, n, bytes);
            REQUIRE(tree.alone(call, equal_hop(port_25)).count() ==
                    tree.closed_form(call, port_25).count());
        }
    }
}

TEST_CASE("A tree is nearly as fast as a ring on bandwidth and much faster on latency") {
    const auto time = [](std::string_view name, std::uint32_t n, Bytes bytes) {
        return to_seconds(
            find(name).closed_form(call_of(CollectiveKind::all_reduce, n, bytes), port_25));
    };
    CHECK(time("tree", 1'024, 64_KiB) < time("ring", 1'024, 64_KiB) / 20);
    const CollectiveCall large = call_of(CollectiveKind::all_reduce, 64, {std::int64_t{4} << 30});
    CHECK(time("tree", 64, large.bytes) < 1.25 * to_seconds(bandwidth_bound(large, port_25)));
}

TEST_CASE("Auto takes the ring for few members and much data, the tree for many and little") {
    const auto chosen = [](CollectiveKind kind, std::uint32_t n, Bytes bytes) {
        const auto hop = [](std::uint32_t, std::uint32_t, Bytes sent) {
            return Hop{sent / port_25.rate, port_25.latency};
        };
        return choose_algorithm(call_of(kind, n, bytes), hop).name;
    };
    CHECK(chosen(CollectiveKind::all_reduce, 8, 64_MiB) == "ring");
    CHECK(chosen(CollectiveKind::all_reduce, 1'024, 64_MiB) == "tree");
    CHECK(chosen(CollectiveKind::all_reduce, 64, 64_KiB) == "tree");
    CHECK(chosen(CollectiveKind::all_reduce, 1, 64_MiB) == "ring");
    CHECK(chosen(CollectiveKind::all_gather, 1'024, 64_KiB) == "ring");
    CHECK(chosen(CollectiveKind::all_to_all, 1'024, 64_KiB) == "direct");
}

// ---- Names and words

TEST_CASE("Bus factors are those of nccl-tests") {
    CHECK(bus_factor(CollectiveKind::all_reduce, 8) == doctest::Approx(1.75));
    CHECK(bus_factor(CollectiveKind::reduce_scatter, 8) == doctest::Approx(0.875));
    CHECK(bus_factor(CollectiveKind::all_gather, 8) == doctest::Approx(0.875));
    CHECK(bus_factor(CollectiveKind::all_to_all, 8) == doctest::Approx(0.875));
    CHECK(bus_factor(CollectiveKind::broadcast, 8) == doctest::Approx(1.0));
}

TEST_CASE("Algorithms and kinds are found by their names, and others get the closest one") {
    for (const Algorithm* algorithm : algorithms()) {
        CHECK(&find(algorithm->name) == algorithm);
        CHECK_FALSE(algorithm->summary.empty());
    }
    for (const CollectiveKind kind : all_kinds()) {
        CHECK(find_collective_kind(name_of(kind)) == kind);
    }
    CHECK(name_of(CollectiveKind::broadcast) == "broadcast");
    CHECK(find_algorithm("rign").error().what == "unknown algorithm 'rign'; did you mean 'ring'?");
    CHECK(find_algorithm("hypercube").error().what ==
          "unknown algorithm 'hypercube'; known: ring, tree, direct, central, halving_doubling, "
          "hierarchical, pairwise, bruck");
    CHECK(find_algorithm("pairwize").error().what ==
          "unknown algorithm 'pairwize'; did you mean 'pairwise'?");
    CHECK(find_collective_kind("allreduce").error().what ==
          "unknown collective 'allreduce'; did you mean 'all_reduce'?");
}

TEST_CASE("A call that an algorithm does not do is refused with the reason") {
    const auto refusal = [](std::string_view name, CollectiveKind kind, std::uint32_t members) {
        return find(name).refuse(call_of(kind, members, 1_MiB));
    };
    CHECK(refusal("tree", CollectiveKind::all_gather, 8) ==
          "tree does all_reduce and broadcast, in which all members get the same; where each gets "
          "its own part, ring and direct send fewer bytes");
    CHECK(refusal("halving_doubling", CollectiveKind::all_gather, 6) ==
          "halving_doubling does reduce_scatter and all_gather of 2, 4, 8, ... members, not of 6");
    CHECK(refusal("halving_doubling", CollectiveKind::broadcast, 8) ==
          "halving_doubling does all_reduce, reduce_scatter and all_gather, not broadcast");
    CHECK(refusal("hierarchical", CollectiveKind::all_to_all, 8) ==
          "hierarchical does all_reduce, reduce_scatter and all_gather, not all_to_all");
    CHECK(refusal("hierarchical", CollectiveKind::all_reduce, 8) ==
          "hierarchical needs several members in every node, and as many in each");
    CHECK(find("hierarchical").refuse({.members = 8, .per_node = 3}) ==
          "hierarchical needs several members in every node, and as many in each");
    CHECK(refusal("pairwise", CollectiveKind::all_reduce, 8) ==
          "pairwise does all_to_all and reduce_scatter, in which every member has a block for "
          "every other, not all_reduce");
    CHECK(refusal("bruck", CollectiveKind::all_reduce, 8) ==
          "bruck does all_to_all and all_gather, not all_reduce");
    for (const Algorithm* algorithm : algorithms()) {
        CHECK(algorithm->refuse({.members = 0}) == "a collective needs at least 1 member");
        CHECK(algorithm->refuse({.members = 8, .root = 8}) ==
              "root 8 is none of the 8 members, which count from 0");
        CHECK(algorithm->refuse({.members = 8, .bytes = {-1}}) == "-1 bytes are less than nothing");
        CHECK(std::ranges::any_of(all_kinds(), [&](CollectiveKind kind) {
            return !algorithm->refuse(call_of(kind, 1, 0_B));
        }));
    }
}

}  // namespace fourfold
