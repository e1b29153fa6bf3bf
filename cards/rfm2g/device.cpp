// SPDX-License-Identifier: Apache-2.0
#include "cards/rfm2g/device.hpp"

#include "cards/rfm2g/rfm2g_regs.h"
#include "cards/rfm2g/status.hpp"
#include "rmem/base/clock.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

namespace cards::rfm2g {

namespace {

/// In a swapped word byte n is at n ^ 3.
constexpr std::size_t kReversed = kWordBytes - 1;
constexpr std::int64_t kLongestRingTestNs = 500'000'000;
/// Other threads' calls of the node come in between.
constexpr std::int64_t kFlushSliceNs = 1'000'000;

/// The events of faults by their bits of LCSR; one has none there.
constexpr std::uint32_t kRogueBit = 1U << 6;
constexpr std::array kFaultCounters = {CountedError{RFM2G_LCSR_BADDATA, "lost_on_wire"},
                                       CountedError{RFM2G_LCSR_BADDATA, "writes_lost_fifo"},
                                       CountedError{RFM2G_LCSR_BADDATA, "stores_lost"},
                                       CountedError{RFM2G_LCSR_RCVFULL, "interrupts_lost"},
                                       CountedError{kRogueBit, "aged_out"},
                                       CountedError{RFM2G_LCSR_SNCLOST, nullptr}};
constexpr std::pair<RFM2GEVENTTYPE, std::uint32_t> kFaultEvents[] = {
    {RFM2GEVENT_BAD_DATA, RFM2G_LCSR_BADDATA},
    {RFM2GEVENT_RXFIFO_FULL, RFM2G_LCSR_RCVFULL},
    {RFM2GEVENT_ROGUE_PKT, kRogueBit},
    {RFM2GEVENT_SYNC_LOSS, RFM2G_LCSR_SNCLOST}};

constexpr std::size_t word_of(std::size_t place) {
    return place / kWordBytes * kWordBytes;
}
constexpr std::size_t end_of_word(std::size_t place) {
    return word_of(place + kWordBytes - 1);
}

}  // namespace

Device::Device(unsigned unit, OwnNode node, std::uint32_t window_bytes)
    : events_(*this),
      node_(unit, std::move(node)),
      window_bytes_(window_bytes == 0 ? memory_bytes() : std::min(window_bytes, memory_bytes())),
      cleared_faults_(node_, kFaultCounters),
      reported_faults_(node_, kFaultCounters) {
    set_view(0, 0);
    const auto lock = node_.lock();
    own_sent_ = node_.count_of("writes_sent");
    cleared_faults_.tell();
    reported_faults_.tell();
}

Device::~Device() {
    events_.stop();
}

// ---- Events

namespace {

/// The event that a node has sent; nothing if the interrupt is not an RFM2g card's.
std::optional<RFM2GEVENTTYPE> event_of(const rmem_interrupt& interrupt) {
    const std::uint64_t event = interrupt.offset - kFirstEventNumber;
    if (interrupt.kind == RMEM_WORD_WRITTEN || event >= kEventNumbers) return std::nullopt;
    return static_cast<RFM2GEVENTTYPE>(event);
}

Events::Received what_came(const rmem_interrupt& interrupt) {
    return {static_cast<RFM2G_NODE>(interrupt.origin), interrupt.value};
}

}  // namespace

int Device::accept_events() {
    static_assert(kEventNumbers == RFM2GEVENT_INTR4 + 1);
    {
        const auto lock = node_.lock();
        const int code = node_.accept(numbers_from(kFirstEventNumber, kEventNumbers));
        if (code < 0) return code;
    }
    return kIsRemote && start_thread() != RFM2G_SUCCESS ? RMEM_ESYS : RMEM_OK;
}

Events& Device::events() {
    bring();
    return events_;
}

void Device::bring() {
    const Lock order(bring_mutex_);
    rmem_interrupt interrupt;
    while (!has_thread_) {
        {
            const auto lock = node_.lock();
            if (rmem_next_interrupt(node_, &interrupt, 0) != RMEM_OK) return;
        }
        if (const auto event = event_of(interrupt)) events_.come(*event, what_came(interrupt));
    }
}

RFM2G_STATUS Device::descriptor(int& descriptor) {
    const Lock order(bring_mutex_);
    if (!has_thread_ && descriptor_ < 0) {
        const auto lock = node_.lock();
        const int found = rmem_interrupt_fd(node_);
        if (found < 0) return status_of(found, RFM2G_OS_ERROR);
        descriptor_ = found;
    }
    descriptor = has_thread_ ? -1 : descriptor_;
    // Behind a connection that has ended nothing comes any more.
    const int code = kIsRemote ? rmem_poll(node_) : RMEM_OK;
    return code < 0 ? status_of(code, RFM2G_OS_ERROR) : RFM2G_SUCCESS;
}

RFM2G_STATUS Device::start_thread() {
    bring();
    const Lock order(bring_mutex_);
    if (has_thread_) return RFM2G_SUCCESS;
    const auto lock = node_.lock();
    const int code = rmem_on_interrupt(
        node_,
        [](void* with, const rmem_interrupt* interrupt) {
            if (const auto event = event_of(*interrupt))
                static_cast<Events*>(with)->arrive(*event, what_came(*interrupt));
        },
        &events_);
    if (code < 0) return status_of(code, RFM2G_OS_ERROR);
    has_thread_ = true;
    return RFM2G_SUCCESS;
}

void Device::look_for_faults() {
    std::uint32_t faults = 0;
    {
        const auto lock = node_.lock();
        faults = reported_faults_.tell();
    }
    for (const auto& [event, bit] : kFaultEvents)
        if ((faults & bit) != 0) events_.arrive(event, {RFM2G_NODE_UNKNOWN, 0});
}

// ---- What a program sees of the memory

void Device::set_view(std::uint32_t window_offset, std::uint32_t memory_offset_steps) {
    const std::uint64_t first =
        window_offset + std::uint64_t{memory_offset_steps} * kMemoryOffsetBytes;
    const std::uint64_t bytes = std::min<std::uint64_t>(window_bytes_, memory_bytes() - first);
    // relaxed is enough: as in view()
    view_.store(first << 32 | bytes, std::memory_order_relaxed);
}

[[gnu::cold]] RFM2G_STATUS Device::check_range(std::uint32_t offset, std::uint64_t bytes) const {
    const View seen = view();
    if (offset + bytes <= seen.bytes) return RFM2G_SUCCESS;
    if (!node_.covers(offset, bytes)) return RFM2G_OUT_OF_RANGE;
    return refuse(offset + bytes > window_bytes_ ? RFM2G_OS_ERROR : RFM2G_OUT_OF_RANGE,
                  fmt::format("{} bytes at {:#x} are beyond the {} bytes that are seen from {:#x} "
                              "of the memory on; move the window or the memory offset",
                              bytes, offset, seen.bytes, seen.first));
}

RFM2G_STATUS Device::check_place(std::uint32_t offset, std::uint32_t width) const {
    const RFM2G_STATUS status = check_range(offset, width);
    if (status != RFM2G_SUCCESS || offset % width == 0) return status;
    return refuse(
        RFM2G_UNALIGNED_OFFSET,
        fmt::format("{:#x} is no multiple of {}, the bytes that are asked for", offset, width));
}

// ---- Transfers

/// `failure` is what a program is told where nothing leaves.
template <class Call>
[[gnu::always_inline]] inline RFM2G_STATUS Device::send_out(Call&& call, RFM2G_STATUS failure) {
    const int code = node_.send_out([&] {
        if ((lcsr_ & (RFM2G_LCSR_XMTDIS | RFM2G_LCSR_LOOP)) == 0) [[likely]]
            return call();
        return rmem::fail(
            RMEM_EINVAL,
            "the transmitter is off, or looped back, and nothing can be written here "
            "that does not travel; RFM2gSetTransmit and RFM2gSetLoopback change that");
    });
    return code == RMEM_OK ? RFM2G_SUCCESS : status_of(code, failure);
}

RFM2G_STATUS Device::get(std::size_t place, void* to, std::size_t bytes) const {
    const int code = rmem_read(node_, place, to, bytes);
    return code == RMEM_OK ? RFM2G_SUCCESS : status_of(code, RFM2G_READ_ERROR);
}

RFM2G_STATUS Device::put(std::size_t place, const void* from, std::size_t bytes) {
    return send_out([&] { return node_.write(place, from, bytes); }, RFM2G_WRITE_ERROR);
}

RFM2G_STATUS Device::put_swapped(std::size_t place, const std::byte* from, std::size_t bytes) {
    const std::size_t first = word_of(place);
    std::vector<std::byte> words(end_of_word(place + bytes) - first);
    return send_out(
        [&] {
            int code = rmem_read(node_, first, words.data(), words.size());
            for (std::size_t i = 0; i < bytes; ++i)
                words[((place + i) ^ kReversed) - first] = from[i];
            if (code == RMEM_OK) code = node_.write(first, words.data(), words.size());
            return code;
        },
        RFM2G_WRITE_ERROR);
}

/// Where the buffer is one for that, and it is long enough.
bool Device::is_dma(const void* buffer, std::uint32_t bytes) {
    // relaxed is enough: a setting, which nothing else hangs on
    if (bytes < kept_.dma_threshold.load(std::memory_order_relaxed)) return false;
    const auto* const at = static_cast<const std::byte*>(buffer);
    const auto lock = node_.lock();
    for (const auto& [begin, own] : dma_buffers_) {
        if (at >= begin && at + bytes <= begin + own.bytes) return true;
    }
    return false;
}

bool Device::is_swapped(bool is_dma) const {
    // relaxed is enough: as above
    return (is_dma ? kept_.swaps_dma : kept_.swaps_pio).load(std::memory_order_relaxed);
}

/// A DMA begins in the window, too, but goes on behind it.
RFM2G_STATUS Device::check_transfer(std::uint32_t offset, std::uint32_t bytes, bool is_dma) const {
    if (!is_dma || std::uint64_t{view().first} + offset + bytes > memory_bytes())
        return check_range(offset, bytes);
    return RFM2G_SUCCESS;
}

RFM2G_STATUS Device::read(std::uint32_t offset, void* to, std::uint32_t bytes) {
    const bool by_dma = is_dma(to, bytes);
    const RFM2G_STATUS status = check_transfer(offset, bytes, by_dma);
    if (status != RFM2G_SUCCESS) return status;
    const std::size_t place = std::size_t{view().first} + offset;
    if (!is_swapped(by_dma)) return get(place, to, bytes);
    const std::size_t first = word_of(place);
    std::vector<std::byte> words(end_of_word(place + bytes) - first);
    const RFM2G_STATUS got = get(first, words.data(), words.size());
    for (std::size_t i = 0; got == RFM2G_SUCCESS && i < bytes; ++i)
        static_cast<std::byte*>(to)[i] = words[((place + i) ^ kReversed) - first];
    return got;
}

RFM2G_STATUS Device::write(std::uint32_t offset, const void* from, std::uint32_t bytes) {
    const bool by_dma = is_dma(from, bytes);
    const RFM2G_STATUS status = check_transfer(offset, bytes, by_dma);
    if (status != RFM2G_SUCCESS) return status;
    const std::size_t place = std::size_t{view().first} + offset;
    if (is_swapped(by_dma)) return put_swapped(place, static_cast<const std::byte*>(from), bytes);
    return put(place, from, bytes);
}

RFM2G_STATUS Device::send(RFM2G_NODE to, RFM2GEVENTTYPE event, std::uint32_t data) {
    if (to == node_.id()) {
        return refuse(RFM2G_NODE_ID_SELF,
                      fmt::format("this is node {}, and a node sends itself no event", to));
    }
    if (to > RFM2G_NODE_MAX && to != RFM2G_NODE_ALL) {
        return refuse(RFM2G_BAD_PARAMETER_2,
                      fmt::format("there is no node {}; give 0 to {}, or RFM2G_NODE_ALL", to,
                                  RFM2G_NODE_MAX));
    }
    // As on a ring of cards: what is for a node that is not there comes round, and that is all.
    if (to != RFM2G_NODE_ALL && to >= node_.nodes()) return RFM2G_SUCCESS;
    return send_out(
        [&] {
            return rmem_send_interrupt(node_, to == RFM2G_NODE_ALL ? RMEM_ALL_NODES : to,
                                       kFirstEventNumber + static_cast<unsigned>(event), data);
        },
        RFM2G_DRIVER_ERROR);
}

// ---- Pointers

RFM2G_STATUS Device::map(volatile void** pointer, std::uint64_t offset, std::uint64_t pages) {
    const std::uint64_t bytes = pages * kMapPageBytes;
    if ((offset & RFM2G_DMA_MMAP_OFFSET) != 0) {
        std::unique_ptr<Page[]> zeros(new (std::nothrow) Page[pages]());
        if (zeros == nullptr) {
            return refuse(RFM2G_MEM_NOT_MAPPED,
                          fmt::format("there is no memory for a DMA buffer of {} bytes", bytes));
        }
        auto* const buffer = zeros[0].bytes.data();
        const auto lock = node_.lock();
        dma_buffers_[buffer] = {std::move(zeros), bytes};
        *pointer = buffer;
        return RFM2G_SUCCESS;
    }
    if (offset == RFM2G_BAR0_MMAP_OFFSET || offset == RFM2G_BAR2_MMAP_OFFSET) {
        return refuse(RFM2G_NOT_SUPPORTED,
                      "registers have no memory that a pointer could be to; RFM2gReadReg and "
                      "RFM2gWriteReg reach them");
    }
    if (!node_.covers(offset, bytes)) return RFM2G_OUT_OF_RANGE;
    if (offset % kMapPageBytes != 0) {
        return refuse(RFM2G_BAD_PARAMETER_3, fmt::format("{:#x} is no multiple of a page, {} bytes",
                                                         offset, kMapPageBytes));
    }
    if (check_range(static_cast<std::uint32_t>(offset), bytes) != RFM2G_SUCCESS)
        return RFM2G_MEM_NOT_MAPPED;
    const auto lock = node_.lock();
    const std::size_t place = std::size_t{view().first} + offset;
    void* memory = nullptr;
    const int code = stores_of(node_, place, bytes, &memory);
    if (code < 0) return status_of(code, RFM2G_MEM_NOT_MAPPED);
    memory_ = static_cast<std::byte*>(memory);
    *pointer = memory_ + place;
    return RFM2G_SUCCESS;
}

RFM2G_STATUS Device::unmap(volatile void** pointer) {
    auto* const at = static_cast<std::byte*>(const_cast<void*>(*pointer));
    const auto lock = node_.lock();
    if (const auto buffer = dma_buffers_.find(at); buffer != dma_buffers_.end()) {
        dma_buffers_.erase(buffer);
    } else if (memory_ == nullptr || at < memory_ || at >= memory_ + memory_bytes()) {
        return refuse(RFM2G_OS_ERROR,
                      "the pointer is to no memory of this handle; give one that "
                      "RFM2gUserMemory has stored");
    }
    *pointer = nullptr;
    return RFM2G_SUCCESS;
}

// ---- The board's settings

bool Device::setting(std::uint32_t lcsr_bit) {
    const auto lock = node_.lock();
    return (lcsr_ & lcsr_bit) != 0;
}

void Device::set(std::uint32_t lcsr_bit, bool on) {
    const auto lock = node_.lock();
    lcsr_ = on ? lcsr_ | lcsr_bit : lcsr_ & ~lcsr_bit;
}

unsigned Device::memory_offset() {
    const auto lock = node_.lock();
    return memory_offset_steps();
}

/// Under the lock.
unsigned Device::memory_offset_steps() const {
    return (lcsr_ & (RFM2G_LCSR_OFF0 | RFM2G_LCSR_OFF1)) / RFM2G_LCSR_OFF0;
}

RFM2G_STATUS Device::set_memory_offset(unsigned steps) {
    const auto lock = node_.lock();
    if (window_offset_ + std::uint64_t{steps} * kMemoryOffsetBytes >= memory_bytes()) {
        return refuse(RFM2G_OUT_OF_RANGE,
                      fmt::format("{} times 64 MB are beyond the memory, which has {} bytes; give "
                                  "the ring more (RMEM_SIZE)",
                                  steps, memory_bytes()));
    }
    lcsr_ = (lcsr_ & ~(RFM2G_LCSR_OFF0 | RFM2G_LCSR_OFF1)) | steps * RFM2G_LCSR_OFF0;
    set_view(window_offset_, steps);
    return RFM2G_SUCCESS;
}

std::uint32_t Device::window_offset() {
    const auto lock = node_.lock();
    return window_offset_;
}

RFM2G_STATUS Device::set_window_offset(std::uint32_t offset) {
    if (offset % window_bytes_ != 0) {
        return refuse(RFM2G_BAD_PARAMETER_2,
                      fmt::format("{:#x} is no multiple of the window's size, {} bytes "
                                  "(RMEM_RFM2G_WINDOW)",
                                  offset, window_bytes_));
    }
    const auto lock = node_.lock();
    const unsigned steps = memory_offset_steps();
    if (std::uint64_t{offset} + window_bytes_ > memory_bytes() ||
        offset + std::uint64_t{steps} * kMemoryOffsetBytes >= memory_bytes()) {
        return refuse(RFM2G_OUT_OF_RANGE,
                      fmt::format("a window of {} bytes at {:#x} is beyond the memory, which has "
                                  "{}",
                                  window_bytes_, offset, memory_bytes()));
    }
    window_offset_ = offset;
    set_view(offset, steps);
    return RFM2G_SUCCESS;
}

/// As the driver does: by an interrupt that no node takes.
RFM2G_STATUS Device::send_round(RFM2G_STATUS failure) {
    return send_out([&] { return rmem_send_interrupt(node_, RMEM_ALL_NODES, kRingTestNumber, 0); },
                    failure);
}

RFM2G_STATUS Device::check_ring() {
    if (setting(RFM2G_LCSR_LOOP)) return RFM2G_SUCCESS;
    const RFM2G_STATUS sent = send_round(RFM2G_LINK_TEST_FAIL);
    if (sent != RFM2G_SUCCESS) return sent;
    const std::int64_t until_ns = rmem::now_ns() + kLongestRingTestNs;
    int code = RMEM_ETIMEDOUT;
    while (code == RMEM_ETIMEDOUT && rmem::now_ns() < until_ns) {
        const auto lock = node_.lock();
        code = rmem_flush(node_, kFlushSliceNs);
    }
    return code >= RMEM_OK ? RFM2G_SUCCESS : RFM2G_LINK_TEST_FAIL;
}

/// Under the lock.
bool Device::own_data(std::uint64_t& sent) {
    sent = node_.count_of("writes_sent");
    return sent != own_sent_ && rmem_flush(node_, 0) >= RMEM_OK;
}

bool Device::clear_own_data() {
    const auto lock = node_.lock();
    std::uint64_t sent = 0;
    if (!own_data(sent)) return false;
    own_sent_ = sent;
    return true;
}

}  // namespace cards::rfm2g
