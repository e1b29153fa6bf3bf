// SPDX-License-Identifier: Apache-2.0
#include "rmem/link/fabric/outbound.hpp"

#include "rmem/base/check.hpp"

#include <algorithm>

namespace rmem::fabric {

Outbound::Outbound(unsigned peers, unsigned most_given, Pieces& pieces, Wire& wire)
    : peers_(peers), most_given_(std::min(most_given, kMaxGiven)), pieces_(pieces), wire_(wire) {}

/// False: there is no room.
bool Outbound::give(unsigned index, Piece& piece, unsigned racks, std::int64_t now) {
    Peer& peer = peers_[index];
    switch (wire_.give(index, piece, racks)) {
        case Wire::Given::taken:
            Pieces::use(piece);
            ++peer.given;
            ++given_;
            peer.retry_ns = peer.full_since_ns = 0;
            break;
        case Wire::Given::full: note_full(peer, now); return false;
        case Wire::Given::failed:
            not_sent_.refused += piece.datagrams;
            lose(peer, now);
            break;
    }
    return true;
}

/// Where something is given, its end is the time to try again; where nothing is, the provider
/// connects, each time it is asked.
void Outbound::note_full(Peer& peer, std::int64_t now) noexcept {
    peer.retry_ns = std::clamp(2 * peer.retry_ns, kRetryNs, kMaxRetryNs);
    peer.next_try_ns = now + peer.retry_ns;
    if (peer.given != 0) {
        peer.full_since_ns = 0;
    } else if (peer.full_since_ns == 0) {
        peer.full_since_ns = now;
    }
    next_try_ns_ = std::min(next_try_ns_, peer.next_try_ns);
}

void Outbound::send(unsigned index, Piece& piece, unsigned racks, std::int64_t now) {
    Peer& peer = peers_[index];
    if (peer.pause_ns != 0 && now < peer.out_until_ns) {
        not_sent_.refused += piece.datagrams;
        return;
    }
    const bool may_give = peer.waiting.empty() && peer.given < most_given_;
    if (!may_give || !give(index, piece, racks, now)) wait(peer, piece, racks);
}

void Outbound::wait(Peer& peer, Piece& piece, unsigned racks) {
    if (!peer.is_met && peer.waiting.size() == kMaxUnmet) {
        Piece& oldest = *peer.waiting.front().piece;
        peer.waiting.pop_front();
        --waiting_;
        not_sent_.no_room += oldest.datagrams;
        pieces_.leave(oldest);
    } else if (peer.waiting.size() == kMaxWaiting) {
        not_sent_.no_room += piece.datagrams;
        return;
    }
    next_try_ns_ = std::min(next_try_ns_, peer.next_try_ns);
    peer.waiting.push_back({&piece, racks});
    Pieces::use(piece);
    ++waiting_;
}

void Outbound::retry(std::int64_t now) {
    if (now < next_try_ns_) return;
    next_try_ns_ = kNever;
    for (unsigned index = 0; index < peers_.size(); ++index) {
        Peer& peer = peers_[index];
        if (!peer.waiting.empty() && now >= peer.next_try_ns) retry_one(index, now);
        if (!peer.waiting.empty()) next_try_ns_ = std::min(next_try_ns_, peer.next_try_ns);
    }
}

void Outbound::retry_one(unsigned index, std::int64_t now) {
    Peer& peer = peers_[index];
    while (!peer.waiting.empty() && peer.given < most_given_) {
        const Waiting next = peer.waiting.front();
        const std::size_t before = peer.waiting.size();
        if (!give(index, *next.piece, next.racks, now)) break;
        if (peer.waiting.size() != before) break;  // it failed, and all was dropped
        peer.waiting.pop_front();
        --waiting_;
        pieces_.leave(*next.piece);
    }
    if (peer.full_since_ns != 0 && now - peer.full_since_ns > kConnectNs) lose(peer, now);
    // Until something that is given has ended.
    if (peer.given >= most_given_) peer.next_try_ns = now + kMaxRetryNs;
}

void Outbound::has_reached(unsigned index, unsigned address, Piece& piece) noexcept {
    Peer& peer = peers_[index];
    --given_;
    sent_ += piece.datagrams;
    pieces_.leave(piece);
    if (address != peer.address) return;
    RMEM_CHECK(peer.given != 0);
    --peer.given;
    if (!peer.waiting.empty()) peer.next_try_ns = next_try_ns_ = 0;
    if (peer.is_met && peer.pause_ns == 0) return;
    peer.is_met = true;
    peer.pause_ns = 0;
    ++changes_;
}

void Outbound::has_failed(unsigned index, unsigned address, Piece& piece,
                          std::int64_t now) noexcept {
    Peer& peer = peers_[index];
    --given_;
    not_sent_.refused += piece.datagrams;
    pieces_.leave(piece);
    if (address != peer.address) return;
    RMEM_CHECK(peer.given != 0);
    --peer.given;
    lose(peer, now);
}

void Outbound::drop(Peer& peer) noexcept {
    for (const Waiting& waiting : peer.waiting) {
        not_sent_.refused += waiting.piece->datagrams;
        pieces_.leave(*waiting.piece);
    }
    waiting_ -= peer.waiting.size();
    peer.waiting.clear();
}

/// Of many pieces that fail together only the first makes the pause longer.
void Outbound::lose(Peer& peer, std::int64_t now) noexcept {
    drop(peer);
    if (peer.pause_ns != 0 && now < peer.out_until_ns) return;
    if (peer.is_met || peer.pause_ns == 0) ++changes_;
    peer.is_met = false;
    peer.retry_ns = peer.full_since_ns = 0;
    peer.pause_ns = std::clamp(2 * peer.pause_ns, kLeastPauseNs, kMaxPauseNs);
    peer.out_until_ns = now + peer.pause_ns;
}

void Outbound::may_be_back(unsigned index) noexcept {
    Peer& peer = peers_[index];
    peer.out_until_ns = 0;
    peer.pause_ns = std::min(peer.pause_ns, kLeastPauseNs);
}

void Outbound::has_moved(unsigned index) noexcept {
    Peer& peer = peers_[index];
    ++peer.address;
    peer.given = 0;
    peer.retry_ns = peer.full_since_ns = peer.next_try_ns = next_try_ns_ = 0;
    if (peer.is_met) ++changes_;
    peer.is_met = false;
    may_be_back(index);
}

}  // namespace rmem::fabric
