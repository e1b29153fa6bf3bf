// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A card as a process has it: a node of a ring, the card's settings, and its interrupts.
///
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
    Registers& registers() { return registers_; }
    /// One of network management: some send interrupts.
    [[nodiscard]] uint32 write_management(uint32 offset, uint32 value);

    // ---- Statistics
    /// Each may be null.
    [[nodiscard]] uint32 get_statistics(uint32* values, char* names, uint32 first, uint32 count);

private:
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
    void arrive(uint32 type, uint32 source, uint32 id, uint32 value);
    static void on_interrupt(void* with, const rmem_interrupt* interrupt);

    [[nodiscard]] uint32 statistic(uint32 index) const;

    InterruptQueue interrupts_;

    // Numbers that are told.
    InterruptCounts counts_;
    std::atomic<uint32> link_errors_ = 0;  ///< of which these are the link's
    std::atomic<uint32> dma_writes_ = 0;
    std::atomic<uint32> dma_reads_ = 0;

    const CardNode node_;  ///< behind what its interrupts reach until it is closed
    Registers registers_{node_, counts_};
};

}  // namespace cards::scgt
