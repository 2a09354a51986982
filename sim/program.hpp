#pragma once

// The narrow waist: a task graph of ids in flat arrays. Whatever describes work lowers to this;
// whatever asks how long it takes reads this. No layer, no gradient, no clock.
//
// Tasks belong to in-order streams of devices. Four kinds:
//   compute   occupies its stream for a fixed time.
//   send      occupies its stream while its transfer is served; then the stream is free, and the
//             receive paired with it arrives `latency` later.
//   receive   done when its message has arrived; the stream only orders it.
//   part      one member's part in a collective. In the fluid model the collective starts when its
//             last part is ready, and all parts end together; message by message, each part works
//             through its own steps and ends on its own.

#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "sim/steps.hpp"
#include "topology/graph.hpp"
#include "topology/ids.hpp"
#include "topology/routes.hpp"
#include "topology/units.hpp"

namespace fourfold {

using TaskId = Id<struct TaskTag>;
using StreamId = Id<struct StreamTag>;
using TransferId = Id<struct TransferTag>;
using TeamId = Id<struct TeamTag>;
using CollectiveId = Id<struct CollectiveTag>;
using BackgroundId = Id<struct BackgroundTag>;

enum class TaskKind : std::uint8_t { compute, send, receive, part };

/// A time of a call that takes `stretch` times as long as its kind.
inline Duration stretched(Duration duration, double stretch) {
    return stretch == 1 ? duration : scale(duration, stretch);
}

struct Stream {
    DeviceId device;
    std::uint8_t lane;  // which of the device's streams; what lanes mean is the lowering's business
};

/// What a transfer puts on one link in all.
struct LinkUse {
    LinkId link;
    Bytes bytes{};
    /// How many transfers like it, at the same time, put as much there; only this one is simulated.
    /// Fluid links carry them all.
    std::int64_t copies = 1;
};

/// The members of collectives and the whole-message paths between those that exchange. Where each
/// exchanges with many, none is kept: the graph's routes tell them (sim/team_paths.hpp).
struct Team {
    std::vector<DeviceId> members;
    [[nodiscard]] bool keeps_paths() const { return !peers.empty(); }
    struct Peer {
        std::uint32_t to;
        std::uint32_t path_begin, path_end;  // in `links`
    };
    std::vector<std::uint32_t> first_peer;  // members + 1 offsets into `peers`
    std::vector<Peer> peers;                // by member, then `to`
    std::vector<LinkId> links;
};

/// A kind of transfer, shared by all tasks that do the same: a point-to-point message or a whole
/// collective of one team.
struct Transfer {
    bool is_collective = false;
    // Fluid (see flow_links.hpp)
    Duration alone{};      // time of the activity on idle links; at least bytes / rate of any use
    Bytes stream_bytes{};  // bytes of one of its send streams: the unit of fairness
    std::vector<LinkUse> uses;
    // A message
    Bytes bytes{};
    Duration overhead{};  // software cost, part of `alone`
    Duration latency{};   // from the end of the activity to the arrival
    std::vector<LinkId> path;
    // A collective
    TeamId team{};
    const StepRule* rule = nullptr;
    StepPlan plan;
    Duration start{};                     // before the first step, part of `alone`
    std::vector<std::uint32_t> incoming;  // messages that each member receives
    std::vector<Bytes> sent;              // by each member
    bool meets = false;                   // no member is done before all have begun
};

/// Messages that load the links while tasks are open and that nobody waits for: one at `at`, the
/// next `every` after its begin, or when it has left its device, if that is later. `every` zero:
/// there is no next.
struct Background {
    TransferId transfer;
    Time at{};
    Duration every{};
};

class Program {
  public:
    [[nodiscard]] std::size_t tasks() const { return kind_.size(); }
    [[nodiscard]] TaskKind kind(TaskId task) const { return kind_[task]; }
    [[nodiscard]] StreamId stream(TaskId task) const { return stream_[task]; }
    [[nodiscard]] DeviceId device(TaskId task) const { return streams_[stream_[task]].device; }
    /// Of a compute task.
    [[nodiscard]] Duration duration(TaskId task) const { return durations_[detail_[task]]; }
    /// Of a send.
    [[nodiscard]] TransferId transfer(TaskId send) const { return {detail_[send]}; }
    /// The other half: of a send its receive, of a receive its send.
    [[nodiscard]] TaskId partner(TaskId receive) const { return {detail_[receive]}; }
    /// Of a part.
    [[nodiscard]] CollectiveId collective(TaskId part) const { return {detail_[part]}; }

    /// Tasks that must be done before `task` starts, its stream's order included (where it does not
    /// follow from the others). A receive waits for its message beside these.
    [[nodiscard]] std::span<const TaskId> dependencies(TaskId task) const {
        return range(dependencies_, first_dependency_, task);
    }
    [[nodiscard]] std::span<const TaskId> successors(TaskId task) const {
        return range(successors_, first_successor_, task);
    }

    /// How many times as long as its transfer a send or a call of a collective takes, on every link
    /// and in all: 1, unless the draft says otherwise.
    [[nodiscard]] double stretch(TaskId send) const {
        return send_stretch_.empty() ? 1 : send_stretch_[send.value];
    }
    [[nodiscard]] double stretch(CollectiveId id) const {
        return collective_stretch_.empty() ? 1 : collective_stretch_[id.value];
    }

    [[nodiscard]] const IdVector<StreamId, Stream>& streams() const { return streams_; }
    [[nodiscard]] const IdVector<TransferId, Transfer>& transfers() const { return transfers_; }
    [[nodiscard]] const IdVector<TeamId, Team>& teams() const { return teams_; }

    struct Collective {
        TransferId transfer;
        std::uint32_t first_part;  // in `parts`: one task per member of the team, in its order
    };
    [[nodiscard]] const IdVector<CollectiveId, Collective>& collectives() const {
        return collectives_;
    }
    [[nodiscard]] std::span<const TaskId> parts(CollectiveId id) const {
        const Collective& collective = collectives_[id];
        return {parts_.data() + collective.first_part,
                teams_[transfers_[collective.transfer].team].members.size()};
    }
    [[nodiscard]] const Transfer& transfer_of(CollectiveId id) const {
        return transfers_[collectives_[id].transfer];
    }
    [[nodiscard]] const IdVector<BackgroundId, Background>& background() const {
        return background_;
    }

  private:
    static std::span<const TaskId> range(const std::vector<TaskId>& all,
                                         const std::vector<std::uint32_t>& first, TaskId task) {
        return {all.data() + first[task.value], first[task.value + 1] - first[task.value]};
    }

    friend class ProgramDraft;
    friend Result<Program> seal(class ProgramDraft draft);
    IdVector<TaskId, TaskKind> kind_;
    IdVector<TaskId, StreamId> stream_;
    IdVector<TaskId, std::uint32_t> detail_;
    std::vector<std::uint32_t> first_dependency_;  // tasks + 1
    std::vector<TaskId> dependencies_;
    std::vector<std::uint32_t> first_successor_;
    std::vector<TaskId> successors_;
    std::vector<Duration> durations_;
    IdVector<StreamId, Stream> streams_;
    IdVector<TransferId, Transfer> transfers_;
    IdVector<TeamId, Team> teams_;
    IdVector<CollectiveId, Collective> collectives_;
    std::vector<TaskId> parts_;
    std::vector<double> send_stretch_, collective_stretch_;  // by task, by collective; or empty
    IdVector<BackgroundId, Background> background_;
};

/// A program being written. Tasks of one stream run in the order in which they are added.
class ProgramDraft {
  public:
    StreamId add_stream(DeviceId device, std::uint8_t lane);
    TeamId add_team(Team team);
    TransferId add_transfer(Transfer transfer);
    /// One call of a collective; every member must take part exactly once.
    CollectiveId add_collective(TransferId transfer);

    /// `after`: tasks already added (of any stream) that must be done first.
    TaskId compute(StreamId stream, Duration duration, std::span<const TaskId> after = {});
    TaskId send(StreamId stream, TransferId transfer, std::span<const TaskId> after = {});
    TaskId receive(StreamId stream, std::span<const TaskId> after = {});
    TaskId part(StreamId stream, CollectiveId collective, std::uint32_t member,
                std::span<const TaskId> after = {});
    /// The message of `send` is the one that `receive` waits for. `expected` is what the receiver
    /// expects; `seal` refuses a pair that differs.
    void connect(TaskId send, TaskId receive, Bytes expected);

    /// Tasks and collectives already added then take so many times as long. Requires: factor > 0.
    void stretch_compute(TaskId compute, double factor);
    void stretch_send(TaskId send, double factor);
    void stretch_collective(CollectiveId id, double factor);

    [[nodiscard]] TaskKind kind(TaskId task) const { return program_.kind(task); }
    [[nodiscard]] DeviceId device(TaskId task) const { return program_.device(task); }
    [[nodiscard]] std::size_t collectives() const { return program_.collectives_.size(); }
    [[nodiscard]] DeviceId first_member(CollectiveId id) const {
        return team(program_.transfer_of(id).team).members.front();
    }
    BackgroundId add_background(const Background& background);

    [[nodiscard]] const Transfer& transfer(TransferId id) const { return program_.transfers_[id]; }
    [[nodiscard]] const Team& team(TeamId id) const { return program_.teams_[id]; }
    [[nodiscard]] std::size_t tasks() const { return program_.tasks(); }

  private:
    friend Result<Program> seal(ProgramDraft draft);
    TaskId add(TaskKind kind, StreamId stream, std::uint32_t detail, std::span<const TaskId> after);

    Program program_;
    IdVector<StreamId, TaskId> last_;  // of each stream; `none` while it is empty
    std::unordered_map<std::int64_t, std::uint32_t> duration_ids_;
    std::vector<TaskId> mismatched_;  // receives that expect another size than is sent
    std::vector<Bytes> mismatched_expect_;
    std::vector<CollectiveId> twice_;  // collectives that a member joined twice
    static constexpr TaskId none{~std::uint32_t{0}};
};

/// Refuses sends or receives without partner, sizes that differ, and collectives with a member
/// missing or twice; the text names the tasks' devices.
Result<Program> seal(ProgramDraft draft);

}  // namespace fourfold
