#include "sim/audit.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "sim/team_paths.hpp"

namespace fourfold {
namespace {

class Auditor {
  public:
    Auditor(const Graph& graph, const Program& program, const Timeline& timeline,
            const SimulateOptions& options)
        : graph_(graph),
          program_(program),
          timeline_(timeline),
          links_(options.links),
          changes_(options.changes),
          reroutes_(std::ranges::any_of(
              changes_, [](const LinkChange& each) { return each.bandwidth == 0; })) {}

    std::vector<std::string> run() {
        for (const TaskId task : timeline_.begin.keys()) check_task(task);
        check_streams();
        for (const CollectiveId id : program_.collectives().keys()) check_collective(id);
        check_background();
        if (links_ == LinkModel::flows) check_rates();
        check_bytes();
        return std::move(faults_);
    }

  private:
    template <class... Args>
    void expect(bool holds, fmt::format_string<Args...> format, Args&&... args) {
        if (holds || faults_.size() >= 20) return;
        faults_.push_back(fmt::format(format, std::forward<Args>(args)...));
    }

    static std::int64_t ps(Time time) { return time.time_since_epoch().count(); }
    [[nodiscard]] Duration span(TaskId task) const {
        return timeline_.end[task] - timeline_.begin[task];
    }

    // What rounding may take off so many parts of a call that is stretched, each a whole number.
    static Duration slack(double stretch, std::size_t parts) {
        return Duration(stretch == 1 ? 0 : static_cast<std::int64_t>(parts));
    }

    void check_task(TaskId task) {
        const Time begin = timeline_.begin[task], end = timeline_.end[task];
        expect(begin <= end, "task {} ends before it begins", task.value);
        expect(end <= timeline_.finish, "task {} ends after the finish", task.value);
        Time ready{};
        for (const TaskId dependency : program_.dependencies(task)) {
            ready = std::max(ready, timeline_.end[dependency]);
        }
        switch (program_.kind(task)) {
            case TaskKind::compute:
                expect(begin == ready, "compute {} begins at {} ps, ready at {} ps", task.value,
                       ps(begin), ps(ready));
                expect(span(task) == program_.duration(task), "compute {} takes {} instead of {}",
                       task.value, span(task).count(), program_.duration(task).count());
                break;
            case TaskKind::send: {
                const Transfer& sent = program_.transfers()[program_.transfer(task)];
                expect(begin == ready, "send {} begins at {} ps, ready at {} ps", task.value,
                       ps(begin), ps(ready));
                expect(links_ == LinkModel::messages ||
                           span(task) >= stretched(sent.alone, program_.stretch(task)),
                       "send {} takes {} ps, less than alone", task.value, span(task).count());
                break;
            }
            case TaskKind::receive: {
                const TaskId send = program_.partner(task);
                const Transfer& sent = program_.transfers()[program_.transfer(send)];
                expect(end >= ready, "receive {} ends before its stream lets it", task.value);
                const double stretch = program_.stretch(send);
                const Duration alone =
                    stretched(sent.alone, stretch) + stretched(sent.latency, stretch);
                // Message by message, each link's part is rounded.
                const Duration rounding = slack(stretch, sent.path.size() + 2);
                expect(reroutes_ || end - timeline_.begin[send] >= alone - rounding,
                       "message {} arrives {} ps after its send began, faster than alone",
                       task.value, (end - timeline_.begin[send]).count());
                break;
            }
            case TaskKind::part:
                expect(begin == ready, "part {} begins at {} ps, ready at {} ps", task.value,
                       ps(begin), ps(ready));
                break;
        }
    }

    // Streams are in order, whatever the dependencies say. (A receive's begin is only when its
    // first byte could be there.)
    void check_streams() {
        IdVector<StreamId, Time> free_at(program_.streams().size());
        for (const TaskId task : timeline_.begin.keys()) {
            Time& free = free_at[program_.stream(task)];
            const bool receives = program_.kind(task) == TaskKind::receive;
            expect((receives ? timeline_.end[task] : timeline_.begin[task]) >= free,
                   "task {} overtakes the one before it in its stream", task.value);
            free = std::max(free, timeline_.end[task]);
        }
    }

    void check_collective(CollectiveId id) {
        Time first = Time::max(), last{}, end{};
        for (const TaskId part : program_.parts(id)) {
            first = std::min(first, timeline_.begin[part]);
            last = std::max(last, timeline_.begin[part]);
            end = std::max(end, timeline_.end[part]);
        }
        const Transfer& about = program_.transfer_of(id);
        if (links_ == LinkModel::messages) {
            expect(timeline_.started[id] == first, "collective {} starts without a member",
                   id.value);
            return;
        }
        expect(timeline_.started[id] == last, "collective {} starts before its last member",
               id.value);
        expect(end - last >= stretched(about.alone, program_.stretch(id)),
               "collective {} takes {} ps, less than alone", id.value, (end - last).count());
        for (const TaskId part : program_.parts(id)) {
            expect(timeline_.end[part] == end, "parts of collective {} end apart", id.value);
        }
    }

    // One message after the other, none faster than alone.
    void check_background() {
        IdVector<BackgroundId, Time> free_at;
        for (const Background& background : program_.background()) {
            free_at.push_back(background.at);
        }
        for (const Timeline::Passage& passage : timeline_.passages) {
            const Background& background = program_.background()[passage.background];
            const Transfer& sent = program_.transfers()[background.transfer];
            const Duration alone = links_ == LinkModel::flows ? sent.alone : time_on_path(sent);
            Time& free = free_at[passage.background];
            expect(passage.begin >= free, "background {} begins at {} ps instead of {} ps",
                   passage.background.value, ps(passage.begin), ps(free));
            expect(passage.end - passage.begin >= alone + sent.latency,
                   "a message of background {} is faster than alone", passage.background.value);
            free = passage.begin + background.every;
        }
    }

    [[nodiscard]] Duration time_on_path(const Transfer& sent) const {
        Duration longest{};
        for (const LinkId link : sent.path) {
            longest = std::max(longest, sent.bytes / graph_[link].rate);
        }
        return longest;
    }

    [[nodiscard]] bool is_background(TransferId id) const {
        return std::ranges::any_of(program_.background(), [id](const Background& background) {
            return background.transfer == id;
        });
    }

    // Replays the recorded speeds: no link is ever above its rate, and each activity does exactly
    // its work, T * 2^48.
    void check_rates() {
        struct Activity {
            long double speed = 0;
            long double work = 0;
            Time since{};
        };
        std::map<std::pair<std::uint32_t, std::uint32_t>, Activity> running;
        IdVector<LinkId, long double> load(graph_.links().size(), 0.0L);
        std::vector<LinkId> touched;
        constexpr long double full = 281474976710656.0L;  // 2^48
        for (std::size_t i = 0; i < timeline_.rates.size(); ++i) {
            const Timeline::Rate& rate = timeline_.rates[i];
            const Transfer& about = program_.transfers()[rate.transfer];
            const auto alone = static_cast<long double>(about.alone.count());
            const double stretch = about.is_collective
                                       ? program_.stretch(CollectiveId{rate.subject})
                                       : program_.stretch(TaskId{rate.subject});
            const auto work = static_cast<long double>(stretched(about.alone, stretch).count());
            const std::pair key{rate.transfer.value, rate.subject};
            Activity& activity = running[key];
            activity.work +=
                activity.speed * static_cast<long double>((rate.at - activity.since).count());
            activity.since = rate.at;
            const long double change =
                (static_cast<long double>(rate.speed) - activity.speed) / full;
            activity.speed = static_cast<long double>(rate.speed);
            for (const LinkUse& use : about.uses) {
                const Bytes bytes = use.bytes * use.copies;
                load[use.link] += change * static_cast<long double>(bytes.value) / alone;
                touched.push_back(use.link);
            }
            if (rate.speed == 0) {
                expect(activity.work >= work * full * (1 - 1e-15L) &&
                           activity.work <= (work + 1) * full * (1 + 1e-15L),
                       "a transfer ends having done {} of its work",
                       static_cast<double>(activity.work / (work * full)));
                running.erase(key);
            }
            const bool instant_over =
                i + 1 == timeline_.rates.size() || timeline_.rates[i + 1].at != rate.at;
            if (!instant_over) continue;
            for (const LinkId link : touched) {
                const long double rate_per_ps = rate_at(link, rate.at);
                expect(load[link] <= rate_per_ps * (1 + 1e-9L), "link {} carries {} of its rate",
                       link.value, static_cast<double>(load[link] / rate_per_ps));
            }
            touched.clear();
        }
        std::erase_if(running,
                      [this](const auto& entry) { return is_background({entry.first.first}); });
        expect(running.empty(), "{} transfers never end", running.size());
    }

    [[nodiscard]] long double rate_at(LinkId link, Time at) const {
        auto rate = static_cast<long double>(graph_[link].rate.value);
        for (const LinkChange& change : changes_) {
            if (change.link != link || change.at > at) continue;
            rate = std::max(1.0L, std::floor(rate * change.bandwidth));
        }
        return rate * 1e-12L;
    }

    // Where messages leave failed links, only what enters and leaves each vertex is known.
    void check_vertices(const IdVector<LinkId, Bytes>& expected) {
        std::vector<std::int64_t> kept(graph_.vertices().size(), 0);
        for (const LinkId link : expected.keys()) {
            const std::int64_t more = timeline_.carried[link].value - expected[link].value;
            kept[graph_[link].from.value] -= more;
            kept[graph_[link].to.value] += more;
        }
        for (const VertexId vertex : ids<VertexId>(kept.size())) {
            expect(kept[vertex.value] == 0, "{} keeps {} B too many", graph_[vertex].name,
                   kept[vertex.value]);
        }
    }

    void check_bytes() {
        IdVector<LinkId, Bytes> carried(graph_.links().size());
        const auto add = [&](LinkId link, Bytes bytes, double stretch) {
            carried[link] += bytes;
            work_[link] += static_cast<long double>(bytes.value) * stretch;
        };
        const auto add_fluid = [&](const Transfer& about, double stretch) {
            for (const LinkUse& use : about.uses) add(use.link, use.bytes * use.copies, stretch);
        };
        const auto add_message = [&](const Transfer& sent, double stretch) {
            if (links_ == LinkModel::flows) {
                add_fluid(sent, stretch);
            } else {
                for (const LinkId link : sent.path) add(link, sent.bytes, stretch);
            }
        };
        for (const TaskId task : timeline_.begin.keys()) {
            if (program_.kind(task) != TaskKind::send) continue;
            add_message(program_.transfers()[program_.transfer(task)], program_.stretch(task));
        }
        for (const Timeline::Passage& passage : timeline_.passages) {
            if (passage.end == Time::max()) continue;
            const Background& background = program_.background()[passage.background];
            add_message(program_.transfers()[background.transfer], 1);
        }
        for (const CollectiveId id : program_.collectives().keys()) {
            const Transfer& about = program_.transfer_of(id);
            if (links_ == LinkModel::flows) {
                add_fluid(about, program_.stretch(id));
            } else {
                add_steps(id, carried);
            }
        }
        if (reroutes_) return check_vertices(carried);
        for (const LinkId link : carried.keys()) {
            expect(carried[link] == timeline_.carried[link], "link {} carried {} B instead of {} B",
                   link.value, timeline_.carried[link].value, carried[link].value);
            expect(timeline_.busy[link] <= timeline_.finish.time_since_epoch(),
                   "link {} is busy for longer than the run", link.value);
            const long double time =
                static_cast<long double>(timeline_.finish.time_since_epoch().count() + 1);
            const long double rate = static_cast<long double>(graph_[link].rate.value) * 1e-12L;
            expect(work_[link] <= rate * time * (1 + 1e-9L), "link {} carried more than it can",
                   link.value);
        }
    }

    // A part cannot be over before the bytes of its own messages have left on each link.
    void add_steps(CollectiveId id, IdVector<LinkId, Bytes>& carried) {
        const Transfer& about = program_.transfer_of(id);
        const Team& team = program_.teams()[about.team];
        const double stretch = program_.stretch(id);
        for (std::uint32_t member = 0; member < team.members.size(); ++member) {
            std::map<LinkId, Bytes> leaving;
            std::size_t messages = 0;
            for (std::uint32_t channel = 0; channel < about.plan.channels; ++channel) {
                const std::uint32_t steps = about.rule->count(about.plan, channel, member);
                for (std::uint32_t k = 0; k < steps; ++k) {
                    const Step step = about.rule->step(about.plan, channel, member, k);
                    if (step.to == Step::nobody) continue;
                    const std::span<const LinkId> path = paths_.between(team, member, step.to);
                    leaving[path.front()] += step.bytes;
                    ++messages;
                    for (const LinkId link : path) {
                        carried[link] += step.bytes;
                        work_[link] += static_cast<long double>(step.bytes.value) * stretch;
                    }
                }
            }
            const TaskId part = program_.parts(id)[member];
            for (const auto& [link, bytes] : leaving) {
                const Duration time = stretched(bytes / graph_[link].rate, stretch);
                expect(reroutes_ || span(part) >= time - slack(stretch, messages),
                       "part {} takes {} ps, its messages alone {} ps", part.value,
                       span(part).count(), time.count());
            }
        }
    }

    const Graph& graph_;
    const Program& program_;
    const Timeline& timeline_;
    LinkModel links_;
    std::span<const LinkChange> changes_;
    bool reroutes_;  // messages may take other paths than their own
    IdVector<LinkId, long double> work_{graph_.links().size(), 0.0L};  // bytes, as if not stretched
    TeamPaths paths_{graph_};
    std::vector<std::string> faults_;
};

}  // namespace

std::vector<std::string> audit(const Graph& graph, const Program& program, const Timeline& timeline,
                               const SimulateOptions& options) {
    return Auditor(graph, program, timeline, options).run();
}

}  // namespace fourfold
