#pragma once

// From "these devices exchange these bytes" to what the simulator moves: routes, times alone, bytes
// on every link, steps.

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "sim/program.hpp"
#include "topology/routes.hpp"
#include "topology/uplinks.hpp"
#include "workloads/collectives/collective.hpp"
#include "workloads/fold.hpp"
#include "workloads/training_step.hpp"

namespace fourfold {

using GroupId = Id<struct GroupTag>;

/// All that one member sends to another in a collective.
struct Sending {
    std::uint32_t to;
    Bytes bytes{};
    std::uint32_t messages = 0;
};

/// Makes the transfers of a program, each distinct one once.
class Transfers {
  public:
    /// `routes` and `draft` are borrowed and must outlive this. `algorithm`: of every collective,
    /// nullptr to choose for each. `node` and `fabric`: costs within a node and across nodes.
    /// `fold`: which devices have tasks; borrowed; nullptr: all. Of collectives only simulated
    /// members take part, and use their links and those above their blocks.
    Transfers(Routes& routes, ProgramDraft& draft, const Algorithm* algorithm,
              const TransportCosts& node, const TransportCosts& fabric, const Fold* fold = nullptr);

    /// A set of devices that does collectives, in rank order.
    GroupId add_group(std::vector<DeviceId> members);
    [[nodiscard]] std::span<const DeviceId> members(GroupId group) const {
        return groups_[group].members;
    }

    TransferId message(DeviceId from, DeviceId to, Bytes bytes);
    /// A message of nobody's stream: no software cost, and where links are fluid it takes at least
    /// `pace`.
    TransferId background(DeviceId from, DeviceId to, Bytes bytes, Duration pace);
    /// `delay`: lasts so much longer. A problem if no algorithm does this call: a root that is no
    /// member, say.
    Result<TransferId> collective(GroupId group, CollectiveKind kind, Bytes bytes,
                                  std::uint32_t root = 0, Duration delay = Duration::zero());
    /// Members that take part, in the order of `members`.
    [[nodiscard]] std::span<const DeviceId> parts(GroupId group) const {
        return groups_[group].parts;
    }
    [[nodiscard]] Duration alone(TransferId transfer) const {
        return draft_->transfer(transfer).alone;
    }

    /// The algorithm given where it does this kind (as NCCL_ALGO is taken), else the one chosen for
    /// this call.
    const Algorithm& algorithm(GroupId group, CollectiveKind kind, Bytes bytes, std::uint32_t root);
    /// The call that `collective` makes of it.
    [[nodiscard]] CollectiveCall call(GroupId group, CollectiveKind kind, Bytes bytes,
                                      std::uint32_t root) const;
    /// Why the algorithm given was not used for some calls, each reason once.
    [[nodiscard]] const std::set<std::string>& refusals() const { return refusals_; }
    /// Of each transfer made so far (of messages: any).
    [[nodiscard]] const std::vector<CollectiveKind>& kinds() const { return kinds_; }

    /// Links that are alike: those of one kind at a device, or above a section.
    struct Port {
        std::size_t kind;      // numbered as they are found
        std::uint32_t number;  // of the device or section
        friend auto operator<=>(const Port&, const Port&) = default;
    };
    /// The links of a transfer. Two transfers can hold each other up where they share a kind.
    struct Ports {
        std::set<std::pair<BytesPerSecond, Duration>> kinds;  // rate and latency
        bool has_uplinks = false;  // which transfers like it use too, that are not simulated
        /// Where members that are simulated once do not all carry the same: what each member, and
        /// each section that it is in, carries on each kind.
        const std::vector<std::vector<Bytes>>* uneven = nullptr;
        bool has_uneven_uplinks = false;
        /// Links of simulated devices, and above simulated sections, that carry something, and
        /// whose like all do; and those of which only some do.
        std::set<Port> loaded, partly_loaded;
    };
    [[nodiscard]] Ports ports(TransferId transfer) const;
    /// Where only some devices are simulated: whether what all load is known. It is not where a
    /// message goes through a device that is neither its end nor a member of its group.
    [[nodiscard]] bool loads_are_known() const { return loads_are_known_; }
    /// Whether links between switches can hold up what leaves their blocks: there are too few, or
    /// what is spread over them cannot be cut to the byte.
    [[nodiscard]] bool uplinks_hold_up() const {
        return routes_->graph().shares_uplinks() || !cut_evenly_;
    }

  private:
    struct Group {
        std::vector<DeviceId> members;
        std::vector<DeviceId> parts;  // those that are simulated
        std::uint32_t per_node = 1;
        bool in_one_node = true;
        // Where only some devices are simulated:
        std::int64_t alike = 1;  // how many groups it stands for
        // Its members, and, where blocks have uplinks, their sections of blocks of each size:
        // places that are numbered within the group.
        struct Level {
            std::vector<std::uint32_t> place_of;              // each member's
            std::vector<std::uint32_t> like;                  // each place: the first like it
            std::vector<std::uint32_t> stood_for_by;          // each place: what is simulated
            std::map<std::uint32_t, std::int64_t> simulated;  // how many places are like it
        };
        std::vector<Level> levels;
        std::map<DeviceId, std::uint32_t> member_of;  // where there are several rails
    };

    [[nodiscard]] bool same_node(DeviceId a, DeviceId b) const {
        return routes_->graph().node_of(a) == routes_->graph().node_of(b);
    }
    /// How a message between two devices loads their ports.
    struct Way {
        Route route;
        struct Port {
            std::size_t kind;  // in `port_kinds_`
            Share share;
            bool at_from;     // else at the receiver: its device, or the section that it is in
            bool other_rail;  // of the device beside it that is on the other one's rail
            friend bool operator==(const Port&, const Port&) = default;
        };
        std::vector<Port> ports;
    };
    class PortLoads;

    /// The device in the same node that is on the rail of `other`.
    [[nodiscard]] DeviceId beside(DeviceId device, DeviceId other) const {
        const std::uint32_t rails = routes_->graph().rails();
        return {device.value / rails * rails + other.value % rails};
    }
    Way make_way(DeviceId from, DeviceId to);
    /// The way from one to the other, or, where only some devices are simulated, one like it:
    /// between two that are not odd only the blocks and the rail that hold both count.
    const Way& way(DeviceId from, DeviceId to);
    Hop hop(DeviceId from, DeviceId to, Bytes bytes);
    /// By a message between two that are simulated.
    std::set<Port> loaded(DeviceId from, DeviceId to);
    /// Good until the next call.
    const std::vector<Sending>& sendings(const Algorithm& algorithm, const CollectiveCall& about,
                                         const StepPlan& plan, std::uint32_t member);
    Transfer make_message(DeviceId from, DeviceId to, Bytes bytes);
    TransferId add(Transfer transfer);
    Bytes share_of(Bytes bytes, const Share& share);
    /// The device's own links, or those above a section that it is in, are simulated.
    [[nodiscard]] bool can_use_simulated(DeviceId device) const;
    /// A link of a simulated device or section: how many transfers use it if each of `alike` like
    /// one uses the links of as many sections as `sections_alike` says; else 0.
    template <class SectionsAlike>
    [[nodiscard]] std::int64_t copies(LinkId link, std::int64_t alike,
                                      SectionsAlike sections_alike) const;
    /// `number`: of a device or of the section that it is in.
    template <class Number>
    [[nodiscard]] Group::Level level_of(std::span<const DeviceId> members, Number number) const;

    Routes* routes_;
    ProgramDraft* draft_;
    const Algorithm* algorithm_;
    TransportCosts node_, fabric_;
    const Fold* fold_;
    std::optional<Uplinks> uplinks_;  // where only some devices are simulated
    struct PortKind {
        BytesPerSecond rate;
        Duration latency;
        bool out;     // of the device
        bool shared;  // by all that the device sends or receives; else a link to one other device
        std::uint32_t place = 0;  // if shared, of the link at its device
        std::size_t level = 0;    // of the section whose uplink it is, counted from 1
        friend bool operator==(const PortKind&, const PortKind&) = default;
    };
    std::vector<PortKind> port_kinds_;
    std::map<std::uint64_t, Way> ways_;  // by which blocks, and whether a rail, hold both ends
    Way own_way_;                        // of the last pair that is like no other
    IdVector<GroupId, Group> groups_;
    std::vector<CollectiveKind> kinds_;
    struct Uneven {
        std::vector<std::vector<Bytes>> of_members;  // see Ports
        std::vector<std::size_t> kinds;              // in `port_kinds_`, with bytes of any member
        bool uplinks;                                // not only the members' own links
        std::set<Port> partly_loaded;
    };
    std::map<TransferId, Uneven> uneven_;
    std::map<TransferId, std::set<Port>> loaded_;  // see Ports
    // Where only some devices are simulated: the same call is made in the groups of every stage.
    std::map<std::tuple<const Algorithm*, CollectiveKind, std::uint32_t, std::uint32_t, Bytes,
                        std::uint32_t>,
             std::vector<std::vector<Sending>>>
        sendings_;
    std::vector<Sending> own_sendings_;  // of the last member whose are not kept
    IdVector<LinkId, Bytes> on_links_;   // of the collective that is being made
    std::vector<LinkId> used_links_;     // with bytes on them
    std::set<std::string> refusals_;
    bool cut_evenly_ = true;
    bool loads_are_known_ = true;
    std::map<std::tuple<DeviceId, DeviceId, Bytes>, TransferId> messages_;
    std::map<std::tuple<GroupId, CollectiveKind, Bytes, std::uint32_t, Duration>, TransferId>
        collectives_;
    std::map<std::tuple<GroupId, const Algorithm*, CollectiveKind, std::uint32_t>, TeamId> teams_;
};

}  // namespace fourfold
