#include <fmt/format.h>

#include <simgrid/s4u.hpp>
#include <string>

#include "simgrid/version.h"  // only after s4u.hpp
#include "tests/bench/compare/cases.hpp"

// The network model that fourfold has: a message takes latency + bytes / rate, where the rate is
// its max-min fair share, the same for all, of the links in its own direction. Nothing of TCP: no
// window, no acknowledgements on the way back, no factors, no bias towards short paths.

namespace fourfold {
namespace {

namespace s4u = simgrid::s4u;
using Direction = s4u::LinkInRoute::Direction;

void set_model() {
    xbt_log_control_set("xbt_cfg.thresh:warning");
    for (const char* setting :
         {"network/model:CM02", "network/TCP-gamma:0", "network/weight-S:0",
          "network/latency-factor:1", "network/bandwidth-factor:1", "network/crosstraffic:0"}) {
        s4u::Engine::set_config(std::string(setting));
    }
}

const s4u::SplitDuplexLink* add_cable(s4u::NetZone& zone, const std::string& name,
                                      const LinkSpec& spec) {
    auto* link = zone.create_split_duplex_link(name, static_cast<double>(spec.bandwidth.value));
    link->set_latency(to_seconds(spec.latency));
    link->seal();
    return link;
}

s4u::Host* add_host(s4u::NetZone& zone, std::uint32_t number, const LinkSpec& port) {
    s4u::Host* host = zone.create_host(fmt::format("host{}", number), 1e9);
    const auto* link = add_cable(zone, fmt::format("port{}", number), port);
    zone.add_route(host->get_netpoint(), nullptr, nullptr, nullptr, {{link, Direction::UP}}, true);
    return host;
}

std::vector<s4u::Host*> one_switch(const RingCase& ring) {
    s4u::NetZone* zone = s4u::create_star_zone("switch");
    std::vector<s4u::Host*> hosts;
    for (std::uint32_t rank = 0; rank < ring.ranks; ++rank) {
        hosts.push_back(add_host(*zone, rank, ring.link));
    }
    zone->seal();
    return hosts;
}

std::vector<s4u::Host*> two_levels(const TreeCase& tree) {
    s4u::NetZone* core = s4u::create_star_zone("core");
    std::vector<s4u::Host*> hosts;
    for (std::uint32_t leaf = 0; leaf < tree.hosts / tree.leaf_hosts; ++leaf) {
        s4u::NetZone* zone = s4u::create_star_zone(fmt::format("leaf{}", leaf))->set_parent(core);
        for (std::uint32_t i = 0; i < tree.leaf_hosts; ++i) {
            hosts.push_back(add_host(*zone, leaf * tree.leaf_hosts + i, tree.port));
        }
        auto* router = zone->create_router(fmt::format("router{}", leaf));
        zone->add_route(router, nullptr, nullptr, nullptr, {}, true);
        zone->seal();
        const auto* uplink = add_cable(*core, fmt::format("uplink{}", leaf), tree.uplink);
        core->add_route(zone->get_netpoint(), nullptr, router, nullptr, {{uplink, Direction::UP}},
                        true);
    }
    core->seal();
    return hosts;
}

}  // namespace

std::string simgrid_version() {
    return fmt::format("{}.{}", SIMGRID_VERSION_MAJOR, SIMGRID_VERSION_MINOR);
}

// A rank is an actor: it sends what has just arrived.
std::vector<double> run_in_simgrid(const RingCase& ring) {
    s4u::Engine engine("compare");
    set_model();
    const std::vector<s4u::Host*> hosts = one_switch(ring);
    std::vector<s4u::Mailbox*> mailboxes;
    for (std::uint32_t rank = 0; rank < ring.ranks; ++rank) {
        mailboxes.push_back(s4u::Mailbox::by_name(fmt::format("rank{}", rank)));
    }
    std::vector<double> ends(ring.ranks);
    for (std::uint32_t rank = 0; rank < ring.ranks; ++rank) {
        s4u::Actor::create("rank", hosts[rank], [&, rank] {
            static char payload;
            const auto bytes = static_cast<std::uint64_t>(ring.message().value);
            s4u::Mailbox* next = mailboxes[(rank + 1) % ring.ranks];
            for (std::uint32_t round = 0; round < ring.rounds(); ++round) {
                char* received = nullptr;
                const s4u::CommPtr send = next->put_async(&payload, bytes);
                mailboxes[rank]->get_async(&received)->wait();
                send->wait();
            }
            ends[rank] = s4u::Engine::get_clock();
        });
    }
    engine.run();
    return ends;
}

// A graph of activities, without actors.
std::vector<double> run_in_simgrid(const TreeCase& tree) {
    s4u::Engine engine("compare");
    set_model();
    const std::vector<s4u::Host*> hosts = two_levels(tree);
    std::vector<s4u::CommPtr> comms;
    for (const auto& [from, to, bytes] : tree.flows) {
        const s4u::CommPtr comm = s4u::Comm::sendto_init(hosts[from], hosts[to]);
        comm->set_payload_size(static_cast<std::uint64_t>(bytes.value));
        if (comms.size() >= tree.in_flight)
            comms[comms.size() - tree.in_flight]->add_successor(comm);
        comms.push_back(comm);
    }
    for (std::uint32_t first = 0; first < tree.in_flight; ++first) comms[first]->vetoable_start();
    engine.run();
    std::vector<double> ends;
    for (const s4u::CommPtr& comm : comms) ends.push_back(comm->get_finish_time());
    return ends;
}

}  // namespace fourfold
