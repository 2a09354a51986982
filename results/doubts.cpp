#include "results/doubts.hpp"

// The spreads are judgements: how far measured runs of the kind lie from their predictions beyond
// what other constants explain (results/published/accuracy/residuals.md).

#include <fmt/format.h>

#include <algorithm>

#include "workloads/placement.hpp"

namespace fourfold {
namespace {

constexpr double misaligned_spread = 0.10;
constexpr double slow_softmax_spread = 0.05;
constexpr double across_nodes_spread = 0.08;
constexpr double sharded_weights_spread = 0.08;
constexpr double small_gathers_spread = 0.10;
constexpr std::int64_t small_micro_batch = 2;

std::size_t devices_in_node(const Graph& graph) {
    const auto vertices = graph.devices();
    const auto other = std::ranges::find_if(vertices, [&](VertexId vertex) {
        return graph[vertex].node != graph[vertices.front()].node;
    });
    return static_cast<std::size_t>(other - vertices.begin());
}

bool spans_nodes(const TrainingStep& step, const Graph& graph, SplitAxis axis) {
    const Placement placement(step.split, step.devices);
    for (std::int64_t rank = 0; rank < placement.devices(); ++rank) {
        const DeviceId device = placement.device(rank);
        const std::vector<DeviceId> group = placement.group(placement.seat(device), {axis});
        if (group.front() != device) continue;  // each group once
        for (const DeviceId member : group) {
            if (graph.node_of(member) != graph.node_of(device)) return true;
        }
    }
    return false;
}

}  // namespace

std::vector<Doubt> doubts_of(const TrainingStep& step, const Graph& graph) {
    std::vector<Doubt> doubts;
    const Transformer& model = step.model;
    if (step.measured.stage) return doubts;
    if (model.attention == Attention::unfused && head_dim(model) % 8 != 0) {
        doubts.push_back(
            {fmt::format("a head dimension of {} is no multiple of 8: its attention is "
                         "taken to run at 12 TFLOP/s of an A100",
                         head_dim(model)),
             misaligned_spread});
    }
    if (model.attention == Attention::unfused && model.sequence > 2048) {
        doubts.push_back(
            {fmt::format("unfused attention at a sequence of {}: the fused softmax ends "
                         "at 2048, slower kernels are assumed",
                         model.sequence),
             slow_softmax_spread});
    }
    if (!step.device.fitted) {  // the spread of its matrix units is wider
        doubts.push_back(
            {fmt::format("{}: kernel times follow the data sheet, no kernels of this "
                         "device were measured",
                         step.device.name)});
    }
    if (step.split.tensor > 1 && spans_nodes(step, graph, SplitAxis::tensor)) {
        doubts.push_back(
            {fmt::format("tensor parallelism of {} spans nodes of {}: few measurements "
                         "exist of this",
                         step.split.tensor, devices_in_node(graph)),
             across_nodes_spread});
    }
    if (step.split.sharding == Sharding::weights && step.split.replicas() > 1) {
        doubts.push_back({"sharded weights: what FSDP itself costs is known from one source only",
                          sharded_weights_spread});
        if (step.micro_batch <= small_micro_batch && spans_nodes(step, graph, SplitAxis::data)) {
            doubts.push_back({fmt::format("weights are gathered across nodes for micro-batches of "
                                          "{}: measured runs of this kind were 20 to 30 % slower",
                                          step.micro_batch),
                              small_gathers_spread});
        }
    }
    return doubts;
}

}  // namespace fourfold
