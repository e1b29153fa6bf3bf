// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The registers of a card: settings, and what is measured at the node. The states of scgtGetState
/// are fields of them.
///
/// Thread safety: any thread; some calls are made under the node's lock.

#include "cards/common/card_node.hpp"
#include "cards/scgt/register_map.hpp"

#include <array>
#include <atomic>
#include <cstdint>

namespace cards::scgt {

/// Interrupts, as registers and statistics tell of them.
struct InterruptCounts {
    std::atomic<uint32> sent = 0;
    std::atomic<uint32> from_ring = 0;
    std::atomic<uint32> of_errors = 0;
};

class Registers {
public:
    Registers(const CardNode& node, const InterruptCounts& interrupts);

    [[nodiscard]] uint32 read(uint32 offset, uint32& value);
    [[nodiscard]] uint32 write(uint32 offset, uint32 value);
    [[nodiscard]] uint32 get_state(uint32 state, uint32& value);
    [[nodiscard]] uint32 set_state(uint32 state, uint32 value);
    /// Of the table of nodes, in network management.
    [[nodiscard]] uint32 read_status(uint32 offset, uint32& value) const;
    [[nodiscard]] static uint32 write_status(uint32 offset);

    // ---- Under the node's lock
    [[nodiscard, gnu::always_inline]] bool can_send() const {
        using namespace link_control;
        const uint32 laser =
            (setting(kLinkControl) & kLinkSelectBit) != 0 ? kLaser1Bit : kLaser0Bit;
        const uint32 needed = kTransmitBit | laser;
        return (setting(kLinkControl) & needed) == needed;
    }
    /// An interrupt of this number that the node itself has sent comes here, too.
    [[nodiscard]] bool writes_me_last() const {
        return (setting(kLinkControl) & link_control::kWriteMeLastBit) != 0;
    }
    [[nodiscard]] bool takes_own(unsigned number) const {
        return (accepted_numbers() >> number & 1) != 0 &&
               (setting(kLinkControl) & link_control::kInterruptSelfBit) != 0;
    }
    /// From now on the node has those raise that the masks let in.
    [[nodiscard]] uint32 listen();
    [[nodiscard]] bool listens() const { return listens_; }
    [[nodiscard]] bool reports_errors() const {
        return (setting(kInterruptCsr) & interrupt_csr::kLinkErrorEnableBit) != 0;
    }
    /// Whether there have been some since the last call.
    [[nodiscard]] bool report_errors() { return reported_errors_.tell() != 0; }

private:
    /// By offset / kWordBytes: what is set, and not measured.
    using Settings = std::array<uint32, kMiscellaneous / kWordBytes + 1>;

    // ---- All of them under the node's lock
    [[nodiscard]] uint32& setting(uint32 offset) { return settings_[offset / kWordBytes]; }
    [[nodiscard]] uint32 setting(uint32 offset) const { return settings_[offset / kWordBytes]; }
    [[nodiscard]] Settings default_settings() const;
    [[nodiscard]] std::uint64_t accepted_numbers() const;
    [[nodiscard]] uint32 accept_as_masked();
    [[nodiscard]] uint32 set_link_control(uint32 value);
    [[nodiscard]] uint32 set_driver_csr(uint32 value);
    [[nodiscard]] uint32 read_register(uint32 offset, uint32& value);
    [[nodiscard]] uint32 write_register(uint32 offset, uint32 value);
    [[nodiscard]] uint32 board_info() const;
    [[nodiscard]] uint32 link_status() const;
    [[nodiscard]] uint32 read_count(uint32 offset, uint32& value);
    [[nodiscard]] uint32 spy_traffic(uint32& words) const;
    [[nodiscard]] uint32 measure_latency();
    [[nodiscard]] unsigned upstream_of(unsigned node) const;
    [[nodiscard]] uint32 own_status() const;
    [[nodiscard]] uint32 status_of(uint32 index) const;

    const CardNode& node_;
    const InterruptCounts& interrupts_;
    Settings settings_;
    std::array<uint32, kControlBytes / 4> shifts_{};  ///< of counts that were written to
    uint32 latency_ = 0;
    CountedErrors cleared_errors_;   ///< whose bits of LINK_STAT were
    CountedErrors reported_errors_;  ///< that were interrupts
    bool listens_ = false;
};

}  // namespace cards::scgt
