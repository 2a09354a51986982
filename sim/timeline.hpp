#pragma once

// What happened. A task's begin is when it was ready (of a part: the member's arrival); its end is
// when what it does is done (of a send: its transfer was served; of a receive: the message is
// here).

#include <cstdint>
#include <string>
#include <vector>

#include "sim/program.hpp"
#include "topology/ids.hpp"
#include "topology/units.hpp"

namespace fourfold {

struct Timeline {
    IdVector<TaskId, Time> begin, end;
    /// When the first byte of a collective moved: the last member's arrival in the fluid model, the
    /// first one's message by message.
    IdVector<CollectiveId, Time> started;
    Time finish{};
    /// Per link: bytes carried, and the time during which it carried any.
    IdVector<LinkId, Bytes> carried;
    IdVector<LinkId, Duration> busy;
    std::uint64_t events = 0;
    std::uint64_t messages = 0;  // whole messages, those inside collectives included

    /// A message of the background. Its bytes are among those carried once it has arrived.
    struct Passage {
        BackgroundId background;
        Time begin;
        Time end = Time::max();  // its arrival; max: the run was over before
    };
    std::vector<Passage> passages;

    /// Fluid model, where asked for: every change of an activity's speed (2^48: full; 0: over).
    struct Rate {
        Time at;
        TransferId transfer;
        std::uint32_t subject;  // a send's task or a collective
        std::int64_t speed;
    };
    bool records_rates = false;
    std::vector<Rate> rates;
};

/// One line per task, by begin, then id: "0 us .. 2 us  device 0  compute". For tests and eyes.
std::string to_text(const Timeline& timeline, const Program& program);

}  // namespace fourfold
