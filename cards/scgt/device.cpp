// SPDX-License-Identifier: Apache-2.0
#include "cards/scgt/device.hpp"

#include "cards/scgt/results.hpp"
#include "rmem/base/clock.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <thread>

namespace cards::scgt {

namespace {

constexpr std::int64_t kNsPerMs = 1'000'000;
/// What waits no longer costs no sleep.
constexpr std::int64_t kSpinNs = 20'000;
/// Errors of the link are counts, which wake no thread.
constexpr std::int64_t kLookEveryNs = 10 * kNsPerMs;
constexpr std::int64_t kLongestSleepNs = 3'600'000 * kNsPerMs;
constexpr uint32 kWithoutLimit = 0xFFFFFFFF;

/// By the bits of LINK_STAT that tell of them; others are counted alone.
constexpr uint32 kOtherError = 0x100;
constexpr std::array kErrorCounters = {
    CountedError{link_status::kDownBit, "ring_breaks"},
    CountedError{link_status::kDownBit, nullptr},
    CountedError{link_status::kCrcErrorBit, "lost_on_wire"},
    CountedError{link_status::kProtocolErrorBit, "records_refused"},
    CountedError{kOtherError, "ring_switches"},
    CountedError{kOtherError, "aged_out"},
    CountedError{kOtherError, "writes_lost_fifo"},
};

}  // namespace

Device::Device(unsigned unit, OwnNode node)
    : node_(unit, std::move(node)),
      settings_(default_settings()),
      cleared_errors_(node_, kErrorCounters),
      reported_errors_(node_, kErrorCounters) {}

Device::~Device() {
    // From now on interrupts are dropped, so that the next process begins without them.
    const auto lock = node_.lock();
    if (listens_) static_cast<void>(node_.accept(0));
}

std::string Device::place() const {
    return fmt::format("node {} of {}", node_.id(), node_.nodes());
}

/// The next one that is there, against the way that messages take; alone it is the node itself.
unsigned Device::upstream_of(unsigned node) const {
    do {
        node = (node + node_.nodes() - 1) % node_.nodes();
    } while (!node_.is_present(node));
    return node;
}

// ---- Taking interrupts

/// For rmem_accept_interrupts.
std::uint64_t Device::accepted_numbers() const {
    return settings_.broadcast_mask | std::uint64_t{settings_.unicast_mask} << kUnicastNumber;
}

/// Has the node bring its interrupts to this process, from the first call on.
uint32 Device::listen() {
    const auto lock = node_.lock();
    if (listens_) return SCGT_SUCCESS;
    node_.drop_interrupts();  // what came for a process that is no more
    int code = rmem_on_interrupt(node_, on_interrupt, this);
    if (code == RMEM_OK) code = node_.accept(accepted_numbers());
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
        const auto lock = node_.lock();
        if ((settings_.interrupt_csr & interrupt_csr::kLinkErrorEnableBit) == 0) return false;
        if (reported_errors_.tell() == 0) return true;
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
