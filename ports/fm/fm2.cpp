// SPDX-License-Identifier: Apache-2.0
// Fast Messages 2.x: sending, and credit. Receiving is in fm2_receive.cpp.
#include "ports/fm/fm2.hpp"

#include "rmem/base/copy.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdint>

namespace ports::fm {

using billboard::Slices;

Fm2::Fm2(Network& network, const Handlers& handlers)
    : network_(network),
      handlers_(handlers),
      packet_bytes_(std::clamp<std::size_t>(
          network.endpoint()->partition_bytes() / kPacketsPerPartition / 8 * 8,
          billboard::kInlineBytes, kPacketBytes)),
      first_share_(static_cast<std::uint16_t>(std::max(1U, kBufferPackets / 2 / network.nodes()))),
      share_(first_share_),
      outstanding_(first_share_ * network.nodes()),
      peers_(network.nodes()) {
    for (Peer& p : peers_)
        p.limit = p.granted = p.told = static_cast<std::uint16_t>(kFirstCount + first_share_);
    due_.reserve(network.nodes());
}

// ---- Sending

FM_stream* Fm2::begin(Held& held, unsigned node, std::uint64_t length, std::uint64_t handler,
                      int& error, bool may_wait) {
    const auto refuse = [&](int why) {
        error = why;
        return nullptr;
    };
    if (open_ != 0 && sender_ != __builtin_thread_pointer()) return refuse(EBUSY);
    const auto s = std::find_if(outgoing_.begin(), outgoing_.end(),
                                [](const Outgoing& each) { return !each.is_open; });
    if (s == outgoing_.end()) return refuse(EAGAIN);
    Peer& p = peers_[node];
    const bool never_waits = network_.handlers != 0 || !may_wait;
    unsigned reserved = 0;
    if (outbox_used_ != 0) [[unlikely]]
        drain();
    if (never_waits) {
        const std::uint64_t payload = packet_bytes_ - kFm2Header;
        const std::uint64_t packets =
            length / payload + static_cast<std::uint64_t>(length % payload != 0 || length == 0);
        const int greeted = network_.greet(node, Deadline::now());
        if (greeted == BBP_EPEER) return refuse(EHOSTDOWN);
        if (greeted != BBP_OK || packets > credit(p) ||
            packets > kOutbox - outbox_used_ - outbox_reserved_) {
            return refuse(EAGAIN);
        }
        reserved = static_cast<unsigned>(packets);
        p.reserved += reserved;
        outbox_reserved_ += reserved;
    } else if (!network_.is_greeted(node)) [[unlikely]] {
        for (Slices slices(held, *network_.endpoint(), Deadline::never());; slices.pass()) {
            const int greeted = network_.greet(node, slices.deadline());
            if (greeted == BBP_OK) break;
            if (greeted == BBP_EPEER) return refuse(EHOSTDOWN);
            if (greeted != BBP_ETIMEDOUT) return refuse(EIO);
            extract(~std::size_t{0});
        }
    }
    open(*s, node, length, handler);
    s->never_waits = never_waits;
    s->reserved = reserved;
    return &*s;
}

/// The pointer is the program's: any value.
Fm2::Outgoing* Fm2::find(FM_stream* stream) {
    const std::uintptr_t at = reinterpret_cast<std::uintptr_t>(stream) -
                              reinterpret_cast<std::uintptr_t>(outgoing_.data());
    const std::uintptr_t i = at / sizeof(Outgoing);
    return i < kStreams && at % sizeof(Outgoing) == 0 && outgoing_[i].is_open ? &outgoing_[i]
                                                                              : nullptr;
}

/// Where the next bytes go: in place, if it will not be short and there is room,
/// else in a buffer of the stream's own.
void Fm2::begin_packet(Outgoing& s) {
    const std::size_t most = std::min<std::uint64_t>(packet_bytes_, kFm2Header + s.left);
    void* place = nullptr;
    s.is_composed = most > network_.endpoint().short_bytes() &&
                    network_.endpoint()->compose(most, &place) == BBP_OK;
    if (!s.is_composed && !s.own)
        s.own = std::make_unique_for_overwrite<std::byte[]>(packet_bytes_);
    s.at = s.is_composed ? static_cast<std::byte*>(place) : s.own.get();
    s.filled = kFm2Header;
}

int Fm2::write(Held& held, FM_stream* stream, const void* from, std::size_t bytes) {
    Outgoing* const s = find(stream);
    if (s == nullptr || (from == nullptr && bytes != 0)) return EINVAL;
    if (bytes > s->left) return EMSGSIZE;
    const auto* next = static_cast<const std::byte*>(from);
    while (bytes != 0 && !s->is_lost) {
        if (s->at != nullptr && s->filled == packet_bytes_) {
            if (const int error = flush(held, *s, false); error != 0) return error;
        }
        if (s->at == nullptr) begin_packet(*s);
        const std::size_t piece = std::min(bytes, packet_bytes_ - s->filled);
        rmem::copy_bytes(s->at + s->filled, next, piece);
        s->filled += piece;
        s->left -= piece;
        next += piece;
        bytes -= piece;
    }
    return s->is_lost ? EHOSTDOWN : 0;
}

int Fm2::end(Held& held, FM_stream* stream) {
    Outgoing* const s = find(stream);
    if (s == nullptr) return EINVAL;
    s->is_short = false;
    int error = s->is_lost ? EHOSTDOWN : 0;
    if (error == 0) {
        if (s->at == nullptr) {
            s->left = 0;
            begin_packet(*s);
        }
        error = flush(held, *s, true);
    }
    close(*s);
    return error;
}

/// Gives back what a handler's message did not need.
void Fm2::close(Outgoing& s) {
    if (s.at != nullptr && s.is_composed) network_.endpoint()->discard(s.at);
    s.at = nullptr;
    Peer& p = peers_[s.node];
    if (!s.is_lost) p.reserved -= s.reserved;  // else forget() has
    outbox_reserved_ -= s.reserved;
    s.reserved = 0;
    s.is_open = false;
    --open_;
}

/// The packet leaves, or is kept where it may not wait; the next one begins with the next byte.
int Fm2::flush(Held& held, Outgoing& s, bool is_last) {
    const std::size_t size = s.filled;
    if (!s.never_waits) {
        stamp(s, is_last);
        const int error = post_or_wait(held, s, size);
        if (error != 0) return error;
    } else {
        Peer& p = peers_[s.node];
        RMEM_CHECK(p.reserved != 0 && s.reserved != 0 && outbox_reserved_ != 0);  // (S2)
        --p.reserved;
        --s.reserved;
        --outbox_reserved_;
        stamp(s, is_last);
        const int result = drain() ? post(s, size, Deadline::now()) : BBP_EAGAIN;
        if (result == BBP_EPEER) return EHOSTDOWN;
        if (result != BBP_OK) keep(s, size);
    }
    s.is_first = false;
    s.at = nullptr;
    s.filled = kFm2Header;
    return 0;
}

/// The limit in it may be raised until it leaves.
void Fm2::stamp(Outgoing& s, bool is_last) {
    const std::uint64_t head = header(s, is_last);
    std::memcpy(s.at, &head, sizeof head);
}

int Fm2::post(Outgoing& s, std::size_t size, Deadline deadline) {
    Peer& p = peers_[s.node];
    const int node = static_cast<int>(s.node);
    const auto& endpoint = network_.endpoint();
    const int result = s.is_composed && size > network_.endpoint().short_bytes()
                           ? endpoint.post({&node, 1}, s.at, size, deadline)
                           : endpoint.send(node, s.at, size, deadline);
    if (result == BBP_OK) [[likely]] {
        if (s.is_composed && size <= network_.endpoint().short_bytes()) endpoint->discard(s.at);
        s.is_composed = false;
        ++p.sent;
        p.told = p.granted;
        return BBP_OK;
    }
    if (result == BBP_EPEER && s.is_composed && size > network_.endpoint().short_bytes())
        s.is_composed = false;
    return network_.heard(s.node, result);
}

int Fm2::post_or_wait(Held& held, Outgoing& s, std::size_t size) {
    const auto is_possible = [&] {
        return credit(peers_[s.node]) != 0 && (outbox_used_ == 0 || drain());
    };
    if (is_possible()) [[likely]] {
        const int result = post(s, size, Deadline::now());
        if (result == BBP_OK) [[likely]]
            return 0;
        if (result == BBP_EPEER) return EHOSTDOWN;
        if (result != BBP_EAGAIN) return EIO;
    }
    network_.counts().add(Counter::sends_waiting);
    for (Slices slices(held, *network_.endpoint(), Deadline::never());; slices.pass()) {
        if (extract(~std::size_t{0}) == 0 && !is_possible() && !s.is_lost) {
            std::size_t bytes = 0;
            await_one(slices.deadline(), bytes);
            network_.look_at(s.node);
        }
        if (s.is_lost) return EHOSTDOWN;
        if (!is_possible()) continue;
        const std::uint8_t kind = std::to_integer<std::uint8_t>(s.at[0]);
        stamp(s, (kind & kLastPacket) != 0);  // handlers may have sent meanwhile
        const int result = post(s, size, slices.deadline());
        if (result == BBP_OK) return 0;
        if (result == BBP_EPEER || s.is_lost) return EHOSTDOWN;
        if (result != BBP_ETIMEDOUT && result != BBP_EAGAIN) return EIO;
    }
}

/// In the outbox, until there is room.
void Fm2::keep(Outgoing& s, std::size_t size) {
    RMEM_CHECK(outbox_used_ < kOutbox);
    Packet& packet = outbox_[(outbox_first_ + outbox_used_++) % kOutbox];
    if (!packet.bytes) packet.bytes = std::make_unique_for_overwrite<std::byte[]>(packet_bytes_);
    std::memcpy(packet.bytes.get(), s.at, size);
    packet.node = static_cast<std::uint16_t>(s.node);
    packet.size = static_cast<std::uint16_t>(size);
    Peer& p = peers_[s.node];
    ++p.sent;
    if (s.is_composed) network_.endpoint()->discard(s.at);
    s.is_composed = false;
}

/// Whether the outbox is empty now.
bool Fm2::drain() {
    while (outbox_used_ != 0) {
        Packet& packet = outbox_[outbox_first_];
        if (packet.size != 0) {  // else its node is gone
            const int result =
                network_.post(packet.node, packet.bytes.get(), packet.size, Deadline::now());
            if (result == BBP_EAGAIN) return false;
        }
        outbox_first_ = (outbox_first_ + 1) % kOutbox;
        --outbox_used_;
    }
    return true;
}

unsigned Fm2::settle(Deadline deadline) {
    while (!drain() && !deadline.passed(rmem::program_now_ns())) {
        std::size_t bytes = 0;
        await_one(network_.endpoint()->deadline_in(Slices::kShortestNs), bytes);
    }
    return outbox_used_;
}

// ---- Credit

void Fm2::hear_of_limit(Peer& p, std::uint16_t limit) {
    const auto more = static_cast<std::int16_t>(limit - p.limit);
    if (more <= 0) return;  // older, or the same
    if (static_cast<std::uint16_t>(limit - p.sent) > kBufferPackets) return network_.is_corrupt();
    p.limit = limit;
}

void Fm2::tell_due() {
    std::erase_if(due_, [&](std::uint16_t node) {
        Peer& p = peers_[node];
        const Credit credit{Kind::credit, 0, grant(p)};
        if (credit.limit != p.told) {
            const int result = network_.post(node, &credit, sizeof credit, Deadline::now());
            if (result == BBP_EAGAIN) return false;
            if (result == BBP_OK) {
                p.told = credit.limit;
                network_.counts().add(Counter::credits_alone);
            }
        }
        p.is_due = false;
        return true;
    });
}

void Fm2::reallocate() {
    unsigned known = 0;
    for (unsigned node = 0; node < peers_.size(); ++node)
        known += network_.is_known(node) ? 1U : 0U;
    const unsigned others = static_cast<unsigned>(peers_.size()) - known;
    share_ =
        static_cast<std::uint16_t>(std::max(1U, (kBufferPackets - others * first_share_) / known));
    for (unsigned node = 0; node < peers_.size(); ++node) {
        if (!network_.is_known(node) || peers_[node].is_due) continue;
        peers_[node].is_due = true;
        due_.push_back(static_cast<std::uint16_t>(node));
    }
    tell_due();
}

// ---- Incarnations of nodes

unsigned Fm2::forget(unsigned node, bool all) {
    Peer& p = peers_[node];
    unsigned lost = 0;
    for (Outgoing& s : outgoing_) {
        if (!s.is_open || s.node != node) continue;
        s.is_lost = true;
        s.is_short = false;
        ++lost;
    }
    for (unsigned i = 0; i < outbox_used_; ++i) {
        Packet& packet = outbox_[(outbox_first_ + i) % kOutbox];
        if (packet.node == node) packet.size = 0;
    }
    p.sent = kFirstCount;
    p.limit = static_cast<std::uint16_t>(kFirstCount + first_share_);
    p.reserved = 0;
    if (!all) return lost;
    for (const auto& stream : p.streams) lost += stream ? 1U : 0U;
    meet(node, {});
    return lost;
}

void Fm2::meet(unsigned node, const Hello&) {
    Peer& p = peers_[node];
    for (auto& stream : p.streams) {
        if (!stream) continue;
        network_.counts().add(Counter::messages_cut);
        cut_.push_back(std::move(stream));
    }
    std::erase_if(buffer_, [&](const Packet& packet) { return packet.node == node; });
    outstanding_ -= static_cast<std::uint16_t>(p.granted - p.done);
    outstanding_ += first_share_;
    p.come = p.done = kFirstCount;
    p.granted = p.told = static_cast<std::uint16_t>(kFirstCount + first_share_);
    RMEM_CHECK(is_credit_accounted_for());
}

/// (S1), and that no credit is lost.
bool Fm2::is_credit_accounted_for() const {
    unsigned promised = 0;
    for (const Peer& p : peers_) promised += static_cast<std::uint16_t>(p.granted - p.done);
    return promised == outstanding_ && outstanding_ <= kBufferPackets;
}

}  // namespace ports::fm
