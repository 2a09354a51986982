// fourfold beside SimGrid: the same cases, in one run, each time in a process of its own. Both must
// answer alike, else there is nothing to compare.
//
// compare <the fourfold program> [<runs of each>]

#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tests/bench/compare/cases.hpp"
#include "topology/check.hpp"
#include "topology/memory.hpp"

namespace fourfold {
namespace {

/// Of a whole process: user and system time, peak of resident memory.
struct Cost {
    double cpu_seconds = std::numeric_limits<double>::infinity();
    double memory_mib = std::numeric_limits<double>::infinity();
};

double seconds(const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
}

std::string contents(std::FILE* file) {
    std::string text;
    std::rewind(file);
    for (int next = 0; (next = std::fgetc(file)) != EOF;) text += static_cast<char>(next);
    return text;
}

/// Runs `work` in a process of its own.
/// Returns: what it wrote. `least` is lowered to what it took.
std::string run_apart(const std::function<void(std::FILE*)>& work, Cost& least) {
    std::FILE* file = std::tmpfile();
    FOURFOLD_CHECK(file != nullptr);
    const pid_t child = fork();
    FOURFOLD_CHECK(child >= 0);
    if (child == 0) {
        work(file);
        std::fflush(file);
        std::_Exit(EXIT_SUCCESS);
    }
    int status = 0;
    rusage usage{};
    FOURFOLD_CHECK(wait4(child, &status, 0, &usage) == child);
    FOURFOLD_CHECK(WIFEXITED(status) && WEXITSTATUS(status) == EXIT_SUCCESS, "a run failed");
    least.cpu_seconds =
        std::min(least.cpu_seconds, seconds(usage.ru_utime) + seconds(usage.ru_stime));
    least.memory_mib = std::min(least.memory_mib, static_cast<double>(usage.ru_maxrss) / 1024);
    std::string text = contents(file);
    std::fclose(file);
    return text;
}

template <class Case>
using Run = std::vector<double> (*)(const Case&);

template <class Case>
std::vector<double> ends(Run<Case> run, const Case& given, Cost& least) {
    const std::string bytes = run_apart(
        [&](std::FILE* file) {
            const std::vector<double> made = run(given);
            std::fwrite(made.data(), sizeof(double), made.size(), file);
        },
        least);
    std::vector<double> read(bytes.size() / sizeof(double));
    std::memcpy(read.data(), bytes.data(), bytes.size());
    return read;
}

/// The end that `fourfold collective` prints, in seconds.
double collective_end(const std::string& program, const RingCase& ring, Cost& least) {
    const std::string ranks = std::to_string(ring.ranks);
    const std::string bytes = fmt::format("{} B", ring.bytes.value);
    const std::string text = run_apart(
        [&](std::FILE* file) {
            dup2(fileno(file), STDOUT_FILENO);
            execl(program.c_str(), "fourfold", "collective", "all_reduce", "--algorithm", "ring",
                  "--ranks", ranks.c_str(), "--bytes", bytes.c_str(), "--bandwidth",
                  to_text(ring.link.bandwidth).c_str(), "--latency",
                  to_text(ring.link.latency).c_str(), "--network", "messages", "--json", nullptr);
            std::_Exit(EXIT_FAILURE);
        },
        least);
    return nlohmann::json::parse(text).at("time_s").get<double>();
}

void require(bool alike, std::string_view which, std::size_t number, double is, double other) {
    if (alike) return;
    fmt::print(stderr, "{}: number {} ends at {:.15f} s, which should be {:.15f} s\n", which,
               number, is, other);
    std::exit(EXIT_FAILURE);
}

void require_closed_form(std::string_view which, const RingCase& ring,
                         std::span<const double> ends) {
    const double expected = to_seconds(ring.closed_form());
    FOURFOLD_CHECK(!ends.empty());
    for (std::size_t rank = 0; rank < ends.size(); ++rank) {
        require(std::abs(ends[rank] - expected) <= 1e-9, which, rank, ends[rank], expected);
    }
}

/// Returns: the largest relative difference.
double require_same(std::string_view which, std::span<const double> ends,
                    std::span<const double> others) {
    FOURFOLD_CHECK(!ends.empty() && ends.size() == others.size());
    double largest = 0;
    for (std::size_t flow = 0; flow < ends.size(); ++flow) {
        const double difference = std::abs(ends[flow] / others[flow] - 1);
        require(difference <= 1e-6, which, flow, ends[flow], others[flow]);
        largest = std::max(largest, difference);
    }
    return largest;
}

void print_row(std::string_view name, const Cost& fourfold, const Cost& simgrid) {
    fmt::print("{:<28} {:>9.3f} {:>9.3f} {:>7.1f}   {:>9.1f} {:>9.1f} {:>7.1f}\n", name,
               fourfold.cpu_seconds, simgrid.cpu_seconds,
               simgrid.cpu_seconds / fourfold.cpu_seconds, fourfold.memory_mib, simgrid.memory_mib,
               simgrid.memory_mib / fourfold.memory_mib);
    std::fflush(stdout);
}

void compare_rings(const std::string& program, int runs) {
    const RingCase ring;
    Cost fourfold, simgrid, command;
    for (int run = 0; run < runs; ++run) {
        require_closed_form("fourfold", ring, ends<RingCase>(run_in_fourfold, ring, fourfold));
        require_closed_form("SimGrid", ring, ends<RingCase>(run_in_simgrid, ring, simgrid));
        const double end = collective_end(program, ring, command);
        require_closed_form("fourfold collective", ring, std::span(&end, 1));
    }
    print_row("ring", fourfold, simgrid);
    print_row("ring, `fourfold collective`", command, simgrid);
}

/// Returns: what to say about the answers.
std::string compare_flows(std::string_view name, const TreeCase& tree, int runs) {
    Cost fourfold, simgrid;
    double difference = 0, last = 0;
    for (int run = 0; run < runs; ++run) {
        const std::vector<double> in_fourfold = ends<TreeCase>(run_in_fourfold, tree, fourfold);
        difference = require_same(name, in_fourfold, ends<TreeCase>(run_in_simgrid, tree, simgrid));
        last = std::ranges::max(in_fourfold);
    }
    print_row(name, fourfold, simgrid);
    return fmt::format("{}: last end {:.9f} s; ends differ by at most {:.1e} of their time\n", name,
                       last, difference);
}

// Sizes in GB: where flows wait for each other, differences grow from one to the next, some 10^7
// times in 10,000 flows. The picosecond to which fourfold rounds must be that much less than what
// is compared.
TreeCase random_flows(std::uint32_t in_flight) {
    TreeCase tree{.flows = {}, .in_flight = in_flight};
    std::mt19937_64 random(1);
    const auto pick = [&](std::uint64_t below) { return random() % below; };
    const auto pick_host = [&](std::uint32_t below) {
        return static_cast<std::uint32_t>(pick(below));
    };
    for (int i = 0; i < 10'000; ++i) {
        const std::uint32_t from = pick_host(tree.hosts);
        const std::uint32_t to = (from + 1 + pick_host(tree.hosts - 1)) % tree.hosts;
        tree.flows.push_back(
            {from, to, Bytes{static_cast<std::int64_t>(1'000'000'000 + pick(63'000'000'001))}});
    }
    return tree;
}

std::string processor() {
    std::ifstream file("/proc/cpuinfo");
    for (std::string line; std::getline(file, line);) {
        if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
    }
    return "unknown";
}

std::string load() {
    std::ifstream file("/proc/loadavg");
    std::string minute;
    file >> minute;
    return minute;
}

void print_head(int runs) {
    fmt::print(
        R"(fourfold beside SimGrid {} (S4U): the same cases, each run in a process of its own.

ring         all-reduce of 1,024 ranks, 64 MiB, message by message: 2,095,104 messages through
             a switch with ports of 25 GB/s and 5 us, two links a message. SimGrid: an actor per
             rank, mailboxes; no two messages share a link at a time, so that its fluid model
             and first come first served agree. All ranks of both end within 1 ns of the closed
             form, 25.82346624 ms.
flows        10,000 between random hosts, 1 to 64 GB each; 256 hosts with ports of 25 GB/s, 16
             below a leaf switch, which has one uplink of 100 GB/s; no latency; max-min shares.
             200 at a time (flow i starts when flow i - 200 ends) or all at once. A graph of
             activities in both, no actors. Each flow's ends differ by at most 10^-6.

SimGrid's model is set to fourfold's: CM02 without TCP (gamma 0, weight-S 0), factors 1, no
cross-traffic; the rest is its default. In both runs memory that is freed stays with the process.
The flows have GB, not MB, because 200 at a time differences grow some 10^7 times along the chains,
and fourfold rounds to picoseconds; the work is the same.

processor    {}, {} processors, load {} at the start (others compute here too)
compiler     GCC {}, {} (SimGrid: as the distribution ships it)
command      cmake --preset bench && cmake --build --preset bench --target compare

                                CPU time, s (least of {})          peak memory, MiB
                              fourfold   SimGrid   ratio    fourfold   SimGrid   ratio
)",
        simgrid_version(), processor(), sysconf(_SC_NPROCESSORS_ONLN), load(), __VERSION__,
        FOURFOLD_FLAGS, runs);
    std::fflush(stdout);
}

}  // namespace
}  // namespace fourfold

int main(int argc, char** argv) {
    using namespace fourfold;
    FOURFOLD_CHECK(argc >= 2, "compare <the fourfold program> [<runs of each>]");
    const int runs = argc > 2 ? std::atoi(argv[2]) : 3;
    keep_freed_memory();  // as the program does
    print_head(runs);
    compare_rings(argv[1], runs);
    const std::string in_turn = compare_flows("flows, 200 at a time", random_flows(200), runs);
    const std::string at_once = compare_flows("flows, all at once", random_flows(10'000), runs);
    fmt::print("\n{}{}", in_turn, at_once);
}
