// SPDX-License-Identifier: Apache-2.0
#include "mpi_channel/device/matching.hpp"

#include "rmem/base/check.hpp"

#include <algorithm>

namespace mpi_channel {

template <bool kAlwaysChecks>
MatcherOf<kAlwaysChecks>::MatcherOf(unsigned sources) : of_(sources), from_(sources) {}

template <bool kAlwaysChecks>
MatcherOf<kAlwaysChecks>::~MatcherOf() {
    for (Receives& receives : of_) receives.clear();
    for (MessagesOfOne& messages : from_) messages.clear();
    of_any_.clear();
    in_order_.clear();
}

// ---- Messages that come

template <bool kAlwaysChecks>
std::optional<Match> MatcherOf<kAlwaysChecks>::arrive(const Envelope& envelope) {
    RMEM_CHECK_IF(kAlwaysChecks, envelope.source < of_.size());
    Receive* receive = first_fit(of_[envelope.source], envelope);
    Receive* of_any = first_fit(of_any_, envelope);
    if (receive == nullptr || (of_any != nullptr && of_any->turn < receive->turn)) receive = of_any;
    if (receive == nullptr) return std::nullopt;
    const Placement placement = place(*receive, envelope.size);
    if (placement.last) take(*receive);
    return Match{receive, placement};
}

template <bool kAlwaysChecks>
void MatcherOf<kAlwaysChecks>::keep(Message& message) {
    RMEM_CHECK_IF(kAlwaysChecks, !message.unexpected && message.envelope.source < from_.size());
    message.unexpected = true;
    in_order_.push_back(message);
    from_[message.envelope.source].push_back(message);
}

template <bool kAlwaysChecks>
Receive* MatcherOf<kAlwaysChecks>::first_fit(Receives& receives,
                                             const Envelope& envelope) noexcept {
    const auto it = std::find_if(receives.begin(), receives.end(), [&](const Receive& receive) {
        return receive.wanted.fits(envelope);
    });
    return it == receives.end() ? nullptr : &*it;
}

/// The bytes of the receive's buffer that its next message takes.
template <bool kAlwaysChecks>
Placement MatcherOf<kAlwaysChecks>::place(Receive& receive, std::size_t size) noexcept {
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

template <bool kAlwaysChecks>
Message* MatcherOf<kAlwaysChecks>::post(Receive& receive, Placement& placement) {
    RMEM_CHECK_IF(kAlwaysChecks, !receive.posted);
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

template <bool kAlwaysChecks>
bool MatcherOf<kAlwaysChecks>::cancel(Receive& receive) {
    if (!receive.posted) return false;
    take(receive);
    return true;
}

template <bool kAlwaysChecks>
void MatcherOf<kAlwaysChecks>::take(Receive& receive) noexcept {
    Receives& receives = receives_of(receive.wanted.source);
    receives.erase(receives.iterator_to(receive));
    receive.posted = false;
    --posted_;
}

template <bool kAlwaysChecks>
typename MatcherOf<kAlwaysChecks>::Receives& MatcherOf<kAlwaysChecks>::receives_of(
    Source source) noexcept {
    RMEM_CHECK_IF(kAlwaysChecks, source == kAnySource || source < of_.size());
    return source == kAnySource ? of_any_ : of_[source];
}

template <bool kAlwaysChecks>
Receive* MatcherOf<kAlwaysChecks>::take_hopeless(Source source) {
    Receives& receives = receives_of(source);
    if (receives.empty()) return nullptr;
    Receive& receive = receives.front();
    take(receive);
    return &receive;
}

// ---- Questions

template <bool kAlwaysChecks>
Message* MatcherOf<kAlwaysChecks>::peek(const Wanted& wanted) {
    RMEM_CHECK_IF(kAlwaysChecks, wanted.source == kAnySource || wanted.source < from_.size());
    const auto first_in = [&](auto& messages) -> Message* {
        const auto it = std::find_if(messages.begin(), messages.end(), [&](const Message& message) {
            return wanted.fits(message.envelope);
        });
        return it == messages.end() ? nullptr : &*it;
    };
    return wanted.source == kAnySource ? first_in(in_order_) : first_in(from_[wanted.source]);
}

template <bool kAlwaysChecks>
Message* MatcherOf<kAlwaysChecks>::claim(const Wanted& wanted) {
    Message* message = peek(wanted);
    if (message != nullptr) claim(*message);
    return message;
}

template <bool kAlwaysChecks>
void MatcherOf<kAlwaysChecks>::claim(Message& message) {
    RMEM_CHECK_IF(kAlwaysChecks, message.unexpected);
    message.unexpected = false;
    in_order_.erase(in_order_.iterator_to(message));
    auto& messages = from_[message.envelope.source];
    messages.erase(messages.iterator_to(message));
}

template class MatcherOf<false>;
template class MatcherOf<true>;

}  // namespace mpi_channel
