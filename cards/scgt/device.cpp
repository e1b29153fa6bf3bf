// SPDX-License-Identifier: Apache-2.0
#include "cards/scgt/device.hpp"

#include "cards/scgt/results.hpp"
#include "rmem/base/clock.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <thread>
#include <utility>
#include <vector>

namespace cards::scgt {

namespace {

using rmem::kNsPerMs;
/// What waits no longer costs no sleep.
constexpr std::int64_t kSpinNs = 20'000;
/// Errors of the link are counts, which wake no thread.
constexpr std::int64_t kLookEveryNs = 10 * kNsPerMs;
constexpr std::int64_t kLongestSleepNs = 3'600'000 * kNsPerMs;
constexpr uint32 kWithoutLimit = 0xFFFFFFFF;

constexpr uint32 kSwaps = SCGT_RW_DMA_BYTE_SWAP | SCGT_RW_DMA_WORD_SWAP;

/// As the flags say, in place.
void swap(std::byte* data, uint32 bytes, uint32 flags) {
    if ((flags & SCGT_RW_DMA_BYTE_SWAP) != 0) {
        for (uint32 at = 0; at < bytes; at += kWordBytes)
            std::reverse(data + at, data + at + kWordBytes);
    }
    if ((flags & SCGT_RW_DMA_WORD_SWAP) != 0) {
        for (uint32 at = 0; bytes - at >= 2 * kWordBytes; at += 2 * kWordBytes)
            std::rotate(data + at, data + at + kWordBytes, data + at + 2 * kWordBytes);
    }
}

/// The vendor's names, of those that are counted here; the node's own counters come behind them.
constexpr const char* kOwnNames[] = {"nStats",  "namesLen", "intr",        "tc0Intr",
                                     "tc1Intr", "netIntr",  "linkErrIntr", "getIntrWaitCount"};

const std::vector<std::string>& names() {
    static const auto all = [] {
        std::vector<std::string> list(std::begin(kOwnNames), std::end(kOwnNames));
        for (unsigned i = 0; rmem_counter_name(i) != nullptr; ++i)
            list.emplace_back(rmem_counter_name(i));
        return list;
    }();
    return all;
}

std::string joined(uint32 first, uint32 count) {
    const auto begin = names().begin() + first;
    return fmt::format("{}", fmt::join(begin, begin + count, ","));
}

}  // namespace

Device::Device(unsigned unit, OwnNode node) : node_(unit, std::move(node)) {}

Device::~Device() {
    // From now on interrupts are dropped, so that the next process begins without them.
    const auto lock = node_.lock();
    if (registers_.listens()) static_cast<void>(node_.accept(0));
}

std::string Device::place() const {
    return fmt::format("node {} of {}", node_.id(), node_.nodes());
}

// ---- Taking interrupts

/// Has the node bring its interrupts to this process, from the first call on.
uint32 Device::listen() {
    const auto lock = node_.lock();
    if (registers_.listens()) return SCGT_SUCCESS;
    node_.drop_interrupts();  // what came for a process that is no more
    const int code = rmem_on_interrupt(node_, on_interrupt, this);
    return code == RMEM_OK ? registers_.listen() : result_of(code);
}

/// In a thread of the node's.
void Device::on_interrupt(void* with, const rmem_interrupt* interrupt) {
    auto& device = *static_cast<Device*>(with);
    const auto number = static_cast<uint32>(interrupt->offset);
    if (interrupt->kind == RMEM_SENT_TO_ALL && number < kBroadcastNumbers) {
        device.arrive(SCGT_BROADCAST_INTR, interrupt->origin, number, interrupt->value);
    } else if (interrupt->kind == RMEM_SENT && number == kUnicastNumber) {
        device.arrive(SCGT_UNICAST_INTR, interrupt->origin, 0, interrupt->value);
    }
    // Behind it: what is lost came later than what the node has kept.
    if (interrupt->missed != 0) device.arrive(SCGT_ERROR_INTR, 0, 0, SCGT_DRIVER_MISSED_INTERRUPTS);
}

void Device::arrive(uint32 type, uint32 source, uint32 id, uint32 value) {
    auto& count = type == SCGT_ERROR_INTR ? counts_.of_errors : counts_.from_ring;
    // relaxed is enough: a number for registers and statistics
    count.fetch_add(1, std::memory_order_relaxed);
    interrupts_.put({type, source, id, value, 0});
}

/// Raises an interrupt for those that have been since the last look; false: that is off.
bool Device::look_for_errors() {
    {
        const auto lock = node_.lock();
        if (!registers_.reports_errors()) return false;
        if (!registers_.report_errors()) return true;
    }
    // relaxed is enough: a number for get_statistics
    link_errors_.fetch_add(1, std::memory_order_relaxed);
    arrive(SCGT_ERROR_INTR, 0, 0, SCGT_LINK_ERROR);
    return true;
}

uint32 Device::get_interrupts(scgtIntrHandle& next, scgtInterrupt* to, uint32 room,
                              uint32 timeout_ms, uint32& taken, const Calls& calls) {
    taken = 0;
    if (const uint32 result = listen(); result != SCGT_SUCCESS) return result;
    const std::int64_t begin_ns = rmem::now_ns();
    const std::int64_t end_ns =
        timeout_ms == kWithoutLimit ? rmem::kNever : begin_ns + timeout_ms * kNsPerMs;
    for (;;) {
        const bool looks = look_for_errors();
        const uint32 result = interrupts_.take(next, to, room, taken, calls);
        if (result != SCGT_TIMEOUT) return result;
        std::int64_t now_ns = rmem::now_ns();
        while (now_ns < std::min(end_ns, begin_ns + kSpinNs) && !interrupts_.has(next)) {
            static_cast<void>(rmem_poll(node_));
            std::this_thread::yield();  // to the node's thread, which brings it
            now_ns = rmem::now_ns();
        }
        if (interrupts_.has(next)) continue;
        if (now_ns >= end_ns) {
            return refuse(SCGT_TIMEOUT,
                          fmt::format("no interrupt came within {} ms; allow more time, or look "
                                      "whether the masks let it in",
                                      timeout_ms));
        }
        interrupts_.wait(next, std::min(end_ns, now_ns + (looks ? kLookEveryNs : kLongestSleepNs)),
                         calls);
    }
}

// ---- Transfers

/// Rounds as the access does.
uint32 Device::check_transfer(Access access, uint32& offset, const void* buffer, uint32& bytes,
                              uint32 flags) const {
    const uint32 unit = access == Access::byte ? 1 : access == Access::half_word ? 2 : kWordBytes;
    if (access == Access::dma) {
        if ((flags & SCGT_RW_DMA_PHYS_ADDR) != 0) {
            return refuse(SCGT_DMA_UNSUPPORTED,
                          "a program here has no physical addresses; give an address of its own");
        }
        if (offset % unit != 0 || bytes % unit != 0) {
            return refuse(SCGT_BAD_PARAMETER,
                          fmt::format("a DMA moves whole words, and {} bytes at {:#x} are none; "
                                      "give multiples of 4, or use SCGR_RW_PIO_8_BIT",
                                      bytes, offset));
        }
    }
    offset = offset / unit * unit;
    bytes = bytes / unit * unit;
    if (!node_.covers(offset, bytes)) return SCGT_BAD_PARAMETER;
    if (buffer == nullptr && bytes != 0)
        return refuse(SCGT_BAD_PARAMETER, "the buffer is a null pointer; give an address");
    return SCGT_SUCCESS;
}

template <class Call>
[[gnu::always_inline]] inline uint32 Device::send_out(Call&& call) {
    return result_of(node_.send_out([&] {
        if (registers_.can_send()) [[likely]]
            return call();
        return rmem::fail(RMEM_EPEER,
                          "the transmitter, or the laser of the active link, is off, and nothing "
                          "can be written here that does not travel; SCGT_TRANSMIT_ENABLE and "
                          "SCGT_LASER_0_ENABLE change that");
    }));
}

uint32 Device::put(std::size_t place, const void* from, std::size_t bytes) {
    return send_out([&] { return node_.write(place, from, bytes); });
}

/// What lies in one word at a time.
uint32 Device::write_in_order(uint32 offset, const std::byte* from, uint32 bytes, uint32& moved) {
    while (moved < bytes) {
        const uint32 place = offset + moved;
        const uint32 piece = std::min(kWordBytes - place % kWordBytes, bytes - moved);
        if (const uint32 result = put(place, from + moved, piece); result != SCGT_SUCCESS)
            return result;
        moved += piece;
    }
    return SCGT_SUCCESS;
}

uint32 Device::write_dma(uint32 offset, const std::byte* from, uint32 bytes, uint32 flags,
                         uint32& moved) {
    std::vector<std::byte> swapped;
    if ((flags & kSwaps) != 0) {
        swapped.assign(from, from + bytes);
        swap(swapped.data(), bytes, flags);
        from = swapped.data();
    }
    while (moved < bytes) {
        const auto piece = static_cast<uint32>(CardNode::piece_of(bytes - moved));
        if (const uint32 result = put(offset + moved, from + moved, piece); result != SCGT_SUCCESS)
            return result;
        moved += piece;
    }
    // relaxed is enough: a number for get_statistics
    dma_writes_.fetch_add(1, std::memory_order_relaxed);
    return SCGT_SUCCESS;
}

uint32 Device::write(Access access, uint32 offset, const void* from, uint32 bytes, uint32 flags,
                     uint32& moved, const scgtInterrupt* interrupt) {
    moved = 0;
    const bool sends = interrupt != nullptr && interrupt->type != SCGT_NO_INTR;
    if (sends) {
        const bool is_broadcast = interrupt->type == SCGT_BROADCAST_INTR;
        const bool is_known = is_broadcast || interrupt->type == SCGT_UNICAST_INTR;
        if (!is_known || interrupt->id >= (is_broadcast ? kBroadcastNumbers : kMaxRingNodes)) {
            return refuse(SCGT_BAD_PARAMETER,
                          fmt::format("no interrupt of type {} and id {} can be sent; send "
                                      "SCGT_BROADCAST_INTR 0 to 31, or SCGT_UNICAST_INTR to a "
                                      "node, 0 to 255",
                                      interrupt->type, interrupt->id));
        }
    }
    uint32 result = check_transfer(access, offset, from, bytes, flags);
    if (result != SCGT_SUCCESS) return result;
    if (access == Access::dma && bytes == 0 && !sends) {
        return refuse(SCGT_BAD_PARAMETER,
                      "there is nothing to write, and no interrupt to send; give one of them");
    }
    const auto* const data = static_cast<const std::byte*>(from);
    if (access != Access::dma) {
        result = write_in_order(offset, data, bytes, moved);
    } else if (bytes != 0) {
        result = write_dma(offset, data, bytes, flags, moved);
    }
    if (result == SCGT_SUCCESS && sends) result = send(*interrupt);
    if (moved != 0 && registers_.writes_me_last()) node_.await_own();
    return result;
}

uint32 Device::read(Access access, uint32 offset, void* to, uint32 bytes, uint32 flags,
                    uint32& moved) {
    moved = 0;
    uint32 result = check_transfer(access, offset, to, bytes, flags);
    if (result != SCGT_SUCCESS) return result;
    if (access == Access::dma && bytes == 0)
        return refuse(SCGT_BAD_PARAMETER, "there is nothing to read; give a length");
    result = result_of(rmem_read(node_, offset, to, bytes));
    if (result != SCGT_SUCCESS) return result;
    moved = bytes;
    if (access != Access::dma) return SCGT_SUCCESS;
    // relaxed is enough: a number for get_statistics
    dma_reads_.fetch_add(1, std::memory_order_relaxed);
    swap(static_cast<std::byte*>(to), bytes, flags);
    return SCGT_SUCCESS;
}

uint32 Device::map(void*& memory) const {
    return result_of(node_.map(memory));
}

// ---- Sending interrupts

uint32 Device::send(const scgtInterrupt& interrupt) {
    const bool is_broadcast = interrupt.type == SCGT_BROADCAST_INTR;
    // As on a ring of cards: what is for a node that is not there comes round, and that is all.
    const bool has_receiver =
        is_broadcast || (interrupt.id != node_.id() && interrupt.id < node_.nodes());
    const int to = is_broadcast ? RMEM_ALL_NODES : static_cast<int>(interrupt.id);
    const unsigned number = is_broadcast ? interrupt.id : kUnicastNumber;
    bool comes_here = false;
    const uint32 result = send_out([&]() -> int {
        comes_here = (is_broadcast || interrupt.id == node_.id()) && registers_.takes_own(number);
        return has_receiver ? rmem_send_interrupt(node_, to, number, interrupt.val) : RMEM_OK;
    });
    if (result != SCGT_SUCCESS) return result;
    // relaxed is enough: a number for a register
    counts_.sent.fetch_add(1, std::memory_order_relaxed);
    if (comes_here)
        arrive(interrupt.type, node_.id(), is_broadcast ? interrupt.id : 0, interrupt.val);
    return SCGT_SUCCESS;
}

uint32 Device::write_management(uint32 offset, uint32 value) {
    const uint32 index = offset / kWordBytes;
    constexpr uint32 kFirstBroadcast = kSendBroadcast / kWordBytes;
    constexpr uint32 kFirstUnicast = kSendUnicast / kWordBytes;
    if (index - kFirstBroadcast < kBroadcastNumbers)
        return send({SCGT_BROADCAST_INTR, 0, index - kFirstBroadcast, value, 0});
    if (index - kFirstUnicast < kMaxRingNodes)
        return send({SCGT_UNICAST_INTR, 0, index - kFirstUnicast, value, 0});
    return Registers::write_status(offset);
}

// ---- Statistics

uint32 Device::statistic(uint32 index) const {
    // relaxed is enough, here and below: numbers, which nothing else hangs on
    const uint32 from_ring = counts_.from_ring.load(std::memory_order_relaxed);
    const uint32 of_errors = counts_.of_errors.load(std::memory_order_relaxed);
    switch (index) {
        case 0: return static_cast<uint32>(names().size());
        case 1: return static_cast<uint32>(joined(0, statistic(0)).size() + 1);
        case 2: return from_ring + of_errors;
        case 3: return dma_writes_.load(std::memory_order_relaxed);
        case 4: return dma_reads_.load(std::memory_order_relaxed);
        case 5: return from_ring;
        case 6: return link_errors_.load(std::memory_order_relaxed);
        case 7: return interrupts_.waiting();
        default: return static_cast<uint32>(node_.count_of(names()[index].c_str()));
    }
}

uint32 Device::get_statistics(uint32* values, char* text, uint32 first, uint32 count) {
    const auto all = static_cast<uint32>(names().size());
    if (first > all || count > all - first) {
        return refuse(SCGT_BAD_PARAMETER,
                      fmt::format("{} statistics from {} on are more than the {} that there are",
                                  count, first, all));
    }
    const auto lock = node_.lock();
    for (uint32 i = 0; values != nullptr && i < count; ++i) values[i] = statistic(first + i);
    if (text == nullptr) return SCGT_SUCCESS;
    const std::string list = joined(first, count);
    std::memcpy(text, list.c_str(), list.size() + 1);
    return SCGT_SUCCESS;
}

}  // namespace cards::scgt
