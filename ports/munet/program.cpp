// SPDX-License-Identifier: Apache-2.0
#include "ports/munet/program.hpp"

#include "rmem/base/copy.hpp"
#include "rmem/base/fence.hpp"
#include "rmem/base/marks.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace ports::munet {

using rmem::Deadline;

namespace {

constexpr std::uint32_t key_of(Address a) noexcept {
    return a.node | std::uint32_t{a.endpoint} << 16;
}

int error_of(Answer answer) noexcept {
    switch (answer) {
        case Answer::no_place: return -EUSERS;
        case Answer::no_node: return -ENETUNREACH;
        case Answer::gone: return -ECONNRESET;
        default: return -ECONNREFUSED;
    }
}

}  // namespace

Program::Program(std::span<std::byte> memory, const Geometry& geometry, Address own,
                 Surroundings& surroundings)
    : geometry_(geometry),
      own_(own),
      memory_(memory, geometry),
      surroundings_(surroundings),
      next_(memory_.descriptors()),
      sources_(geometry.senders) {}

/// Lets time pass until `done`.
template <class Done>
int Program::await(Deadline deadline, Done&& done) {
    if (done()) return 0;
    surroundings_.begin_wait();
    int result = 0;
    while (result == 0 && !done()) {
        if (owed_ != 0) return_credit();  // the endpoint we wait for may wait for us
        result = surroundings_.pause(deadline);
    }
    surroundings_.end_wait();
    return result != 0 && done() ? 0 : result;
}

int Program::send(Address to, const void* data, std::size_t bytes, Deadline deadline) {
    Peer* peer = find(to);
    if (peer == nullptr) [[unlikely]] {
        if (const int result = open(to, deadline, &peer); result < 0) return result;
    }
    if (bytes <= kInline) [[likely]]
        return post(*peer, Kind::whole, nullptr, 0, data, bytes, deadline);
    return send_parts(*peer, static_cast<const std::byte*>(data), bytes, deadline);
}

int Program::send_parts(Peer& peer, const std::byte* data, std::size_t bytes, Deadline deadline) {
    if (bytes > most_bytes(peer.share)) return -EMSGSIZE;
    const std::uint64_t total = bytes;
    std::size_t done = kInline - sizeof total;
    int result = post(peer, Kind::first, &total, sizeof total, data, done, deadline);
    while (result == 0 && done < bytes) {
        const std::size_t part = std::min(kInline, bytes - done);
        const bool is_last = done + part == bytes;
        RMEM_MARK("munet.send.between-parts");
        result =
            post(peer, is_last ? Kind::last : Kind::more, nullptr, 0, data + done, part, deadline);
        done += part;
    }
    return result;
}

int Program::send_dma(Address to, const void* data, std::size_t bytes, Deadline deadline) {
    if (bytes <= kInline) return send(to, data, bytes, deadline);
    Peer* peer = find(to);
    if (peer == nullptr) {
        if (const int result = open(to, deadline, &peer); result < 0) return result;
    }
    if (bytes > most_bytes(peer->share) || bytes > geometry_.send_bytes) return -EMSGSIZE;
    if (is_gone(*peer)) return -ECONNRESET;
    const std::uint32_t lines = lines_of(bytes);
    if (peer->sent + lines - peer->returned > peer->share) {
        if (const int result = await_room(*peer, lines, deadline); result < 0) return result;
    }
    std::size_t offset = 0;
    if (const int result = await_send_buffer(bytes, &offset, deadline); result < 0) return result;
    if (!has_descriptor()) {
        if (const int result = await_descriptor(deadline); result < 0) return result;
    }
    std::memcpy(memory_.send_buffer() + offset, data, bytes);
    RMEM_MARK("munet.dma.copied");
    pieces_[(first_piece_ + piece_count_++) % kDescriptors] = {posted_, offset, offset + bytes};
    peer->sent += lines;
    const std::uint64_t where = offset;
    write({.kind = Kind::moved,
           .index = static_cast<std::uint8_t>(peer - peers_.data()),
           .length = static_cast<std::uint32_t>(bytes)},
          credit_for(*peer), &where, sizeof where, nullptr, 0);
    return 0;
}

/// One descriptor with `prefix` and `data` inside, at most kInline bytes together.
int Program::post(Peer& peer, Kind kind, const void* prefix, std::size_t prefix_bytes,
                  const void* data, std::size_t bytes, Deadline deadline) {
    if (is_gone(peer)) [[unlikely]]
        return -ECONNRESET;
    const std::uint32_t lines = lines_of(prefix_bytes + bytes);
    if (peer.sent + lines - peer.returned > peer.share) [[unlikely]] {
        if (const int result = await_room(peer, lines, deadline); result < 0) return result;
    }
    if (!has_descriptor()) [[unlikely]] {
        if (const int result = await_descriptor(deadline); result < 0) return result;
    }
    peer.sent += lines;
    write({.kind = kind,
           .index = static_cast<std::uint8_t>(&peer - peers_.data()),
           .length = static_cast<std::uint32_t>(prefix_bytes + bytes)},
          credit_for(peer), prefix, prefix_bytes, data, bytes);
    return 0;
}

void Program::write(Control control, Credit credit, const void* prefix, std::size_t prefix_bytes,
                    const void* data, std::size_t bytes) noexcept {
    DescriptorEntry& entry = *next_;
    std::byte* at = entry.data.data();
    if (prefix_bytes != 0) [[unlikely]] {
        std::memcpy(at, prefix, prefix_bytes);
        at += prefix_bytes;
    }
    if (bytes != 0) rmem::copy_bytes(at, data, bytes);
    entry.credit = credit.word();
    control.mark = mark_;
    RMEM_MARK("munet.send.written");
    // (1) pairs with the daemon's acquires, relay.cpp (1), relay.cpp (2), relay.cpp (3): all of the
    // descriptor
    entry.control.store(control.word(), std::memory_order_release);
    RMEM_MARK("munet.send.posted");
    ++posted_;
    if (++next_index_ == kDescriptors) [[unlikely]] {
        next_index_ = 0;
        mark_ ^= 3;
        next_ = memory_.descriptors();
    } else {
        ++next_;
    }
    rmem::light_fence();
    // relaxed is enough: the fence orders this load after the store above
    if (memory_.daemon().sleeps.load(std::memory_order_relaxed) != 0) [[unlikely]]
        surroundings_.ring();
}

// ---- What a send may have to wait for

bool Program::has_descriptor() noexcept {
    if (posted_ - taken_ < kDescriptors) [[likely]]
        return true;
    // (3) pairs with relay.cpp (4): the daemon has read what it has taken
    taken_ = memory_.daemon().taken.load(std::memory_order_acquire);
    return posted_ - taken_ < kDescriptors;
}

int Program::await_descriptor(Deadline deadline) {
    return await(deadline, [&] { return has_descriptor(); });
}

int Program::await_room(Peer& peer, std::uint32_t lines, Deadline deadline) {
    const auto slot = static_cast<std::size_t>(&peer - peers_.data());
    bool gone = false;
    const int result = await(deadline, [&] {
        // relaxed is enough: a number that says all there is to say
        peer.returned = memory_.daemon().returned[slot].load(std::memory_order_relaxed);
        gone = gone || is_gone(peer);
        return gone || peer.sent + lines - peer.returned <= peer.share;
    });
    return gone ? -ECONNRESET : result;
}

/// A contiguous piece of the send buffer, behind the newest that is in use, or at the start again.
int Program::await_send_buffer(std::size_t bytes, std::size_t* offset, Deadline deadline) {
    return await(deadline, [&] {
        while (piece_count_ != 0 && pieces_[first_piece_].descriptor < taken_) {
            first_piece_ = (first_piece_ + 1) % kDescriptors;
            --piece_count_;
        }
        if (piece_count_ == 0) {
            *offset = 0;
            return true;
        }
        const std::size_t begin = pieces_[first_piece_].begin;
        const std::size_t end = pieces_[(first_piece_ + piece_count_ - 1) % kDescriptors].end;
        const std::size_t to = begin < end ? geometry_.send_bytes : begin;
        if (end <= to && to - end >= bytes) {
            *offset = end;
            return true;
        }
        if (begin < end && begin >= bytes) {
            *offset = 0;
            return true;
        }
        // (6) pairs with relay.cpp (4): the daemon has read what it has taken
        taken_ = memory_.daemon().taken.load(std::memory_order_acquire);
        return false;
    });
}

// ---- Destinations

inline Program::Peer* Program::find(Address to) {
    if (latest_ != nullptr && latest_->to == to) [[likely]]
        return latest_;
    const auto found = slots_.find(key_of(to));
    return found == slots_.end() ? nullptr : latest_ = &peers_[found->second];
}

inline bool Program::is_gone(Peer& peer) noexcept {
    const auto slot = static_cast<std::size_t>(&peer - peers_.data());
    // relaxed is enough: nothing is read because of it
    if (memory_.daemon().answer[slot].load(std::memory_order_relaxed) == peer.answer) [[likely]]
        return false;
    forget(peer);
    return true;
}

void Program::forget(Peer& peer) noexcept {
    slots_.erase(key_of(peer.to));
    if (latest_ == &peer) latest_ = nullptr;
    if (peer.place != kNoPlace) sources_[peer.place].slot = kSlots;
    peer = {};
}

/// Asks for a place at `to`, and waits for the answer.
int Program::open(Address to, Deadline deadline, Peer** opened) {
    auto peer = std::find_if(peers_.begin(), peers_.end(), [to](const Peer& p) {
        return p.state == Peer::State::asked && p.to == to;
    });
    if (peer == peers_.end()) {
        peer = std::find_if(peers_.begin(), peers_.end(),
                            [](const Peer& p) { return p.state == Peer::State::free; });
        if (peer == peers_.end()) return -ENOBUFS;
        if (const int result = await_descriptor(deadline); result < 0) return result;
        ask(*peer, to);
    }
    const auto slot = static_cast<std::size_t>(peer - peers_.begin());
    std::uint32_t word = 0;
    const Deadline answered{std::max(deadline.at_ns, Deadline::in(kAnswerNs).at_ns)};
    const int result = await(answered, [&] {
        // (5) pairs with pairings.cpp (1): the share
        word = memory_.daemon().answer[slot].load(std::memory_order_acquire);
        return word != peer->answer;
    });
    if (result < 0) return result;  // it may still be answered, and is asked for no second time
    *peer = {};
    if (answer_in(word) != Answer::granted) return error_of(answer_in(word));
    peer->state = Peer::State::open;
    peer->to = to;
    peer->answer = word;
    // relaxed is enough: read after (5)
    peer->share = memory_.daemon().share[slot].load(std::memory_order_relaxed);
    for (std::size_t place = 0; place < sources_.size(); ++place) {
        if (sources_[place].origin == 0 || Origin::of(sources_[place].origin).from != to) continue;
        peer->place = static_cast<unsigned>(place);
        sources_[place].slot = static_cast<unsigned>(slot);
    }
    slots_[key_of(to)] = static_cast<unsigned>(slot);
    *opened = latest_ = &*peer;
    return 0;
}

void Program::ask(Peer& peer, Address to) {
    const auto slot = static_cast<std::size_t>(&peer - peers_.data());
    peer.state = Peer::State::asked;
    peer.to = to;
    // relaxed is enough: only its changing matters
    peer.answer = memory_.daemon().answer[slot].load(std::memory_order_relaxed);
    const std::uint32_t wanted = key_of(to);
    write({.kind = Kind::open, .index = static_cast<std::uint8_t>(slot), .length = sizeof wanted},
          {}, &wanted, sizeof wanted, nullptr, 0);
}

std::int64_t Program::most(Address to, Deadline deadline) {
    Peer* peer = find(to);
    if (peer == nullptr) {
        if (const int result = open(to, deadline, &peer); result < 0) return result;
    }
    return static_cast<std::int64_t>(most_bytes(peer->share));
}

/// What has been consumed of the same endpoint's messages, if it is worth telling.
inline Credit Program::credit_for(const Peer& peer) noexcept {
    if (peer.place == kNoPlace) return {};
    Source& source = sources_[peer.place];
    if (source.consumed - source.told <= geometry_.share() / 8) [[likely]]
        return {};
    source.told = source.consumed;
    return {true, static_cast<std::uint8_t>(peer.place), source.consumed};
}

// ---- Receiving

inline std::uint64_t Program::next_word() const noexcept {
    // (2) pairs with relay.cpp (6): the record, and the zero behind it
    return memory_.record(at_).control.load(std::memory_order_acquire);
}

int Program::recv(void* buffer, std::size_t room, Address* from) {
    return next(room, true, buffer, from);
}

int Program::probe(Address* from) {
    return next(0, false, nullptr, from);
}

/// The next message: received, or only looked at. Parts on the way to it are taken in.
int Program::next(std::size_t room, bool takes, void* buffer, Address* from) {
    if (owed_ != 0) [[unlikely]]
        return_credit();
    while (true) {
        if (whole_ != kNoPlace) [[unlikely]] {
            Source& source = sources_[whole_];
            if (from != nullptr) *from = Origin::of(source.origin).from;
            const std::size_t bytes = source.parts.size();
            if (!takes) return static_cast<int>(bytes);
            if (bytes > room) return -EMSGSIZE;
            std::memcpy(buffer, source.parts.data(), bytes);
            source.parts.clear();
            whole_ = kNoPlace;
            return static_cast<int>(bytes);
        }
        const std::uint64_t word = next_word();
        if (word == 0) return -EAGAIN;
        const Control control = Control::of(word);
        Source& source = source_of(control, memory_.record(at_).origin);
        const std::uint32_t lines = lines_of(control.length);
        if (control.kind == Kind::whole) [[likely]] {
            if (from != nullptr) *from = Origin::of(source.origin).from;
            if (!takes) return static_cast<int>(control.length);
            if (control.length > room) return -EMSGSIZE;
            source.parts.clear();  // a message in parts whose sender gave up
            copy_out(buffer, at_, 0, control.length);
            RMEM_MARK("munet.receive.copied");
            consume(source, lines);
            return static_cast<int>(control.length);
        }
        if (control.kind != Kind::none) take_part(source, control, at_);
        RMEM_MARK("munet.receive.part-taken");
        consume(source, lines);
    }
}

void Program::take_part(Source& source, Control control, std::uint32_t at) {
    std::size_t skip = 0;
    if (control.kind == Kind::first) {
        copy_out(&source.total, at, 0, sizeof source.total);
        skip = sizeof source.total;
        source.parts.clear();
        if (source.total > most_bytes(geometry_.share()))
            source.total = 0;  // no library sends that
        source.parts.reserve(source.total);
    } else if (source.parts.empty()) {
        return;
    }
    const std::size_t before = source.parts.size(), bytes = control.length - skip;
    if (control.length < skip || source.total - before < bytes) return source.parts.clear();
    source.parts.resize(before + bytes);
    copy_out(source.parts.data() + before, at, skip, bytes);
    if (control.kind != Kind::last) return;
    if (source.parts.size() != source.total) return source.parts.clear();
    whole_ = static_cast<unsigned>(&source - sources_.data());
}

/// From the record at `at`, `skip` bytes left out.
inline void Program::copy_out(void* to, std::uint32_t at, std::size_t skip,
                              std::size_t bytes) const noexcept {
    if (skip + bytes <= kNear) [[likely]]
        return rmem::copy_short(to, memory_.line(at) + kHeader + skip, bytes);
    const std::size_t size = geometry_.receive_lines * kLine;
    std::size_t from = at * kLine + kHeader + skip;
    if (from >= size) from -= size;
    const std::size_t first = std::min(bytes, size - from);
    std::memcpy(to, memory_.line(0) + from, first);
    if (first < bytes)
        std::memcpy(static_cast<std::byte*>(to) + first, memory_.line(0), bytes - first);
}

/// Who sent it; a place that has a new holder begins again.
inline Program::Source& Program::source_of(Control control, std::uint64_t origin) {
    Source& source = sources_[std::min<std::size_t>(control.index, sources_.size() - 1)];
    if (source.origin == origin) [[likely]]
        return source;
    if (source.slot != kSlots) peers_[source.slot].place = kNoPlace;
    source = {};
    source.origin = origin;
    const auto slot = slots_.find(static_cast<std::uint32_t>(origin & 0xffffff));
    if (slot != slots_.end()) {
        source.slot = slot->second;
        peers_[slot->second].place = static_cast<unsigned>(&source - sources_.data());
    }
    return source;
}

inline void Program::consume(Source& source, std::uint32_t lines) {
    at_ += lines;
    if (at_ >= geometry_.receive_lines) at_ -= geometry_.receive_lines;
    consumed_ += lines;
    // (4) pairs with relay.cpp (5): what was there has been read
    memory_.program().consumed.store(consumed_, std::memory_order_release);
    source.consumed += lines;
    if (source.consumed - source.told >= std::max(1U, high_water(geometry_.share()))) [[unlikely]] {
        ++owed_;
        return_credit();
    }
}

/// Credit messages to all who are over their high-water mark, as long as there are descriptors.
void Program::return_credit() {
    owed_ = 0;
    for (std::size_t place = 0; place < sources_.size(); ++place) {
        Source& source = sources_[place];
        if (source.consumed - source.told < std::max(1U, high_water(geometry_.share()))) continue;
        if (!has_descriptor()) {
            ++owed_;
            continue;
        }
        source.told = source.consumed;
        RMEM_MARK("munet.receive.before-credit");
        write({.kind = Kind::credit}, {true, static_cast<std::uint8_t>(place), source.consumed},
              nullptr, 0, nullptr, 0);
    }
}

int Program::wait(Deadline deadline) {
    return await(deadline, [&] { return probe(nullptr) != -EAGAIN; });
}

}  // namespace ports::munet
