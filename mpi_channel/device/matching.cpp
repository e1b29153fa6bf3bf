// SPDX-License-Identifier: Apache-2.0
#include "mpi_channel/device/matching.hpp"

#include "rmem/base/check.hpp"

#include <algorithm>

namespace mpi_channel {

Matcher::Matcher(unsigned sources) : of_(sources), from_(sources) {}

Matcher::~Matcher() {
    for (Receives& receives : of_) receives.clear();
    for (MessagesOfOne& messages : from_) messages.clear();
    of_any_.clear();
    in_order_.clear();
}

// ---- Messages that come

std::optional<Match> Matcher::arrive(const Envelope& envelope) {
    RMEM_CHECK(envelope.source < of_.size());
    Receive* receive = first_fit(of_[envelope.source], envelope);
    Receive* of_any = first_fit(of_any_, envelope);
    if (receive == nullptr || (of_any != nullptr && of_any->turn < receive->turn)) receive = of_any;
    if (receive == nullptr) return std::nullopt;
    const Placement placement = place(*receive, envelope.size);
    if (placement.last) take(*receive);
    return Match{receive, placement};
}

void Matcher::keep(Message& message) {
    RMEM_CHECK(!message.unexpected && message.envelope.source < from_.size());
    message.unexpected = true;
    in_order_.push_back(message);
    from_[message.envelope.source].push_back(message);
}

Receive* Matcher::first_fit(Receives& receives, const Envelope& envelope) noexcept {
    const auto it = std::find_if(receives.begin(), receives.end(), [&](const Receive& receive) {
        return receive.wanted.fits(envelope);
    });
    return it == receives.end() ? nullptr : &*it;
}

/// The bytes of the receive's buffer that its next message takes.
Placement Matcher::place(Receive& receive, std::size_t size) noexcept {
    Placement placement;
    const std::size_t room = receive.capacity - std::min(receive.used, receive.capacity);
    placement.at = receive.used;
    placement.bytes = std::min(size, room);
    placement.cut = size > room;
    receive.used += placement.bytes;
    placement.last = receive.least == 0 || room - placement.bytes < receive.least;
    return placement;
}

// ---- Receives

Message* Matcher::post(Receive& receive, Placement& placement) {
    RMEM_CHECK(!receive.posted);
    if (Message* message = claim(receive.wanted)) {
        placement = place(receive, message->envelope.size);
        return message;
    }
    receive.posted = true;
    receive.turn = turns_++;
    receives_of(receive.wanted.source).push_back(receive);
    ++posted_;
    return nullptr;
}

bool Matcher::cancel(Receive& receive) {
    if (!receive.posted) return false;
    take(receive);
    return true;
}

void Matcher::take(Receive& receive) noexcept {
    Receives& receives = receives_of(receive.wanted.source);
    receives.erase(receives.iterator_to(receive));
    receive.posted = false;
    --posted_;
}

Matcher::Receives& Matcher::receives_of(Source source) noexcept {
    RMEM_CHECK(source == kAnySource || source < of_.size());
    return source == kAnySource ? of_any_ : of_[source];
}

Receive* Matcher::take_hopeless(Source source) {
    Receives& receives = receives_of(source);
    if (receives.empty()) return nullptr;
    Receive& receive = receives.front();
    take(receive);
    return &receive;
}

// ---- Questions

Message* Matcher::peek(const Wanted& wanted) {
    const auto first_in = [&](auto& messages) -> Message* {
        const auto it = std::find_if(messages.begin(), messages.end(), [&](const Message& message) {
            return wanted.fits(message.envelope);
        });
        return it == messages.end() ? nullptr : &*it;
    };
    return wanted.source == kAnySource ? first_in(in_order_) : first_in(from_[wanted.source]);
}

Message* Matcher::claim(const Wanted& wanted) {
    Message* message = peek(wanted);
    if (message != nullptr) claim(*message);
    return message;
}

void Matcher::claim(Message& message) {
    RMEM_CHECK(message.unexpected);
    message.unexpected = false;
    in_order_.erase(in_order_.iterator_to(message));
    auto& messages = from_[message.envelope.source];
    messages.erase(messages.iterator_to(message));
}

}  // namespace mpi_channel
