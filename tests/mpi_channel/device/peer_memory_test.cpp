// SPDX-License-Identifier: Apache-2.0
//
// The memory of other processes: read while they are ranks of the ring, refused otherwise.
#include "mpi_channel/device/peer_memory.hpp"

#include "tests/support/child.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <numeric>
#include <vector>

namespace mpi_channel {
namespace {

using rmem::test::Child;
using rmem::test::eventually;
using rmem::test::RingName;
using rmem::test::SharedValue;

constexpr std::size_t kPage = 64 * 1024;  // of any machine
constexpr std::size_t kPeerBytes = 50 * kPage;

/// Rank 0 is a process with bytes that count up, and none behind them; this one reads them.
class PeerMemoryTest : public testing::Test {
protected:
    PeerMemoryTest() {
        config_.name = name_.get();
        config_.ranks = config_.nodes = 2;
        ring_ = rmem::Ring::open(config_, rmem::Deadline::in(30'000'000'000));
    }
    /// A process that is rank 0 until its end; `first` runs in it before.
    Child start(const std::function<void()>& first = {}) {
        *address_ = 0;
        Child child([&, first] {
            if (first) first();
            const rmem::Membership member(rmem::Ring::attach(config_.name), {0, 0});
            auto* bytes = static_cast<unsigned char*>(::mmap(nullptr, kPeerBytes + kPage,
                                                             PROT_READ | PROT_WRITE,
                                                             MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
            std::iota(bytes, bytes + kPeerBytes, static_cast<unsigned char>(0));
            ::mprotect(bytes + kPeerBytes, kPage, PROT_NONE);
            *address_ = reinterpret_cast<std::uintptr_t>(bytes);
            while (true) ::pause();
        });
        EXPECT_TRUE(eventually([&] { return *address_ != 0; }));
        return child;
    }
    HostMemory memory() {
        return HostMemory(ring_, [this](unsigned rank, int error) {
            EXPECT_EQ(rank, 0U);
            refused_.push_back(error);
        });
    }

    RingName name_;
    rmem::RingConfig config_;
    std::shared_ptr<rmem::Ring> ring_;
    SharedValue<std::atomic<std::uint64_t>> address_;
    std::vector<int> refused_;
};

TEST_F(PeerMemoryTest, reads_what_lies_in_a_rank_s_memory) {
    Child rank = start();
    HostMemory peers = memory();
    ASSERT_TRUE(peers.reaches(0));
    EXPECT_FALSE(peers.reaches(1)) << "nobody is it";
    std::vector<std::byte> bytes(kPeerBytes - 7);
    ASSERT_TRUE(peers.read(0, *address_ + 7, bytes));
    for (std::size_t i = 0; i < bytes.size(); ++i)
        ASSERT_EQ(bytes[i], static_cast<std::byte>(i + 7)) << i;
    EXPECT_TRUE(peers.read(0, *address_, {})) << "nothing";
    EXPECT_TRUE(refused_.empty());
}

TEST_F(PeerMemoryTest, an_address_where_nothing_lies_is_refused_and_the_rank_from_then_on) {
    Child rank = start();
    HostMemory peers = memory();
    std::vector<std::byte> bytes(100);
    EXPECT_FALSE(peers.read(0, 16, bytes));
    EXPECT_FALSE(peers.reaches(0));
    EXPECT_FALSE(peers.read(0, *address_, bytes));
    EXPECT_EQ(refused_, std::vector<int>{EFAULT}) << "once";
}

TEST_F(PeerMemoryTest, memory_that_ends_in_the_middle_is_refused) {
    Child rank = start();
    HostMemory peers = memory();
    std::vector<std::byte> bytes(kPeerBytes + 1);
    EXPECT_FALSE(peers.read(0, *address_, bytes));
    EXPECT_EQ(refused_, std::vector<int>{EFAULT});
}

TEST_F(PeerMemoryTest, the_dead_are_not_read_and_their_successor_is) {
    std::vector<std::byte> bytes(100);
    HostMemory peers = memory();
    {
        Child rank = start();
        ASSERT_TRUE(peers.read(0, *address_, bytes));
        rank.kill();
    }
    EXPECT_FALSE(peers.read(0, *address_, bytes));
    Child next = start();
    EXPECT_TRUE(peers.reaches(0));
    EXPECT_TRUE(peers.read(0, *address_, bytes));
}

TEST_F(PeerMemoryTest, a_process_that_the_slot_only_claims_to_be_is_not_read) {
    Child rank = start();
    HostMemory peers = memory();
    auto& start_time = ring_->rank(0).start_time;
    const std::uint64_t true_one = start_time.exchange(12345);
    EXPECT_FALSE(peers.reaches(0));
    EXPECT_EQ(refused_, std::vector<int>{ESRCH});
    start_time = true_one;
}

TEST_F(PeerMemoryTest, where_the_system_forbids_it_it_says_so_and_stays_away) {
    Child rank = start([] { ::prctl(PR_SET_DUMPABLE, 0); });
    Child reader([&] {
        HostMemory peers = memory();
        constexpr uid_t kNobody = 65534;
        ASSERT_TRUE(::geteuid() != 0 || ::setresuid(kNobody, kNobody, kNobody) == 0);
        std::vector<std::byte> bytes(100);
        EXPECT_FALSE(peers.read(0, *address_, bytes));
        EXPECT_FALSE(peers.reaches(0));
        EXPECT_EQ(refused_, std::vector<int>{EPERM});
    });
    EXPECT_EQ(reader.wait(), 0);
}

}  // namespace
}  // namespace mpi_channel
