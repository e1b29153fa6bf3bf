// SPDX-License-Identifier: Apache-2.0
// Receiving: the Message Dispatcher Routine, and dp_read.
#include "ports/dp/service.hpp"

#include "rmem/base/copy.hpp"

#include <fcntl.h>

#include <cerrno>

namespace ports::dp {

namespace {

using billboard::Deadline;

constexpr unsigned kMaxAtOnce = 256;  ///< messages, before others come in
constexpr unsigned kReadsPerOffer =
    32;  ///< of other endpoints, until what waits elsewhere is offered

}  // namespace

// ---- Dispatching

/// Takes the next message off the ring; the billboard's code if there was none.
int Service::receive_one(Deadline deadline) noexcept {
    std::array<std::byte, billboard::kTakenBytes> small;
    billboard::Bytes message;
    const int from = ring().take(small, message, deadline);
    if (from < 0) return from;
    on_message(static_cast<unsigned>(from), message.data(), message.size());
    ring().release(small.data(), message);
    return from;
}

/// Not what was expected where it has landed: from elsewhere it goes the common way, perhaps to
/// that place.
void Service::dispatch_copy(unsigned from, std::span<const std::byte> bytes) {
    std::array<std::byte, billboard::kTakenBytes> small;
    std::memcpy(small.data(), bytes.data(), bytes.size());
    on_message(from, small.data(), bytes.size());
}

bool Service::receive_all() noexcept {
    bool something = false;
    for (unsigned i = 0; i < kMaxAtOnce && receive_one(Deadline::now()) >= 0; ++i) something = true;
    return something;
}

void Service::on_message(unsigned from, const std::byte* bytes, std::size_t size) {
    // The expected case.
    if (size >= kHeaderBytes) [[likely]] {
        const Header header = Header::from(load_word(bytes));
        if (header.kind == Kind::plain && header.nid == nid_ &&
            header.length <= size - kHeaderBytes) [[likely]] {
            if (Endpoint* e = find(header.dpid); e != nullptr) [[likely]] {
                deliver(*e, bytes + kHeaderBytes, header.length);
                return;
            }
        }
    }
    Frame frame{};
    if (!parse(bytes, size, frame)) {
        count(Counter::dropped_corrupt);
        return;
    }
    on_frame(from, frame);
}

void Service::on_frame(unsigned from, const Frame& frame) {
    const Header& header = frame.header;
    const unsigned me = nid_;
    if (header.kind == Kind::listed) {
        for (std::size_t i = 0; i < header.dpid; ++i) {
            const Entry entry = Entry::at(frame.entries, i);
            if (entry.nid != me) continue;
            Endpoint* e = find(entry.dpid);
            if (e == nullptr) {
                count(Counter::dropped_unknown);
            } else {
                deliver(*e, frame.container, header.length);
            }
        }
        return;
    }
    if (header.nid != me && !(header.nid == kAllNids && header.kind == Kind::plain)) {
        count(Counter::dropped_corrupt);
        return;
    }
    Endpoint* e = find(header.dpid);
    if (e == nullptr) {
        count(Counter::dropped_unknown);
        return;
    }
    switch (header.kind) {
        case Kind::reliable: return on_reliable(from, *e, frame);
        case Kind::ack: return on_ack(from, *e, frame);
        default: deliver(*e, frame.container, header.length);
    }
}

/// Copies into the pool: the one copy of a message at its receiver. False: there was no room.
bool Service::deliver(Endpoint& e, const std::byte* container, std::size_t length) noexcept {
    std::byte* to = e.pool->put(length);
    if (to == nullptr) {
        e.count(Counter::dropped_full);
        return false;
    }
    RMEM_MARK("dp.put");
    rmem::copy_bytes(to, container, length);
    RMEM_MARK("dp.delivered");
    e.count(Counter::arrived);
    if (e.readers == 0 && !e.is_offered()) leave_behind(e);
    return true;
}

// ---- The descriptor's signal

/// A message waits for a program that is not in dp_read.
void Service::leave_behind(Endpoint& e) noexcept {
    if (!has_engine() || e.is_left_behind) return;
    if (e.offers_by_reader != 0) {
        --e.offers_by_reader;
        e.offer();
    } else {
        e.is_left_behind = true;
        ++left_behind_;
    }
}

/// The endpoints whose messages wait for a program that is not in dp_read: perhaps in poll or read.
/// Not that of which the caller is about to read.
void Service::offer_due(const Endpoint* reading) noexcept {
    if (left_behind_ == 0) return;
    for (auto& [id, endpoint] : endpoints_) {
        Endpoint& e = *endpoint;
        if (!e.is_left_behind || e.readers != 0 || &e == reading) continue;
        is_not_behind(e);
        e.offers_by_reader = Endpoint::kOffersByReader;
        e.offer();
    }
}

bool Service::attend() noexcept {
    const bool something = receive_all();
    tick();
    offer_due();
    return something;
}

// ---- dp_read, dp_fsync

/// The next message of the pool, if there is one.
bool Service::pick(Endpoint& e, int fd, char** address, int& length) noexcept {
    while (e.pool->unread() != 0) {
        if (e.is_offered() && !e.take_back(fd)) [[unlikely]]
            continue;
        *address = reinterpret_cast<char*>(e.pool->next());
        length = static_cast<int>(e.pool->next_length());
        e.pool->read();
        if (e.pool->unread() == 0) is_not_behind(e);
        return true;
    }
    return false;
}

bool Service::is_nonblocking(Endpoint& e, int fd) noexcept {
    const int flags = ::fcntl(fd, F_GETFL);
    e.is_nonblocking = flags >= 0 && (flags & O_NONBLOCK) != 0;
    e.takes_directly = e.ring.fastest() != nullptr && !e.is_nonblocking && !e.has_ended;
    return e.is_nonblocking;
}

/// What a writer has taken in while it waited, or a reader of another endpoint: -1 where there is
/// more to do than to read it.
int Service::read_left(Endpoint& e, char** address) noexcept {
    if (!e.takes_directly || e.pool->unread() == 0 || e.is_offered() || e.offers_by_reader != 0 ||
        left_behind_ > (e.is_left_behind ? 1U : 0U) || reliable_ != 0)
        return -1;
    polled();
    *address = reinterpret_cast<char*>(e.pool->next());
    const auto length = static_cast<int>(e.pool->next_length());
    e.pool->read();
    if (e.pool->unread() == 0) {
        is_not_behind(e);
    } else {
        leave_behind(e);
    }
    return length;
}

int Service::read(Endpoint& e, int fd, char** address) {
    auto held = process_->hold();
    if (e.has_ended) return -EBADF;
    polled();
    if (left_behind_ != 0 && ++reads_ % kReadsPerOffer == 0) [[unlikely]]
        offer_due(&e);
    if (reliable_ != 0) [[unlikely]]
        tick();
    int length = 0;
    if (!pick(e, fd, address, length)) {
        ++e.readers;
        length = await(held, e, fd, address);
        --e.readers;
    }
    if (e.pool->unread() != 0 && e.readers == 0 && !e.is_offered()) [[unlikely]]
        leave_behind(e);
    return length;
}

/// What the call takes in itself is signalled only where it leaves some behind.
int Service::try_read(Endpoint& e, int fd, char** address) {
    const auto held = process_->hold();
    if (e.has_ended) return -EBADF;
    polled();
    if (reliable_ != 0) tick();
    int length = 0;
    if (!pick(e, fd, address, length)) {
        ++e.readers;
        receive_all();
        --e.readers;
        if (!pick(e, fd, address, length)) {
            *address = nullptr;
            ring()->give_way();
            errno = EAGAIN;
        }
    }
    if (left_behind_ != 0 && ++reads_ % kReadsPerOffer == 0) [[unlikely]]
        offer_due(&e);
    if (e.pool->unread() != 0 && e.readers == 0 && !e.is_offered()) [[unlikely]]
        leave_behind(e);
    return length;
}

/// Until there is a message.
int Service::await(Held& held, Endpoint& e, int fd, char** address) {
    int length = 0;
    if (!e.is_nonblocking) {
        for (unsigned i = 0; i < kMaxAtOnce && receive_one(kBriefly) >= 0; ++i) {
            if (pick(e, fd, address, length)) [[likely]]
                return length;
        }
    }
    ++waiting_readers_;
    polls_on(true);
    length = await_long(held, e, fd, address);
    polls_on(--waiting_readers_ != 0);
    return length;
}

int Service::await_long(Held& held, Endpoint& e, int fd, char** address) {
    int length = 0;
    is_nonblocking(e, fd);
    if (!e.is_nonblocking) e.offers_by_reader = 0;  // a program that waits here does not poll
    for (billboard::Slices slices(held, *ring(), Deadline::never());; slices.pass()) {
        if (e.has_ended) return -EBADF;
        receive_all();
        if (pick(e, fd, address, length)) return length;
        tick();
        offer_due();
        if (e.is_nonblocking) {
            *address = nullptr;
            errno = EAGAIN;
            return 0;
        }
        if (receive_one(slices.deadline()) == BBP_EPEER) return -EHOSTDOWN;
        if (pick(e, fd, address, length)) return length;
    }
}

}  // namespace ports::dp
