// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Nodes of a ring as threads, processes or simulated processes, for tests that run on each link.
///
///     run(2, [](Self& self) { if (self.id == 0) self.write_word(0, 1); … });
///
/// A case is a link, its timing, and the kind of its nodes: threads on one mapping (which the
/// thread sanitizer can look into), processes, or processes of a simulated world. Bodies run once
/// per node and meet at gates outside the ring, so that no check of the ring depends on the ring.
/// A body kills and stops processes by Self, which knows their kind; times are those of
/// program_now_ns().
///
/// It is no RankProcesses, though its processes are Children and its worlds the same: a body has a
/// node and no billboard's environment, runs as a thread, too, and may kill its own process.

#include "rmem/node.hpp"
#include "rmem/ring/ring.hpp"
#include "rmem/sim/world.hpp"
#include "tests/support/child.hpp"
#include "tests/support/own_network.hpp"
#include "tests/support/sanitizers.hpp"

#include <gtest/gtest.h>
#include <sched.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <memory>
#include <ostream>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace rmem::test {

enum class LinkHost { threads, processes, world };

struct LinkCase {
    LinkKind link = LinkKind::direct;
    std::string timing = "none";
    LinkHost host = LinkHost::threads;
};

inline std::ostream& operator<<(std::ostream& out, const LinkCase& c) {
    constexpr std::array<const char*, 3> kHosts = {"threads", "processes", "world"};
    return out << name_of(c.link) << '_' << c.timing << '_'
               << kHosts.at(static_cast<std::size_t>(c.host));
}

inline std::string conformance_case_name(const ::testing::TestParamInfo<LinkCase>& info) {
    std::string name = ::testing::PrintToString(info.param);
    for (char& c : name) c = std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
    return name;
}

/// Each of these links with each of its timings, in each of the ways in which its nodes are made.
inline auto conformance_on(
    const std::vector<std::pair<LinkKind, std::vector<std::string>>>& links) {
    std::vector<LinkCase> cases;
    for (const auto& [link, timings] : links) {
        for (const auto& timing : timings) {
            if (link == LinkKind::sim) {
                cases.push_back({link, timing, LinkHost::world});
                continue;
            }
            cases.push_back({link, timing, LinkHost::threads});
            if (!kThreadSanitizer) cases.push_back({link, timing, LinkHost::processes});
        }
    }
    return ::testing::ValuesIn(cases);
}

class LinkConformance : public ::testing::TestWithParam<LinkCase> {
protected:
    static constexpr std::size_t kBytes = 8192;
    static constexpr std::int64_t kPatienceNs = 60'000'000'000;
    static constexpr std::int64_t kRestNs = 1000;  ///< where time passes by resting only
    static constexpr unsigned kNobody = ~0U;

    /// The memory that the nodes of a test share besides the ring.
    struct Shared {
        std::array<std::atomic<unsigned>, 64> gates;
        std::array<std::atomic<std::uint32_t>, 64> words;
        std::array<std::atomic<pid_t>, 16> pids;
        std::array<std::atomic<bool>, 16> stops;
        std::atomic<bool> late_may_come;
    };

    /// One node, as a test's body sees it.
    struct Self {
        Node& node;
        const std::byte* bank;
        unsigned id;
        unsigned nodes;
        Shared& shared;

        // ---- Waiting for the others
        /// Waits until all nodes are there.
        void meet(unsigned gate) { meet(gate, nodes); }
        void meet(unsigned gate, unsigned of) {
            ++shared.gates[gate];
            await([&] { return shared.gates[gate] >= of; });
        }
        /// Waits while the node goes on applying.
        void await(const std::function<bool()>& holds) {
            await_resting(holds, [&] {
                node.poll();
                rest();
            });
        }
        static void rest() {
            if (sim::Process* process = sim::current_process()) return process->sleep(kRestNs);
            ::sched_yield();
        }

        // ---- Memory
        /// Writes, and tries again while there is no room.
        void write(std::size_t offset, const void* from, std::size_t bytes) {
            await([&] { return node.write(offset, from, bytes) == WriteResult::ok; });
        }
        void write_word(std::size_t offset, std::uint32_t value) { write(offset, &value, 4); }
        /// The word in the own bank as it is, nothing applied first.
        std::uint32_t raw(std::size_t offset) const {
            return reinterpret_cast<const std::atomic<std::uint32_t>*>(bank + offset)
                ->load(std::memory_order_acquire);
        }

        // ---- Processes, not threads
        /// Goes on when another one resumes it.
        void stop_here() {
            shared.stops[id] = true;
            if (sim::Process* process = sim::current_process()) {
                process->world().stop(id);
                return process->sleep(1);
            }
            ::raise(SIGSTOP);
        }
        void die_here() {
            if (sim::Process* process = sim::current_process()) process->world().kill(id);
            ::raise(SIGKILL);
        }
        bool is_stopped(unsigned other) const {
            if (sim::current_process() != nullptr) return shared.stops[other];
            return test::is_stopped(shared.pids[other]);
        }
        void resume(unsigned other) const {
            if (sim::Process* process = sim::current_process()) {
                return process->world().resume(other);
            }
            ::kill(shared.pids[other], SIGCONT);
        }
        /// Nothing of it is left.
        bool has_died(unsigned other) const {
            const sim::Process* process = sim::current_process();
            if (process != nullptr) return process->world().has_ended(other);
            return has_ended(shared.pids[other]);
        }

        // ---- The others' state
        /// Waits asleep, so that it must be woken.
        bool sleeps(unsigned other) const {
            if (sim::Process* process = sim::current_process()) {
                process->sleep(1'000'000);  // by then all have come to where they wait
                return true;
            }
            if (!node.config().is_remote()) return node.ring().attention()[other].load() != 0;
            const auto its_own = Ring::observe(node.config().segment_name(other));
            return its_own->attention()[other].load() != 0;
        }
        /// Once, in tests with a late one.
        void let_late_come() const { shared.late_may_come = true; }
    };
    using Body = std::function<void(Self&)>;

    /// The nodes that behave unlike the others.
    struct Roles {
        unsigned dies = kNobody;  ///< its process may end by SIGKILL
        unsigned late = kNobody;  ///< joins when another one says so
    };

    void SetUp() override { stay_on_this_host(name_.get(), GetParam().link); }
    void TearDown() override { ::unsetenv("RMEM_DEAD_TIMEOUT"); }
    /// A node that is stopped is not to be taken for dead, however long this test itself has to
    /// wait. Before run().
    static void keep_the_silent() { ::setenv("RMEM_DEAD_TIMEOUT", "60s", 1); }

    bool replicated() const { return GetParam().link != LinkKind::direct; }
    bool processes() const { return GetParam().host != LinkHost::threads; }
    bool simulated() const { return GetParam().host == LinkHost::world; }
    /// Whether a bank has others' writes while its process is stopped: by a simulated card, or by
    /// those that write.
    bool cards_go_on() const { return simulated() || config(2).link == LinkKind::ring; }
    RingConfig config(unsigned nodes) const {
        RingConfig config;
        config.name = name_.get();
        config.nodes = config.ranks = nodes;
        config.user_bytes = bytes_;
        config.link = GetParam().link;
        config.timing = parse_timing(GetParam().timing);
        return config;
    }

    /// Runs the body as each of `nodes` nodes, which all (but a late one) have joined when it
    /// begins.
    void run(unsigned nodes, const Body& body) { run(nodes, body, Roles{}); }
    void run(unsigned nodes, const Body& body, const Roles& roles) {
        const Run plan{nodes, body, roles};
        switch (GetParam().host) {
            case LinkHost::threads: return run_threads(plan);
            case LinkHost::processes: return run_processes(plan);
            case LinkHost::world: return run_world(plan);
        }
    }

    RingName name_;
    std::size_t bytes_ = kBytes;  ///< of the user's memory
    SharedValue<Shared> shared_;

private:
    static constexpr unsigned kStartGate = 63;
    static constexpr unsigned kEndGate = 62;

    struct Run {
        unsigned nodes;
        const Body& body;
        const Roles& roles;
    };

    static void await_resting(const std::function<bool()>& holds,
                              const std::function<void()>& rest) {
        const Deadline deadline = Deadline::in(kPatienceNs);
        while (!holds()) {
            if (deadline.passed(program_now_ns())) throw std::runtime_error("waited too long");
            rest();
        }
    }
    void await_turn(const Run& plan, unsigned id) {
        if (id == plan.roles.late)
            await_resting([&] { return shared_->late_may_come.load(); }, Self::rest);
    }
    void run_one(const Run& plan, Node& node, const std::byte* bank, unsigned id) {
        Self self{node, bank, id, plan.nodes, *shared_};
        shared_->pids[id] = ::getpid();
        if (plan.roles.late == kNobody) self.meet(kStartGate);
        plan.body(self);
        // Nobody leaves before all have seen what they want to see.
        self.meet(kEndGate, plan.roles.dies == kNobody ? plan.nodes : plan.nodes - 1);
    }
    void run_one(const Run& plan, const std::shared_ptr<Ring>& ring, unsigned id) {
        await_turn(plan, id);
        Node node(ring, {id, id});
        run_one(plan, node, ring->bank(id), id);
    }
    std::shared_ptr<Ring> open_ring(const Run& plan, unsigned id) const {
        return Ring::open(config(plan.nodes), Deadline::in(kPatienceNs), id);
    }
    void report(unsigned id, const std::exception& error, unsigned nodes) {
        ADD_FAILURE() << "node " << id << ": " << error.what();
        shared_->gates[kEndGate] += nodes;
    }

    void run_threads(const Run& plan) {
        const auto ring = Ring::open(config(plan.nodes), Deadline::in(kPatienceNs));
        std::vector<std::thread> threads;
        for (unsigned id = 0; id < plan.nodes; ++id) {
            threads.emplace_back([&, id] {
                try {
                    run_one(plan, ring->config().is_remote() ? open_ring(plan, id) : ring, id);
                } catch (const std::exception& e) {
                    report(id, e, plan.nodes);
                }
            });
        }
        for (auto& thread : threads) thread.join();
    }
    void run_processes(const Run& plan) {
        std::vector<Child> children;
        for (unsigned id = 0; id < plan.nodes; ++id) {
            children.emplace_back([&, id] { run_one(plan, open_ring(plan, id), id); });
        }
        for (unsigned id = 0; id < plan.nodes; ++id) {
            EXPECT_EQ(children[id].wait(), id == plan.roles.dies ? -SIGKILL : 0) << "node " << id;
        }
    }
    void run_world(const Run& plan) {
        sim::WorldConfig world_config;
        world_config.ring = config(plan.nodes);
        world_config.stack_bytes = std::size_t{1} << 20;  // sanitizers make frames large
        sim::World world(world_config);
        for (unsigned id = 0; id < plan.nodes; ++id) {
            world.start(id, [&, id](sim::Process& process) {
                try {
                    await_turn(plan, id);
                    // Kept by the process, because no destructor of a killed one's frames runs.
                    Node& node = process.keep(std::make_unique<Node>(Node::open()));
                    run_one(plan, node, world.bank(id).data(), id);
                } catch (const std::exception& e) {
                    report(id, e, plan.nodes);
                }
            });
        }
        EXPECT_EQ(world.run(), sim::RunEnd::all_ended);
    }
};

}  // namespace rmem::test
