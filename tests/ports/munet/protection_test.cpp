// SPDX-License-Identifier: Apache-2.0

/// Users against each other: a process of one user tries to read, change or stall the messages
/// between processes of two others, by all ways of a list, while these go on, each in order and
/// whole. Needs root, to become those users.

#include "ports/munet/connection.hpp"
#include "ports/munet/driver_protocol.hpp"
#include "tests/support/munet_daemon.hpp"
#include "tests/support/users.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <random>
#include <string>
#include <vector>

namespace rmem::test {
namespace {

using namespace ports::munet;
using ports::munet::Counter;

constexpr uid_t kMallory = 65503;
constexpr unsigned kRounds = 3000;

/// What the processes of a test tell each other.
struct Board {
    std::atomic<std::uint32_t> bob, victim_pid, rounds, stop, attacks, mallory;
};

/// Alice and Bob send numbers and longer texts to and fro, until told to stop.
class Protection : public ::testing::Test {
protected:
    void SetUp() override {
        if (::getuid() != 0) GTEST_SKIP() << kNeedsRoot;
        bob_ = std::make_unique<Child>([this] { be_bob(); });
        ASSERT_TRUE(eventually([this] { return board_->bob != 0; }));
        alice_ = std::make_unique<Child>([this] { be_alice(); });
        ASSERT_TRUE(eventually([this] { return board_->rounds > 10; }));
    }
    void TearDown() override {
        if (!bob_) return;
        const std::uint32_t before = board_->rounds;
        EXPECT_TRUE(eventually([&] { return board_->rounds > before + 100; }))
            << "Alice and Bob go on after the attack";
        board_->stop = 1;
        EXPECT_EQ(alice_->wait(), 0);
        EXPECT_EQ(bob_->wait(), 0);
        EXPECT_EQ(daemon_.count(0, Counter::no_room), 0U);
    }
    mu_addr_t bob() const { return {0, static_cast<unsigned char>(board_->bob - 1)}; }

    std::uint64_t count_of_mallory(Counter counter) const {
        return daemon_.count(board_->mallory - 1, counter);
    }
    /// Runs `attack` as another user, to its end.
    void attack(const std::function<void()>& attack, uid_t user = kMallory) {
        Child mallory([&] {
            become(user);
            daemon_.enter();
            attack();
        });
        EXPECT_EQ(mallory.wait(), 0);
    }

    MunetDaemon daemon_{{.user_bytes = std::size_t{1} << 20, .user_endpoints = 8}};
    const SharedValue<Board> board_;

private:
    void be_bob() {
        become(kBob);
        daemon_.enter();
        const MuEndpoint ep;
        board_->bob = 1U + ep.address().ep;
        board_->victim_pid = static_cast<std::uint32_t>(::getpid());
        std::vector<char> text(65536);
        while (true) {
            mu_addr_t from{};
            const int size = mu_await(ep, text.data(), text.size(), &from);
            ASSERT_GE(size, 0) << mu_last_error();
            if (size == 0 || text[0] != 'A') continue;  // a stranger's
            if (size == 1) break;
            // An answer to one who is gone meanwhile fails; Alice is not.
            ASSERT_EQ(mu_send(ep, from, text.data(), static_cast<std::size_t>(size)), 0)
                << mu_last_error();
        }
    }
    void be_alice() {
        become(kAlice);
        daemon_.enter();
        const MuEndpoint ep;
        while (board_->stop == 0) {
            const std::uint32_t round = board_->rounds++;
            std::vector<char> text(8 + round % 1500, static_cast<char>(round)), back(65536);
            text[0] = 'A';
            std::memcpy(text.data() + 1, &round, sizeof round);
            const auto send = round % 2 == 0 ? mu_send : mu_send_DMA;
            ASSERT_EQ(send(ep, bob(), text.data(), text.size()), 0) << mu_last_error();
            int size = 0;
            do {
                size = mu_await(ep, back.data(), back.size());
                ASSERT_GE(size, 0) << mu_last_error();
            } while (size == 0 || back[0] != 'A');
            back.resize(static_cast<std::size_t>(size));
            ASSERT_EQ(back, text) << "round " << round;
        }
        ASSERT_EQ(mu_send(ep, bob(), "A", 1), 0);
    }

    std::unique_ptr<Child> alice_, bob_;
};

// ---- Reading others' memory

TEST_F(Protection, keeps_the_memory_of_processes_from_other_users) {
    attack([&] {
        for (const auto pid :
             {static_cast<pid_t>(board_->victim_pid.load()), daemon_.process().pid()}) {
            const std::string proc = "/proc/" + std::to_string(pid);
            for (const char* name : {"/mem", "/fd/3", "/fd/4", "/fd/5", "/map_files", "/maps"}) {
                errno = 0;
                const int fd = ::open((proc + name).c_str(), O_RDWR);
                EXPECT_LT(fd, 0) << proc << name;
            }
            EXPECT_EQ(::access((proc + "/fd").c_str(), R_OK), -1);
            EXPECT_EQ(::ptrace(PTRACE_SEIZE, pid, nullptr, nullptr), -1);
            char byte = 0;
            iovec own{&byte, 1}, there{&byte, 1};
            EXPECT_EQ(::process_vm_readv(pid, &own, 1, &there, 1, 0), -1);
            const auto pidfd = static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
            for (int fd = 3; fd < 20; ++fd) {
                EXPECT_EQ(::syscall(SYS_pidfd_getfd, pidfd, fd, 0), -1);
            }
        }
    });
}

/// A connection by hand; its endpoint's descriptor, if it got one.
struct ByHand {
    Descriptor socket, memory;
    Reply reply;

    ByHand(const MunetDaemon& daemon, const Request& request) : socket(daemon.connect()) {
        EXPECT_GT(::send(socket.get(), &request, sizeof request, 0), 0);
        iovec bytes{&reply, sizeof reply};
        alignas(cmsghdr) std::array<char, CMSG_SPACE(4 * sizeof(int))> space{};
        msghdr message{};
        message.msg_iov = &bytes;
        message.msg_iovlen = 1;
        message.msg_control = space.data();
        message.msg_controllen = space.size();
        EXPECT_GT(::recvmsg(socket.get(), &message, 0), 0);
        const cmsghdr* header = CMSG_FIRSTHDR(&message);
        if (header == nullptr) return;
        EXPECT_EQ(header->cmsg_len, CMSG_LEN(sizeof(int))) << "one descriptor and no more";
        int fd = -1;
        std::memcpy(&fd, CMSG_DATA(header), sizeof fd);
        memory = Descriptor(fd);
    }
};

TEST_F(Protection, gives_nobody_the_descriptor_of_anothers_memory) {
    attack([&] {
        for (unsigned i = 0; i < 6; ++i) {
            const ByHand mine(daemon_, {.send_bytes = 0, .receive_bytes = 65536});
            ASSERT_EQ(mine.reply.error, 0);
            ASSERT_GE(mine.memory.get(), 0);
            std::vector<std::byte> found(mine.reply.geometry.bytes());
            EXPECT_EQ(::pread(mine.memory.get(), found.data(), found.size(), 0),
                      static_cast<ssize_t>(found.size()));
            // All that stands there is what the daemon says to this endpoint: nothing of a former
            // owner.
            std::fill_n(found.begin(), sizeof(DaemonWords), std::byte{0});
            EXPECT_EQ(found, std::vector<std::byte>(found.size()));
        }
        for (const std::string packet : {"endpoint 0", "w", ""}) {
            Request request;
            request.magic = 0;
            packet.copy(reinterpret_cast<char*>(&request), packet.size());
            const ByHand nothing(daemon_, request);
            EXPECT_EQ(nothing.reply.error, EPROTO);
            EXPECT_LT(nothing.memory.get(), 0);
        }
    });
    EXPECT_TRUE(eventually([&] { return daemon_.count(NodeCounter::bad_requests) == 3; }));
}

TEST_F(Protection, lets_nobody_take_memory_away_under_the_daemon) {
    attack([&] {
        const ByHand mine(daemon_, {.send_bytes = 65536, .receive_bytes = 65536});
        ASSERT_EQ(mine.reply.error, 0);
        EXPECT_EQ(::ftruncate(mine.memory.get(), 0), -1);
        EXPECT_EQ(::ftruncate(mine.memory.get(), 1 << 30), -1);
        EXPECT_EQ(::fcntl(mine.memory.get(), F_ADD_SEALS, F_SEAL_WRITE), -1);
        for (unsigned i = 0; i < 100; ++i) {
            ::fallocate(mine.memory.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 1 << 17);
            ::sched_yield();
        }
    });
}

TEST_F(Protection, keeps_socket_and_counters_from_other_users) {
    attack([&] {
        const std::string board = "/dev/shm" + CounterBoard::object_name(daemon_.config().board);
        EXPECT_EQ(::open(board.c_str(), O_RDWR), -1);
        EXPECT_GE(::open(board.c_str(), O_RDONLY), 0) << "to be read by all";
        EXPECT_EQ(::unlink(board.c_str()), -1);
        EXPECT_EQ(::chmod(daemon_.path().c_str(), 0777), -1);
        EXPECT_EQ(::kill(daemon_.process().pid(), SIGSTOP), -1);
    });
}

// ---- Lies

/// An endpoint whose memory the attacker writes as he likes.
class RawEndpoint {
public:
    explicit RawEndpoint(Board& board) : board_(board) {
        std::string why;
        EXPECT_EQ(connection_.open(4096, 65536, &why), 0) << why;
        words_ = EndpointMemory(connection_.memory(), connection_.geometry());
        board.mallory = 1U + connection_.own().endpoint;
    }
    /// Its slot 0 is to Bob, and 1 to itself.
    void open_slots() {
        post(Kind::open, 0, 4, static_cast<std::uint64_t>(board_.bob - 1) << 16);
        post(Kind::open, 1, 4, std::uint64_t{connection_.own().endpoint} << 16);
    }
    Connection& connection() { return connection_; }
    const EndpointMemory& words() const { return words_; }
    void post(Kind kind, std::uint8_t slot, std::uint32_t length, std::uint64_t first = 0,
              std::uint64_t credit = 0) {
        DescriptorEntry& entry = words_.descriptors()[next_ % kDescriptors];
        std::memcpy(entry.data.data(), &first, sizeof first);
        entry.credit = credit;
        const auto mark = static_cast<std::uint8_t>(1 + next_++ / kDescriptors % 2);
        // (1) pairs with ports/munet/relay.cpp (2)
        entry.control.store(Control{mark, kind, slot, length}.word(), std::memory_order_release);
        // (2) pairs with ports/munet/relay.cpp (4)
        while (words_.daemon().taken.load(std::memory_order_acquire) < next_) {
            connection_.ring();
            ::sched_yield();
        }
    }

private:
    Board& board_;
    Connection connection_;
    EndpointMemory words_;
    std::uint64_t next_ = 0;
};

TEST_F(Protection, drops_messages_to_forged_destinations) {
    attack([&] {
        RawEndpoint mine(*board_);
        for (unsigned i = 0; i < 256; ++i) {
            mine.post(Kind::whole, static_cast<std::uint8_t>(i), 8, 0x4141414141414141);
        }
        mine.post(Kind::credit, 0, 0, 0, Credit{true, 0, 100}.word());
        for (const std::uint32_t to : {0xffffU, 0x1234567U, 0xff0000U})
            mine.post(Kind::open, 1, 4, to);
        mine.post(Kind::open, 2, 3, 0);
        mine.post(Kind::whole, 1, 8, 0);
    });
    EXPECT_EQ(count_of_mallory(Counter::forged), 256U);
    EXPECT_EQ(count_of_mallory(Counter::bad_credits), 1U);
    EXPECT_EQ(count_of_mallory(Counter::refused), 3U);
    EXPECT_EQ(count_of_mallory(Counter::bad_descriptors), 1U);
    EXPECT_EQ(count_of_mallory(Counter::undelivered), 1U);
}

TEST_F(Protection, drops_descriptors_that_point_outside_the_send_buffer) {
    attack([&] {
        RawEndpoint mine(*board_);
        mine.open_slots();
        for (const std::uint64_t offset : {4096UL, 4000UL, ~0UL, ~0UL - 100, 1UL << 32}) {
            mine.post(Kind::moved, 0, 200, offset);
        }
        for (const std::uint32_t length : {4097U, 1U << 20, ~0U})
            mine.post(Kind::moved, 0, length, 0);
        for (const std::uint32_t length : {129U, 4096U, ~0U}) mine.post(Kind::whole, 0, length, 0);
    });
    EXPECT_EQ(count_of_mallory(Counter::bad_descriptors), 11U);
    EXPECT_EQ(count_of_mallory(Counter::sent), 0U);
}

TEST_F(Protection, survives_an_endpoint_that_is_written_at_random_for_thousands_of_rounds) {
    const auto caught = [&] {
        std::uint64_t sum = 0;
        for (const Counter counter :
             {Counter::bad_descriptors, Counter::forged, Counter::over_credit, Counter::bad_credits,
              Counter::undelivered}) {
            sum += count_of_mallory(counter);
        }
        return sum;
    };
    constexpr unsigned kMaxRounds = 1'000'000;  // the daemon has met lies long before
    attack([&] {
        RawEndpoint mine(*board_);
        mine.open_slots();
        std::mt19937_64 random(11);
        const auto memory = mine.connection().memory();
        for (unsigned i = 0; i < kMaxRounds; ++i) {
            if (i >= kRounds && i % 256 == 0 && caught() > 100) break;
            for (unsigned n = 0; n < 50; ++n) {
                const std::uint64_t word = random() % 2 == 0 ? random() : random() % 1024;
                std::memcpy(memory.data() + random() % (memory.size() / 8) * 8, &word, sizeof word);
                auto* entries = mine.words().descriptors();
                const Control lie{
                    static_cast<std::uint8_t>(1 + random() % 2), static_cast<Kind>(random() % 9),
                    static_cast<std::uint8_t>(random() % 4),
                    static_cast<std::uint32_t>(random() % 8 == 0 ? random() : random() % 128)};
                // relaxed is enough: it is a lie in any order
                entries[random() % kDescriptors].control.store(lie.word(),
                                                               std::memory_order_relaxed);
            }
            if (i % 16 != 0) continue;
            mine.connection().ring();
            ::sched_yield();
        }
    });
    EXPECT_GT(caught(), 100U);
}

TEST_F(Protection, lets_a_flood_use_up_no_more_than_its_share) {
    attack([&] {
        daemon_.enter();
        std::vector<std::unique_ptr<MuEndpoint>> many;
        for (unsigned i = 0; i < 8; ++i) {
            many.push_back(std::make_unique<MuEndpoint>(4096, 65536));
            mu_set_timeout(*many.back(), 0);
        }
        std::vector<char> text(2000, 'x');
        unsigned refused = 0;
        for (unsigned i = 0; i < kRounds; ++i) {
            for (const auto& ep : many) {
                if (mu_send(*ep, bob(), text.data(), 1 + i % 100) != 0) ++refused;
            }
        }
        EXPECT_GT(refused, 0U);
        many.clear();
        mu_endpoint_t* more = nullptr;
        EXPECT_EQ(mu_create_endpoint(&more, 0, std::size_t{1} << 20), -EDQUOT);
    });
}

TEST_F(Protection, drops_a_flood_without_credit) {
    attack([&] {
        RawEndpoint mine(*board_);
        mine.open_slots();
        for (unsigned i = 0; i < 2000; ++i) mine.post(Kind::whole, 1, 100, 0);
        for (unsigned i = 0; i < 1000; ++i) mine.post(Kind::whole, 0, 100, 0);
    });
    EXPECT_GT(count_of_mallory(Counter::over_credit), 1500U);
}

TEST_F(Protection, goes_on_when_processes_are_killed_at_any_time) {
    std::mt19937 random(5);
    for (unsigned i = 0; i < 30; ++i) {
        Child mallory([&] {
            become(kMallory);
            daemon_.enter();
            mu_endpoint_t* ep = mu_create(65536, 65536);
            mu_set_timeout(ep, 1'000'000);
            std::vector<char> text(3000, 'x');
            std::vector<char> back(65536);
            for (unsigned n = 0;; ++n) {
                mu_send(ep, mu_own(ep), text.data(), n % 600);
                mu_send_DMA(ep, bob(), text.data(), n % 2000);
                mu_recv(ep, back.data(), back.size(), nullptr);
            }
        });
        std::this_thread::sleep_for(std::chrono::microseconds(random() % 4000));
        mallory.kill();
    }
    EXPECT_TRUE(eventually([&] { return daemon_.active() == 2; }));
}

}  // namespace
}  // namespace rmem::test
