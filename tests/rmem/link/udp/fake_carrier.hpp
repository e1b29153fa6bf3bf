// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A carrier that counts what leaves, and fails as a test wants.

#include "rmem/link/carrier/carrier.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

namespace rmem::udp {

class FakeCarrier final : public Carrier {
public:
    CarrierCounters all;
    bool reliable = false;
    std::string trouble;          ///< mend()'s answer
    unsigned mended_refused = 0;  ///< times that it was told that it is refused
    unsigned calls = 0;           ///< that took something to the others
    std::function<void()> on_flush = [] {};

    bool send(std::span<const std::byte>) noexcept override {
        ++all.sent;
        ++calls;
        return true;
    }
    void queue(std::span<const std::byte>) noexcept override { ++queued_; }
    std::size_t flush() noexcept override {
        calls += queued_ != 0 ? 1 : 0;
        all.sent += queued_;
        queued_ = 0;
        on_flush();
        return 0;
    }
    void send_to_namesakes(std::span<const std::byte>) noexcept override {}
    Datagrams receive() noexcept override { return {}; }
    int handle() const noexcept override { return -1; }
    void ask_for_senders(bool) noexcept override {}
    bool asks_for_senders() const noexcept override { return false; }
    Ip sender(std::size_t) const noexcept override { return 0; }
    const CarrierCounters& counters() const noexcept override { return all; }
    std::uint64_t overflowed() const noexcept override { return 0; }
    std::uint32_t bytes_held() const noexcept override { return 1 << 20; }
    std::string buffer_advice() const override { return ""; }
    std::string mend(bool is_refused) noexcept override {
        mended_refused += is_refused ? 1 : 0;
        return trouble;
    }
    bool is_reliable() const noexcept override { return reliable; }

private:
    std::size_t queued_ = 0;
};

}  // namespace rmem::udp
