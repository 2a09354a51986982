#pragma once

// Each axis inserts its own operations into the list of a stage; none knows the others.

#include <vector>

#include "workloads/operations.hpp"
#include "workloads/stage.hpp"
#include "workloads/training_step.hpp"

namespace fourfold {

/// Tensor parallelism (Shoeybi et al. 2019; with sequence parallelism, Korthikanti et al. 2022):
/// the collectives of layers, and those of embedding, head and loss as the vocabulary axis.
void insert_tensor(const TrainingStep& step, const StageAction& action,
                   std::vector<Operation>& operations);

/// Context parallelism (ring attention, Liu et al. 2023): keys, values and their gradients.
void insert_context(const TrainingStep& step, const StageAction& action,
                    std::vector<Operation>& operations);

/// Sharded weights (ZeRO-3, Rajbhandari et al. 2020; FSDP, Zhao et al. 2023): gathers before use,
/// reduce-scatters after. Sharded optimizer state: gathers the updated parameters.
void insert_sharding(const TrainingStep& step, const StageAction& action,
                     std::vector<Operation>& operations);

/// Gradient reduction in buckets, during the last micro-batch's backward.
void insert_data(const TrainingStep& step, const StageAction& action,
                 std::vector<Operation>& operations);

/// What scatter-gather adds to a message: the receiver's tensor group gathers its pieces
/// (Narayanan et al. 2021, sec. 4.1).
void insert_pipeline(const TrainingStep& step, const StageAction& action,
                     std::vector<Operation>& operations);

/// Of the step's end.
void append_data_tail(const TrainingStep& step, std::int64_t pipeline_rank,
                      std::vector<Operation>& operations);
void append_sharding_tail(const TrainingStep& step, std::int64_t pipeline_rank,
                          std::vector<Operation>& operations);
void append_tensor_tail(const TrainingStep& step, std::int64_t pipeline_rank,
                        std::vector<Operation>& operations);

/// Bytes of one micro-batch's activations between layers, 16 bit: micro-batch * sequence /
/// context * hidden * 2.
Bytes activation_bytes(const TrainingStep& step);
/// What one device sends to the next stage.
Bytes pipeline_message_bytes(const TrainingStep& step);

/// One above all tickets in the list.
std::int32_t free_ticket(const std::vector<Operation>& operations);

/// A collective; blocking unless it has a ticket or `blocking` is cleared.
Operation collective(Axis axis, CollectiveKind kind, Bytes bytes, Pass pass, std::int32_t layer);

}  // namespace fourfold
