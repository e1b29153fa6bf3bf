// SPDX-License-Identifier: Apache-2.0
#include "tools/doctor/network_checks.hpp"

#include "rmem/ring/config.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>

namespace tools {

namespace {

using rmem::udp::to_text;

constexpr std::size_t kHeaders = 28;  // of IPv4 and UDP

std::string interface_text(const HostInterface& one) {
    std::vector<std::string> addresses;
    for (const auto ip : one.addresses) addresses.push_back(to_text(ip));
    return fmt::format(
        "{} ({})", one.name,
        addresses.empty() ? "no IPv4 address" : fmt::format("{}", fmt::join(addresses, ", ")));
}

bool is_usable(const HostInterface& one) {
    return one.is_up && !one.addresses.empty() && (one.does_multicast || one.is_loop_back);
}

std::string usable_interfaces(const NetworkFacts& facts) {
    std::vector<std::string> names;
    for (const auto& one : facts.interfaces) {
        if (is_usable(one)) names.push_back(interface_text(one));
    }
    return names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "));
}

// ---- Where

Finding judge_group(const NetworkFacts& facts) {
    if (!facts.group_problem.empty()) {
        return fail("group", facts.group_problem, "correct RMEM_GROUP, on all nodes alike");
    }
    return ok("group", facts.endpoints.text());
}

Finding judge_own_address(const NetworkFacts& facts) {
    const std::string none = "fan-out: the addresses say which interface";
    if (!facts.node || *facts.node >= facts.endpoints.nodes.size()) return ok("interface", none);
    const auto own = facts.endpoints.nodes[*facts.node].ip;
    for (const auto& one : facts.interfaces) {
        const auto& all = one.addresses;
        if (one.is_up && std::find(all.begin(), all.end(), own) != all.end()) {
            return ok("interface",
                      fmt::format("{}; {} is here, on {}", none, to_text(own), one.name));
        }
        if (one.is_loop_back && rmem::udp::is_loop_back(own)) return ok("interface", none);
    }
    return fail(
        "interface",
        fmt::format("RMEM_GROUP gives node {} the address {}, which this host does not have "
                    "or whose interface is down",
                    *facts.node, to_text(own)),
        fmt::format("correct RMEM_NODE or RMEM_GROUP; usable here: {}", usable_interfaces(facts)));
}

/// An interface that was asked for.
Finding judge_interface_is_usable(const HostInterface& one) {
    if (!one.is_up) {
        return fail("interface", fmt::format("{} is down", one.name),
                    fmt::format("ip link set {} up", one.name));
    }
    if (one.addresses.empty()) {
        return fail("interface", fmt::format("{} has no IPv4 address", one.name),
                    fmt::format("ip address add ADDRESS/24 dev {}", one.name));
    }
    if (!one.does_multicast && !one.is_loop_back) {
        return fail(
            "interface", fmt::format("{} does no multicast", interface_text(one)),
            fmt::format("ip link set {} multicast on; where the device cannot (some tunnels), "
                        "list the nodes' addresses in RMEM_GROUP",
                        one.name));
    }
    if (!one.has_carrier) {
        return warn("interface",
                    fmt::format("{} is up, but nothing is at its other end", interface_text(one)),
                    "look at the cable, and at the switch's port");
    }
    return ok("interface", interface_text(one) + " is up");
}

Finding judge_interface(const NetworkFacts& facts) {
    if (facts.endpoints.is_fan_out()) return judge_own_address(facts);
    const HostInterface* used = used_interface(facts);
    if (!facts.interface_wanted.empty()) {
        if (used != nullptr) return judge_interface_is_usable(*used);
        return fail(
            "interface",
            fmt::format("RMEM_INTERFACE is '{}', and no interface here has this name, address or "
                        "network",
                        facts.interface_wanted),
            fmt::format("name one of these: {}", usable_interfaces(facts)));
    }
    if (used == nullptr) {
        return fail(
            "interface", "RMEM_INTERFACE is unset, and no route names an interface",
            fmt::format("set RMEM_INTERFACE to one of these: {}", usable_interfaces(facts)));
    }
    Finding finding = judge_interface_is_usable(*used);
    const auto others =
        std::count_if(facts.interfaces.begin(), facts.interfaces.end(),
                      [](const auto& one) { return is_usable(one) && !one.is_loop_back; });
    finding.found += ", chosen by the host's routes";
    if (others > 1 && finding.advice.empty()) {
        finding.advice = fmt::format(
            "this host has several: if it should be another one, set RMEM_INTERFACE ({})",
            usable_interfaces(facts));
    }
    return finding;
}

Finding judge_route(const NetworkFacts& facts) {
    const bool is_fan_out = facts.endpoints.is_fan_out();
    if (!is_fan_out && !facts.interface_wanted.empty()) {
        return ok("route", "none is needed: RMEM_INTERFACE says where multicast leaves");
    }
    for (const Route& route : facts.routes) {
        if (route.error == 0) continue;
        const std::string found =
            fmt::format("no way to {}: {}", to_text(route.to), std::strerror(route.error));
        if (is_fan_out)
            return fail("route", found,
                        "correct the address in RMEM_GROUP, or the host's routes (`ip route`)");
        return fail("route", found,
                    "set RMEM_INTERFACE, or `ip route add 239.0.0.0/8 dev INTERFACE`");
    }
    if (facts.routes.empty()) return warn("route", "not looked at", "correct RMEM_GROUP first");
    const Route& first = facts.routes.front();
    if (is_fan_out)
        return ok("route",
                  fmt::format("the host knows a way to all {} nodes", facts.routes.size()));
    if (rmem::udp::is_loop_back(first.source)) {
        return warn("route", fmt::format("multicast to {} stays on this host", to_text(first.to)),
                    "set RMEM_INTERFACE to the network's interface, unless all nodes are here");
    }
    return ok("route", fmt::format("to {} as {}", to_text(first.to), to_text(first.source)));
}

// ---- Hearing

Finding judge_hearing(const std::string& name, const std::string& where, const Hearing& hearing) {
    if (!hearing.problem.empty()) {
        return fail(name, hearing.problem, "the findings on interface and route say what to do");
    }
    if (hearing.send_error != 0) {
        return fail(name,
                    fmt::format("a datagram on {} could not be sent: {}", where,
                                std::strerror(hearing.send_error)),
                    "the findings on interface and route say what to do; a firewall refuses with "
                    "\"Operation not permitted\": `nft list ruleset`");
    }
    if (!hearing.heard) {
        return fail(
            name, fmt::format("two sockets of this host do not hear each other on {}", where),
            "a firewall may drop it: `nft list ruleset` or `iptables -S`; let in UDP to the "
            "ring's group, and IGMP");
    }
    if (!hearing.heard_longest) {
        return warn(name,
                    fmt::format("short datagrams are heard on {}, the longest are not", where),
                    "a firewall or the device drops pieces of datagrams: see mtu");
    }
    return ok(name, fmt::format("two sockets of this host hear each other on {}", where));
}

Finding judge_loop_back(const NetworkFacts& facts) {
    if (facts.endpoints.is_fan_out())
        return ok("loop-back", "fan-out: nodes are sent to one by one");
    const HostInterface* used = used_interface(facts);
    const std::string where = used != nullptr ? used->name : "the group";
    if (facts.hearing) return judge_hearing("loop-back", where, *facts.hearing);
    return ok("loop-back", fmt::format("see lo: the ring stays on {}", where));
}

Finding judge_bridge(const HostInterface& used, const std::string& found, const std::string& hint) {
    if (used.bridge.empty() || !used.bridge_snoops) return ok("igmp", found, hint);
    if (used.bridge_asks) {
        return ok("igmp", fmt::format("{}; bridge {} snoops and is a querier", found, used.bridge),
                  hint);
    }
    return warn("igmp",
                fmt::format("{}; bridge {} snoops on IGMP and is no querier: without another one "
                            "it forgets who is in the group after some minutes",
                            found, used.bridge),
                fmt::format("ip link set {0} type bridge mcast_querier 1 (or mcast_snooping 0)",
                            used.bridge));
}

Finding judge_igmp(const NetworkFacts& facts) {
    if (facts.endpoints.is_fan_out()) return ok("igmp", "fan-out: there is no group to join");
    const HostInterface* used = used_interface(facts);
    if (used != nullptr && used->is_loop_back) return ok("igmp", "none on the loop-back interface");
    if (used == nullptr || !facts.hearing || !facts.hearing->problem.empty()) {
        return warn("igmp", "no group could be joined",
                    "the findings on interface and route say what to do");
    }
    if (!facts.hearing->is_member) {
        return fail(
            "igmp",
            fmt::format("the kernel lists no membership on {} (/proc/net/igmp)", used->name),
            "raise net.ipv4.igmp_max_memberships; in a container, let its network have multicast");
    }
    return judge_bridge(
        *used, fmt::format("the kernel joins the group on {}", used->name),
        "a switch cannot be seen from here: where nodes hear nothing of each other though "
        "each host is fine, or only for some minutes, it snoops on IGMP without a querier: "
        "turn its querier on, or snooping off");
}

// ---- Sizes

/// The smallest MTU on the ways that datagrams take, and where; 0: unknown.
std::pair<std::size_t, std::string> least_mtu(const NetworkFacts& facts) {
    const HostInterface* used = used_interface(facts);
    if (!facts.endpoints.is_fan_out() && used != nullptr) return {used->mtu, "on " + used->name};
    std::pair<std::size_t, std::string> least;
    for (const Route& route : facts.routes) {
        if (route.packet_most == 0 || (least.first != 0 && least.first <= route.packet_most))
            continue;
        least = {route.packet_most, "to " + to_text(route.to)};
    }
    return least;
}

Finding judge_mtu(const NetworkFacts& facts) {
    if (!facts.payload_problem.empty())
        return fail("mtu", facts.payload_problem, "correct RMEM_PAYLOAD");
    const auto [mtu, where] = least_mtu(facts);
    if (mtu == 0)
        return warn("mtu", "it is not known", "the findings on interface and route say what to do");
    const std::string found =
        fmt::format("packets of {} bytes at most {}; datagrams are of {} and {} of headers", mtu,
                    where, facts.payload, kHeaders);
    const std::size_t fits =
        mtu < kHeaders ? 0 : (mtu - kHeaders) / rmem::kWordBytes * rmem::kWordBytes;
    if (fits >= facts.payload) return ok("mtu", found);
    const std::string sent = found + ": they leave in pieces, and one that is lost loses all";
    if (fits < rmem::udp::kLeastPayload) {
        return warn("mtu", sent,
                    fmt::format("raise the MTU to {} or more", facts.payload + kHeaders));
    }
    return warn(
        "mtu", sent,
        fmt::format("RMEM_PAYLOAD={}, or raise the MTU to {}", fits, facts.payload + kHeaders));
}

Finding judge_buffer(const NetworkFacts& facts) {
    const Hearing& tested =
        facts.hearing && facts.hearing->held != 0 ? *facts.hearing : facts.on_lo;
    if (tested.held == 0) {
        return warn("receive-buffer", "it is not known: no socket could be made",
                    "the findings on interface and route say what to do");
    }
    if (!tested.buffer_advice.empty()) {
        return warn("receive-buffer",
                    fmt::format("it holds {} datagrams of {} bytes", tested.held, facts.payload),
                    tested.buffer_advice);
    }
    return ok("receive-buffer",
              fmt::format("it holds {} datagrams of {} bytes", tested.held, facts.payload));
}

// ---- Permission to speak

bool leaves_host(const NetworkFacts& facts) {
    if (facts.endpoints.is_fan_out()) return facts.endpoints.leave_host();
    const HostInterface* used = used_interface(facts);
    return facts.interface_wanted.empty() || used == nullptr || !used->is_loop_back;
}

Finding judge_key(const NetworkFacts& facts) {
    if (!facts.key_problem.empty()) {
        return fail("key", facts.key_problem,
                    "the sentence says what to do; `rmem key` makes a file");
    }
    if (!facts.key_file.empty()) return ok("key", fmt::format("'{}' is in order", facts.key_file));
    if (!leaves_host(facts)) {
        return ok("key",
                  "none is needed: the ring stays on this host, whose other users can read it and "
                  "write into it without one");
    }
    if (facts.is_insecure) {
        return warn("key", "RMEM_INSECURE is 1: everybody on the network may write into the ring",
                    "rmem key --out FILE, and RMEM_KEY_FILE=FILE on all hosts");
    }
    if (!facts.is_wanted)
        return ok("key", "none is set; a ring that leaves this host on link udp needs one");
    return fail(
        "key", "none is set, and other hosts may hear the ring",
        "rmem key --out FILE, copy it to all hosts, and set RMEM_KEY_FILE (or RMEM_INTERFACE=lo "
        "to stay on this host)");
}

Finding judge_refusals(const NetworkFacts& facts) {
    if (facts.refusals.empty())
        return ok(
            "refusals",
            "no node of this host hears datagrams that it has to refuse, or cannot reach others");
    return warn("refusals", fmt::format("{}", fmt::join(facts.refusals, "; ")),
                "correct it on the host that is named, or on this one; `rmem info RING` of a node "
                "tells whether it is still so");
}

}  // namespace

const HostInterface* used_interface(const NetworkFacts& facts) {
    const bool is_named = !facts.interface_wanted.empty();
    if (!is_named && (facts.routes.empty() || facts.routes.front().error != 0)) return nullptr;
    const auto is_it = [&](const HostInterface& one) {
        if (is_named && one.name == facts.interface_wanted) return true;
        return std::any_of(one.addresses.begin(), one.addresses.end(), [&](auto ip) {
            return is_named ? rmem::udp::is_named(one.name, ip, facts.interface_wanted)
                            : ip == facts.routes.front().source;
        });
    };
    const auto found = std::find_if(facts.interfaces.begin(), facts.interfaces.end(), is_it);
    return found == facts.interfaces.end() ? nullptr : &*found;
}

std::vector<Finding> judge_network(const NetworkFacts& facts) {
    std::vector<Finding> findings = {judge_group(facts)};
    if (facts.group_problem.empty()) {
        findings.insert(findings.end(),
                        {judge_interface(facts), judge_route(facts), judge_loop_back(facts)});
        findings.insert(findings.end(), {judge_igmp(facts), judge_mtu(facts), judge_key(facts)});
    }
    findings.push_back(judge_hearing("lo", "lo", facts.on_lo));
    findings.push_back(judge_buffer(facts));
    findings.push_back(judge_refusals(facts));
    if (facts.is_wanted) return findings;
    for (Finding& finding : findings) {
        if (finding.verdict != Verdict::fail) continue;
        finding.verdict = Verdict::warn;
        finding.advice += " (matters to link udp only)";
    }
    return findings;
}

std::vector<Finding> check_network() {
    return judge_network(gather_network_facts());
}

}  // namespace tools
