#pragma once

// The fluid link model. Every transfer, a message or a whole collective, is an activity with an
// uncontended time T and a number of bytes on each link that it uses. Work is T * 2^48, done at x
// per picosecond; alone x is exactly 2^48 and the activity ends exactly at T. Where links are
// shared, max_min.hpp gives x. A call that is stretched has more work at the same speed.

#include <cstdint>
#include <vector>

#include "sim/link_model.hpp"
#include "sim/max_min.hpp"

namespace fourfold {

class FlowLinks {
  public:
    explicit FlowLinks(Run& run);

    void start(TaskId send);
    void start(BackgroundId id);
    void join(TaskId part);
    void on_event(Event event);
    void settle();
    void stop();

  private:
    /// Of a large graph a folded step uses few links: `shares_` knows them by numbers of their own.
    class UsedLinks {
      public:
        explicit UsedLinks(const Run& run);
        [[nodiscard]] bool is_used(LinkId link) const { return numbers_[link] != unused; }
        [[nodiscard]] LinkId number(LinkId link) const { return numbers_[link]; }
        [[nodiscard]] const IdVector<LinkId, BytesPerSecond>& rates() const { return rates_; }

      private:
        static constexpr LinkId unused{~std::uint32_t{0}};
        IdVector<LinkId, LinkId> numbers_;
        IdVector<LinkId, BytesPerSecond> rates_;
    };

    __extension__ using Wide = __int128;

    struct Activity {
        TransferId transfer;
        std::uint32_t subject;  // a send's task, a collective, or a passage
        double stretch;
        Wide remaining;
        std::int64_t speed;
        Time updated;
        Time looked_at;  // when `look` fires: at its end or before, never after
        EventQueue::Handle look;
        bool is_background = false;

        void work_until(Time now) {
            remaining -= Wide{(now - updated).count()} * speed;
            updated = now;
        }
    };
    struct LinkState {
        std::uint32_t carrying = 0;
        Time since{};
    };

    ActivityId begin(TransferId transfer, std::uint32_t subject, double stretch);
    void leave(const Activity& activity);
    void end(ActivityId id);
    void set_speed(ActivityId id, std::int64_t speed);
    void look_at_end(ActivityId id);
    void note_rate(const Activity& activity, std::int64_t speed);

    Run& run_;
    UsedLinks used_;
    MaxMin shares_;
    IdVector<TransferId, ActivityKindId> kinds_;
    IdVector<LinkId, LinkState> links_;
    IdVector<CollectiveId, std::uint32_t> arrived_;
    IdVector<ActivityId, Activity> activities_;
};

}  // namespace fourfold
