// SPDX-License-Identifier: Apache-2.0
// ctest: tsan

/// Processes of a virtual GAMMA as threads on one mapping, each with its progress thread: what the
/// thread sanitizer can see. And what only this class can be told: where numbers begin.
#include "ports/gamma/process.hpp"

#include "tests/support/broken.hpp"
#include "tests/support/child.hpp"
#include "tests/support/endpoint_pair.hpp"
#include "tests/support/leftovers.hpp"
#include "tests/support/patterns.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <thread>

namespace ports::gamma {

struct PlantedBug {
    static void stall(Process& process, unsigned source) {
        process.stall({source, {nullptr, 0, false}, {}}, -1);
    }
    static void receive_too_much(Process& process, unsigned port) {
        process.ports_.at(port).source = 0;
        process.ports_.at(port).received = 1;
    }
};

namespace {

using rmem::test::first_difference;
using rmem::test::pattern;

/// One process, as the thread that is its program sees it.
struct Node {
    std::shared_ptr<ProcessEndpoint> endpoint;
    std::unique_ptr<Process> process;
    unsigned short active_port = 0;
    long msglen = 0;
    int error = 0;
    std::vector<std::byte> buffer = std::vector<std::byte>(20000);
    std::atomic<int> messages{0}, errors{0};
};
std::array<Node, 2> nodes;

template <std::size_t N>
void count_and_signal() {
    ++nodes[N].messages;
    nodes[N].process->signal(5);
}
template <std::size_t N>
void answer() {
    ++nodes[N].messages;
    nodes[N].process->send(5, {nodes[N].buffer.data(), static_cast<std::size_t>(nodes[N].msglen)},
                           Service::best_effort);
}
template <std::size_t N>
void count_error() {
    ++nodes[N].errors;
}

class GammaThreads : public ::testing::Test {
protected:
    /// Runs each node's part in a thread of its own, between start and end.
    void run(const Settings& settings, const std::function<void(std::size_t)>& body) {
        const auto [ring, board] = billboard::test::ring_of_two(name_.get(), 65536);
        std::array<std::thread, 2> threads;
        for (std::size_t n = 0; n < 2; ++n) {
            threads[n] = std::thread([&, n, ring = ring, board = board] {
                Node& me = nodes[n];
                me.messages = me.errors = 0;
                const auto rank = static_cast<unsigned>(n);
                me.endpoint = std::make_shared<ProcessEndpoint>(billboard::Endpoint::open(
                    ring, {rank, rank}, board, billboard::test::patience()));
                me.process =
                    Process::start(me.endpoint, 2, settings, {me.active_port, me.msglen, me.error});
                body(n);
                EXPECT_EQ(me.process->sync(), BBP_OK) << billboard::last_error();
                EXPECT_EQ(me.process->prepare_exit(), BBP_OK);
                me.process.reset();
                me.endpoint.reset();
            });
        }
        for (auto& thread : threads) thread.join();
    }

    static void bind(std::size_t n, Handler on_message) {
        Node& me = nodes[n];
        const Binding b{.port = 5,
                        .node = static_cast<unsigned>(1 - n),
                        .dest_port = 5,
                        .semaphore = 5,
                        .on_message = on_message,
                        .on_error = n == 0 ? count_error<0> : count_error<1>,
                        .buffer = me.buffer.data(),
                        .size = me.buffer.size()};
        ASSERT_EQ(me.process->bind(b), BBP_OK) << billboard::last_error();
        ASSERT_EQ(me.process->sync(), BBP_OK) << billboard::last_error();
    }
    static void send(std::size_t n, std::size_t size, std::uint64_t seed) {
        const auto bytes = pattern(size, seed);
        ASSERT_EQ(nodes[n].process->send(5, {bytes.data(), size}, Service::flow_controlled), BBP_OK)
            << billboard::last_error();
    }
    static void check_came(std::size_t n, std::size_t size, std::uint64_t seed) {
        ASSERT_EQ(nodes[n].process->wait(5, 1), BBP_OK) << billboard::last_error();
        ASSERT_EQ(first_difference({nodes[n].buffer.data(), size}, seed), size);
    }

    rmem::test::RingName name_;
};

TEST_F(GammaThreads, exchange_messages_while_one_of_them_only_computes) {
    run({}, [](std::size_t n) {
        constexpr std::size_t kSizes[] = {8, 40, 1000, 5000};
        constexpr int kRounds = 80;
        bind(n, n == 0 ? count_and_signal<0> : answer<1>);
        if (n == 1) {
            while (nodes[1].messages < kRounds) std::this_thread::yield();  // no call
            return;
        }
        for (int i = 0; i < kRounds; ++i) {
            const std::size_t size = kSizes[i % 4];
            send(0, size, static_cast<std::uint64_t>(i));
            check_came(0, size, static_cast<std::uint64_t>(i));
        }
    });
}

TEST_F(GammaThreads, two_threads_of_a_program_may_call_at_once) {
    run({}, [](std::size_t n) {
        constexpr int kMessages = 400;
        bind(n, n == 0 ? count_and_signal<0> : count_and_signal<1>);
        std::array<std::thread, 2> senders;
        for (auto& sender : senders) {
            sender = std::thread([n] {
                for (int i = 0; i < kMessages / 2; ++i) send(n, i % 5 == 0 ? 4000 : 8, 1);
            });
        }
        EXPECT_EQ(nodes[n].process->wait(5, kMessages), BBP_OK) << billboard::last_error();
        for (auto& sender : senders) sender.join();
        EXPECT_EQ(nodes[n].messages, kMessages);
        EXPECT_EQ(nodes[n].errors, 0);
    });
}

TEST_F(GammaThreads, numbers_of_frames_and_barriers_wrap) {
    Settings settings;
    settings.first_number = 0xffffffffU - 20;
    run(settings, [](std::size_t n) {
        bind(n, n == 0 ? count_and_signal<0> : answer<1>);
        for (int i = 0; i < 40; ++i) {
            if (n == 0) {
                send(0, i % 2 == 0 ? 8 : 5000, static_cast<std::uint64_t>(i));
                check_came(0, i % 2 == 0 ? 8 : 5000, static_cast<std::uint64_t>(i));
            }
            ASSERT_EQ(nodes[n].process->sync(), BBP_OK) << billboard::last_error();
        }
        EXPECT_EQ(nodes[n].errors, 0);
        EXPECT_EQ(nodes[n].process->counter(0, static_cast<unsigned>(n),
                                            static_cast<unsigned>(Counter::frames_lost)),
                  0);
    });
}

class GammaProcessDeathTest : public ::testing::Test {
protected:
    std::unique_ptr<Process> start() {
        const auto [ring, board] = billboard::test::ring_of_two(name_.get(), 65536, 0, 1);
        Settings settings;
        settings.has_progress_thread = false;
        auto endpoint = billboard::Endpoint::open(ring, {0, 0}, board, billboard::test::patience());
        return Process::start(std::make_shared<ProcessEndpoint>(std::move(endpoint)), 1, settings,
                              {active_port_, msglen_, error_});
    }

    rmem::test::RingName name_;
    unsigned short active_port_ = 0;
    long msglen_ = 0;
    int error_ = 0;
    std::unique_ptr<Process> process_ = start();
};

TEST_F(GammaProcessDeathTest, checks_that_it_keeps_one_frame_of_each_sender_at_most) {
    PlantedBug::stall(*process_, 0);
    EXPECT_BROKEN(PlantedBug::stall(*process_, 0));
}

TEST_F(GammaProcessDeathTest, checks_that_no_more_of_a_message_is_in_than_it_has) {
    EXPECT_BROKEN_WHERE_CHECKED(PlantedBug::receive_too_much(*process_, 5);
                                process_->bind({.port = 5, .dest_port = 5}));
}

}  // namespace
}  // namespace ports::gamma
