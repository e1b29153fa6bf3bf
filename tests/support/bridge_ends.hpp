// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Two ends of a bridge in one thread, with a memory as the target ring, and a clock that the test
/// sets.
/// Thread safety: one thread.

#include "bridge/end.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

namespace rmem::test {

/// Frames as they were written to the target.
struct MadeWrite {
    std::uint64_t frame = 0;
    std::uint64_t offset = 0;
    std::uint32_t value = 0;  ///< of the first word
    bool is_interrupt = false;
    bool operator==(const MadeWrite&) const = default;
};

class BridgeEnds {
public:
    static constexpr std::size_t kMemoryBytes = 64 << 10;

    BridgeEnds(const std::vector<bridge::SentRegion>& sent,
               const std::vector<bridge::ReceivedRegion>& received)
        : source(sent, {}), target({}, received), memory(kMemoryBytes / sizeof(std::uint32_t)) {}

    void connect() {
        source.connect(now_ns);
        target.connect(now_ns);
        exchange();
        for (std::size_t r = 0; r < target.receiver().regions(); ++r) target.admit(r);
        exchange();
    }
    void disconnect() {
        source.disconnect();
        target.disconnect();
    }
    /// Until nothing more is said.
    void exchange() {
        for (bool any = true; any;) {
            source.run(now_ns);
            any = to_target();
            target.run(now_ns);
            any = hand_over(target, source) || any;
        }
    }
    bool to_target() {
        const bool any = hand_over(source, target);
        while (target.delivery() != nullptr) make();
        return any;
    }
    void write(unsigned origin, std::uint64_t offset, std::uint32_t value,
               bool is_interrupt = false, bool has_more = false) {
        source.sender().take(
            {origin, now_ns, offset, std::as_bytes(std::span(&value, 1)), is_interrupt, has_more},
            now_ns);
    }
    std::uint32_t word(std::uint64_t offset) const { return memory[offset / 4]; }

    bridge::End source, target;
    std::vector<std::uint32_t> memory;  ///< of the target's ring
    std::vector<MadeWrite> made;
    std::int64_t now_ns = 1'000'000'000;

private:
    bool hand_over(bridge::End& from, bridge::End& to) const {
        const auto bytes = from.out().left();
        if (bytes.empty()) return false;
        to.receive(bytes, now_ns);
        from.out().sent(bytes.size());
        return true;
    }
    void make() {
        const bridge::Delivery& delivery = *target.delivery();
        for (const auto& write : delivery.writes) {
            std::memcpy(memory.data() + write.offset / 4, write.words.data(), write.words.size());
            made.push_back(
                {delivery.head.number, write.offset, word(write.offset), write.is_interrupt});
        }
        target.delivered(now_ns);
    }
};

}  // namespace rmem::test
