// SPDX-License-Identifier: Apache-2.0
// ctest: tsan
// A relay and two programs at once, each a thread on one mapping, so that the thread sanitizer sees
// what they share.

#include "tests/support/munet_node.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

namespace rmem::test {
namespace {

using namespace ports::munet;

class NoEdge final : public Edge {
public:
    Sent send(unsigned, std::span<const std::byte>, std::span<const std::byte>) override {
        return Sent::lost;
    }
    void wake(unsigned) noexcept override {}
};

/// Sends and receives messages of changing sizes; returns what was wrong, or nothing.
std::string exchange(Program& program, Address other, unsigned messages) {
    const auto deadline = rmem::Deadline::in(50'000'000'000);
    std::vector<std::byte> out(2000), in(2000);
    for (unsigned i = 0; i < messages; ++i) {
        const std::size_t size = 4 + i * 37 % 1500;
        std::fill(out.begin(), out.end(), static_cast<std::byte>(i));
        const int sent = i % 2 == 0 ? program.send(other, out.data(), size, deadline)
                                    : program.send_dma(other, out.data(), size, deadline);
        if (sent != 0) return "send: " + std::to_string(sent);
        if (const int waited = program.wait(deadline); waited != 0) {
            return "wait: " + std::to_string(waited);
        }
        const int got = program.recv(in.data(), in.size(), nullptr);
        if (got != static_cast<int>(size)) return "size: " + std::to_string(got);
        if (std::memcmp(in.data(), out.data(), size) != 0) return "bytes";
    }
    return "";
}

TEST(MunetThreads, share_endpoints_with_a_relay_without_races) {
    NoEdge edge;
    Relay relay({}, edge);
    constexpr Geometry kGeometry{.send_bytes = 8192, .receive_lines = 256, .senders = 2};
    MunetEndpoint a(relay, 0, kGeometry, 0, std::this_thread::yield),
        b(relay, 0, kGeometry, 0, std::this_thread::yield);
    std::string wrong_a, wrong_b;
    std::atomic<bool> stop{false};
    std::thread relays([&] {
        // relaxed is enough: nothing else is told by it
        while (!stop.load(std::memory_order_relaxed)) {
            if (!relay.turn()) std::this_thread::yield();
        }
    });
    constexpr unsigned kMessages = 1000;
    std::thread one([&] { wrong_a = exchange(a.program(), b.address(), kMessages); });
    std::thread two([&] { wrong_b = exchange(b.program(), a.address(), kMessages); });
    one.join();
    two.join();
    stop.store(true, std::memory_order_relaxed);  // relaxed is enough, as above
    relays.join();
    EXPECT_EQ(wrong_a, "");
    EXPECT_EQ(wrong_b, "");
}

}  // namespace
}  // namespace rmem::test
