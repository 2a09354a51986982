#pragma once

// The message-by-message link model. Each directed link serves whole messages, first come first
// served. Cut-through: a message occupies a link for bytes / rate from when its head gets there,
// and the head goes on `latency` later; the tail is never ahead of what the links before it let
// through. Heads that reach a link in the same instant are served by (source device, task, channel,
// step), so that no result depends on the order of events. With a quantum, links serve the messages
// that wait for them in turns instead (link_turns.hpp).
//
// A link that fails finishes what it has begun to serve. What waits for it then, or comes later,
// goes on from where it is by a shortest path of what is left.
//
// A collective is worked through member by member, each its own list of steps (sim/steps.hpp).
// Steps that a member can send at once, over the same first link, are a train: that link is theirs
// one after the other, and a message comes to be when the one before it gets to its second link. So
// an all-to-all needs memory for what is under way between links, not for all pairs.
//
// A call that nobody can disturb (sim/quiet_teams.hpp) is held until all its members have begun, of
// whom none can be done before. Then all of it is known: it goes as one that began alike went
// (sim/courses.hpp). If somebody else does send through its ports before all its members are done,
// the run is void.

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "sim/courses.hpp"
#include "sim/link_model.hpp"
#include "sim/link_turns.hpp"
#include "sim/quiet_teams.hpp"
#include "sim/team_paths.hpp"

namespace fourfold {

class MessageLinks {
  public:
    explicit MessageLinks(Run& run);

    void start(TaskId send);
    void start(BackgroundId id);
    void join(TaskId part);
    void on_event(Event event);
    void settle();
    void stop() {}

  private:
    struct Order {
        DeviceId source;
        TaskId task;  // a send or a part; of the background none, the channel tells which
        std::uint32_t channel = 0, step = 0;
        friend auto operator<=>(const Order&, const Order&) = default;
    };
    struct Message {
        Order order;
        const LinkId* next;  // the link that its head is at, or on its way to
        const LinkId* end;   // of the path
        Bytes bytes;
        double stretch;
        Time tail;       // when its last byte has passed the links so far
        bool at_source;  // its head is at the first link
        std::uint8_t inbox;
        std::uint32_t following = 0;  // of its train, that have their places on the first link
        CollectiveId collective;      // of a part's messages
        std::uint32_t from, to;       // members; from nobody: a send, or the passage `to`
        [[nodiscard]] bool is_background() const {
            return from == Step::nobody && to != Step::nobody;
        }
    };
    struct Lane {  // one member's list in one channel
        std::uint32_t next = 0;
        std::uint32_t steps = 0;
        std::uint32_t inbox[2] = {0, 0};
        std::uint32_t awaited = 0;  // rendezvous: halves of the round it is in that are not done
    };
    struct Member {
        TaskId part;
        std::uint32_t open_lanes = 0;
        std::uint32_t incoming = 0;  // messages still to come
        std::uint32_t unserved = 0;  // sends that the first link has not begun to serve
        Time sending_until{};
        bool here = false;
    };
    struct Call {                 // a collective under way
        std::vector<Lane> lanes;  // member * channels + channel
        std::vector<Member> members;
        std::uint32_t open = 0;  // members that are not done
        bool held = false;
        std::uint32_t begun = 0;  // of a held call, as what follows
        Time first{};
        std::vector<Duration> begins;  // of members, after the first
    };

    [[nodiscard]] const Transfer& transfer(CollectiveId id) const {
        return run_.program.transfer_of(id);
    }
    Call& call(CollectiveId id) { return calls_[call_of_[id]]; }
    Lane& lane(CollectiveId id, std::uint32_t member, std::uint32_t channel) {
        return call(id).lanes[member * transfer(id).plan.channels + channel];
    }

    void open_call(CollectiveId id);
    void close_member(TaskId part);
    void begin_steps(TaskId part);
    [[nodiscard]] bool can_hold(CollectiveId id) const;
    void hold(CollectiveId id, std::uint32_t member);
    void release(CollectiveId id);
    void run_eager(CollectiveId id, std::uint32_t member, std::uint32_t channel);
    void enter_rounds(CollectiveId id, std::uint32_t member, std::uint32_t channel);
    void half_done(CollectiveId id, std::uint32_t member, std::uint32_t channel);
    void send_step(CollectiveId id, std::uint32_t channel, std::uint32_t member, const Step& step,
                   std::uint32_t k);
    void maybe_end(CollectiveId id, std::uint32_t member);

    std::uint32_t free_slot();
    std::span<const LinkId> keep(std::uint32_t slot, std::span<const LinkId> path);
    void inject(std::uint32_t slot, const Message& message);
    bool couple(const Order& order, const Step& step, LinkId first);
    void send_following(std::uint32_t slot);
    void inject_background(std::uint32_t passage);
    bool heads_meet();
    void serve(std::uint32_t slot);
    bool take_link(std::uint32_t slot);
    void serve_in_turns();
    void leave_source(const Message& message, Time at);
    void deliver(std::uint32_t slot);
    Duration time_on(LinkId link, Bytes bytes);
    void count(LinkId link, Bytes bytes, std::uint32_t messages = 1);
    void push(Time at, EventKind kind, std::uint32_t slot);
    void arrive(std::uint32_t passage);

    Run& run_;
    LinkChanges changes_;
    struct Port {  // of each link
        Time free_at{};
        std::uint64_t settled = 0;  // when a head was there last, of `settled_`
        Bytes bytes{};              // of the message before, and what they take: few differ
        Duration time{};
    };
    IdVector<LinkId, Port> ports_;
    std::uint64_t settled_ = 0;  // how often
    IdVector<CollectiveId, std::uint32_t> call_of_;
    IdVector<TaskId, std::uint32_t> member_of_;  // of parts
    struct Quiet {
        QuietTeams teams;
        Courses courses;
        IdVector<LinkId, std::uint32_t> open;  // calls that send through each port
        IdVector<LinkId, Time> held_until;     // by a call that has begun
    };
    std::optional<Quiet> quiet_;  // where calls are held
    std::vector<Call> calls_;
    std::vector<std::uint32_t> free_calls_;
    std::vector<Message> messages_;
    std::vector<std::uint32_t> free_messages_;
    TeamPaths paths_;
    std::vector<std::vector<LinkId>> kept_paths_;  // of messages whose team keeps none
    // Around failed links, by how many have failed
    std::map<std::tuple<std::size_t, VertexId, VertexId>, std::vector<LinkId>> detours_;
    std::vector<std::uint32_t> heads_;  // messages (in turns: pieces) at a link in this instant
    std::optional<LinkTurns> turns_;    // with a quantum
};

}  // namespace fourfold
