// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Access to others' memory: the initiator's side. Part of Device (mpi_channel/device/device.hpp).
///
/// An access is asked for in pieces, at most as many at a time as its target keeps answers for. The
/// target answers in the order of the pieces, so an answer is about the first in `asked`.
///
/// Progress: on each answer; no call waits. Thread safety: one thread at a time.
/// Errors: the access ends with a RemoteStatus; std::bad_alloc.
/// Trust: on_answer() takes the target's packet, and returns false for an answer to nothing.
/// Invariants, checked where the transport is simulated and in debug builds
///   (A1) At most kRemoteWindow pieces of a target are asked and not answered.
///   (A2) An access that something is left of is in its target's queue; `waiting_` counts these.
///   (A3) An access is over when nothing of it is left and none of its pieces is asked.
///   (A4) The places of an order have as many bytes as its parts: the caller's part.

#include "mpi_channel/device/incoming_bulk.hpp"
#include "mpi_channel/device/pool.hpp"
#include "mpi_channel/device/reach.hpp"
#include "mpi_channel/device/receiving.hpp"
#include "mpi_channel/device/remote_packets.hpp"
#include "mpi_channel/device/requests.hpp"
#include "mpi_channel/device/sending.hpp"
#include "rmem/link/memory.hpp"

#include <algorithm>
#include <deque>
#include <utility>
#include <vector>

namespace mpi_channel {

/// Of an access whose bytes go over the ring: how many bytes of a piece that is read a target
/// keeps, and how many pieces of each rank.
inline constexpr std::size_t kRemotePiece = 64 * 1024;
inline constexpr unsigned kRemoteWindow = 16;

template <class T>
class Accesses final : public SendingListener, private BulkSink {
public:
    using Bytes = std::span<const std::byte>;

    Accesses(T& transport, Reach& reach, Sending<T>& sending, IncomingBulk<T>& bulk)
        : reach_(reach), sending_(sending), bulk_(bulk), ranks_(transport.ranks()) {}

    void tell(RemoteEvents& events) noexcept { events_ = &events; }

    void access(const RemoteOrder& order);
    [[nodiscard]] bool on_answer(unsigned from, const RemotePacket& packet, Bytes bytes);
    /// Accesses to it end.
    void on_unreachable(unsigned rank) override;

    /// Whether something is left to be asked.
    [[nodiscard]] bool has_backlog() const noexcept { return waiting_ != 0; }
    [[nodiscard]] std::size_t backlog(unsigned to) const noexcept {
        return ranks_[to].accesses.size();
    }
    [[nodiscard]] std::uint64_t count() const noexcept { return count_; }

private:
    static constexpr bool kChecks = rmem::is_simulated<T>;

    /// A part of an access that has not been asked for yet.
    struct Range {
        std::size_t place = 0;   ///< which one
        std::size_t at = 0;      ///< in that
        std::size_t before = 0;  ///< bytes of the places before it
        std::size_t size = 0;
        bool by_get = false;   ///< from memory to memory
        bool is_last = false;  ///< with it the access is whole
    };
    struct Access {
        std::uint32_t number = 0;
        RemoteOrder order;
        std::vector<std::byte> copy;
        std::deque<Range> left;
        unsigned asked = 0;  ///< pieces that are not answered yet
        RemoteStatus status = RemoteStatus::ok;
    };
    struct Piece {
        Access* access = nullptr;
        Range range;
        RemoteKind kind = RemoteKind::read;
    };
    struct Rank {
        std::deque<Access*> accesses;  ///< of which something is left to be asked
        std::deque<Piece> asked;       ///< in the order in which the rank answers
        std::size_t arrived = 0;       ///< as bulk, of the first of these
    };

    std::span<std::byte> room(unsigned from) override;
    void arrived(unsigned from, std::size_t bytes) override { ranks_[from].arrived += bytes; }
    void is_whole(unsigned from) override { end_piece(from, RemoteStatus::ok); }

    void divide(Access& access);
    [[nodiscard]] bool is_within_reach(const RemoteOrder& order, std::size_t size);
    void ask(unsigned to);
    Range next_piece(Access& access);
    void ask_for(unsigned to, Access& access, const Range& range);
    RemoteStatus take_granted(unsigned from, const Piece& piece, std::uint64_t address);
    Piece take_asked(unsigned from);
    void end_piece(unsigned from, RemoteStatus status);
    void ask_again(unsigned to);
    void end_access(Access& access);

    Reach& reach_;
    Sending<T>& sending_;
    IncomingBulk<T>& bulk_;
    RemoteEvents* events_ = nullptr;
    std::vector<Rank> ranks_;
    Pool<Access> accesses_;
    unsigned waiting_ = 0;  ///< accesses of which something is left to be asked
    std::uint64_t count_ = 0;
};

// ---- Asking

template <class T>
void Accesses<T>::access(const RemoteOrder& order) {
    ++count_;
    if (sending_.is_unreachable(order.to))
        return events_->over({order.writes, RemoteStatus::gone, order.mark, order.context});
    Access& access = accesses_.take();
    access.order = order;
    if (order.copy) {
        access.copy.resize(size_of(order.parts));
        copy_out(order.parts, access.copy.data());
        access.order.parts = {{access.copy.data(), access.copy.size()}};
    }
    divide(access);
    ranks_[order.to].accesses.push_back(&access);
    ++waiting_;
    ask(order.to);
}

template <class T>
void Accesses<T>::divide(Access& access) {
    const RemoteOrder& order = access.order;
    std::size_t before = 0;
    for (std::size_t i = 0; i < order.places.size(); ++i) {
        const std::size_t size = order.places[i].extent;
        // Shorter ones keep their order, which from memory to memory is not kept.
        const bool by_get = size > kRemotePiece && is_within_reach(order, size);
        access.left.push_back({i, 0, before, size, by_get, i + 1 == order.places.size()});
        before += size;
    }
    RMEM_CHECK_IF(kChecks, before == size_of(order.parts));
}

/// For the side that would have to read the other's memory.
template <class T>
bool Accesses<T>::is_within_reach(const RemoteOrder& order, std::size_t size) {
    if (order.writes) return order.parts.count() == 1 && reach_.may_be_read(order.to, size);
    return size >= reach_.least() && reach_.may_read(order.to);
}

template <class T>
void Accesses<T>::ask(unsigned to) {
    Rank& rank = ranks_[to];
    while (!rank.accesses.empty() && rank.asked.size() < kRemoteWindow) {
        Access& access = *rank.accesses.front();
        const Range piece = next_piece(access);
        if (access.left.empty()) {
            rank.accesses.pop_front();
            --waiting_;
        }
        ask_for(to, access, piece);
        if (sending_.is_unreachable(to)) return;  // nothing of it is left
    }
}

template <class T>
typename Accesses<T>::Range Accesses<T>::next_piece(Access& access) {
    RMEM_CHECK_IF(kChecks, !access.left.empty());
    const unsigned to = access.order.to;
    Range& range = access.left.front();
    range.by_get &= !(access.order.writes ? reach_.cannot_read(to) : reach_.is_unreadable(to));
    Range piece = range;
    piece.size = std::min(range.size, range.by_get ? kGetSlice : kRemotePiece);
    piece.is_last = range.is_last && piece.size == range.size;
    range.at += piece.size;
    range.size -= piece.size;
    if (range.size == 0) access.left.pop_front();
    return piece;
}

template <class T>
void Accesses<T>::ask_for(unsigned to, Access& access, const Range& range) {
    const RemoteOrder& order = access.order;
    RemoteToSend remote;
    remote.parts = &order.parts;
    remote.at = range.before + range.at;
    RemotePacket& packet = remote.packet;
    packet.kind = order.writes ? (range.by_get ? RemoteKind::write_get : RemoteKind::write)
                               : (range.by_get ? RemoteKind::read_get : RemoteKind::read);
    packet.place = order.places[range.place];
    packet.at = range.at;
    packet.size = range.size;
    packet.is_last = range.is_last;
    if (packet.kind == RemoteKind::write_get)
        packet.source = reinterpret_cast<std::uintptr_t>(order.parts[0].iov_base) + remote.at;
    remote.bytes = packet.kind == RemoteKind::write ? range.size : 0;
    if (range.is_last) remote.data = order.data;
    ++access.asked;
    ranks_[to].asked.push_back({&access, range, packet.kind});
    sending_.post(to, std::move(remote));
}

// ---- What the target says

template <class T>
bool Accesses<T>::on_answer(unsigned from, const RemotePacket& packet, Bytes bytes) {
    if (packet.is_long && packet.value > kRemotePiece) return false;
    if (sending_.is_unreachable(from)) {  // what was asked has ended
        if (packet.is_long) bulk_.begin(from, packet.value, nullptr);
        return true;
    }
    Rank& rank = ranks_[from];
    if (rank.asked.empty()) return false;
    const Piece& piece = rank.asked.front();
    const bool is_write = piece.access->order.writes;
    RemoteStatus status = packet.status;
    switch (packet.kind) {
        case RemoteKind::reply:
            if (piece.kind != RemoteKind::read || packet.value != piece.range.size) return false;
            if (packet.is_long) {
                rank.arrived = 0;
                bulk_.begin(from, packet.value, this);
                return true;
            }
            if (piece.access->status == RemoteStatus::ok)
                copy_in(piece.access->order.parts, piece.range.before + piece.range.at, bytes);
            status = RemoteStatus::ok;
            break;
        case RemoteKind::granted:
            if (piece.kind != RemoteKind::read_get) return false;
            status = take_granted(from, piece, packet.value);
            break;
        default:
            if (status == RemoteStatus::ok && !is_write) return false;
            if (status == RemoteStatus::unreadable && piece.kind != RemoteKind::write_get)
                return false;
    }
    if (status != RemoteStatus::unreadable) {
        end_piece(from, status);
        return true;
    }
    if (is_write) {
        reach_.found_no_reader(from);
    } else {
        reach_.found_unreadable(from);
    }
    ask_again(from);
    return true;
}

/// Where the next bytes of a reply go; those of an access that has failed go nowhere.
template <class T>
std::span<std::byte> Accesses<T>::room(unsigned from) {
    const Rank& rank = ranks_[from];
    const Piece& piece = rank.asked.front();
    std::span<std::byte> room;
    if (piece.access->status != RemoteStatus::ok) return room;
    for_each_stretch(piece.access->order.parts, piece.range.before + piece.range.at + rank.arrived,
                     piece.range.size - rank.arrived, [&](std::byte* to, std::size_t count) {
                         room = {to, count};
                         return false;
                     });
    return room;
}

template <class T>
RemoteStatus Accesses<T>::take_granted(unsigned from, const Piece& piece, std::uint64_t address) {
    if (piece.access->status != RemoteStatus::ok) return RemoteStatus::ok;
    bool is_read = reach_.may_read(from);
    for_each_stretch(piece.access->order.parts, piece.range.before + piece.range.at,
                     is_read ? piece.range.size : 0, [&](std::byte* to, std::size_t count) {
                         is_read = reach_.read(from, address, {to, count});
                         address += count;
                         return is_read;
                     });
    return is_read ? RemoteStatus::ok : RemoteStatus::unreadable;
}

/// The piece that an answer is about, no longer asked.
template <class T>
typename Accesses<T>::Piece Accesses<T>::take_asked(unsigned from) {
    Rank& rank = ranks_[from];
    RMEM_CHECK_IF(kChecks, !rank.asked.empty() && rank.asked.size() <= kRemoteWindow);
    const Piece piece = rank.asked.front();
    RMEM_CHECK_IF(kChecks, piece.access->asked != 0);
    rank.asked.pop_front();
    --piece.access->asked;
    return piece;
}

/// The first error of an access ends it, when what has been asked for is answered.
template <class T>
void Accesses<T>::end_piece(unsigned from, RemoteStatus status) {
    Access& access = *take_asked(from).access;
    if (status != RemoteStatus::ok && access.status == RemoteStatus::ok) {
        access.status = status;
        if (!access.left.empty()) {
            access.left.clear();
            std::erase(ranks_[from].accesses, &access);
            --waiting_;
        }
    }
    if (access.asked == 0 && access.left.empty()) end_access(access);
    ask(from);
}

/// Over the ring, since the piece could not go from memory to memory.
template <class T>
void Accesses<T>::ask_again(unsigned to) {
    Rank& rank = ranks_[to];
    if (const RemoteStatus status = rank.asked.front().access->status; status != RemoteStatus::ok)
        return end_piece(to, status);
    const Piece piece = take_asked(to);
    Access& access = *piece.access;
    if (access.left.empty()) {
        rank.accesses.push_front(&access);
        ++waiting_;
    }
    Range range = piece.range;
    range.by_get = false;
    access.left.push_front(range);
    ask(to);
}

template <class T>
void Accesses<T>::end_access(Access& access) {
    const RemoteOrder& order = access.order;
    const RemoteCompletion completion{order.writes, access.status, order.mark, order.context};
    accesses_.give(access);
    events_->over(completion);
}

template <class T>
void Accesses<T>::on_unreachable(unsigned to) {
    Rank& rank = ranks_[to];
    waiting_ -= static_cast<unsigned>(rank.accesses.size());
    rank.accesses.clear();
    rank.asked.clear();
    bulk_.drop(to, *this);
    accesses_.for_each([&](Access& access) {
        if (access.order.to != to) return;
        access.status = RemoteStatus::gone;
        end_access(access);
    });
}

}  // namespace mpi_channel
