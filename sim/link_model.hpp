#pragma once

// What simulate() and the two link models share. A model is a class with
//   start(send)     the send's stream has reached it
//   join(part)      a member has arrived at a collective
//   on_event(event) one of the model's own events is due
//   settle()        the instant's arrivals are all known: share links, serve queues
//   start(background)  its next message begins
//   stop()          the run is over
// It writes the tasks that are done to `done`; simulate() then frees what waited for them.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "sim/event_queue.hpp"
#include "sim/program.hpp"
#include "sim/simulate.hpp"
#include "sim/timeline.hpp"
#include "topology/graph.hpp"

namespace fourfold {

enum EventKind : std::uint32_t {
    compute_end,       // subject: task
    arrival,           // subject: receive
    activity_end,      // fluid; subject: activity
    hop,               // messages; subject: message (in turns: piece), its head at the next link
    delivery,          // messages; subject: message in flight
    send_start,        // messages; subject: send, its software overhead is over
    send_end,          // messages; subject: send, its last byte has passed the first link
    part_start,        // messages; subject: part, its start-up time is over
    part_end,          // messages; subject: part
    background_start,  // subject: background
    background_ready,  // messages; subject: passage
    background_left,   // messages; subject: passage, its last byte has passed the first link
    link_change,       // fluid; subject: one of the options' changes
    link_free,         // messages in turns; subject: link that others wait for
};

struct Run {
    const Graph& graph;
    const Program& program;
    EventQueue& queue;
    Timeline& timeline;
    std::vector<TaskId>& done;
    const SimulateOptions& options;
    bool out_of_range = false;
    std::string cut_off = {};           // who has no route any more
    bool disturbed = false;             // a call that was taken as undisturbed
    std::size_t background_events = 0;  // pending ones, that alone keep no run going

    /// now + delay, or now with `out_of_range` set if that is beyond what time can hold.
    [[nodiscard]] Time after(Duration delay) {
        const Time now = queue.now();
        if (delay >= duration_limit - now.time_since_epoch()) {
            out_of_range = true;
            return now;
        }
        return now + delay;
    }

    /// The message after the one that began at `begun` and has left.
    void follow(BackgroundId id, Time begun) {
        const Duration every = program.background()[id].every;
        if (every == Duration::zero()) return;
        const Duration wait = std::max(Duration::zero(), begun + every - queue.now());
        queue.push(after(wait), {background_start, id.value});
        ++background_events;
    }
};

}  // namespace fourfold
