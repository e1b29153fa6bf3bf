// SPDX-License-Identifier: Apache-2.0
#include "cards/scgt/device.hpp"

#include "cards/scgt/results.hpp"
#include "rmem/base/clock.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <thread>

namespace cards::scgt {

namespace {

constexpr std::uint32_t kWordBytes = 4;
constexpr std::int64_t kNsPerMs = 1'000'000;
/// What waits no longer costs no sleep.
constexpr std::int64_t kSpinNs = 20'000;
/// Errors of the link are counts, of which nobody tells.
constexpr std::int64_t kLookEveryNs = 10 * kNsPerMs;
constexpr std::int64_t kLongestSleepNs = 3'600'000 * kNsPerMs;
constexpr uint32 kWithoutLimit = 0xFFFFFFFF;

std::uint32_t whole_words(std::size_t bytes) {
    constexpr std::size_t kMost = std::numeric_limits<std::uint32_t>::max();
    return static_cast<std::uint32_t>(std::min(bytes, kMost) / kWordBytes * kWordBytes);
}

}  // namespace

Device::Device(unsigned unit, rmem_node* node)
    : unit_(unit),
      node_(node),
      id_(static_cast<unsigned>(rmem_id(node))),
      nodes_(static_cast<unsigned>(rmem_nodes(node))),
      memory_bytes_(whole_words(rmem_size(node))),
      settings_(default_settings()) {}

Device::~Device() {
    // Those that come when nobody takes them are none of the next one's.
    if (listens_) static_cast<void>(rmem_accept_interrupts(node_, 0));
    rmem_close(node_);
}

std::string Device::place() const {
    return fmt::format("node {} of {}", id_, nodes_);
}

// ---- Who is there

std::uint64_t Device::count_of(const char* counter) const {
    std::uint64_t value = 0;
    static_cast<void>(rmem_counter(node_, counter, &value));
    return value;
}

/// A node is there while a program of it runs.
bool Device::is_present(unsigned node) const {
    if (node == id_) return true;
    const auto ranks = static_cast<unsigned>(rmem_ranks(node_));
    for (unsigned rank = 0; rank < ranks; ++rank) {
        if (rank * nodes_ / ranks == node && rmem_is_alive(node_, static_cast<int>(rank)) == 1)
            return true;
    }
    return false;
}

/// The next one that is there, against the way that messages take; alone it is the node itself.
unsigned Device::upstream_of(unsigned node) const {
    do {
        node = (node + nodes_ - 1) % nodes_;
    } while (!is_present(node));
    return node;
}

unsigned Device::present_nodes() const {
    unsigned present = 0;
    for (unsigned node = 0; node < nodes_; ++node)
        if (is_present(node)) ++present;
    return present;
}

// ---- Taking interrupts

/// For rmem_accept_interrupts.
std::uint64_t Device::accepted_numbers() const {
    return settings_.broadcast_mask | std::uint64_t{settings_.unicast_mask} << kUnicastNumber;
}

/// Has the node bring its interrupts to this process, from the first call on.
uint32 Device::listen() {
    const Lock lock(mutex_);
    if (listens_) return SCGT_SUCCESS;
    // What came for a process that is no more.
    rmem_interrupt stale;
    for (std::uint32_t i = 0; i < InterruptQueue::kEntries; ++i) {
        if (rmem_next_interrupt(node_, &stale, 0) != RMEM_OK) break;
    }
    int code = rmem_on_interrupt(node_, on_interrupt, this);
    if (code == RMEM_OK) code = rmem_accept_interrupts(node_, accepted_numbers());
    listens_ = code == RMEM_OK;
    return result_of(code);
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
    auto& count = type == SCGT_ERROR_INTR ? interrupts_of_errors_ : interrupts_from_ring_;
    // relaxed is enough: a number for registers and statistics
    count.fetch_add(1, std::memory_order_relaxed);
    interrupts_.put({type, source, id, value, 0});
}

/// Raises an interrupt for those that have been since the last look; false: that is off.
bool Device::look_for_errors() {
    {
        const Lock lock(mutex_);
        const bool is_on = (settings_.interrupt_csr & interrupt_csr::kLinkErrorEnableBit) != 0;
        const uint32 errors = is_on ? error_counts().all : reported_errors_;
        if (errors == reported_errors_) return is_on;
        reported_errors_ = errors;
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

}  // namespace cards::scgt
