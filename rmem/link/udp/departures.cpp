// SPDX-License-Identifier: Apache-2.0
#include "rmem/link/udp/departures.hpp"

#include "rmem/base/check.hpp"

#include <sched.h>

#include <algorithm>

namespace rmem::udp {

bool Departures::take(Outbox::Take what, Leaving leaving, std::int64_t now) {
    const std::size_t worth_a_call =
        std::min(Carrier::kMaxInBatch, Carrier::kMaxBytesInBatch / core_.exchange().payload());
    unsent_since_ns_ = open_since_ns();
    bool any = false;
    const auto takes_more = [&] {
        if (core_.outgoing().count() >= worth_a_call) {
            flush();
            unsent_since_ns_ = outbox_.open_since_ns();
        }
        return outbox_.take(what, worth_a_call, now);
    };
    while (takes_more()) any = true;
    lacks_room_ = outbox_.is_behind();
    const bool leaves = leaving > Leaving::what_is_full &&
                        (leaving == Leaving::all || now - unsent_since_ns_ >= kLazyNs);
    if (leaves && core_.exchange().open_since_ns() != kNever) core_.commit(now);
    if (leaves) flush();
    RMEM_CHECK_IF(false, !leaves || core_.outgoing().is_empty() || is_closed());
    if (any || leaves) written_ns_ = now;
    return any || leaves;
}

std::int64_t Departures::open_since_ns() noexcept {
    const std::int64_t open = outbox_.open_since_ns();
    return core_.outgoing().is_empty() ? open : std::min(open, unsent_since_ns_);
}

/// Many datagrams leave with one call: under load, and of one group.
void Departures::send_filled() noexcept {
    show_processor();
    const bool is_one = core_.outgoing().count() == 1;
    core_.outgoing().drain([&](const OutgoingDatagram& datagram) {
        if (datagram.to == OutgoingDatagram::To::namesakes) [[unlikely]] {
            carrier_.send_to_namesakes(datagram.bytes);
        } else if (is_one) {
            carrier_.send(datagram.bytes);
        } else {
            carrier_.queue(datagram.bytes);
        }
    });
    carrier_.flush();
}

/// A process of this host that takes its datagrams runs best there (rmem/link/udp/neighbours.hpp).
void Departures::show_processor() noexcept {
    const int processor = ::sched_getcpu();
    if (processor == processor_) return;
    processor_ = processor;
    board_.processor.set(static_cast<std::uint32_t>(processor + 1));
}

}  // namespace rmem::udp
