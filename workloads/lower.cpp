// Lowering. Device by device, the schedule's actions in their order; of each action the stage's
// list of operations. What is the same for many devices is prepared once:
//
//   operations --compile--> segments    kernels between two collectives joined into one task
//   segments + a device's groups --> transfers
//
// Collectives meet by counting: the k-th call that a member makes in a group is the k-th call of
// the group, so that members which disagree are found out. Messages meet by (stage boundary,
// direction, micro-batch, tensor rank, data rank).

#include "workloads/lower.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "topology/check.hpp"
#include "workloads/axes/axes.hpp"
#include "workloads/stage.hpp"
#include "workloads/transfers.hpp"

namespace fourfold {
namespace {

// A joined run of kernels, or one collective.
struct Segment {
    Axis axis = Axis::compute;
    Pass pass{};
    Duration duration{};  // kernels
    CollectiveKind kind{};
    Group group{};
    Bytes bytes{};
    bool blocking = true;
    std::int32_t ticket = -1;
    std::vector<std::int32_t> waits_for;
    bool waits_for_all = false;
};

struct Compiled {
    std::vector<Segment> segments;
    double flops = 0;
    std::int32_t tickets = 0;
};

Compiled compile(const std::vector<Operation>& operations) {
    Compiled compiled;
    double seconds = 0;  // of the open run of kernels
    std::vector<Segment>& out = compiled.segments;
    const auto close = [&] {
        if (!out.empty() && out.back().axis == Axis::compute) {
            out.back().duration = from_seconds(seconds);
        }
        seconds = 0;
    };
    for (const Operation& operation : operations) {
        compiled.flops += operation.flops;
        compiled.tickets = std::max(compiled.tickets, operation.ticket + 1);
        const bool is_kernel = operation.axis == Axis::compute;
        const bool joins = is_kernel && !out.empty() && out.back().axis == Axis::compute &&
                           operation.waits_for.empty() && !operation.waits_for_all;
        if (joins) {
            seconds += operation.seconds;
            if (out.back().pass != operation.pass) out.back().pass = Pass::backward;
            continue;
        }
        close();
        out.push_back({.axis = operation.axis,
                       .pass = operation.pass,
                       .duration = {},
                       .kind = operation.collective,
                       .group = operation.group,
                       .bytes = operation.bytes,
                       .blocking = operation.blocking,
                       .ticket = operation.ticket,
                       .waits_for = operation.waits_for,
                       .waits_for_all = operation.waits_for_all});
        if (is_kernel) seconds = operation.seconds;
    }
    close();
    return compiled;
}

Lane lane_of(const Segment& segment) {
    switch (segment.axis) {
        case Axis::compute:
            return Lane::compute;
        case Axis::tensor:
        case Axis::pipeline:
            return Lane::tensor;
        case Axis::vocabulary:
            return segment.group == Group::embedding ? Lane::world : Lane::tensor;
        case Axis::sharding:
            return Lane::sharding;
        case Axis::data:
            return Lane::data;
        case Axis::norm:
            return Lane::world;
    }
    return Lane::compute;
}

constexpr TaskId no_task{~std::uint32_t{0}};

// What the two lowerings share: streams, labels, and messages that wait for their other half.
class Writer {
  public:
    explicit Writer(const Graph& graph) : routes_(graph) {}

    ProgramDraft& draft() { return draft_; }
    Routes& routes() { return routes_; }

    StreamId stream(DeviceId device, Lane lane) {
        const auto [entry, is_new] = streams_.try_emplace(std::pair{device, lane});
        if (is_new) entry->second = draft_.add_stream(device, static_cast<std::uint8_t>(lane));
        return entry->second;
    }

    TaskId label(TaskId task, const Label& label) {
        labels_.push_back(label);
        FOURFOLD_DCHECK(labels_.size() == task.value + 1);
        return task;
    }

    // Whichever half comes second connects the two.
    struct Halves {
        TaskId send = no_task, receive = no_task;
    };
    void meet(Halves& halves, Bytes bytes) {
        if (halves.send == no_task || halves.receive == no_task) return;
        draft_.connect(halves.send, halves.receive, bytes);
        halves = {};
    }

    Result<Lowered> seal_program() {
        Result<Program> program = seal(std::move(draft_));
        if (!program) return tl::unexpected(program.error());
        return Lowered{std::move(*program), std::move(labels_), {}, 0};
    }

  private:
    Routes routes_;
    ProgramDraft draft_;
    IdVector<TaskId, Label> labels_;
    std::map<std::pair<DeviceId, Lane>, StreamId> streams_;
};

class Lowering {
  public:
    Lowering(const TrainingStep& step, const Graph& graph)
        : step_(step),
          placement_(step.split),
          writer_(graph),
          transfers_(writer_.routes(), writer_.draft(), step.algorithm, step.node, step.fabric) {
        const Split& split = step.split;
        boundaries_ = std::max<std::int64_t>(0, step.stages() - 1);
        halves_.resize(static_cast<std::size_t>(boundaries_ * 2 * step.micro_batches() *
                                                split.tensor * split.data));
    }

    Result<Lowered> run() {
        const auto devices = static_cast<std::size_t>(placement_.devices());
        for (const DeviceId device : ids<DeviceId>(devices)) {
            if (auto done = lower_device(device); !done) return tl::unexpected(done.error());
        }
        Result<Lowered> lowered = writer_.seal_program();
        if (!lowered) return lowered;
        lowered->hardware_flops = flops_;
        lowered->kinds = transfers_.kinds();
        return lowered;
    }

  private:
    // Of the device that is being lowered.
    struct Cursor {
        DeviceId device;
        Seat seat;
        double slowness = 1;
        std::array<StreamId, lane_count> streams{};
        std::array<TaskId, lane_count> last{};  // task of each lane
        TaskId chain = no_task;                 // the main chain's end
        TaskId pending_send = no_task;          // blocking messages: the chain waits for it too
    };

    Result<void> lower_device(DeviceId device) {
        Cursor cursor{.device = device, .seat = placement_.seat(device)};
        cursor.last.fill(no_task);
        for (const SlowDevice& slow : step_.slow_devices) {
            if (slow.device == device.value) cursor.slowness *= slow.factor;
        }
        for (std::size_t lane = 0; lane < lane_count; ++lane) {
            cursor.streams[lane] = writer_.stream(device, static_cast<Lane>(lane));
        }
        const PipelineShape shape = pipeline_shape();
        const auto rank = static_cast<std::uint32_t>(cursor.seat.pipeline);
        bound_.clear();
        for (const Action& action : actions_of(rank)) {
            if (auto done = lower_action(cursor, action, shape); !done) return done;
        }
        const Compiled& tail = tail_of(cursor.seat.pipeline);
        auto bound = bind(cursor, tail);
        if (!bound) return tl::unexpected(bound.error());
        emit(cursor, tail, *bound, {.stage = static_cast<std::uint16_t>(rank)}, no_task);
        flops_ += tail.flops;
        return {};
    }

    [[nodiscard]] PipelineShape pipeline_shape() const {
        return {static_cast<std::uint32_t>(step_.split.pipeline),
                static_cast<std::uint32_t>(step_.chunks),
                static_cast<std::uint32_t>(step_.micro_batches())};
    }

    const std::vector<Action>& actions_of(std::uint32_t rank) {
        const auto [entry, is_new] = actions_.try_emplace(rank);
        if (is_new) entry->second = step_.schedule->actions(pipeline_shape(), rank);
        return entry->second;
    }

    // ---- Lists, prepared once

    using ListKey = std::tuple<std::int64_t, ActionKind, bool, bool>;

    const Compiled& list_of(const StageAction& action) {
        const ListKey key{action.stage, action.kind, action.first, action.last};
        const auto [entry, is_new] = lists_.try_emplace(key);
        if (is_new) entry->second = compile(stage_operations(step_, action));
        return entry->second;
    }

    const Compiled& tail_of(std::int64_t rank) {
        const auto [entry, is_new] = tails_.try_emplace(rank);
        if (is_new) entry->second = compile(tail_operations(step_, rank));
        return entry->second;
    }

    // ---- A device's groups and transfers

    struct Bound {  // a segment's collective on this device
        TransferId transfer{};
        GroupId group{};
        std::uint32_t member = 0;
        bool exists = false;  // groups of one do nothing
    };

    std::vector<DeviceId> members(const Cursor& cursor, Group group) const {
        const Seat& seat = cursor.seat;
        switch (group) {
            case Group::tensor:
                return placement_.group(seat, true, false, false);
            case Group::data:
                return placement_.group(seat, false, false, true);
            case Group::model:
                return placement_.group(seat, true, true, false);
            case Group::world:
                return placement_.group(seat, true, true, true);
            case Group::embedding:
                return {placement_.device({seat.tensor, 0, seat.data}),
                        placement_.device({seat.tensor, step_.split.pipeline - 1, seat.data})};
        }
        return {};
    }

    // Of a group that may have all devices: known without listing them for each device.
    DeviceId first_member(const Cursor& cursor, Group group) const {
        Seat seat = cursor.seat;
        switch (group) {
            case Group::tensor:
                seat.tensor = 0;
                break;
            case Group::data:
                seat.data = 0;
                break;
            case Group::embedding:
                seat.pipeline = 0;
                break;
            case Group::model:
                seat.tensor = seat.pipeline = 0;
                break;
            case Group::world:
                seat = {};
                break;
        }
        return placement_.device(seat);
    }

    GroupId group_of(const Cursor& cursor, const Segment& segment) {
        // One communicator per group and lane, as the frameworks have: calls in different lanes are
        // not ordered among each other.
        const auto key =
            std::tuple(segment.group, lane_of(segment), first_member(cursor, segment.group));
        const auto [entry, is_new] = groups_.try_emplace(key);
        if (is_new) {
            const std::vector<DeviceId> all = members(cursor, segment.group);
            FOURFOLD_CHECK(all.front() == std::get<DeviceId>(key));
            entry->second = transfers_.add_group(all);
            calls_.push_back({});
            calls_[entry->second].made.resize(all.size());
        }
        return entry->second;
    }

    Result<std::vector<Bound>> bind(const Cursor& cursor, const Compiled& compiled) {
        std::vector<Bound> bound(compiled.segments.size());
        for (std::size_t i = 0; i < bound.size(); ++i) {
            const Segment& segment = compiled.segments[i];
            if (segment.axis == Axis::compute) continue;
            const GroupId group = group_of(cursor, segment);
            const std::span<const DeviceId> all = transfers_.members(group);
            if (all.size() == 1) continue;
            const Result<TransferId> transfer =
                transfers_.collective(group, segment.kind, segment.bytes);
            if (!transfer) return tl::unexpected(transfer.error());
            const auto place = std::lower_bound(all.begin(), all.end(), cursor.device);
            bound[i] = {*transfer, group, static_cast<std::uint32_t>(place - all.begin()), true};
        }
        return bound;
    }

    // ---- Tasks

    Result<void> lower_action(Cursor& cursor, const Action& action, const PipelineShape& shape) {
        const StageAction about{.stage = action.chunk * step_.split.pipeline + cursor.seat.pipeline,
                                .kind = action.kind,
                                .first = action.micro_batch == 0,
                                .last = action.micro_batch + 1 == shape.micro_batches};
        const Compiled& list = list_of(about);
        const ListKey key{about.stage, about.kind, about.first, about.last};
        auto known = bound_.find(key);
        if (known == bound_.end()) {
            auto made = bind(cursor, list);
            if (!made) return tl::unexpected(made.error());
            known = bound_.emplace(key, std::move(*made)).first;
        }
        const bool forward = action.kind == ActionKind::forward;
        const bool passes_on = action.kind != ActionKind::weight_gradient;
        const Label label{.pass = forward ? Pass::forward : Pass::backward,
                          .stage = static_cast<std::uint16_t>(about.stage),
                          .micro_batch = action.micro_batch};
        TaskId received = no_task;
        if (passes_on) {
            // Boundary b lies between stages b and b + 1.
            const std::int64_t from = forward ? about.stage - 1 : about.stage;
            received = receive(cursor, from, forward, label);
        }
        emit(cursor, list, known->second, label, received);
        flops_ += list.flops;
        if (passes_on) {
            const std::int64_t to = forward ? about.stage : about.stage - 1;
            send(cursor, to, forward, label);
        }
        return {};
    }

    void emit(Cursor& cursor, const Compiled& compiled, const std::vector<Bound>& bound,
              const Label& label, TaskId received) {
        tickets_.assign(static_cast<std::size_t>(compiled.tickets), no_task);
        for (std::size_t i = 0; i < compiled.segments.size(); ++i) {
            const Segment& segment = compiled.segments[i];
            const bool is_kernel = segment.axis == Axis::compute;
            if (!is_kernel && !bound[i].exists) continue;

            after_.clear();
            const auto wait_for = [&](TaskId task) {
                if (task == no_task) return;
                if (std::find(after_.begin(), after_.end(), task) == after_.end()) {
                    after_.push_back(task);
                }
            };
            wait_for(cursor.chain);
            if (segment.blocking) {
                wait_for(received);
                wait_for(cursor.pending_send);
                received = cursor.pending_send = no_task;
            }
            for (const std::int32_t ticket : segment.waits_for) {
                wait_for(tickets_[static_cast<std::size_t>(ticket)]);
            }
            if (segment.waits_for_all) {
                for (const TaskId last : cursor.last) wait_for(last);
            }

            const auto lane = static_cast<std::size_t>(lane_of(segment));
            Label mine = label;
            mine.axis = segment.axis;
            mine.pass = segment.pass;
            mine.on_chain = segment.blocking;
            mine.awaited =
                segment.pass != Pass::update && (segment.blocking || segment.ticket >= 0);
            const TaskId task = writer_.label(
                is_kernel ? writer_.draft().compute(cursor.streams[lane],
                                                    cursor.slowness == 1
                                                        ? segment.duration
                                                        : scale(segment.duration, cursor.slowness),
                                                    after_)
                          : writer_.draft().part(cursor.streams[lane], next_call(bound[i]),
                                                 bound[i].member, after_),
                mine);
            cursor.last[lane] = task;
            if (segment.ticket >= 0) tickets_[static_cast<std::size_t>(segment.ticket)] = task;
            if (segment.blocking) cursor.chain = task;
        }
    }

    CollectiveId next_call(const Bound& bound) {
        Calls& calls = calls_[bound.group];
        const std::uint32_t k = calls.made[bound.member]++;
        if (k == calls.ids.size()) {
            calls.ids.push_back(writer_.draft().add_collective(bound.transfer));
            calls.transfers.push_back(bound.transfer);
        }
        FOURFOLD_CHECK(calls.transfers[k] == bound.transfer,
                       "members of a group disagree about its call {}", k);
        return calls.ids[k];
    }

    Writer::Halves& halves(const Cursor& cursor, std::int64_t boundary, bool forward,
                           const Label& label) {
        const Split& split = step_.split;
        std::int64_t index = boundary * 2 + (forward ? 0 : 1);
        index = index * step_.micro_batches() + label.micro_batch;
        index = index * split.tensor + cursor.seat.tensor;
        index = index * split.data + cursor.seat.data;
        return halves_[static_cast<std::size_t>(index)];
    }

    DeviceId neighbour(const Cursor& cursor, std::int64_t stage) const {
        return placement_.device(
            {cursor.seat.tensor, stage % step_.split.pipeline, cursor.seat.data});
    }

    // The receive of what comes over this boundary; no_task where nothing does or where both stages
    // are on this device.
    TaskId receive(Cursor& cursor, std::int64_t boundary, bool forward, Label label) {
        if (boundary < 0 || boundary >= boundaries_) return no_task;
        const DeviceId sender = neighbour(cursor, forward ? boundary : boundary + 1);
        if (sender == cursor.device) return no_task;
        const Lane lane = forward ? Lane::receive_forward : Lane::receive_backward;
        label.axis = Axis::pipeline;
        const TaskId task = writer_.label(
            writer_.draft().receive(cursor.streams[static_cast<std::size_t>(lane)]), label);
        Writer::Halves& pair = halves(cursor, boundary, forward, label);
        pair.receive = task;
        writer_.meet(pair, pipeline_message_bytes(step_));
        return task;
    }

    void send(Cursor& cursor, std::int64_t boundary, bool forward, Label label) {
        if (boundary < 0 || boundary >= boundaries_) return;
        const DeviceId receiver = neighbour(cursor, forward ? boundary + 1 : boundary);
        if (receiver == cursor.device) return;
        const auto lane =
            static_cast<std::size_t>(forward ? Lane::send_forward : Lane::send_backward);
        const Bytes bytes = pipeline_message_bytes(step_);
        label.axis = Axis::pipeline;
        after_.assign(1, cursor.chain);
        const TaskId task = writer_.label(
            writer_.draft().send(cursor.streams[lane],
                                 transfers_.message(cursor.device, receiver, bytes), after_),
            label);
        cursor.last[lane] = task;
        if (step_.point_to_point == PointToPoint::blocking) cursor.pending_send = task;
        Writer::Halves& pair = halves(cursor, boundary, forward, label);
        pair.send = task;
        writer_.meet(pair, bytes);
    }

    const TrainingStep& step_;
    Placement placement_;
    Writer writer_;
    Transfers transfers_;
    std::int64_t boundaries_ = 0;
    std::vector<Writer::Halves> halves_;
    std::map<std::uint32_t, std::vector<Action>> actions_;
    std::map<ListKey, Compiled> lists_;
    std::map<std::int64_t, Compiled> tails_;
    std::map<ListKey, std::vector<Bound>> bound_;  // of the device that is being lowered
    std::map<std::tuple<Group, Lane, DeviceId>, GroupId> groups_;
    struct Calls {
        std::vector<std::uint32_t> made;  // by each member
        std::vector<CollectiveId> ids;
        std::vector<TransferId> transfers;
    };
    IdVector<GroupId, Calls> calls_;
    std::vector<TaskId> after_, tickets_;
    double flops_ = 0;
};

}  // namespace

std::string_view name_of(Axis axis) {
    static constexpr std::string_view names[] = {"compute", "tensor",   "vocabulary", "sharding",
                                                 "data",    "pipeline", "norm"};
    return names[static_cast<std::size_t>(axis)];
}

std::string_view name_of(Pass pass) {
    static constexpr std::string_view names[] = {"forward",         "recompute", "input gradient",
                                                 "weight gradient", "update",    "backward"};
    return names[static_cast<std::size_t>(pass)];
}

std::string_view name_of(Lane lane) {
    static constexpr std::string_view names[lane_count] = {
        "compute",       "tensor",          "sharding",         "data", "send forward",
        "send backward", "receive forward", "receive backward", "world"};
    return names[static_cast<std::size_t>(lane)];
}

Result<Lowered> lower(const TrainingStep& step, const Graph& graph) {
    return Lowering(step, graph).run();
}

Result<Lowered> lower_pipeline(const Schedule& schedule, const PipelineShape& shape,
                               const ChunkTimes& times, const Graph& graph) {
    Writer writer(graph);
    const TransportCosts ideal;
    Transfers transfers(writer.routes(), writer.draft(), nullptr, ideal, ideal);
    std::map<std::tuple<std::uint32_t, bool, std::uint32_t>, Writer::Halves> halves;
    const std::uint32_t stages = shape.ranks * shape.chunks;

    for (std::uint32_t rank = 0; rank < shape.ranks; ++rank) {
        const DeviceId device{rank};
        for (const Action& action : schedule.actions(shape, rank)) {
            const std::uint32_t stage = action.chunk * shape.ranks + rank;
            const bool forward = action.kind == ActionKind::forward;
            const bool passes_on = action.kind != ActionKind::weight_gradient;
            Label label{.axis = Axis::pipeline,
                        .pass = forward ? Pass::forward : Pass::backward,
                        .stage = static_cast<std::uint16_t>(stage),
                        .micro_batch = action.micro_batch};
            // Boundary b lies between stages b and b + 1; those of one rank need no message.
            const auto crosses = [&](std::uint32_t boundary) {
                return passes_on && boundary < stages - 1 && shape.ranks > 1;
            };
            std::vector<TaskId> after;
            if (const std::uint32_t from = forward ? stage - 1 : stage; crosses(from)) {
                const Lane lane = forward ? Lane::receive_forward : Lane::receive_backward;
                after.push_back(
                    writer.label(writer.draft().receive(writer.stream(device, lane)), label));
                Writer::Halves& pair = halves[{from, forward, action.micro_batch}];
                pair.receive = after.back();
                writer.meet(pair, Bytes{});
            }
            Duration takes = forward ? times.forward : Duration::zero();
            if (action.kind != ActionKind::weight_gradient && !forward) {
                takes += times.input_gradient;
            }
            if (action.kind == ActionKind::weight_gradient || action.kind == ActionKind::backward) {
                takes += times.weight_gradient;
            }
            Label work = label;
            work.axis = Axis::compute;
            const TaskId done = writer.label(
                writer.draft().compute(writer.stream(device, Lane::compute), takes, after), work);
            if (const std::uint32_t to = forward ? stage : stage - 1; crosses(to)) {
                const Lane lane = forward ? Lane::send_forward : Lane::send_backward;
                const DeviceId receiver{(forward ? stage + 1 : stage - 1) % shape.ranks};
                Writer::Halves& pair = halves[{to, forward, action.micro_batch}];
                pair.send =
                    writer.label(writer.draft().send(writer.stream(device, lane),
                                                     transfers.message(device, receiver, Bytes{}),
                                                     std::span(&done, 1)),
                                 label);
                writer.meet(pair, Bytes{});
            }
        }
    }
    return writer.seal_program();
}

}  // namespace fourfold
