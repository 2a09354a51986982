#include "workloads/jitter.hpp"

#include <cmath>
#include <map>
#include <tuple>

#include "topology/splitmix.hpp"

namespace fourfold {
namespace {

// Twelve uniform numbers have the sum's variance 1, and a sum that is normal within what anyone
// could see of a machine (no more than 6 standard deviations).
double standard_normal(std::uint64_t state) {
    std::uint64_t sum = 0;
    for (std::uint64_t n = 1; n <= 6; ++n) {
        const std::uint64_t bits = mixed(state + n * golden_gamma);
        sum += (bits >> 32) + (bits & 0xffffffff);
    }
    return static_cast<double>(static_cast<std::int64_t>(sum) - 6 * 0xffffffffLL) * 0x1p-32;
}

// exp and log of the C library differ in the last bit between machines.
double portable_exp(double x) {
    constexpr int halvings = 10;
    x /= 1 << halvings;
    double power = 1 + x * (1 + x / 2 * (1 + x / 3 * (1 + x / 4 * (1 + x / 5))));
    for (int i = 0; i < halvings; ++i) power *= power;
    return power;
}

// log(1 + x) = 2 artanh(x / (2 + x)). Requires: 0 <= x <= 1.
double portable_log1p(double x) {
    const double t = x / (2 + x);
    double sum = 0, power = t;
    for (int k = 1; k <= 33; k += 2) {
        sum += power / k;
        power *= t * t;
    }
    return 2 * sum;
}

}  // namespace

JitterFactors::JitterFactors(double spread, std::uint64_t seed)
    : seed_(splitmix64(seed)),
      sigma_(std::sqrt(portable_log1p(spread * spread))),
      log_median_(-sigma_ * sigma_ / 2) {}

double JitterFactors::operator()(const JitterKey& draw) const {
    const std::uint64_t place = std::uint64_t{draw.device} << 32 | draw.index;
    const std::uint64_t kind = seed_ + golden_gamma * (static_cast<std::uint64_t>(draw.of) + 1);
    const std::uint64_t state = mixed(mixed(kind) ^ splitmix64(place));
    return portable_exp(log_median_ + sigma_ * standard_normal(state));
}

void apply(const Jitter& jitter, const std::function<bool(TaskId)>& is_kernel,
           ProgramDraft& draft) {
    const JitterFactors compute(jitter.compute, jitter.seed), links(jitter.links, jitter.seed);
    std::map<std::pair<JitterKey::Of, DeviceId>, std::uint32_t> counts;
    const auto next = [&](JitterKey::Of of, DeviceId device) {
        return JitterKey{of, device.value, counts[{of, device}]++};
    };
    for (const TaskId task : ids<TaskId>(static_cast<std::uint32_t>(draft.tasks()))) {
        const DeviceId device = draft.device(task);
        if (draft.kind(task) == TaskKind::compute && jitter.compute > 0 && is_kernel(task)) {
            draft.stretch_compute(task, compute(next(JitterKey::Of::kernel, device)));
        } else if (draft.kind(task) == TaskKind::send && jitter.links > 0) {
            draft.stretch_send(task, links(next(JitterKey::Of::message, device)));
        }
    }
    if (jitter.links == 0) return;
    for (const CollectiveId id : ids<CollectiveId>(draft.collectives())) {
        const DeviceId first = draft.first_member(id);
        draft.stretch_collective(id, links(next(JitterKey::Of::collective, first)));
    }
}

}  // namespace fourfold
