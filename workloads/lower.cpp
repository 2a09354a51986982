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
#include <array>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "topology/check.hpp"
#include "workloads/axes/axes.hpp"
#include "workloads/fold.hpp"
#include "workloads/numbers.hpp"
#include "workloads/stage.hpp"
#include "workloads/transfers.hpp"

namespace fourfold {
namespace {

// A joined run of kernels, or one collective.
struct Segment {
    Axis axis = Axis::compute;
    Pass pass{};
    Duration duration{};    // kernels
    Duration not_before{};  // the host issues it, counted from the list's begin; zero: in time
    CollectiveKind kind{};
    Group group{};
    Bytes bytes{};
    bool blocking = true;
    std::int32_t ticket = -1;
    std::vector<std::int32_t> waits_for;
    bool waits_for_all = false;
    std::int32_t step_ticket = -1;
    std::int32_t waits_for_step_ticket = -1;
};

struct Compiled {
    std::vector<Segment> segments;
    double flops = 0;
    std::int32_t tickets = 0;
};

// Kernels that follow each other become one segment. Host and device are a max-plus pair: behind
// `host` seconds of issuing, a segment cannot start before host + lead.
class Compiler {
  public:
    /// `busy`: the host does something else first.
    Compiler(const Host& host, Duration busy) : host_(host), issued_(to_seconds(busy)) {}

    Compiled run(const std::vector<Operation>& operations) {
        for (const Operation& operation : operations) {
            compiled_.flops += operation.flops;
            compiled_.tickets = std::max(compiled_.tickets, operation.ticket + 1);
            add(operation);
        }
        close();
        return std::move(compiled_);
    }

  private:
    void add(const Operation& operation) {
        std::vector<Segment>& out = compiled_.segments;
        const bool is_kernel = operation.axis == Axis::compute;
        const bool joins = is_kernel && open_ && operation.waits_for.empty() &&
                           !operation.waits_for_all && operation.waits_for_step_ticket < 0;
        if (joins) {
            lead_ = std::max(lead_, segment_host_ + operation.lead - seconds_);
            seconds_ += operation.seconds;
            segment_host_ += operation.host;
            if (out.back().pass != operation.pass) out.back().pass = Pass::backward;
            return;
        }
        close();
        out.push_back({.axis = operation.axis,
                       .pass = operation.pass,
                       .duration = {},
                       .not_before = {},
                       .kind = operation.collective,
                       .group = operation.group,
                       .bytes = operation.bytes,
                       .blocking = operation.blocking,
                       .ticket = operation.ticket,
                       .waits_for = operation.waits_for,
                       .waits_for_all = operation.waits_for_all,
                       .step_ticket = operation.step_ticket,
                       .waits_for_step_ticket = operation.waits_for_step_ticket});
        open_ = is_kernel;
        if (is_kernel) {
            seconds_ = std::exchange(pause_, 0) + operation.seconds;
            segment_host_ = operation.host;
            lead_ = operation.lead;
            return;
        }
        const double issue = launch_seconds(host_, operation.pass);
        if (host_.blocking) {
            // The kernels after it are issued, and start, so much later.
            pause_ += issue + to_seconds(host_.wait);
        } else {
            issued_ += issue;
            hold(out.back(), issued_);
        }
    }

    void close() {
        if (!open_) return;
        Segment& segment = compiled_.segments.back();
        segment.duration = from_seconds(seconds_);
        hold(segment, issued_ + lead_);
        issued_ += segment_host_;
        reached_ += seconds_;
        open_ = false;
    }

    // A segment that the device cannot reach before the host has issued it needs no wait.
    void hold(Segment& segment, double from) {
        if (from <= reached_) return;
        segment.not_before = from_seconds(from);
        reached_ = from;
    }

    const Host& host_;
    double issued_;       // by the host, since the list's begin
    double reached_ = 0;  // by the device at the earliest
    bool open_ = false;   // a run of kernels, and its
    double seconds_ = 0, segment_host_ = 0, lead_ = 0;
    double pause_ = 0;  // before the next kernel
    Compiled compiled_;
};

Lane lane_of(const Segment& segment) {
    switch (segment.axis) {
        case Axis::compute:
            return Lane::compute;
        case Axis::tensor:
        case Axis::pipeline:
            return Lane::tensor;
        case Axis::vocabulary:
            return segment.group == Group::embedding ? Lane::world : Lane::tensor;
        case Axis::context:
            return Lane::context;
        case Axis::sharding:
            return Lane::sharding;
        case Axis::data:
            return Lane::data;
        case Axis::norm:
            return Lane::world;
        case Axis::host:
            return Lane::host;
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

    void jitter(const Jitter& jitter) {
        if (!jitter.any()) return;
        apply(
            jitter, [this](TaskId task) { return labels_[task].axis == Axis::compute; }, draft_);
    }

    Result<Lowered> seal_program() {
        Result<Program> program = seal(std::move(draft_));
        if (!program) return tl::unexpected(program.error());
        return Lowered{.program = std::move(*program), .labels = std::move(labels_)};
    }

  private:
    Routes routes_;
    ProgramDraft draft_;
    IdVector<TaskId, Label> labels_;
    std::map<std::pair<DeviceId, Lane>, StreamId> streams_;
};

class Lowering {
  public:
    Lowering(const TrainingStep& step, const Graph& graph, const std::optional<Fold>& fold,
             Detail detail)
        : step_(step),
          fold_(fold.has_value()),
          joins_(fold_ && detail == Detail::chains),
          placement_(step.split, step.devices),
          devices_(fold ? fold->devices : all_devices(placement_)),
          counts_(fold ? fold->counts : std::vector<std::int64_t>(devices_.size(), 1)),
          writer_(graph),
          transfers_(writer_.routes(), writer_.draft(), step.algorithm, step.node, step.fabric,
                     fold ? &*fold : nullptr) {
        for (const DeviceId device : devices_) {
            const Seat seat = placement_.seat(device);
            if (seat.pipeline == 0) replicas_.push_back(replica_of(seat));
        }
        std::ranges::sort(replicas_);
        boundaries_ = std::max<std::int64_t>(0, step.stages() - 1);
        halves_.resize(static_cast<std::size_t>(boundaries_ * 2 * step.micro_batches()) *
                       devices_.size() / static_cast<std::size_t>(step.split.pipeline));
    }

    Result<Lowered> run() {
        std::vector<Cursor> cursors;
        for (const DeviceId device : devices_) cursors.push_back(cursor_of(device));
        if (joins_) {
            for (Cursor& cursor : cursors) {
                if (auto done = prepare(cursor); !done) return tl::unexpected(done.error());
            }
            find_lone_lanes();
        }
        for (Cursor& cursor : cursors) {
            if (auto done = lower_device(cursor); !done) return tl::unexpected(done.error());
        }
        writer_.jitter(step_.jitter);
        for (const BackgroundFlow& flow : step_.background) {
            const Duration pace = flow.steady ? flow.every : Duration::zero();
            const TransferId message = transfers_.background(flow.from, flow.to, flow.bytes, pace);
            writer_.draft().add_background({message, Time(flow.at), flow.every});
        }
        Result<Lowered> lowered = writer_.seal_program();
        if (!lowered) return lowered;
        lowered->hardware_flops = flops_ * static_cast<double>(placement_.devices()) /
                                  static_cast<double>(step_.split.pipeline);
        lowered->devices = std::move(devices_);
        lowered->counts = std::move(counts_);
        lowered->folded = fold_;
        lowered->kinds = transfers_.kinds();
        lowered->chains = std::move(chains_);
        std::ranges::copy(transfers_.refusals(), std::back_inserter(lowered->refusals));
        return lowered;
    }

    [[nodiscard]] bool loads_are_known() const { return transfers_.loads_are_known(); }
    /// Whether the devices that were lowered see what any other would. A collective that puts more
    /// on the ports of some than of others that they stand for (a tree, a parameter server) must be
    /// alone there.
    [[nodiscard]] bool folds_exactly() const {
        return std::ranges::none_of(traffic_,
                                    [&](const auto& one) { return tells_apart(one.second); });
    }

    /// What such collectives tell apart, beside what is told already.
    [[nodiscard]] Roles finer(const Roles& roles) const {
        std::array<std::vector<std::vector<Bytes>>, 4> carried;  // by axis and coordinate
        for (const auto& [id, one] : traffic_) {
            if (!tells_apart(one)) continue;
            const std::span<const DeviceId> members = transfers_.members(one.group);
            for (const SplitAxis axis : axes_of(one.lane.second)) {
                auto& of = carried[static_cast<std::size_t>(axis)];
                of.resize(static_cast<std::size_t>(step_.split.size(axis)));
                for (std::size_t i = 0; i < members.size(); ++i) {
                    auto& mine = of[static_cast<std::size_t>(placement_.seat(members[i])[axis])];
                    const std::vector<Bytes>& more = (*one.ports.uneven)[i];
                    mine.insert(mine.end(), more.begin(), more.end());
                }
            }
        }
        Roles finer = roles;
        for (std::size_t axis = 0; axis < finer.size(); ++axis) {
            finer[axis].resize(std::max(finer[axis].size(), carried[axis].size()));
            carried[axis].resize(finer[axis].size());
            Numbers<std::pair<std::uint32_t, std::vector<Bytes>>> numbers;
            for (std::size_t at = 0; at < finer[axis].size(); ++at) {
                finer[axis][at] = numbers.of({finer[axis][at], carried[axis][at]});
            }
        }
        return finer;
    }

  private:
    // A transfer that others can meet, and where it waits its turn. One that waits for all that its
    // members do is alone on their ports, but on the links above them only if all are members.
    struct Traffic {
        std::pair<Lane, Group> lane;
        GroupId group;  // of a collective
        Transfers::Ports ports;
        bool waits_for_all = false;
    };

    [[nodiscard]] bool tells_apart(const Traffic& one) const {
        if (one.ports.uneven == nullptr) return false;
        if (leaves_idle(one)) return true;
        if (one.waits_for_all && !one.ports.has_uneven_uplinks) return false;
        return meets_others(one);
    }

    // Links that only some of those that are alike use, and no other transfer: reports count the
    // links that carry nothing.
    [[nodiscard]] bool leaves_idle(const Traffic& one) const {
        return std::ranges::any_of(one.ports.partly_loaded, [&](const Transfers::Port& port) {
            return std::ranges::none_of(traffic_, [&](const auto& entry) {
                return entry.second.ports.loaded.contains(port);
            });
        });
    }

    // Along which a group's members lie, but the pipeline, whose ranks are all told apart.
    static std::vector<SplitAxis> axes_of(Group group) {
        using enum SplitAxis;
        switch (group) {
            case Group::tensor:
            case Group::model:
                return {tensor};
            case Group::context:
                return {context};
            case Group::replicas:
                return {context, data};
            case Group::world:
                return {tensor, context, data};
            case Group::embedding:
                return {};
        }
        return {};
    }

    [[nodiscard]] bool meets_others(const Traffic& one) const {
        const bool is_last = one.waits_for_all && one.lane.second == Group::world;
        if (one.ports.has_uplinks && transfers_.uplinks_hold_up()) return !is_last;
        return !one.waits_for_all && std::ranges::any_of(traffic_, [&](const auto& entry) {
            const Traffic& other = entry.second;
            return other.lane != one.lane && !other.waits_for_all &&
                   std::ranges::any_of(one.ports.kinds, [&](const auto& kind) {
                       return other.ports.kinds.contains(kind);
                   });
        });
    }

    // Whose transfers never share a link with those of another, and never wait behind one of their
    // own that the chain does not wait for.
    void find_lone_lanes() {
        for (const auto& [id, one] : traffic_) {
            if (!one.waits_for_all) lone_lanes_.insert(one.lane);
        }
        for (const auto& [id, one] : traffic_) {
            if (meets_others(one)) lone_lanes_.erase(one.lane);
        }
        std::set<Lane> apart;
        const auto look = [&](const Compiled& list) {
            for (const Segment& segment : list.segments) {
                if (!segment.blocking) apart.insert(lane_of(segment));
            }
        };
        for (const auto& [key, list] : lists_) look(list);
        for (const auto& [rank, list] : tails_) look(list);
        std::erase_if(lone_lanes_, [&](const auto& lane) { return apart.contains(lane.first); });
    }

    static std::vector<DeviceId> all_devices(const Placement& placement) {
        std::vector<DeviceId> all;
        for (std::int64_t rank = 0; rank < placement.devices(); ++rank) {
            all.push_back(placement.device(rank));
        }
        return all;
    }

    // A place on all axes but the pipeline.
    [[nodiscard]] std::int64_t replica_of(const Seat& seat) const {
        const Split& split = step_.split;
        return (seat.tensor * split.context + seat.context) * split.data + seat.data;
    }

    using ListKey = std::tuple<std::int64_t, ActionKind, bool, bool>;

    struct Bound {            // a segment on this device
        bool exists = false;  // groups of one do nothing
        Duration duration{};  // kernels
        TransferId transfer{};
        GroupId group{};
        std::uint32_t member = 0;
    };
    struct BoundList {
        std::vector<Bound> segments;
        struct Joined {
            std::size_t first, last;  // segments
            std::uint32_t chain;      // in `chains_`
            bool with_host;           // what the host takes is part of it
        };
        std::vector<Joined> chains;  // in order
    };

    // Of the device that is being lowered.
    struct Cursor {
        DeviceId device;
        Seat seat;
        std::size_t replica;  // in `replicas_`
        double slowness = 1;
        std::array<StreamId, lane_count> streams{};
        std::array<TaskId, lane_count> last{};  // task of each lane
        TaskId chain = no_task;                 // the main chain's end
        TaskId host = no_task;                  // the host's last one
        TaskId pending_send = no_task;          // blocking messages: the chain waits for it too
        std::map<std::int32_t, TaskId> step_tickets{};
        std::map<ListKey, BoundList> bound{};
        BoundList bound_tail{};
    };

    Cursor cursor_of(DeviceId device) {
        const Seat seat = placement_.seat(device);
        const auto replica = std::ranges::lower_bound(replicas_, replica_of(seat));
        Cursor cursor{.device = device,
                      .seat = seat,
                      .replica = static_cast<std::size_t>(replica - replicas_.begin())};
        cursor.last.fill(no_task);
        for (const SlowDevice& slow : step_.slow_devices) {
            if (slow.device == device.value) cursor.slowness *= slow.factor;
        }
        for (std::size_t lane = 0; lane < lane_count; ++lane) {
            cursor.streams[lane] = writer_.stream(device, static_cast<Lane>(lane));
        }
        return cursor;
    }

    // Makes all of the device's transfers, so that it is known which of them can meet.
    Result<void> prepare(Cursor& cursor) {
        for (const Action& action : actions_of(cursor.seat.pipeline)) {
            const StageAction about = about_of(cursor, action);
            const auto [entry, is_new] = cursor.bound.try_emplace(key_of(about));
            if (!is_new) continue;
            auto made = bind(cursor, list_of(about));
            if (!made) return tl::unexpected(made.error());
            entry->second.segments = std::move(*made);
            if (action.kind == ActionKind::weight_gradient) continue;
            const bool forward = action.kind == ActionKind::forward;
            const auto message =
                message_over(cursor, forward ? about.stage : about.stage - 1, forward);
            if (message) note_traffic(*message, {send_lane(forward), Group::model}, {}, false);
        }
        auto made = bind(cursor, tail_of(cursor.seat.pipeline));
        if (!made) return tl::unexpected(made.error());
        cursor.bound_tail.segments = std::move(*made);
        return {};
    }

    Result<void> lower_device(Cursor& cursor) {
        if (joins_) {
            for (auto& [key, list] : cursor.bound) find_chains(lists_.at(key), list);
        } else if (auto done = prepare(cursor); !done) {
            return done;
        }
        for (const Action& action : actions_of(cursor.seat.pipeline)) lower_action(cursor, action);
        const Compiled& tail = tail_of(cursor.seat.pipeline);
        emit(cursor, tail, cursor.bound_tail,
             {.stage = static_cast<std::uint16_t>(cursor.seat.pipeline)}, no_task);
        if (cursor.replica == 0) flops_ += tail.flops;
        cursor.bound.clear();
        return {};
    }

    // Runs of segments that are one task: what they wait for is waited for at the begin, and nobody
    // waits for what is inside.
    void find_chains(const Compiled& compiled, BoundList& list) {
        const std::vector<Segment>& segments = compiled.segments;
        const auto can_join = [&](std::size_t i) {
            const Segment& segment = segments[i];
            if (segment.axis == Axis::compute) return true;
            return segment.blocking && !segment.waits_for_all &&
                   lone_lanes_.contains({lane_of(segment), segment.group}) &&
                   transfers_.parts(list.segments[i].group).size() == 1;
        };
        const auto waits = [&](std::size_t i) {
            return !segments[i].waits_for.empty() || segments[i].waits_for_step_ticket >= 0 ||
                   segments[i].waits_for_all;
        };
        bool at_begin = true;  // of the list
        for (std::size_t first = 0; first < segments.size();) {
            if (!list.segments[first].exists) {
                ++first;
                continue;
            }
            // The host's time counts from the list's begin, or from when it is done with what was
            // last: of a chain that it holds up, it holds up all.
            const bool with_host = std::exchange(at_begin, false) && !waits(first) &&
                                   segments[first].not_before > Duration::zero();
            std::vector<ChainPiece> pieces;
            std::size_t last = first;  // the last kernel that can be its end
            std::size_t pieces_to_last = 0;
            for (std::size_t i = first; i < segments.size(); ++i) {
                const Segment& segment = segments[i];
                const Bound& bound = list.segments[i];
                if (!bound.exists) continue;
                if (!can_join(i) || (i > first && waits(i))) break;
                if (!with_host && segment.not_before > Duration::zero() && i > first) break;
                const bool is_kernel = segment.axis == Axis::compute;
                pieces.push_back(
                    {.is_kernel = is_kernel,
                     .duration = is_kernel ? bound.duration : transfers_.alone(bound.transfer),
                     .not_before = with_host ? segment.not_before : Duration::zero(),
                     .transfer = bound.transfer,
                     .axis = segment.axis,
                     .awaited = segment.pass != Pass::update});
                if (is_kernel) {
                    last = i;
                    pieces_to_last = pieces.size();
                }
                if (segment.ticket >= 0 || segment.step_ticket >= 0) break;
            }
            if (pieces_to_last > 1) {
                pieces.resize(pieces_to_last);
                list.chains.push_back(
                    {first, last, static_cast<std::uint32_t>(chains_.size()), with_host});
                chains_.push_back(make_chain(pieces));
            }
            first = pieces_to_last > 1 ? last + 1 : first + 1;
        }
    }

    [[nodiscard]] PipelineShape pipeline_shape() const {
        return {static_cast<std::uint32_t>(step_.split.pipeline),
                static_cast<std::uint32_t>(step_.chunks),
                static_cast<std::uint32_t>(step_.micro_batches())};
    }

    const std::vector<Action>& actions_of(std::int64_t pipeline_rank) {
        const auto rank = static_cast<std::uint32_t>(pipeline_rank);
        const auto [entry, is_new] = actions_.try_emplace(rank);
        if (is_new) entry->second = step_.schedule->actions(pipeline_shape(), rank);
        return entry->second;
    }

    // ---- Lists, prepared once

    [[nodiscard]] ListKey key_of(const StageAction& action) const {
        return {listed_stage(action), action.kind, action.first, action.last};
    }

    // The first stage with the same list. The first forward may gather the parameters of layers by
    // their numbers.
    [[nodiscard]] std::int64_t listed_stage(const StageAction& action) const {
        const bool is_inner = !has_embedding(step_, action.stage) && !has_head(step_, action.stage);
        const bool has_numbers = action.first && action.kind == ActionKind::forward;
        return is_inner && !has_numbers && step_.stage_layers.empty() ? 1 : action.stage;
    }

    [[nodiscard]] StageAction about_of(const Cursor& cursor, const Action& action) const {
        return {.stage = action.chunk * step_.split.pipeline + cursor.seat.pipeline,
                .kind = action.kind,
                .first = action.micro_batch == 0,
                .last = action.micro_batch + 1 == step_.micro_batches()};
    }

    const Compiled& list_of(const StageAction& action) {
        const auto [entry, is_new] = lists_.try_emplace(key_of(action));
        if (is_new) {
            entry->second =
                Compiler(host_, host_before(action.kind)).run(stage_operations(step_, action));
        }
        return entry->second;
    }

    const Compiled& tail_of(std::int64_t rank) {
        const auto [entry, is_new] = tails_.try_emplace(rank);
        if (is_new) entry->second = Compiler(host_, host_.step).run(tail_operations(step_, rank));
        return entry->second;
    }

    // A third of a micro-batch's host time comes before its forward, two before its backward; where
    // that is cut in two, one before each half.
    [[nodiscard]] Duration host_before(ActionKind kind) const {
        const double thirds = kind == ActionKind::backward ? 2 : 1;
        return scale(host_.micro_batch, thirds / 3 / static_cast<double>(step_.chunks));
    }

    // ---- A device's groups and transfers

    std::vector<DeviceId> members(const Cursor& cursor, Group group) const {
        using enum SplitAxis;
        Seat seat = cursor.seat;
        switch (group) {
            case Group::tensor:
                return placement_.group(seat, {tensor});
            case Group::context:
                return placement_.group(seat, {context});
            case Group::replicas:
                return placement_.group(seat, {context, data});
            case Group::model:
                return placement_.group(seat, {tensor, pipeline});
            case Group::world:
                return placement_.group(seat, {tensor, context, pipeline, data});
            case Group::embedding: {
                seat.pipeline = 0;
                const DeviceId first = placement_.device(seat);
                seat.pipeline = step_.split.pipeline - 1;
                return {first, placement_.device(seat)};
            }
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
            case Group::context:
                seat.context = 0;
                break;
            case Group::replicas:
                seat.context = seat.data = 0;
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
            calls_[entry->second].made.resize(transfers_.parts(entry->second).size());
        }
        return entry->second;
    }

    Result<std::vector<Bound>> bind(const Cursor& cursor, const Compiled& compiled) {
        std::vector<Bound> bound(compiled.segments.size());
        for (std::size_t i = 0; i < bound.size(); ++i) {
            const Segment& segment = compiled.segments[i];
            if (segment.axis == Axis::compute) {
                bound[i] = {.exists = true,
                            .duration = cursor.slowness == 1
                                            ? segment.duration
                                            : scale(segment.duration, cursor.slowness)};
                continue;
            }
            const GroupId group = group_of(cursor, segment);
            if (transfers_.members(group).size() == 1) continue;
            const Result<TransferId> transfer =
                transfers_.collective(group, segment.kind, segment.bytes);
            if (!transfer) return tl::unexpected(transfer.error());
            const std::span<const DeviceId> parts = transfers_.parts(group);
            const auto place = std::lower_bound(parts.begin(), parts.end(), cursor.device);
            note_traffic(*transfer, {lane_of(segment), segment.group}, group,
                         segment.waits_for_all);
            bound[i] = {.exists = true,
                        .transfer = *transfer,
                        .group = group,
                        .member = static_cast<std::uint32_t>(place - parts.begin())};
        }
        if (step_.framework.sharding_contention > 0) contend(compiled, bound);
        return bound;
    }

    void note_traffic(TransferId transfer, std::pair<Lane, Group> lane, GroupId group,
                      bool waits_for_all) {
        if (!fold_) return;
        const auto [entry, is_new] = traffic_.try_emplace(transfer);
        if (is_new) entry->second = {lane, group, transfers_.ports(transfer), waits_for_all};
        if (!waits_for_all) entry->second.waits_for_all = false;
    }

    // Kernels and the sharding collectives that are issued beside them, up to where the next
    // kernels wait for a collective, slow each other down. All members count the kernels of a
    // device that is not slow: they share the collective.
    void contend(const Compiled& compiled, std::vector<Bound>& bound) {
        const std::vector<Segment>& segments = compiled.segments;
        for (std::size_t begin = 0; begin < segments.size();) {
            std::size_t end = begin + 1;
            while (end < segments.size() && segments[end].waits_for.empty()) ++end;
            Duration kernels{}, collectives{};
            const auto beside = [&](std::size_t i) {
                return bound[i].exists && segments[i].axis == Axis::sharding &&
                       !segments[i].blocking;
            };
            for (std::size_t i = begin; i < end; ++i) {
                if (segments[i].axis == Axis::compute) kernels += segments[i].duration;
                if (beside(i)) collectives += transfers_.alone(bound[i].transfer);
            }
            const Duration longer =
                scale(std::min(kernels, collectives), step_.framework.sharding_contention);
            for (std::size_t i = begin; i < end && longer > Duration::zero(); ++i) {
                if (segments[i].axis == Axis::compute) {
                    bound[i].duration += share_of(longer, segments[i].duration, kernels);
                } else if (beside(i)) {
                    const Duration alone = transfers_.alone(bound[i].transfer);
                    const Result<TransferId> slowed =
                        transfers_.collective(bound[i].group, segments[i].kind, segments[i].bytes,
                                              0, share_of(longer, alone, collectives));
                    FOURFOLD_CHECK(slowed, "a collective that could be done cannot be slowed");
                    bound[i].transfer = *slowed;
                }
            }
            begin = end;
        }
    }

    static Duration share_of(Duration whole, Duration part, Duration sum) {
        return scale(whole, static_cast<double>(part.count()) / static_cast<double>(sum.count()));
    }

    // ---- Tasks

    void lower_action(Cursor& cursor, const Action& action) {
        const StageAction about = about_of(cursor, action);
        const Compiled& list = list_of(about);
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
        emit(cursor, list, cursor.bound.at(key_of(about)), label, received);
        if (cursor.replica == 0) flops_ += list.flops;
        if (passes_on) {
            const std::int64_t to = forward ? about.stage : about.stage - 1;
            send(cursor, to, forward, label);
        }
    }

    void emit(Cursor& cursor, const Compiled& compiled, const BoundList& list, const Label& label,
              TaskId received) {
        const std::vector<Bound>& bound = list.segments;
        auto chain = list.chains.begin();
        tickets_.assign(static_cast<std::size_t>(compiled.tickets), no_task);
        HostQueue host{.begin = {cursor.chain, received, cursor.pending_send}};
        for (std::size_t i = 0; i < compiled.segments.size(); ++i) {
            const Segment& segment = compiled.segments[i];
            if (!bound[i].exists) continue;
            const bool joins = chain != list.chains.end() && chain->first == i;
            const bool is_kernel = joins || segment.axis == Axis::compute;
            const bool has_host = joins && chain->with_host;
            const TaskId issued =
                has_host ? no_task : issue(cursor, segment.not_before, label, host);

            after_.clear();
            const auto wait_for = [&](TaskId task) {
                if (task == no_task) return;
                if (std::find(after_.begin(), after_.end(), task) == after_.end()) {
                    after_.push_back(task);
                }
            };
            wait_for(cursor.chain);
            wait_for(issued);
            if (segment.blocking) {
                wait_for(received);
                wait_for(cursor.pending_send);
                received = cursor.pending_send = no_task;
            }
            if (has_host) wait_for(cursor.host);
            for (const std::int32_t ticket : segment.waits_for) {
                wait_for(tickets_[static_cast<std::size_t>(ticket)]);
            }
            if (const auto early = cursor.step_tickets.find(segment.waits_for_step_ticket);
                early != cursor.step_tickets.end()) {
                wait_for(early->second);
            }
            if (segment.waits_for_all) {
                for (const TaskId last : cursor.last) wait_for(last);
            }

            const auto lane = static_cast<std::size_t>(joins ? Lane::compute : lane_of(segment));
            Label mine = label;
            mine.axis = joins ? Axis::compute : segment.axis;
            if (joins) mine.chain = chain->chain;
            mine.pass = segment.pass;
            mine.on_chain = segment.blocking;
            const bool has_ticket = segment.ticket >= 0 || segment.step_ticket >= 0;
            mine.awaited = segment.pass != Pass::update && (segment.blocking || has_ticket);
            const TaskId task = writer_.label(
                is_kernel ? writer_.draft().compute(
                                cursor.streams[lane],
                                joins ? chains_[chain->chain].length() : bound[i].duration, after_)
                          : writer_.draft().part(cursor.streams[lane], next_call(bound[i]),
                                                 bound[i].member, after_),
                mine);
            cursor.last[lane] = task;
            if (joins) i = (chain++)->last;
            const Segment& end = compiled.segments[i];
            if (end.step_ticket >= 0) cursor.step_tickets[end.step_ticket] = task;
            if (end.ticket >= 0) tickets_[static_cast<std::size_t>(end.ticket)] = task;
            if (end.blocking) cursor.chain = task;
        }
    }

    // The host's thread in one list: it begins where the list does.
    struct HostQueue {
        std::array<TaskId, 3> begin;  // what the list waits for
        Duration at{};                // counted from there
    };

    // Lets the host work until `until`, if it has to.
    TaskId issue(Cursor& cursor, Duration until, Label label, HostQueue& host) {
        if (until == Duration::zero()) return no_task;
        after_.clear();
        if (host.at == Duration::zero()) {
            std::ranges::copy_if(host.begin, std::back_inserter(after_),
                                 [](TaskId task) { return task != no_task; });
        }
        label.axis = Axis::host;
        const auto lane = static_cast<std::size_t>(Lane::host);
        const TaskId task = writer_.label(
            writer_.draft().compute(cursor.streams[lane], until - host.at, after_), label);
        host.at = until;
        return cursor.host = task;
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
        std::int64_t index = boundary * 2 + (forward ? 0 : 1);
        index = index * step_.micro_batches() + label.micro_batch;
        return halves_[static_cast<std::size_t>(index) * replicas_.size() + cursor.replica];
    }

    DeviceId neighbour(const Cursor& cursor, std::int64_t stage) const {
        Seat seat = cursor.seat;
        seat.pipeline = stage % step_.split.pipeline;
        return placement_.device(seat);
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

    static Lane send_lane(bool forward) {
        return forward ? Lane::send_forward : Lane::send_backward;
    }

    // What is sent over this boundary; nothing where `receive` has no task.
    std::optional<TransferId> message_over(const Cursor& cursor, std::int64_t boundary,
                                           bool forward) {
        if (boundary < 0 || boundary >= boundaries_) return std::nullopt;
        const DeviceId receiver = neighbour(cursor, forward ? boundary + 1 : boundary);
        if (receiver == cursor.device) return std::nullopt;
        return transfers_.message(cursor.device, receiver, pipeline_message_bytes(step_));
    }

    void send(Cursor& cursor, std::int64_t boundary, bool forward, Label label) {
        const auto message = message_over(cursor, boundary, forward);
        if (!message) return;
        const auto lane = static_cast<std::size_t>(send_lane(forward));
        label.axis = Axis::pipeline;
        after_.assign(1, cursor.chain);
        const TaskId task =
            writer_.label(writer_.draft().send(cursor.streams[lane], *message, after_), label);
        cursor.last[lane] = task;
        if (step_.point_to_point == PointToPoint::blocking) cursor.pending_send = task;
        Writer::Halves& pair = halves(cursor, boundary, forward, label);
        pair.send = task;
        writer_.meet(pair, pipeline_message_bytes(step_));
    }

    const TrainingStep& step_;
    const bool fold_;
    const bool joins_;  // chains
    // Measured stages include the time of their host.
    const Host host_ = step_.measured.stage ? Host{} : step_.framework.host;
    Placement placement_;
    std::vector<DeviceId> devices_;
    std::vector<std::int64_t> counts_;
    std::vector<std::int64_t> replicas_;  // that are lowered, in order
    Writer writer_;
    Transfers transfers_;
    std::int64_t boundaries_ = 0;
    std::vector<Writer::Halves> halves_;
    std::map<std::uint32_t, std::vector<Action>> actions_;
    std::map<ListKey, Compiled> lists_;
    std::map<std::int64_t, Compiled> tails_;
    std::vector<Chain> chains_;
    std::set<std::pair<Lane, Group>> lone_lanes_;
    std::map<std::tuple<Group, Lane, DeviceId>, GroupId> groups_;
    struct Calls {
        std::vector<std::uint32_t> made;  // by each member
        std::vector<CollectiveId> ids;
        std::vector<TransferId> transfers;
    };
    IdVector<GroupId, Calls> calls_;
    std::vector<TaskId> after_, tickets_;
    std::map<TransferId, Traffic> traffic_;  // where folded
    double flops_ = 0;                       // of one device of each pipeline rank
};

}  // namespace

std::string_view name_of(Axis axis) {
    static constexpr std::string_view names[] = {"compute",  "tensor",   "vocabulary",
                                                 "context",  "sharding", "data",
                                                 "pipeline", "norm",     "host"};
    return names[static_cast<std::size_t>(axis)];
}

std::string_view name_of(Pass pass) {
    static constexpr std::string_view names[] = {"forward",         "recompute", "input gradient",
                                                 "weight gradient", "update",    "backward"};
    return names[static_cast<std::size_t>(pass)];
}

std::string_view name_of(Lane lane) {
    static constexpr std::string_view names[lane_count] = {
        "compute",       "tensor",          "sharding",         "data",  "send forward",
        "send backward", "receive forward", "receive backward", "world", "context",
        "host"};
    return names[static_cast<std::size_t>(lane)];
}

Result<Lowered> lower(const TrainingStep& step, const Graph& graph, Folding folding,
                      Detail detail) {
    Roles roles;
    std::optional<Fold> fold = fold_of(step, graph);
    if (folding == Folding::none || !fold) {
        if (auto fits = check_tasks(step, {}); !fits) return tl::unexpected(fits.error());
    }
    while (fold) {
        if (auto fits = check_tasks(step, fold); !fits) return tl::unexpected(fits.error());
        Lowering lowering(step, graph, fold, detail);
        Result<Lowered> lowered = lowering.run();
        if (!lowered) return lowered;
        if (!lowering.loads_are_known()) {
            if (auto fits = check_tasks(step, {}); !fits) return tl::unexpected(fits.error());
            fold.reset();
            break;
        }
        if (!lowering.folds_exactly()) {
            roles = lowering.finer(roles);
            fold = fold_of(step, graph, roles);
            continue;
        }
        if (folding == Folding::none) break;
        lowered->fold = std::move(fold);
        return lowered;
    }
    Result<Lowered> lowered = Lowering(step, graph, std::nullopt, detail).run();
    if (lowered) lowered->fold = std::move(fold);
    return lowered;
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
    Result<Lowered> lowered = writer.seal_program();
    if (!lowered) return lowered;
    for (const DeviceId device : ids<DeviceId>(shape.ranks)) lowered->devices.push_back(device);
    lowered->counts.assign(shape.ranks, 1);
    return lowered;
}

}  // namespace fourfold
