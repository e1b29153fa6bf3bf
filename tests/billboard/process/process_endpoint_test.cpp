// SPDX-License-Identifier: Apache-2.0
// The endpoint that bbp_init, the ports and their progress thread share.
#include "billboard/process/process_endpoint.hpp"

#include "tests/support/child.hpp"
#include "tests/support/conformance.hpp"
#include "tests/support/endpoint_pair.hpp"

#include <atomic>
#include <thread>

namespace rmem::test {
namespace {

using billboard::Attendant;
using billboard::Class;
using billboard::ProcessEndpoint;

class ProcessEndpoints : public Conformance {};
RMEM_ON_ALL_RINGS(ProcessEndpoints);

/// Counts the messages of class gamma.
class Counting final : public Attendant {
public:
    explicit Counting(ProcessEndpoint& process) : process_(process) {}
    bool attend() noexcept override {
        std::array<std::byte, billboard::kTakenBytes> small;
        const void* data = nullptr;
        std::size_t size = 0;
        bool something = false;
        while (process_.endpoint().take(small, &data, &size, Deadline::now(), Class::gamma) >= 0) {
            if (data != small.data()) process_.endpoint().release(data);
            // relaxed is enough: a count
            count.fetch_add(1, std::memory_order_relaxed);
            something = true;
        }
        return something;
    }
    std::atomic<unsigned> count{0};

private:
    ProcessEndpoint& process_;
};

int send_gamma(ProcessEndpoint& process, int to, std::size_t size) {
    const std::vector<std::byte> bytes(size);
    return process.guarded().send(to, bytes.data(), size, {}, Class::gamma);
}

TEST_P(ProcessEndpoints, what_is_open_is_shared_by_all_libraries_of_a_process) {
    run(2, [](Rank& me) {
        const auto first = ProcessEndpoint::open(), second = ProcessEndpoint::open();
        check(first == second, "one object");
        check_equal(first->endpoint().rank(), static_cast<unsigned>(me.rank), "the rank");
        if (me.rank == 0) {
            check_ok(bbp_send(1, "by bbp", 7));
            check_code(first->endpoint().send(1, "by a port", 10, {}, Class::fm), BBP_OK);
            return;
        }
        char text[16];
        std::size_t size = 0;
        check_code(first->endpoint().recv(0, text, sizeof text, &size, {}, Class::fm), 0);
        check_equal(size, std::size_t{10}, "the port's message");
        check_code(bbp_recv(0, text, sizeof text, &size), 0);
        check_equal(size, std::size_t{7}, "bbp's message");
    });
}

TEST_P(ProcessEndpoints, a_port_keeps_the_ring_open_after_bbp_finalize) {
    run(2, [](Rank& me) {
        const auto process = ProcessEndpoint::open();
        me.leave();
        const int other = 1 - me.rank;
        check_code(process->endpoint().send(other, &other, sizeof other, {}, Class::fm), BBP_OK);
        int told = -1;
        check_code(process->endpoint().recv(other, &told, sizeof told, nullptr, {}, Class::fm),
                   other);
        check_equal(told, me.rank, "what was sent");
    });
}

TEST_P(ProcessEndpoints, a_take_with_a_deadline_waits_for_short_and_long_messages) {
    run(2, [](Rank& me) {
        const auto process = ProcessEndpoint::open();
        billboard::Endpoint& endpoint = process->endpoint();
        std::array<std::byte, billboard::kTakenBytes> small;
        const void* data = nullptr;
        std::size_t size = 0;
        if (me.rank == 1) {
            check_code(
                endpoint.take(small, &data, &size, endpoint.deadline_in(kMillisecond), Class::dp),
                BBP_ETIMEDOUT);
            me.raise(0);
            for (const std::size_t expected : {std::size_t{8}, std::size_t{2000}}) {
                check_code(endpoint.take(small, &data, &size, {}, Class::dp), 0);
                check_equal(size, expected, "size");
                if (data != small.data()) check_ok(endpoint.release(data));
            }
            return;
        }
        me.await_word(0);
        const std::vector<std::byte> bytes(2000);
        check_code(endpoint.send(1, bytes.data(), 8, {}, Class::dp), BBP_OK);
        check_code(endpoint.send(1, bytes.data(), 2000, {}, Class::dp), BBP_OK);
    });
}

TEST_P(ProcessEndpoints, what_comes_while_the_program_computes_is_attended_to) {
    RMEM_SKIP_IF_SIMULATED("there are no threads");
    run(2, [](Rank& me) {
        constexpr unsigned kMessages = 50;
        const auto process = ProcessEndpoint::open();
        if (me.rank == 0) {
            for (unsigned i = 0; i < kMessages; ++i) {
                check_code(send_gamma(*process, 1, i % 2 == 0 ? 8 : 500), BBP_OK);
                me.await_word(0,
                              i + 1);  // each comes to a program that computes, and sleeps perhaps
            }
            return;
        }
        Counting counting(*process);
        process->attend(counting);
        for (unsigned i = 1; i <= kMessages; ++i) {
            // relaxed is enough: a count
            await([&] { return counting.count.load(std::memory_order_relaxed) == i; }, "a message");
            me.raise(0);
        }
        process->dismiss(counting);
    });
}

TEST_P(ProcessEndpoints, a_program_that_waits_in_bbp_leaves_the_endpoint_to_others_in_between) {
    RMEM_SKIP_IF_SIMULATED("there are no threads");
    run(2, [](Rank& me) {
        const auto process = ProcessEndpoint::open();
        if (me.rank == 0) {
            check_code(send_gamma(*process, 1, 8), BBP_OK);
            me.await_word(0);  // it was attended to while rank 1 waits for this:
            check_ok(bbp_send(1, "now", 4));
            return;
        }
        Counting counting(*process);
        process->attend(counting);
        std::thread tells([&] {
            // relaxed is enough: a count
            while (counting.count.load(std::memory_order_relaxed) == 0) std::this_thread::yield();
            ++me.shared[0];
        });
        char text[8];
        check_code(bbp_recv(0, text, sizeof text, nullptr), 0);
        tells.join();
        process->dismiss(counting);
    });
}

TEST_P(ProcessEndpoints, two_threads_of_a_program_may_send_and_receive_at_once) {
    RMEM_SKIP_IF_SIMULATED("there are no threads");
    run(2, [](Rank& me) {
        const auto process = ProcessEndpoint::open();
        process->share();
        const unsigned messages = static_cast<unsigned>(thrifty(2000));
        const int other = 1 - me.rank;
        std::thread sends([&] {
            for (unsigned i = 0; i < messages; ++i) {
                if (process->guarded().send(other, &i, sizeof i, {}, Class::fm) != BBP_OK) return;
            }
        });
        unsigned in_order = 0;
        for (unsigned i = 0; i < messages; ++i) {
            unsigned number = 0;
            const int from =
                process->guarded().recv(other, &number, sizeof number, nullptr, {}, Class::fm);
            if (from == other && number == i) ++in_order;
        }
        sends.join();
        check_equal(in_order, messages, "messages in order");
    });
}

TEST(Slices, are_twice_as_long_each_time_until_something_moves) {
    constexpr std::int64_t kSecond = 1'000'000'000;
    const RingName name;
    const auto [ring, board] = billboard::test::ring_of_two(name.get(), 65536, 0, 1);
    ProcessEndpoint process(
        billboard::Endpoint::open(ring, {0, 0}, board, billboard::test::patience()));
    auto held = process.hold();
    billboard::Slices slices(held, process.endpoint(), Deadline::never(),
                             {kSecond, 3 * kSecond, kSecond});
    const auto seconds = [&] {
        const std::int64_t now = process.endpoint().deadline_in(1).at_ns;
        return (slices.deadline().at_ns - now + kSecond / 2) / kSecond;
    };
    for (const std::int64_t expected : {1, 2, 3, 3}) {
        EXPECT_EQ(seconds(), expected);
        slices.pass();
    }
    slices.pass(false, true);
    EXPECT_EQ(seconds(), 1);
}

}  // namespace
}  // namespace rmem::test
