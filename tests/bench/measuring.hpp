#pragma once

// What the benchmarks measure beside what Google Benchmark does.

#include <benchmark/benchmark.h>
#include <malloc.h>

#include <ctime>
#include <fstream>
#include <string>

namespace fourfold {

/// CPU time of this process so far, in seconds: what others do on the machine does not count.
inline double cpu_seconds() {
    timespec now{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

/// Forgets the peak of memory so far, where the kernel allows it, so that each benchmark of a
/// process reports its own.
inline void reset_peak_memory() {
    malloc_trim(0);
    std::ofstream("/proc/self/clear_refs") << 5;
}

/// The peak of resident memory since `reset_peak_memory`; 0 where the kernel does not say.
inline double peak_memory_bytes() {
    std::ifstream status("/proc/self/status");
    for (std::string word; status >> word;) {
        double kib = 0;
        if (word == "VmHWM:" && status >> kib) return kib * 1024;
    }
    return 0;
}

inline benchmark::Counter bytes_counter(double bytes) {
    return {bytes, benchmark::Counter::kDefaults, benchmark::Counter::kIs1024};
}

}  // namespace fourfold
