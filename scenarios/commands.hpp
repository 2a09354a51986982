#pragma once

// The commands of `fourfold`: each reads, computes, prints, and returns the exit code.

#include <cstdint>
#include <string>
#include <vector>

#include "topology/shapes/shape.hpp"

namespace fourfold {

enum ExitCode : int {
    done = 0,
    failed = 1,        // while running
    bad_input = 2,     // or usage
    tool_missing = 4,  // an optional one
};

/// What the commands that read scenarios have in common.
struct ScenarioOptions {
    std::vector<std::string> files;
    std::vector<std::string> settings;  // "path=value"
    std::string network;                // empty: as the scenario says
    std::string catalog;                // a folder, or empty
};

struct RunOptions {
    ScenarioOptions scenarios;
    bool json = false;
    bool audit = false;
    bool fold = true;
    std::string trace;  // a file, or empty
};

struct ValidateOptions {
    ScenarioOptions scenarios;  // files may be folders
    std::string csv, plot;      // files, or empty
    bool json = false;
    bool rows = false;  // a line for each
    std::uint32_t jobs = 1;
};

struct CalibrateOptions {
    std::vector<std::string> files;
    std::string device, out;     // a base and what is written, or both empty
    std::string link, link_out;  // likewise
    std::vector<std::string> only;
    bool json = false;
};

struct CollectiveOptions {
    std::string kind, algorithm, ranks, bytes, shape, bandwidth, latency, network, routing;
    std::string per_node, node_bandwidth, node_latency;  // all or none of them
    std::string quantum;                                 // empty: whole messages
    ShapeParameters parameters;
    bool json = false;
};

struct TopologyOptions {
    ScenarioOptions scenarios;
    std::string route;  // "0,9", or empty: from the first rank to the last
    std::string dot;    // a file, or empty
    bool json = false;
};

struct IdleCurveOptions {
    std::string out;
    std::string schedules, pipelines, micro_batches, chunks;  // "2,4,8" and "1..256"
    std::string forward, input_gradient, weight_gradient, hop_latency;
};

struct RingCurveOptions {
    std::string out;
    std::string ranks, algorithms, bytes, bandwidth, latency, network;
};

int init_command(const std::string& file);
int run_command(const RunOptions& options);
int traffic_command(const ScenarioOptions& options, bool json);
int validate_command(const ValidateOptions& options);
int calibrate_command(const CalibrateOptions& options);
int check_command(const ScenarioOptions& options);
/// `constants`: every number of the hardware catalog with its source, instead of names.
int list_command(const std::string& what, bool constants, const std::string& catalog);
int topology_command(const TopologyOptions& options);
int collective_command(const CollectiveOptions& options);
int idle_curve_command(const IdleCurveOptions& options);
int ring_curve_command(const RingCurveOptions& options);

}  // namespace fourfold
