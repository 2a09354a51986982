#include "sim/timeline.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace fourfold {

std::string to_text(const Timeline& timeline, const Program& program) {
    static constexpr std::string_view names[] = {"compute", "send", "receive", "part"};
    std::vector<TaskId> order;
    for (const TaskId task : timeline.begin.keys()) order.push_back(task);
    std::stable_sort(order.begin(), order.end(),
                     [&](TaskId a, TaskId b) { return timeline.begin[a] < timeline.begin[b]; });
    std::string text;
    for (const TaskId task : order) {
        text += fmt::format(
            "{} .. {}  device {}  {}\n", to_text(timeline.begin[task].time_since_epoch()),
            to_text(timeline.end[task].time_since_epoch()), program.device(task).value,
            names[static_cast<std::size_t>(program.kind(task))]);
    }
    return text;
}

}  // namespace fourfold
