// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A card as a process has it: a node of a ring, the card's settings, and its interrupts.
///
/// The settings are the registers, as on the card; the states of scgtGetState are fields of them.
/// Thread safety: any thread, but the destructor. Calls of the node that rmem.h gives to one thread
///   at a time come one after the other; reads take no lock.
/// Errors: a code of scgtapi.h, with the sentence in rmem_last_error().
/// Trust: offsets, lengths, numbers and values are a program's, and checked here; buffers are as
///   large as it says.
/// Units: bytes; ticks of 8 ns are the net timer's, of 15 ns the host timer's.

#include "cards/common/card_node.hpp"
#include "cards/common/handle_table.hpp"
#include "cards/common/interrupt_numbers.hpp"
#include "cards/scgt/interrupt_queue.hpp"
#include "cards/scgt/registers.hpp"
#include "cards/scgt/scgtapi.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

namespace cards::scgt {

class Device {
public:
    Device(unsigned unit, OwnNode node);
    ~Device();
    Device(const Device&) = delete;
    Device& operator=(const Device&) = delete;

    unsigned unit() const { return node_.unit(); }
    std::uint32_t memory_bytes() const { return node_.memory_bytes(); }
    [[nodiscard]] std::string place() const;
    /// Those whose handle is being closed wait no longer.
    void wake_readers() { interrupts_.wake(); }

    // ---- Transfers
    enum class Access { word, byte, half_word, dma };
    [[nodiscard]] uint32 write(Access access, uint32 offset, const void* from, uint32 bytes,
                               uint32 flags, uint32& moved, const scgtInterrupt* interrupt);
    [[nodiscard]] uint32 read(Access access, uint32 offset, void* to, uint32 bytes, uint32 flags,
                              uint32& moved);
    /// For plain stores.
    [[nodiscard]] uint32 map(void*& memory) const;

    // ---- Interrupts
    [[nodiscard]] uint32 get_interrupts(scgtIntrHandle& next, scgtInterrupt* to, uint32 room,
                                        uint32 timeout_ms, uint32& taken, const Calls& calls);

    // ---- Registers
    [[nodiscard]] uint32 read_control(uint32 offset, uint32& value);
    [[nodiscard]] uint32 write_control(uint32 offset, uint32 value);
    [[nodiscard]] uint32 read_management(uint32 offset, uint32& value);
    [[nodiscard]] uint32 write_management(uint32 offset, uint32 value);
    [[nodiscard]] uint32 get_state(uint32 state, uint32& value);
    [[nodiscard]] uint32 set_state(uint32 state, uint32 value);

    // ---- Statistics
    /// Each may be null.
    [[nodiscard]] uint32 get_statistics(uint32* values, char* names, uint32 first, uint32 count);

private:
    /// What is set, and not measured: as a card is after its configuration.
    struct Settings {
        uint32 user_csr = 0;
        uint32 interrupt_csr = interrupt_csr::kOtherEnableBits;
        uint32 link_control;
        uint32 broadcast_mask = 0xFFFFFFFF;
        uint32 unicast_mask = 1;
        uint32 miscellaneous = 0;
    };

    // ---- Transfers
    [[nodiscard]] uint32 check_transfer(Access access, uint32& offset, const void* buffer,
                                        uint32& bytes, uint32 flags) const;
    [[nodiscard]] uint32 write_in_order(uint32 offset, const std::byte* from, uint32 bytes,
                                        uint32& moved);
    [[nodiscard]] uint32 write_dma(uint32 offset, const std::byte* from, uint32 bytes, uint32 flags,
                                   uint32& moved);
    [[nodiscard]] uint32 put(std::size_t place, const void* from, std::size_t bytes);
    template <class Call>
    [[nodiscard]] uint32 send_out(Call&& call);

    // ---- Interrupts
    [[nodiscard]] uint32 send(const scgtInterrupt& interrupt);
    [[nodiscard]] uint32 listen();
    [[nodiscard]] bool look_for_errors();
    [[nodiscard]] std::uint64_t accepted_numbers() const;
    void arrive(uint32 type, uint32 source, uint32 id, uint32 value);
    static void on_interrupt(void* with, const rmem_interrupt* interrupt);

    // ---- Registers. Private ones are called under the lock.
    [[nodiscard]] Settings default_settings() const;
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
    [[nodiscard]] uint32 own_status() const;
    [[nodiscard]] uint32 read_status(uint32 index) const;

    [[nodiscard]] unsigned upstream_of(unsigned node) const;
    [[nodiscard]] uint32 statistic(uint32 index) const;

    InterruptQueue interrupts_;

    // Numbers that are told.
    std::atomic<uint32> interrupts_sent_ = 0;
    std::atomic<uint32> interrupts_from_ring_ = 0;
    std::atomic<uint32> interrupts_of_errors_ = 0;
    std::atomic<uint32> link_errors_ = 0;  ///< of which these are the link's
    std::atomic<uint32> dma_writes_ = 0;
    std::atomic<uint32> dma_reads_ = 0;

    const CardNode node_;  ///< behind what its interrupts reach until it is closed

    // Under the node's lock.
    Settings settings_;
    std::array<uint32, kControlBytes / 4> shifts_{};  ///< of counts that were written to
    uint32 latency_ = 0;
    CountedErrors cleared_errors_;   ///< whose bits of LINK_STAT were
    CountedErrors reported_errors_;  ///< that were interrupts
    bool listens_ = false;
};

}  // namespace cards::scgt
