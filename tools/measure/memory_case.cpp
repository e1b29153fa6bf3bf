// SPDX-License-Identifier: Apache-2.0
#include "tools/measure/memory_case.hpp"

#include "rmem/base/clock.hpp"

#include <fmt/format.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <climits>
#include <cstdlib>
#include <deque>
#include <thread>
#include <utility>

namespace bench {

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

void futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t value) {
    ::syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word), FUTEX_WAIT, value, nullptr,
              nullptr, 0);
}

void futex_wake(std::atomic<std::uint32_t>& word) {
    ::syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word), FUTEX_WAKE, INT_MAX, nullptr,
              nullptr, 0);
}

void Meeting::meet() {
    Shared& s = *shared_;
    // (1) - this acquire-load synchronizes-with the release-add (3)
    const std::uint32_t generation = s.generation.load(std::memory_order_acquire);
    // (2) - this acq_rel add synchronizes-with itself (2): the last knows of what all did
    if (s.arrived.fetch_add(1, std::memory_order_acq_rel) + 1 == processes_) {
        s.arrived.store(0, std::memory_order_relaxed);  // relaxed is enough: (3) publishes it
        // (3) - this release-add synchronizes-with the acquire-loads (1) and (4)
        s.generation.fetch_add(1, std::memory_order_release);
        futex_wake(s.generation);
        return;
    }
    // (4) - this acquire-load synchronizes-with the release-add (3)
    while (s.generation.load(std::memory_order_acquire) == generation) {
        futex_wait(s.generation, generation);
    }
}

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
    Meeting opened(options.ranks), all(options.ranks);
    Meeting meeting(who == Who::two ? 2 : options.ranks);
    // relaxed is enough, here and below: fork and the meeting order it
    meeting.shared().start_ns.store(rmem::now_ns(), std::memory_order_relaxed);
    run_processes(options, options.ranks, results, [&](unsigned process, const std::string&) {
        ::setenv("RMEM_RANK", std::to_string(process).c_str(), 1);
        rmem::Node node = open_among(options.ranks, opened);
        if (!options.processors.empty()) pin_to(processor_of(options, process));
        Case it{process, options.ranks, node, meeting, plan, results};
        all.meet();
        if (who == Who::all || process < 2) part(it);
        // The end of the case wakes the nodes that sleep.
        if (who == Who::two && process == 0 && options.ranks > 2) it.put(kSleepers, 1);
        if (who == Who::two && process >= 2) {
            while (node.wait_change(kSleepers, 0, rmem::Deadline::in(1'000'000'000)) == 0) {
            }
        }
        all.meet();
    });
}

}  // namespace bench
