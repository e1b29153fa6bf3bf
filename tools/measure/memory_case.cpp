// SPDX-License-Identifier: Apache-2.0
#include "tools/measure/memory_case.hpp"

#include "rmem/base/clock.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <deque>
#include <thread>
#include <utility>

namespace tools {

namespace {

constexpr std::int64_t kFlushNs = 5'000'000'000;
constexpr std::chrono::milliseconds kLook{2};

/// In one ring with all others. Where nodes start at the same time on link udp, two rings can meet:
/// a node of the one that gives way is dropped, and opens again.
rmem::Node open_among(unsigned nodes, Meeting& opened) {
    const auto deadline = rmem::Deadline::in(rmem::kDefaultJoinTimeoutNs);
    for (bool is_first = true;;) {
        rmem::Node node = rmem::Node::open(false);
        // Those that are still to come need the processors.
        if (std::exchange(is_first, false)) opened.meet();
        unsigned present = 0;
        while (node.is_member() && present < nodes && !deadline.passed(rmem::now_ns())) {
            node.poll();
            while (present < nodes && node.is_alive(present)) ++present;
            if (present < nodes) std::this_thread::sleep_for(kLook);
        }
        if (node.is_member() && present == nodes) return node;
        if (!deadline.passed(rmem::now_ns())) continue;
        throw rmem::Error(rmem::Errc::timed_out,
                          fmt::format("{} of {} nodes have come into one ring", present, nodes));
    }
}

}  // namespace

void Case::throw_dropped() {
    throw rmem::Error(rmem::Errc::system, "the node was dropped while it was measured");
}

void Case::flush() {
    if (node.flush(rmem::Deadline::in(kFlushNs))) return;
    throw rmem::Error(rmem::Errc::timed_out,
                      fmt::format("node {} could not flush within {} s", me, kFlushNs / 1e9));
}

Sampling::Sampling(const MemoryPlan& plan)
    : most_(plan.samples), end_ns_(rmem::now_ns() + plan.case_ns) {}

bool Sampling::goes_on() const {
    return values_.empty() || (values_.size() < most_ && rmem::now_ns() < end_ns_);
}

void sleep_ns(std::int64_t ns) {
    std::this_thread::sleep_for(std::chrono::nanoseconds(ns));
}

int datagram_socket(Case& it) {
    const int own = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    ::bind(own, reinterpret_cast<sockaddr*>(&address), sizeof address);
    ::getsockname(own, reinterpret_cast<sockaddr*>(&address), &length);
    auto& ports = it.shared.counts;
    ports[it.me].store(address.sin_port, std::memory_order_relaxed);  // relaxed is enough: meet()
    it.meeting.meet();
    // relaxed is enough: meet()
    address.sin_port = static_cast<in_port_t>(ports[1 - it.me].load(std::memory_order_relaxed));
    ::connect(own, reinterpret_cast<sockaddr*>(&address), sizeof address);
    it.meeting.meet();
    return own;
}

void run_case(const GroupOptions& options, const MemoryPlan& plan, Results& results, Who who,
              const Part& part) {
    std::deque<Companion> busy;
    for (unsigned i = 0; i < plan.busy; ++i) {
        busy.emplace_back([] {
            for (;;) {
                asm volatile("");
            }
        });
    }
    const Common<Meeting> opened(options.ranks), all(options.ranks);
    const Common<Meeting> meeting(who == Who::two ? 2 : options.ranks);
    const Common<Shared> shared;
    // relaxed is enough, here and below: fork and the meeting order it
    shared->start_ns.store(rmem::now_ns(), std::memory_order_relaxed);
    run_processes(options, options.ranks, [&](unsigned process, const std::string&) {
        ::setenv("RMEM_RANK", std::to_string(process).c_str(), 1);
        rmem::Node node = open_among(options.ranks, *opened);
        if (!options.processors.empty()) bind_to({processor_of(options, process)});
        Case it{process, options.ranks, node, *meeting, *shared, plan, results};
        all->meet();
        if (who == Who::all || process < 2) part(it);
        // The end of the case wakes the nodes that sleep.
        if (who == Who::two && process == 0 && options.ranks > 2) it.put(kSleepers, 1);
        if (who == Who::two && process >= 2) {
            while (node.wait_change(kSleepers, 0, rmem::Deadline::in(rmem::kNsPerSecond)) == 0) {
            }
        }
        all->meet();
    });
}

void measure_memory(const GroupOptions& options, const MemoryPlan& plan, Results& results) {
    using Measure = void (*)(const GroupOptions&, const MemoryPlan&, Results&);
    constexpr std::pair<const char*, Measure> kQuantities[] = {
        {"store", measure_store},     {"hop", measure_hop},       {"interrupt", measure_interrupt},
        {"message", measure_message}, {"rhythm", measure_rhythm}, {"words", measure_words},
        {"blocks", measure_blocks},   {"reads", measure_reads},   {"flush", measure_flush},
        {"frame", measure_frame},     {"idle", measure_idle},
    };
    const auto& wanted = plan.quantities;
    for (const auto& [name, measure] : kQuantities) {
        if (wanted.empty() || std::find(wanted.begin(), wanted.end(), name) != wanted.end())
            measure(options, plan, results);
    }
}

}  // namespace tools
