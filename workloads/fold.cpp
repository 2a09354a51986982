#include "workloads/fold.hpp"

// Let P be the number of devices in the axes up to one of the order. If P divides a block of the
// graph or the block divides P, then all groups of the next axis meet the blocks in the same
// pattern:
//
//      block  [ . . . . ][ . . . . ]        [ . . ][ . . ][ . . ]
//      P      [ . . ][ . . ]                [ . . . . ][ . . . . ]
//
// Then any exchange of coordinates of one axis that keeps blocks together maps the machine and the
// step onto themselves. Where some devices are odd, or coordinates have roles, those are left that
// keep them in place: coordinates are alike that have the same role in a block that holds the same
// roles, which is in a larger block that holds the same, and so on. Where P and a block do not
// divide each other, before an axis or after it, all of its coordinates are told apart.

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "workloads/numbers.hpp"

namespace fourfold {
namespace {

// About 80 bytes each: a program of this size takes some 16 GB.
constexpr double tasks_max = 2e8;

struct AxisClasses {
    std::vector<std::int64_t> first;   // coordinate, in order
    std::vector<std::int64_t> counts;  // of the class
    std::vector<std::int64_t> of;      // each coordinate: the first of its class
};

// `blocks`: in coordinates of this axis, inner ones first.
AxisClasses classes_of(std::vector<std::uint32_t> roles, const std::vector<std::int64_t>& blocks) {
    for (const std::int64_t block : blocks) {
        Numbers<std::vector<std::uint32_t>> contents;
        Numbers<std::pair<std::uint32_t, std::uint32_t>> finer;
        for (auto begin = roles.begin(); begin != roles.end();) {
            const auto end = begin + std::min<std::ptrdiff_t>(block, roles.end() - begin);
            std::vector<std::uint32_t> held(begin, end);
            std::ranges::sort(held);
            const std::uint32_t content = contents.of(std::move(held));
            for (; begin != end; ++begin) *begin = finer.of({*begin, content});
        }
    }
    AxisClasses classes;
    std::map<std::uint32_t, std::size_t> known;
    for (std::size_t at = 0; at < roles.size(); ++at) {
        const auto [entry, is_new] = known.try_emplace(roles[at], classes.first.size());
        if (is_new) {
            classes.first.push_back(static_cast<std::int64_t>(at));
            classes.counts.push_back(0);
        }
        ++classes.counts[entry->second];
        classes.of.push_back(classes.first[entry->second]);
    }
    return classes;
}

// On several rails: positions in a node that the axis shares with others outside of it.
void tell_apart(std::vector<std::uint32_t>& roles, std::int64_t rails) {
    Numbers<std::pair<std::uint32_t, std::uint32_t>> finer;
    for (std::size_t at = 0; at < roles.size(); ++at) {
        const auto rail = static_cast<std::uint32_t>(at % static_cast<std::size_t>(rails));
        roles[at] = finer.of({roles[at], rail});
    }
}

std::vector<Seat> odd_seats(const TrainingStep& step, const Graph& graph) {
    const Placement placement(step.split);
    std::vector<Seat> seats;
    const auto add = [&](DeviceId device) {
        if (device.value < placement.devices()) seats.push_back(placement.seat(device));
    };
    for (const SlowDevice& slow : step.slow_devices) add({slow.device});
    for (const DeviceId device : graph.odd()) add(device);
    return seats;
}

bool aligned(std::int64_t product, const Graph& graph) {
    return std::ranges::all_of(graph.blocks(), [&](std::int64_t block) {
        return product % block == 0 || block % product == 0;
    });
}

}  // namespace

DeviceId Fold::representative(DeviceId device) const {
    Seat seat = placement.seat(device);
    for (const SplitAxis axis :
         {SplitAxis::tensor, SplitAxis::context, SplitAxis::pipeline, SplitAxis::data}) {
        const std::vector<std::int64_t>& other = stands_for[static_cast<std::size_t>(axis)];
        seat[axis] = other[static_cast<std::size_t>(seat[axis])];
    }
    return placement.device(seat);
}

std::int64_t Fold::count(DeviceId device) const {
    const auto place = std::ranges::lower_bound(devices, device);
    if (place == devices.end() || *place != device) return 0;
    return counts[static_cast<std::size_t>(place - devices.begin())];
}

std::int64_t Fold::count(std::size_t level, std::uint32_t section) const {
    const auto found = sections[level].find(section);
    return found == sections[level].end() ? 0 : found->second;
}

bool Fold::holds(std::size_t level, std::uint32_t block) const {
    const auto found = sections[level].lower_bound(block * rails);
    return found != sections[level].end() && found->first / rails == block;
}

std::optional<Fold> fold_of(const TrainingStep& step, const Graph& graph, const Roles& roles) {
    const bool shares_links = !step.background.empty() || !step.devices.empty();
    if (graph.blocks().empty() || shares_links || step.jitter.any()) return std::nullopt;
    const std::vector<Seat> odd = odd_seats(step, graph);
    Fold fold{.devices = {},
              .counts = {},
              .placement = Placement(step.split),
              .stands_for = {},
              .sections = {},
              .rails = graph.rails()};
    std::vector<std::pair<Seat, std::int64_t>> chosen{{Seat{}, 1}};
    std::int64_t stride = 1;
    bool all_fit = true;
    for (const SplitAxis axis : step.split.order) {
        const std::int64_t size = step.split.size(axis);
        std::vector<std::int64_t> blocks;
        for (const std::int64_t block : graph.blocks()) {
            if (block > stride) blocks.push_back(block / stride);
        }
        std::ranges::sort(blocks);
        std::vector<std::uint32_t> own = roles[static_cast<std::size_t>(axis)];
        own.resize(static_cast<std::size_t>(size));
        if (stride < graph.rails() && stride * size > graph.rails()) {
            tell_apart(own, graph.rails() / stride);
        }
        const bool fits = aligned(stride, graph) && aligned(stride * size, graph);
        if (axis == SplitAxis::pipeline || !fits) std::iota(own.begin(), own.end(), 0U);
        all_fit = all_fit && fits;
        auto alone = static_cast<std::uint32_t>(size);
        for (Seat seat : odd) own[static_cast<std::size_t>(seat[axis])] = alone++;
        AxisClasses classes = classes_of(std::move(own), blocks);
        fold.stands_for[static_cast<std::size_t>(axis)] = std::move(classes.of);
        std::vector<std::pair<Seat, std::int64_t>> more;
        for (const auto& [seat, count] : chosen) {
            for (std::size_t i = 0; i < classes.first.size(); ++i) {
                Seat next = seat;
                next[axis] = classes.first[i];
                more.emplace_back(next, count * classes.counts[i]);
            }
        }
        chosen = std::move(more);
        stride *= size;
    }
    if (!all_fit && static_cast<std::int64_t>(chosen.size()) == stride) return std::nullopt;

    std::vector<std::pair<DeviceId, std::int64_t>> devices;
    for (const auto& [seat, count] : chosen) {
        devices.emplace_back(fold.placement.device(seat), count);
    }
    std::ranges::sort(devices);
    for (const auto& [device, count] : devices) {
        fold.devices.push_back(device);
        fold.counts.push_back(count);
    }
    for (const std::uint32_t size : graph.blocks()) {
        std::map<std::uint32_t, std::int64_t>& alike = fold.sections.emplace_back();
        for (std::uint32_t block = 0; block < stride; block += size) {
            for (std::uint32_t device = block; device < block + graph.rails(); ++device) {
                if (device == stride) break;
                ++alike[graph.section_of(fold.representative({device}), size)];
            }
        }
    }
    return fold;
}

double tasks_of(const TrainingStep& step, const std::optional<Fold>& fold) {
    const double ranks = static_cast<double>(step.split.tensor * step.split.replicas());
    const double alike =
        fold ? static_cast<double>(fold->devices.size()) / static_cast<double>(step.split.pipeline)
             : ranks;
    return static_cast<double>(step.micro_batches()) * static_cast<double>(step.model.layers) *
           alike * (step.split.tensor > 1 ? 14 : 2);
}

Result<void> check_tasks(const TrainingStep& step, const std::optional<Fold>& fold) {
    const double tasks = tasks_of(step, fold);
    if (tasks <= tasks_max) return {};
    return problem(
        "batch.global",
        fmt::format("{} micro-batches make about {:.1e} tasks, more than the {:.0e} that "
                    "can be simulated; use larger micro-batches or fewer data ranks",
                    step.micro_batches(), tasks, tasks_max));
}

}  // namespace fourfold
