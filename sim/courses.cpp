#include "sim/courses.hpp"

#include "sim/simulate.hpp"
#include "topology/check.hpp"

namespace fourfold {
namespace {

// The start-up time is over when the steps begin.
Program one_call(Transfer transfer, const Team& team, const std::vector<Duration>& begins) {
    ProgramDraft draft;
    transfer.team = draft.add_team(team);
    transfer.start = Duration::zero();
    const CollectiveId call = draft.add_collective(draft.add_transfer(std::move(transfer)));
    for (std::uint32_t member = 0; member < begins.size(); ++member) {
        const StreamId stream = draft.add_stream(team.members[member], 0);
        if (begins[member] > Duration::zero()) draft.compute(stream, begins[member]);
        draft.part(stream, call, member);
    }
    Result<Program> program = seal(std::move(draft));
    FOURFOLD_CHECK(program.has_value());
    return std::move(*program);
}

Course simulate_course(const Graph& graph, const Program& program) {
    const Result<Timeline> timeline =
        simulate(graph, program, {.links = LinkModel::messages, .each_message = true});
    Course course;
    course.in_range = timeline.has_value();
    if (!course.in_range) return course;
    for (const TaskId part : program.parts(CollectiveId{0})) {
        course.ends.push_back(timeline->end[part].time_since_epoch());
    }
    for (const LinkId link : timeline->carried.keys()) {
        const Course::Load load{link, timeline->carried[link], timeline->busy[link]};
        if (load.bytes > Bytes{}) course.loads.push_back(load);
    }
    course.messages = timeline->messages;
    return course;
}

}  // namespace

const Course& Courses::course(TransferId id, const std::vector<Duration>& begins) {
    Known& known = known_[id];
    ++known.asked;
    const auto found = known.courses.find(begins);
    if (found != known.courses.end()) return found->second;
    const Transfer& transfer = program_->transfers()[id];
    const Program program = one_call(transfer, program_->teams()[transfer.team], begins);
    return known.courses.emplace(begins, simulate_course(*graph_, program)).first->second;
}

}  // namespace fourfold
