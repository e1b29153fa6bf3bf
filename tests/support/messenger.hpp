// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The MPI device on a ring, with any transport: the common part of the tests of all transports.
///
///     TEST_P(…, messages_of_all_sizes_cross_…) { run(3, [](Rank& me) {
///         messages_cross<Channel>(me); }); }

#include "billboard/endpoint.hpp"
#include "mpi_channel/collectives.hpp"
#include "mpi_channel/device/device.hpp"
#include "tests/support/conformance.hpp"

#include <cstddef>
#include <initializer_list>
#include <optional>
#include <vector>

namespace rmem::test {

inline std::vector<std::byte> bytes_of(std::size_t size, std::size_t seed) {
    std::vector<std::byte> bytes(size);
    for (std::size_t i = 0; i < size; ++i) {
        bytes[i] = static_cast<std::byte>(seed * 131 + i * 7 + (i >> 8));
    }
    return bytes;
}

/// On the endpoint of bbp_init; tests of transports that are opened otherwise say how.
template <class Transport>
Transport open_transport() {
    return Transport(*billboard::Endpoint::of_bbp_init());
}

/// A device, and how many requests are still under way.
template <class Transport>
class Messenger final : public mpi_channel::Completions {
public:
    Messenger() : transport_(open_transport<Transport>()), device(transport_, *this) {}

    void completed(const mpi_channel::Completion& completion) override {
        check(completion.status == mpi_channel::Status::ok, "the status of a request");
        --open_;
    }
    void send(unsigned to, std::vector<std::byte>& bytes) {
        ++open_;
        mpi_channel::SendOrder order;
        order.to = to;
        order.parts = {{bytes.data(), bytes.size()}};
        device.send(order);
    }
    void receive(mpi_channel::Source from, std::vector<std::byte>& bytes) {
        ++open_;
        mpi_channel::ReceiveOrder order;
        order.from = from;
        order.parts = {{bytes.data(), bytes.size()}};
        device.receive(order);
    }
    void finish() {
        await(
            [&] {
                device.progress();
                return open_ == 0 && !device.has_backlog();
            },
            "the end of all requests");
    }
    void finish(mpi_channel::Group& group) {
        await(
            [&] {
                const int result = group.go_on();
                if (result != BBP_EAGAIN) check_code(result, BBP_OK);
                device.progress();
                return result == BBP_OK;
            },
            "the end of a group's operation");
    }

private:
    Transport transport_;
    int open_ = 0;

public:
    mpi_channel::Device<Transport> device;
};

/// Among three ranks.
template <class Transport>
void messages_cross(Rank& me) {
    Messenger<Transport> messenger;
    const auto rank = static_cast<unsigned>(me.rank);
    for (const std::size_t size :
         std::initializer_list<std::size_t>{0, 8, 900, 1004, 1005, 40'000, 65'536, 150'000}) {
        std::vector<std::vector<std::byte>> out, in;
        for (unsigned other = 0; other < 3; ++other) {
            out.push_back(bytes_of(size, rank * 3 + other));
            in.emplace_back(size);
        }
        // In one half receives come first, in the other sends.
        for (const bool sends : {size % 16 == 0, size % 16 != 0}) {
            for (unsigned other = 0; other < 3; ++other) {
                if (sends)
                    messenger.send(other, out[other]);
                else
                    messenger.receive(other, in[other]);
            }
        }
        messenger.finish();
        for (unsigned other = 0; other < 3; ++other) {
            check(in[other] == bytes_of(size, other * 3 + rank), "a message's bytes");
        }
    }
    check_ok(bbp_barrier());
    messenger.finish();
}

/// Between two ranks.
template <class Transport>
void many_messages_wait(Rank& me, int count) {
    Messenger<Transport> messenger;
    std::vector<std::byte> out = bytes_of(10'000, 1), in(10'000);
    const auto other = static_cast<unsigned>(1 - me.rank);
    for (int i = 0; i < count; ++i) messenger.send(other, out);
    for (int i = 0; i < count; ++i) messenger.receive(mpi_channel::kAnySource, in);
    messenger.finish();
    check(in == out, "the last message's bytes");
    check_ok(bbp_barrier());
    messenger.finish();
}

/// Of three ranks: broadcasts of each, gathers to all and to one, both barriers.
template <class Transport>
void groups_work(int barriers) {
    Messenger<Transport> messenger;
    mpi_channel::Collectives collectives(messenger.device);
    const bool has_barriers = messenger.device.has_barriers();
    check_equal(collectives.reserve_barrier(5), has_barriers, "a barrier is free");
    const auto plain = collectives.open(7, {2, 0, 1});
    const auto group =
        collectives.open(8, {2, 0, 1}, has_barriers ? std::optional(5U) : std::nullopt);
    const unsigned own = group->own();
    check_ok(bbp_barrier());  // all have opened them
    const std::uint64_t before = messenger.device.transport_counters().multicasts;
    unsigned broadcasts = 0;
    for (const std::size_t size : {std::size_t{1}, std::size_t{8}, std::size_t{200}}) {
        for (unsigned root = 0; root < 3; ++root) {
            std::vector<std::byte> bytes = bytes_of(size, own == root ? root : 77);
            group->broadcast(bytes, root);
            messenger.finish(*group);
            check(bytes == bytes_of(size, root), "what was broadcast");
            broadcasts += own == root;
        }
    }
    check_equal(messenger.device.transport_counters().multicasts - before,
                std::uint64_t{broadcasts}, "multicasts, one for each broadcast");
    std::vector<std::byte> large = bytes_of(50'000, own);
    group->broadcast(large, 1);
    messenger.finish(*group);
    check(large == bytes_of(50'000, 1), "what was broadcast in pieces");
    for (int round = 0; round < 3; ++round) {
        const auto mine = bytes_of(100, own);
        const std::uint64_t posted = messenger.device.transport_counters().multicasts;
        std::vector<std::byte> all(300);
        if (round == 1) {
            group->gather(mine, own == 2 ? all.data() : nullptr, 2);
        } else {
            group->gather(mine, all.data(), std::nullopt);
        }
        messenger.finish(*group);
        check_equal(messenger.device.transport_counters().multicasts - posted,
                    std::uint64_t{round != 1}, "multicasts of a gather");
        for (unsigned i = 0; (round != 1 || own == 2) && i < 3; ++i) {
            const auto block = std::span(all).subspan(i * 100, 100);
            const auto expected = bytes_of(100, i);
            check(std::equal(block.begin(), block.end(), expected.begin()), "a member's block");
        }
    }
    for (int round = 0; round < barriers; ++round) {
        mpi_channel::Group& waited = round % 2 == 0 ? *group : *plain;
        waited.barrier();
        messenger.finish(waited);
    }
    messenger.finish();
    check_ok(bbp_barrier());
    messenger.finish();
}

}  // namespace rmem::test
