// SPDX-License-Identifier: Apache-2.0
#include "rmem/ring/ring.hpp"

#include "rmem/base/process.hpp"
#include "rmem/ring/map_text.hpp"
#include "tests/support/child.hpp"
#include "tests/support/refused.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sched.h>
#include <signal.h>

#include <array>
#include <atomic>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <vector>

namespace rmem::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

struct RingTest : ::testing::Test {
    RingName name;

    RingConfig config(unsigned ranks = 2) const { return name.config(ranks); }
    static std::shared_ptr<Ring> open(const RingConfig& config) {
        return Ring::open(config, Deadline::in(kPatienceNs));
    }
    std::shared_ptr<Ring> open() const { return open(config()); }

    /// With which sentence.
    std::string refused_to_open(Errc code) const {
        return refused(code, [this] { open(); });
    }
    void write_object(const std::string& bytes) const {
        std::ofstream(Segment::object_name(name.get()), std::ios::binary) << bytes;
    }
    static SegmentHeader& writable_header(const Segment& segment) {
        return *reinterpret_cast<SegmentHeader*>(segment.data());
    }
};

// ---- First and last

TEST_F(RingTest, a_rank_that_was_killed_is_dead_though_a_child_shares_its_memory) {
    const auto ring = open();
    SharedValue<std::atomic<pid_t>> grandchild;
    Child parent([&] {
        const Membership member(open(), {0, 0});
        alignas(16) static std::array<char, 16384> stack;
        // As vfork(): it waits for a child that never executes a program.
        ::clone(
            [](void* pid) {
                *static_cast<std::atomic<pid_t>*>(pid) = static_cast<pid_t>(::getpid());
                for (;;) ::pause();
                return 0;
            },
            stack.data() + stack.size(), CLONE_VM | CLONE_VFORK | SIGCHLD, &*grandchild);
    });
    ASSERT_TRUE(eventually([&] { return grandchild->load() != 0; }));
    EXPECT_TRUE(ring->is_alive(0));
    parent.kill();
    EXPECT_FALSE(ring->is_alive(0));
    const auto join = [&] { Membership(ring, {0, 0}); };
    EXPECT_THAT(refused(Errc::rank_taken, join), AllOf(HasSubstr("is gone"), HasSubstr("vfork")));
    ::kill(*grandchild, SIGKILL);
    EXPECT_TRUE(eventually([&] { return !ring->segment().is_locked(16); }));
    join();
}

TEST_F(RingTest, one_launcher_has_it_until_it_ends) {
    const auto ring = open();
    const auto held = ring->try_lock_launcher();
    EXPECT_TRUE(held);
    EXPECT_FALSE(open()->try_lock_launcher()) << "also in the same process";
    run_in_child([&] {
        const auto other = open();
        EXPECT_FALSE(other->try_lock_launcher());
        const Membership member(other, {0, 0});  // taking part is another matter
    });
}

TEST_F(RingTest, the_first_makes_it_and_the_last_removes_it) {
    auto first = open();
    EXPECT_TRUE(name.exists());
    auto second = open();
    first.reset();
    EXPECT_TRUE(name.exists()) << "one is still there";
    EXPECT_TRUE(second->has_members());
    second.reset();
    EXPECT_FALSE(name.exists());
}

TEST_F(RingTest, the_parts_of_a_segment_do_not_overlap) {
    for (const LinkKind link : {LinkKind::direct, LinkKind::ring}) {
        RingConfig large = config(kMaxRanks);
        large.link = link;
        const SegmentLayout layout(large);
        EXPECT_LE(layout.attention + kMaxRanks * 4, layout.ranks);
        EXPECT_LE(layout.ranks + large.ranks * sizeof(RankSlot), layout.nodes);
        EXPECT_LT(layout.nodes, layout.log_headers);
        EXPECT_LE(layout.log_headers, layout.logs);
        const std::size_t logs_end = layout.logs + large.ranks * layout.log_stride;
        EXPECT_LE(logs_end, layout.interrupts);
        EXPECT_LE(logs_end, layout.banks);
        EXPECT_LE(layout.banks + large.banks() * layout.bank_stride, layout.total);
        EXPECT_LE(layout.interrupts + large.nodes * layout.interrupt_stride,
                  link == LinkKind::direct ? layout.banks : layout.twins + layout.bank_stride);
        EXPECT_GE(layout.bank_stride, large.bank_bytes());
        EXPECT_EQ(layout.twins, layout.reserved) << "which have memory while they are kept";
        EXPECT_LE(layout.banks + large.bank_bytes(), layout.twins);
        const bool has_twins = link != LinkKind::direct;
        EXPECT_EQ(layout.map - layout.twins, has_twins ? large.nodes * layout.twin_stride : 0);
        EXPECT_EQ(layout.owners - layout.map, kMaxMapBytes);
        EXPECT_GE(layout.guests - layout.owners, large.user_bytes);
        const unsigned guests = large.seats() - large.ranks;
        EXPECT_EQ(guests, kMaxGuests) << "in a ring with that many nodes";
        EXPECT_LE(layout.guests + guests * sizeof(RankSlot), layout.guest_logs);
        EXPECT_EQ(layout.total - layout.guest_logs, has_twins ? guests * kClientLogBytes : 0);
        EXPECT_EQ(layout.twin_stride >= large.user_bytes, has_twins);
    }
}

TEST_F(RingTest, sixteen_processes_that_start_at_once_all_meet) {
    constexpr unsigned kProcesses = 16;
    constexpr int kRounds = 20;
    struct Gates {
        std::atomic<int> open[kRounds];
        std::atomic<unsigned> joined[kRounds];
        std::atomic<unsigned> left[kRounds];
    };
    SharedValue<Gates> gates;
    std::vector<Child> children;
    for (unsigned p = 0; p < kProcesses; ++p) {
        children.emplace_back([&, p] {
            for (int round = 0; round < kRounds; ++round) {
                while (gates->open[round] == 0) ::sched_yield();
                {
                    Membership me(open(config(kProcesses)), {p, p});
                    ++gates->joined[round];
                    ASSERT_TRUE(eventually([&] { return gates->joined[round] == kProcesses; }));
                    // If two rings had been made, somebody would miss somebody.
                    for (unsigned r = 0; r < kProcesses; ++r)
                        ASSERT_TRUE(me.ring().is_alive(r)) << r;
                    ++gates->left[round];
                    ASSERT_TRUE(eventually([&] { return gates->left[round] == kProcesses; }));
                }
            }
        });
    }
    for (int round = 0; round < kRounds; ++round) gates->open[round] = 1;
    for (auto& child : children) EXPECT_EQ(child.wait(), 0);
}

TEST_F(RingTest, coming_and_going_at_random_never_fails_and_leaves_nothing) {
    std::vector<Child> children;
    for (int p = 0; p < 8; ++p) {
        children.emplace_back([&] {
            for (int i = 0; i < 200; ++i) ASSERT_TRUE(open()->has_members());
        });
    }
    for (auto& child : children) EXPECT_EQ(child.wait(), 0);
}

// ---- Attach and observe

TEST_F(RingTest, a_process_that_attaches_takes_the_rings_configuration) {
    RingConfig made = config(3);
    made.system_bytes = 8192;
    made.system_hash = 77;
    made.timing = parse_timing("scramnet-burst");
    made.bound_ns = 12345;
    const auto ring = open(made);
    const auto attached = Ring::attach(name.get());
    EXPECT_EQ(attached->config().hash(), made.hash());
    EXPECT_EQ(attached->config().ranks, 3U);
    EXPECT_EQ(attached->config().bound_ns, 12345);
}

TEST_F(RingTest, what_does_not_exist_cannot_be_attached_or_observed) {
    EXPECT_THAT(refused(Errc::no_such_ring, [&] { Ring::attach(name.get()); }),
                HasSubstr("rmem run"));
    refused(Errc::no_such_ring, [&] { Ring::observe(name.get()); });
}

TEST_F(RingTest, an_observer_neither_keeps_nor_removes_a_ring) {
    auto ring = open();
    const auto observer = Ring::observe(name.get());
    ring.reset();
    EXPECT_FALSE(name.exists());
    EXPECT_FALSE(observer->has_members());
}

// ---- What is there already

TEST_F(RingTest, a_ring_of_another_version_is_refused) {
    const auto ring = open();
    auto segment = Segment::open(name.get());
    writable_header(*segment).version = 99;
    EXPECT_THAT(refused_to_open(Errc::version_mismatch), HasSubstr("99"));
    refused(Errc::version_mismatch, [&] { Ring::observe(name.get()); });
}

TEST_F(RingTest, a_foreign_object_is_refused_and_left_alone) {
    name.may_be_left();
    for (const std::string& bytes : {std::string("x"), std::string(100'000, 'x')}) {
        write_object(bytes);
        EXPECT_THAT(refused_to_open(Errc::foreign_segment), HasSubstr(name.get()));
        refused(Errc::foreign_segment, [&] { Ring::attach(name.get()); });
        refused(Errc::foreign_segment, [&] { Ring::observe(name.get()); });
        EXPECT_TRUE(name.exists());
    }
}

TEST_F(RingTest, a_half_written_one_is_named_to_those_who_attach_and_replaced_by_those_who_open) {
    write_object(std::string(8192, '\0'));
    refused(Errc::foreign_segment, [&] { Ring::attach(name.get()); });
    EXPECT_NE(open(), nullptr);
}

TEST_F(RingTest, a_header_that_contradicts_itself_is_not_believed) {
    const auto ring = open();
    auto segment = Segment::open(name.get());
    SegmentHeader& header = writable_header(*segment);
    const ConfigRecord config = ring->header().config;
    const std::function<void()> damages[] = {
        [&] { header.segment_bytes = 1; },
        [&] { header.config.nodes = 0; },
        [&] { header.config.ranks = 1'000'000; },
        [&] { header.config.link = static_cast<LinkKind>(77); },
        [&] { header.config.user_bytes = std::uint64_t{1} << 60; },
        [&] { header.config.user_bytes = 1 << 20; },
        [&] { header.config.system_bytes = ~std::uint64_t{0}; },
        [&] { header.config.timing.pitch_ps = 1; },
        [&] { std::memset(header.config.timing.name, 'x', sizeof config.timing.name); }};
    for (const auto& damage : damages) {
        SCOPED_TRACE(&damage - damages);
        damage();
        refused(Errc::foreign_segment, [&] { Ring::observe(name.get()); });
        header.config = config;
        header.segment_bytes = segment->size();
        EXPECT_NO_THROW(Ring::observe(name.get()));
    }
}

TEST_F(RingTest, random_headers_never_crash_a_process_that_looks_at_them) {
    const auto ring = open();
    auto segment = Segment::open(name.get());
    const std::vector<std::byte> good(segment->data(), segment->data() + sizeof(SegmentHeader));
    std::uint32_t random = 12345;
    for (int i = 0; i < 20'000; ++i) {
        random = random * 1664525 + 1013904223;
        segment->data()[(random >> 8) % good.size()] = static_cast<std::byte>(random >> 24);
        try {
            Ring::observe(name.get());
        } catch (const Error&) {  // the expected answer
        }
        if (i % 3 == 0) std::memcpy(segment->data(), good.data(), good.size());
    }
    std::memcpy(segment->data(), good.data(), good.size());
}

TEST_F(RingTest, a_program_that_exits_without_closing_it_leaves_it) {
    const auto exit_with_members = [this](unsigned n) {
        static std::shared_ptr<Ring>* ring = nullptr;  // static: no leak, and not destroyed
        static Membership* member = nullptr;
        ring = new std::shared_ptr(open());
        member = new Membership(*ring, Member{n, n});
        std::exit(member->held() ? 0 : 1);
    };
    run_in_child([&] { exit_with_members(0); });
    EXPECT_FALSE(Segment::exists(name.get()));
    // Not what others, or its parent, are in.
    const auto ring = open();
    const Membership member(ring, Member{0, 0});
    run_in_child([&] { exit_with_members(1); });
    EXPECT_TRUE(Segment::exists(name.get()));
    run_in_child([] { std::exit(0); });
    EXPECT_TRUE(ring->is_linked());
    run_in_child([&] {
        EXPECT_TRUE(open()->is_alive(0));
        EXPECT_FALSE(open()->is_alive(1));
    });
}

TEST_F(RingTest, too_little_shared_memory_is_said_and_leaves_nothing) {
    run_with_mounted("/dev/shm", "size=64k", [&] {
        EXPECT_THAT(refused_to_open(Errc::no_space), HasSubstr("RMEM_SIZE"));
        EXPECT_FALSE(name.exists());
    });
}

TEST_F(RingTest, a_maker_that_is_stopped_costs_a_joiner_its_deadline_only) {
    name.may_be_left();
    const auto made = Segment::create(name.get(), 4096, "", 0);  // holds the lock, does not go on
    EXPECT_THAT(refused(Errc::timed_out, [&] { Ring::open(config(), Deadline::in(1'000'000)); }),
                HasSubstr("stopped"));
}

// ---- The dead

TEST_F(RingTest, what_only_the_dead_have_left_behind_is_replaced_of_whatever_version) {
    for (const std::uint32_t version : {kSegmentVersion, 99U}) {
        staying([&](const auto& stay) {
            Membership me(open(), {0, 0});
            me.ring().bank(0)[0] = std::byte{42};
            writable_header(me.ring().segment()).version = version;
            stay();
        }).kill();
        EXPECT_TRUE(name.exists());
        RingConfig other = config();
        other.user_bytes = 8192;  // nothing of the dead one's configuration matters
        EXPECT_EQ(open(other)->bank(0)[0], std::byte{0}) << version;
    }
}

TEST_F(RingTest, a_killed_rank_is_seen_as_dead_and_a_live_one_as_alive) {
    const auto ring = open();
    Child other = staying([&](const auto& stay) {
        const Membership me(open(), {1, 1});
        stay();
    });
    EXPECT_TRUE(ring->is_alive(1));
    EXPECT_FALSE(ring->is_alive(0));
    ::kill(other.pid(), SIGSTOP);
    EXPECT_TRUE(ring->is_alive(1)) << "a stopped one is alive";
    other.kill();
    EXPECT_FALSE(ring->is_alive(1));
}

TEST_F(RingTest, a_forked_child_that_tears_down_does_not_leave_for_its_parent) {
    auto membership = std::make_unique<Membership>(open(), Member{0, 0});
    run_in_child([&] { membership.reset(); });
    EXPECT_TRUE(name.exists());
    EXPECT_TRUE(membership->ring().is_alive(0));
    EXPECT_EQ(membership->ring().joined_ranks(), 1U);
}

TEST_F(RingTest, is_removed_by_the_last_to_leave_beside_a_process_that_is_still_dying) {
    bool removed = false;
    for (int tries = 0; tries < 20 && !removed; ++tries) {
        // A try in which the host stops us does not count.
        SharedValue<std::atomic<int>> step;
        auto ring = open();
        // Present without its rank, as a killed process is between one lock and the other.
        Child dying([&] {
            const auto present = open();
            *step = 1;
            eventually([&] { return step->load() == 2; });
            ::usleep(20'000);
            ::_exit(0);
        });
        ASSERT_TRUE(eventually([&] { return step->load() == 1; }));
        ring->rank(1).state = static_cast<std::uint32_t>(RankState::joined);
        *step = 2;
        ring.reset();
        removed = !name.exists();
        dying.wait();
        if (!removed) Segment::remove(name.get());
    }
    EXPECT_TRUE(removed);
}

// ---- Membership

TEST_F(RingTest, two_claims_of_one_rank_are_refused_with_the_others_process) {
    const Membership first(open(), {1, 1});
    const auto join = [&] { Membership(first.shared_ring(), {1, 1}); };
    EXPECT_THAT(refused(Errc::rank_taken, join), HasSubstr(std::to_string(::getpid())));
    run_in_child([&] { refused(Errc::rank_taken, [&] { Membership(open(), {1, 0}); }); });
}

TEST_F(RingTest, a_rank_or_node_outside_the_ring_is_refused) {
    const auto ring = open();
    refused(Errc::bad_rank, [&] { Membership(ring, {2, 0}); });
    refused(Errc::bad_rank, [&] { Membership(ring, {0, 2}); });
}

TEST_F(RingTest, a_rank_that_comes_again_has_the_next_incarnation) {
    const auto ring = open();
    { EXPECT_EQ(Membership(ring, {1, 1}).incarnation(), 1U); }
    staying([&](const auto& stay) {
        const Membership me(open(), {1, 1});
        if (me.incarnation() == 2) stay();
    }).kill();
    EXPECT_EQ(Membership(ring, {1, 1}).incarnation(), 3U);
}

TEST_F(RingTest, a_slot_shows_who_is_there) {
    const auto ring = open();
    EXPECT_EQ(ring->joined_ranks(), 0U);
    {
        const Membership me(ring, {1, 0});
        EXPECT_EQ(ring->joined_ranks(), 1U);
        EXPECT_EQ(ring->rank(1).pid, static_cast<std::uint32_t>(::getpid()));
        EXPECT_EQ(ring->rank(1).node, 0U);
        EXPECT_EQ(ring->rank(1).start_time, process_start_time(static_cast<unsigned>(::getpid())));
    }
    EXPECT_EQ(ring->joined_ranks(), 0U);
}

int count_of(const ProcessorSet& processors) {
    int count = 0;
    for (const std::uint64_t part : processors) count += std::popcount(part);
    return count;
}

TEST_F(RingTest, ranks_that_are_bound_to_processors_of_their_own_share_all_of_them) {
    cpu_set_t before;
    CPU_ZERO(&before);
    ASSERT_EQ(::sched_getaffinity(0, sizeof before, &before), 0);
    if (CPU_COUNT(&before) < 2) GTEST_SKIP() << "needs two processors, this process has one";
    const auto ring = open();
    const auto join_bound = [&](unsigned rank, int which) {
        cpu_set_t one;
        CPU_ZERO(&one);
        for (std::size_t cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
            if (CPU_ISSET(cpu, &before) && which-- == 0) CPU_SET(cpu, &one);
        }
        EXPECT_EQ(::sched_setaffinity(0, sizeof one, &one), 0);
        auto member = std::make_unique<Membership>(ring, Member{rank, rank});
        EXPECT_EQ(::sched_setaffinity(0, sizeof before, &before), 0);
        return member;
    };
    const auto first = join_bound(0, 0);
    EXPECT_EQ(count_of(ring->shared_processors()), 1);
    const auto second = join_bound(1, 1);
    EXPECT_EQ(count_of(ring->shared_processors()), 2);
}

}  // namespace
}  // namespace rmem::test
