#include "workloads/transfers.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>

#include "topology/check.hpp"

namespace fourfold {
namespace {

std::vector<Sending> sendings_of(const StepRule& rule, const StepPlan& plan, std::uint32_t member) {
    std::vector<Sending> sends;
    for (std::uint32_t channel = 0; channel < plan.channels; ++channel) {
        const std::uint32_t steps = rule.count(plan, channel, member);
        if (rule.sum != nullptr) {
            if (steps == 0) continue;
            const Sent sum = rule.sum(plan, channel, member);
            sends.push_back({sum.to, sum.bytes, sum.messages});
            continue;
        }
        for (std::uint32_t k = 0; k < steps; ++k) {
            const Step step = rule.step(plan, channel, member, k);
            if (step.to == Step::nobody) continue;
            if (sends.empty() || sends.back().to != step.to) sends.push_back({step.to});
            sends.back().bytes += step.bytes;
            ++sends.back().messages;
        }
    }
    std::ranges::sort(sends, {}, &Sending::to);
    std::size_t last = 0;
    for (std::size_t i = 1; i < sends.size(); ++i) {
        if (sends[i].to != sends[last].to) {
            sends[++last] = sends[i];
            continue;
        }
        sends[last].bytes += sends[i].bytes;
        sends[last].messages += sends[i].messages;
    }
    sends.resize(std::min(sends.size(), last + 1));
    return sends;
}

// Paths are kept where members have about as many peers as there are bits in their number, not
// members: in rings, trees and butterflies.
constexpr std::size_t peers_max = 64;

// A team without paths.
Team bare_team(std::span<const DeviceId> members) {
    Team team;
    team.members.assign(members.begin(), members.end());
    return team;
}

Team make_team(std::span<const DeviceId> members, const StepRule& rule, const StepPlan& plan,
               Routes& routes) {
    Team team = bare_team(members);
    team.first_peer.push_back(0);
    for (std::uint32_t member = 0; member < members.size(); ++member) {
        for (const Sending& sent : sendings_of(rule, plan, member)) {
            const auto path = routes.path(members[member], members[sent.to]);
            const auto begin = static_cast<std::uint32_t>(team.links.size());
            team.links.insert(team.links.end(), path.begin(), path.end());
            team.peers.push_back({sent.to, begin, static_cast<std::uint32_t>(team.links.size())});
        }
        team.first_peer.push_back(static_cast<std::uint32_t>(team.peers.size()));
        if (team.peers.size() > peers_max * members.size()) return bare_team(members);
    }
    return team;
}

// Each part stands for several members, of which the busiest counts.
void keep_parts(std::span<const DeviceId> members, std::span<const DeviceId> parts,
                const Fold& fold, Transfer& transfer) {
    std::vector<std::uint32_t> incoming(parts.size());
    std::vector<Bytes> sent(parts.size());
    for (std::size_t i = 0; i < members.size(); ++i) {
        const auto part = std::ranges::lower_bound(parts, fold.representative(members[i]));
        const auto place = static_cast<std::size_t>(part - parts.begin());
        incoming[place] = std::max(incoming[place], transfer.incoming[i]);
        sent[place] = std::max(sent[place], transfer.sent[i]);
    }
    transfer.incoming = std::move(incoming);
    transfer.sent = std::move(sent);
}

// Members that share a node, if they are neighbours in rank order and all nodes have as many.
std::uint32_t members_per_node(std::span<const DeviceId> members, const Graph& graph) {
    std::size_t run = 0;
    while (run < members.size() && graph.node_of(members[run]) == graph.node_of(members[0])) ++run;
    if (members.size() % run != 0) return 1;
    for (std::size_t i = 0; i < members.size(); ++i) {
        const std::size_t first = i - i % run;
        if (graph.node_of(members[i]) != graph.node_of(members[first])) return 1;
        if (i == first && i > 0 && graph.node_of(members[i]) == graph.node_of(members[i - 1])) {
            return 1;
        }
    }
    return static_cast<std::uint32_t>(run);
}

}  // namespace

Transfers::Transfers(Routes& routes, ProgramDraft& draft, const Algorithm* algorithm,
                     const TransportCosts& node, const TransportCosts& fabric, const Fold* fold)
    : routes_(&routes),
      draft_(&draft),
      algorithm_(algorithm),
      node_(node),
      fabric_(fabric),
      fold_(fold),
      on_links_(routes.graph().links().size()) {
    if (fold != nullptr) uplinks_.emplace(routes.graph());
}

GroupId Transfers::add_group(std::vector<DeviceId> members) {
    FOURFOLD_CHECK(!members.empty());
    Group group;
    group.per_node = members_per_node(members, routes_->graph());
    group.in_one_node = std::all_of(members.begin(), members.end(), [&](DeviceId member) {
        return same_node(member, members.front());
    });
    if (fold_ == nullptr) {
        group.parts = members;
    } else {
        std::ranges::set_intersection(members, fold_->devices, std::back_inserter(group.parts));
        group.levels.push_back(level_of(members, [](DeviceId device) { return device.value; }));
        const auto& [first, alike] = *group.levels.front().simulated.begin();
        group.alike = fold_->count(DeviceId{first}) / alike;
        if (!uplinks_->empty()) {
            for (const std::uint32_t size : routes_->graph().blocks()) {
                group.levels.push_back(level_of(members, [&](DeviceId device) {
                    return routes_->graph().section_of(device, size);
                }));
            }
        }
        if (routes_->graph().rails() > 1) {
            for (const DeviceId member : members) {
                group.member_of.emplace(member, group.member_of.size());
            }
        }
    }
    group.members = std::move(members);
    return groups_.push_back(std::move(group));
}

template <class Number>
Transfers::Group::Level Transfers::level_of(std::span<const DeviceId> members,
                                            Number number) const {
    Group::Level level;
    std::map<std::uint32_t, std::uint32_t> places, first;
    for (const DeviceId member : members) {
        const auto next = static_cast<std::uint32_t>(level.like.size());
        const auto [place, is_new] = places.try_emplace(number(member), next);
        level.place_of.push_back(place->second);
        if (!is_new) continue;
        const std::uint32_t simulated = number(fold_->representative(member));
        ++level.simulated[simulated];
        level.like.push_back(first.try_emplace(simulated, next).first->second);
        level.stood_for_by.push_back(simulated);
    }
    return level;
}

Transfers::Way Transfers::make_way(DeviceId from, DeviceId to) {
    const Graph& graph = routes_->graph();
    Way made{.route = routes_->route(from, to), .ports = {}};
    const auto add = [&](const PortKind& kind, const Share& share, bool at_from,
                         std::uint32_t rail) {
        const auto place = std::ranges::find(port_kinds_, kind);
        const auto number = static_cast<std::size_t>(place - port_kinds_.begin());
        if (place == port_kinds_.end()) port_kinds_.push_back(kind);
        const bool other_rail = rail != (at_from ? from : to).value % graph.rails();
        const auto known = std::ranges::find_if(made.ports, [&](const Way::Port& port) {
            return port.kind == number && port.at_from == at_from && port.other_rail == other_rail;
        });
        if (known == made.ports.end()) {
            made.ports.push_back({number, share, at_from, other_rail});
        } else if (known->share.part < share.part) {
            known->share = share;
        }
    };
    for (const Share& share : made.route.shares) {
        const Link& link = graph[share.link];
        if (const auto uplink = uplinks_->of(share.link)) {
            add({link.rate, link.spec.latency, uplink->up, true, 0, uplink->level + 1}, share,
                uplink->up, uplink->section % graph.rails());
        }
        for (const bool out : {true, false}) {
            const Vertex& end = graph[out ? link.from : link.to];
            if (!end.is_device) continue;
            const DeviceId device = end.device;
            const bool at_from = device == from || (device != to && same_node(device, from));
            const bool shared = !graph[out ? link.to : link.from].is_device;
            const std::uint32_t place = !shared ? 0
                                        : out   ? graph.place_at_start(share.link)
                                                : graph.place_at_end(share.link);
            add({link.rate, link.spec.latency, out, shared, place}, share, at_from,
                device.value % graph.rails());
        }
    }
    return made;
}

const Transfers::Way& Transfers::way(DeviceId from, DeviceId to) {
    const Graph& graph = routes_->graph();
    const auto is_odd = [&](DeviceId device) {
        return std::ranges::binary_search(graph.odd(), device);
    };
    const DeviceId out = beside(from, to), in = beside(to, from);
    if (is_odd(from) || is_odd(to) || is_odd(out) || is_odd(in)) {
        return own_way_ = make_way(from, to);
    }
    std::uint64_t shared = 0;
    for (const std::uint32_t block : graph.blocks()) {
        shared = shared << 1 | (from.value / block == to.value / block ? 1 : 0);
    }
    const std::uint32_t rails = graph.rails();
    shared = shared << 1 | (from.value % rails == to.value % rails ? 1 : 0);
    const auto known = ways_.find(shared);
    return known != ways_.end() ? known->second
                                : ways_.emplace(shared, make_way(from, to)).first->second;
}

Hop Transfers::hop(DeviceId from, DeviceId to, Bytes bytes) {
    const Route& route = fold_ == nullptr ? routes_->route(from, to) : way(from, to).route;
    Hop found{Duration::zero(), route.latency};
    for (const Share& share : route.shares) {
        found.serialise =
            std::max(found.serialise, on_link(bytes, share) / routes_->graph()[share.link].rate);
    }
    return found;
}

bool Transfers::can_use_simulated(DeviceId device) const {
    if (fold_->count(device) > 0) return true;
    if (uplinks_->empty()) return false;
    const std::span<const std::uint32_t> sizes = routes_->graph().blocks();
    for (std::size_t level = 0; level < sizes.size(); ++level) {
        if (fold_->holds(level, device.value / sizes[level])) return true;
    }
    return false;
}

template <class SectionsAlike>
std::int64_t Transfers::copies(LinkId link, std::int64_t alike,
                               SectionsAlike sections_alike) const {
    const Graph& graph = routes_->graph();
    if (fold_ == nullptr) return 1;
    if (const auto uplink = uplinks_->of(link)) {
        const std::int64_t sections = fold_->count(uplink->level, uplink->section);
        if (sections == 0) return 0;
        const std::int64_t uses = alike * sections_alike(*uplink);
        FOURFOLD_CHECK(uses % sections == 0, "{} uses of {} links that are alike", uses, sections);
        return uses / sections;
    }
    const auto is_it = [&](VertexId id) {
        return graph[id].is_device && fold_->count(graph[id].device) > 0;
    };
    return is_it(graph[link].from) || is_it(graph[link].to) ? 1 : 0;
}

Bytes Transfers::share_of(Bytes bytes, const Share& share) {
    const auto product = static_cast<unsigned __int128>(bytes.value) * share.part;
    if (product % Share::whole != 0) cut_evenly_ = false;
    return on_link(bytes, share);
}

/// What the members of a collective have on their ports, and on one uplink of each section, by
/// kind.
class Transfers::PortLoads {
  public:
    PortLoads(const Transfers& transfers, const Group& group)
        : transfers_(&transfers), group_(&group) {}

    void add(const Way& way, std::uint32_t from, std::uint32_t to, Bytes bytes,
             std::span<const PortKind> kinds) {
        for (const PortKind& kind : kinds.subspan(loads_.size())) {
            const std::size_t places = group_->levels[kind.level].like.size();
            loads_.push_back({kind.level, std::vector<Bytes>(places)});
        }
        for (const Way::Port& port : way.ports) {
            const PortKind& kind = kinds[port.kind];
            const Bytes part = on_link(bytes, port.share);
            std::uint32_t member = port.at_from ? from : to;
            if (port.other_rail) {
                const DeviceId device = group_->members[member];
                const DeviceId other = group_->members[port.at_from ? to : from];
                const auto found = group_->member_of.find(transfers_->beside(device, other));
                are_known_ = are_known_ && found != group_->member_of.end();
                if (!are_known_) return;
                member = found->second;
            }
            Bytes& load = at(loads_[port.kind], member);
            load += part;
            busiest_ = std::max(busiest_, (kind.shared ? load : part) / kind.rate);
        }
    }
    /// Whether all load is a member's, or a section's that a member is in.
    [[nodiscard]] bool are_known() const { return are_known_; }
    /// What the busiest link takes for its bytes.
    [[nodiscard]] Duration busiest() const { return busiest_; }
    /// Whether those that are simulated once carry the same. From level 1 on: on uplinks.
    [[nodiscard]] bool even(std::size_t from_level) const {
        return std::ranges::all_of(loads_, [&](const Loads& loads) {
            if (loads.level < from_level) return true;
            const std::vector<std::uint32_t>& like = group_->levels[loads.level].like;
            return std::ranges::equal(loads.of, like, {}, {},
                                      [&](std::uint32_t place) { return loads.of[place]; });
        });
    }
    /// See Ports.
    void find_loaded(std::set<Port>& loaded, std::set<Port>& partly_loaded) const {
        for (std::size_t kind = 0; kind < loads_.size(); ++kind) {
            const Group::Level& level = group_->levels[loads_[kind].level];
            const std::vector<Bytes>& of = loads_[kind].of;
            for (std::uint32_t place = 0; place < of.size(); ++place) {
                const std::uint32_t first = level.like[place];
                const Port port{kind, level.stood_for_by[place]};
                if ((of[place] > Bytes{}) != (of[first] > Bytes{})) {
                    partly_loaded.insert(port);
                } else if (place == first && of[place] > Bytes{}) {
                    loaded.insert(port);
                }
            }
        }
        for (const Port& port : partly_loaded) loaded.erase(port);
    }
    /// The kinds that carry anything.
    [[nodiscard]] std::vector<std::size_t> kinds() const {
        std::vector<std::size_t> used;
        for (std::size_t kind = 0; kind < loads_.size(); ++kind) {
            const auto carries = [](Bytes load) { return load > Bytes{}; };
            if (std::ranges::any_of(loads_[kind].of, carries)) used.push_back(kind);
        }
        return used;
    }
    /// Of each member, what it and the sections that it is in carry of each kind.
    [[nodiscard]] std::vector<std::vector<Bytes>> of_members() {
        std::vector<std::vector<Bytes>> all(group_->members.size());
        for (std::uint32_t member = 0; member < all.size(); ++member) {
            for (Loads& loads : loads_) all[member].push_back(at(loads, member));
        }
        return all;
    }

  private:
    struct Loads {
        std::size_t level;      // in the group's
        std::vector<Bytes> of;  // places
    };
    Bytes& at(Loads& loads, std::uint32_t member) {
        return loads.of[group_->levels[loads.level].place_of[member]];
    }

    const Transfers* transfers_;
    const Group* group_;
    std::vector<Loads> loads_;  // of each kind
    bool are_known_ = true;
    Duration busiest_{};
};

Transfers::Ports Transfers::ports(TransferId transfer) const {
    const Graph& graph = routes_->graph();
    Ports found;
    if (const auto uneven = uneven_.find(transfer); uneven != uneven_.end()) {
        found.uneven = &uneven->second.of_members;
        found.has_uneven_uplinks = uneven->second.uplinks;
        found.partly_loaded = uneven->second.partly_loaded;
        for (const std::size_t number : uneven->second.kinds) {
            const PortKind& kind = port_kinds_[number];
            found.kinds.emplace(kind.rate, kind.latency);
            if (kind.level > 0) found.has_uplinks = true;
        }
    }
    if (const auto loaded = loaded_.find(transfer); loaded != loaded_.end()) {
        found.loaded = loaded->second;
    }
    for (const LinkUse& use : draft_->transfer(transfer).uses) {
        found.kinds.emplace(graph[use.link].rate, graph[use.link].spec.latency);
        if (uplinks_->of(use.link)) found.has_uplinks = true;
    }
    return found;
}

Transfer Transfers::make_message(DeviceId from, DeviceId to, Bytes bytes) {
    const Hop alone = hop(from, to, bytes);
    const Route& route = routes_->route(from, to);
    Transfer made;
    made.alone = alone.serialise;
    made.latency = alone.latency;
    made.bytes = bytes;
    made.stream_bytes = bytes;
    made.path = route.path;
    const std::int64_t alike = fold_ == nullptr ? 1 : fold_->count(from);
    const auto is_between = [&](VertexId end) {
        const Vertex& vertex = routes_->graph()[end];
        return vertex.is_device && vertex.device != from && vertex.device != to;
    };
    for (const Share& share : route.shares) {
        const Link& link = routes_->graph()[share.link];
        if (is_between(link.from) || is_between(link.to)) loads_are_known_ = false;
        const std::int64_t uses = copies(share.link, alike, [](const auto&) { return 1; });
        if (uses > 0) made.uses.push_back({share.link, share_of(bytes, share), uses});
    }
    return made;
}

TransferId Transfers::add(Transfer transfer) {
    kinds_.emplace_back();
    return draft_->add_transfer(std::move(transfer));
}

TransferId Transfers::message(DeviceId from, DeviceId to, Bytes bytes) {
    const auto key = std::tuple(from, to, bytes);
    if (const auto known = messages_.find(key); known != messages_.end()) return known->second;

    Transfer made = make_message(from, to, bytes);
    const TransportCosts& costs = same_node(from, to) ? node_ : fabric_;
    made.overhead = costs.message_overhead;
    if (costs.message_rate.value > 0) {
        made.overhead += std::max(Duration::zero(), bytes / costs.message_rate - made.alone);
    }
    made.alone += made.overhead;
    const TransferId id = add(std::move(made));
    if (fold_ != nullptr && bytes > Bytes{}) loaded_[id] = loaded(from, to);
    return messages_[key] = id;
}

std::set<Transfers::Port> Transfers::loaded(DeviceId from, DeviceId to) {
    const Graph& graph = routes_->graph();
    std::set<Port> all;
    for (const Way::Port& port : way(from, to).ports) {
        const DeviceId device = port.at_from ? from : to;
        const std::size_t level = port_kinds_[port.kind].level;
        all.insert({port.kind, level == 0 ? device.value
                                          : graph.section_of(device, graph.blocks()[level - 1])});
    }
    return all;
}

TransferId Transfers::background(DeviceId from, DeviceId to, Bytes bytes, Duration pace) {
    Transfer made = make_message(from, to, bytes);
    made.alone = std::max(made.alone, pace);
    return add(std::move(made));
}

CollectiveCall Transfers::call(GroupId group, CollectiveKind kind, Bytes bytes,
                               std::uint32_t root) const {
    return {.kind = kind,
            .members = static_cast<std::uint32_t>(groups_[group].members.size()),
            .per_node = groups_[group].per_node,
            .bytes = bytes,
            .root = root};
}

const Algorithm& Transfers::algorithm(GroupId group, CollectiveKind kind, Bytes bytes,
                                      std::uint32_t root) {
    const CollectiveCall about = call(group, kind, bytes, root);
    if (algorithm_ != nullptr) {
        auto reason = algorithm_->refuse(about);
        if (!reason) return *algorithm_;
        refusals_.insert(std::move(*reason));
    }
    const std::span<const DeviceId> devices = groups_[group].members;
    return choose_algorithm(about, [&](std::uint32_t from, std::uint32_t to, Bytes sent) {
        return hop(devices[from], devices[to], sent);
    });
}

const std::vector<Sending>& Transfers::sendings(const Algorithm& algorithm,
                                                const CollectiveCall& about, const StepPlan& plan,
                                                std::uint32_t member) {
    std::vector<Sending>* kept = nullptr;
    if (fold_ != nullptr) {
        auto& all = sendings_[std::tuple(&algorithm, about.kind, about.members, about.per_node,
                                         about.bytes, about.root)];
        all.resize(about.members);
        kept = &all[member];
        if (!kept->empty()) return *kept;
    }
    own_sendings_ = sendings_of(algorithm.rule, plan, member);
    if (kept == nullptr || own_sendings_.size() > peers_max) return own_sendings_;
    return *kept = own_sendings_;
}

Result<TransferId> Transfers::collective(GroupId group, CollectiveKind kind, Bytes bytes,
                                         std::uint32_t root, Duration delay) {
    const auto key = std::tuple(group, kind, bytes, root, delay);
    if (const auto known = collectives_.find(key); known != collectives_.end()) {
        return known->second;
    }
    const CollectiveCall about = call(group, kind, bytes, root);
    const std::span<const DeviceId> devices = groups_[group].members;
    const auto member_hop = [&](std::uint32_t from, std::uint32_t to, Bytes sent) {
        return hop(devices[from], devices[to], sent);
    };
    const Algorithm& used = algorithm(group, kind, bytes, root);
    if (const auto reason = used.refuse(about)) return problem("collectives.algorithm", *reason);

    Transfer made;
    made.is_collective = true;
    made.meets = kind != CollectiveKind::broadcast;  // else each lacks what the last one has
    made.rule = &used.rule;
    made.plan = used.plan(about);
    made.bytes = bytes;
    made.incoming.assign(devices.size(), 0);
    made.sent.assign(devices.size(), Bytes{});

    PortLoads loads(*this, groups_[group]);
    for (std::uint32_t member = 0; member < devices.size(); ++member) {
        for (const Sending& sent : sendings(used, about, made.plan, member)) {
            made.incoming[sent.to] += sent.messages;
            made.sent[member] += sent.bytes;
            const DeviceId from = devices[member], to = devices[sent.to];
            if (fold_ != nullptr) {
                const Way& between = way(from, to);  // can find another kind of port
                loads.add(between, member, sent.to, sent.bytes, port_kinds_);
            }
            if (fold_ != nullptr && !can_use_simulated(from) && !can_use_simulated(to)) continue;
            for (const Share& share : routes_->route(from, to).shares) {
                const Bytes part = share_of(sent.bytes, share);
                if (part == Bytes{}) continue;
                if (on_links_[share.link] == Bytes{}) used_links_.push_back(share.link);
                on_links_[share.link] += part;
            }
        }
        // Every channel is a send stream of its own; the largest is the unit of fairness.
        made.stream_bytes =
            std::max(made.stream_bytes, ceil_div(made.sent[member], made.plan.channels));
    }
    Duration busiest = loads.busiest();
    const auto sections_alike = [&](const Uplinks::Uplink& uplink) {
        const auto& simulated = groups_[group].levels[uplink.level + 1].simulated;
        const auto found = simulated.find(uplink.section);
        if (found == simulated.end()) loads_are_known_ = false;
        return found == simulated.end() ? 0 : found->second;
    };
    std::ranges::sort(used_links_);
    for (const LinkId link : used_links_) {
        const Bytes sum = std::exchange(on_links_[link], Bytes{});
        const std::int64_t uses = copies(link, groups_[group].alike, sections_alike);
        if (uses == 0) continue;
        made.uses.push_back({link, sum, uses});
        busiest = std::max(busiest, sum / routes_->graph()[link].rate);
    }
    used_links_.clear();

    if (devices.size() > 1) {
        const TransportCosts& costs = groups_[group].in_one_node ? node_ : fabric_;
        const double share = kind == CollectiveKind::all_reduce ? 1.0 : 0.5;
        const double mib = static_cast<double>(bytes.value) / static_cast<double>(1 << 20);
        const double edge = costs.collective_edge / static_cast<double>(devices.size());
        made.start = scale(costs.collective_start, share) +
                     scale(costs.collective_per_sqrt_mib, share * std::sqrt(mib)) +
                     scale(busiest, 1 / (1 - edge) - 1);
    }
    made.start += delay;
    made.alone = made.start + std::max(used.alone(about, member_hop), busiest);

    TeamId& team =
        teams_.try_emplace(std::tuple(group, &used, kind, root), TeamId{~std::uint32_t{0}})
            .first->second;
    const bool whole = parts(group).size() == devices.size();
    if (team.value == ~std::uint32_t{0}) {
        team = draft_->add_team(whole ? make_team(devices, used.rule, made.plan, *routes_)
                                      : bare_team(parts(group)));
    }
    made.team = team;
    if (!whole) keep_parts(devices, parts(group), *fold_, made);
    kinds_.push_back(kind);
    const TransferId id = draft_->add_transfer(std::move(made));
    if (fold_ != nullptr) {
        std::set<Port> partly_loaded;
        loads.find_loaded(loaded_[id], partly_loaded);
        if (!loads.even(0)) {
            uneven_[id] = {loads.of_members(), loads.kinds(), !loads.even(1),
                           std::move(partly_loaded)};
        }
    }
    if (!loads.are_known()) loads_are_known_ = false;
    return collectives_[key] = id;
}

}  // namespace fourfold
