#pragma once

// What differs from one kernel to the next of the same kind, and from one transfer to the next.

#include <cstdint>
#include <functional>

#include "sim/program.hpp"

namespace fourfold {

struct Jitter {
    double compute = 0, links = 0;  // relative standard deviations; 0: none
    std::uint64_t seed = 0;

    [[nodiscard]] bool any() const { return compute > 0 || links > 0; }
};

/// Which draw of a seed it is. No draw depends on others, or on when it is made.
struct JitterKey {
    enum class Of : std::uint32_t { kernel, message, collective } of{};
    std::uint32_t device = 0, index = 0;
};

/// Log-normal factors of mean 1 with the given relative standard deviation, the same bits on any
/// machine: nothing of the C library is used but what IEEE 754 fixes.
class JitterFactors {
  public:
    JitterFactors(double spread, std::uint64_t seed);
    double operator()(const JitterKey& draw) const;

  private:
    std::uint64_t seed_;
    double sigma_;       // of the logarithm
    double log_median_;  // for a mean of 1
};

/// Multiplies the times of the draft's kernels, messages and collectives, each by a factor of its
/// own: the index of a task is its number among those of its kind on its device. `is_kernel`: of
/// compute tasks.
void apply(const Jitter& jitter, const std::function<bool(TaskId)>& is_kernel, ProgramDraft& draft);

}  // namespace fourfold
