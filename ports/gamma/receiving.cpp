// SPDX-License-Identifier: Apache-2.0
// Taking in: frames into buffers, handlers.
#include "ports/gamma/process.hpp"

#include <algorithm>
#include <utility>

namespace ports::gamma {

constinit thread_local const Process* handling = nullptr;

namespace {
constexpr unsigned kPausesBeforeWait = 2;  ///< 85 ns one way on link ring instead of 100
}  // namespace

bool Process::attend() noexcept {
    const bool something = take_in();
    if (!something) watch_sources();
    pump();
    return something;
}

/// Takes in what has come, but not forever. Whether there was something.
bool Process::take_in() {
    if (!may_take_in()) return false;
    int result = 0;
    unsigned frames = 0;
    while (frames < kMaxFrames && take_one(Deadline::now(), result)) ++frames;
    return frames != 0;
}

inline void Process::run(Handler handler, unsigned port) {
    const unsigned short outer_port =
        std::exchange(visible_.active_port, static_cast<unsigned short>(port));
    const Process* outer = std::exchange(handling, this);
    ++depth_;
    count(Counter::handlers_begun);
    handler();
    count(Counter::handlers_ended);
    handling = outer;
    if (--depth_ != 0) visible_.active_port = outer_port;
}

inline void Process::deliver(unsigned port, std::size_t bytes) {
    Port& p = ports_[port];
    count(Counter::messages_received);
    if (p.on_message == nullptr) {
        visible_.active_port = static_cast<unsigned short>(port);
        visible_.msglen = static_cast<long>(bytes);
        ++semaphores_[p.semaphore].count;
        return;
    }
    const long outer_length = std::exchange(visible_.msglen, static_cast<long>(bytes));
    RMEM_CHECK_IF(false, !p.is_in_use);
    p.is_in_use = true;
    run(p.on_message, port);
    p.is_in_use = false;
    if (depth_ != 0) visible_.msglen = outer_length;
}

/// The expected case: a message in one slot, to a port that is free. False: something else, which
/// takes longer to say.
inline bool Process::short_message_arrived(unsigned source, const std::byte* data,
                                           std::size_t length) {
    constexpr std::uint32_t kPortsOfHeader = 0xff00ff00;
    if (length < kHeaderBytes) return false;
    std::uint64_t words;
    std::memcpy(&words, data, sizeof words);
    const auto header = static_cast<std::uint32_t>(words);
    const unsigned port = header >> 8 & 0xff;
    Port& p = ports_[port];
    std::uint32_t& expected = from_rank_[source * std::size_t{kPorts} + port];
    const std::size_t bytes = length - kHeaderBytes;
    if ((header & ~kPortsOfHeader) != own_messages_ || words >> 32 != expected || p.is_in_use ||
        p.source >= 0 || p.out.dest == kUnbound || bytes > p.size) [[unlikely]] {
        return false;
    }
    ++expected;
    rmem::copy_bytes(p.buffer, data + kHeaderBytes, bytes);
    deliver(port, bytes);
    return true;
}

bool Process::take_one(Deadline deadline, int& result) {
    if (!stalled_.empty()) [[unlikely]] {
        result = BBP_EAGAIN;
        return take_from_each();
    }
    alignas(8) std::byte small[billboard::kTakenBytes];
    billboard::Bytes frame;
    result = endpoint_.take(small, frame, deadline);
    if (result < 0) return false;
    const auto source = static_cast<unsigned>(result);
    const bool is_view = frame.data() != small;
    if (!is_view && short_message_arrived(source, small, frame.size())) [[likely]]
        return true;
    arrived(source, {frame.data(), frame.size(), is_view});
    return true;
}

/// What is there, or comes before a wait is worth to begin.
bool Process::take_briefly(int& result) {
    if (endpoint_.fastest() == nullptr || !stalled_.empty()) [[unlikely]] {
        if (take_one(Deadline::now(), result)) return true;
        // A wait that begins at once would take the engine from the one that answers.
        for (unsigned n = 0; n < kPausesBeforeWait; ++n) rmem::cpu_relax();
        return false;
    }
    alignas(8) std::byte small[billboard::kTakenBytes];
    std::size_t length = 0;
    const int from = endpoint_.take_briefly(small, length, pause_);
    if (from < 0) return take_one(Deadline::now(), result);
    const auto source = static_cast<unsigned>(from);
    if (!short_message_arrived(source, small, length)) [[unlikely]]
        arrived(source, {small, length, false});
    return true;
}

/// The same while some senders are stalled: from each of the others by name.
bool Process::take_from_each() {
    if (retry_stalled()) return true;
    for (unsigned looks = 0; looks < ranks_; ++looks) {
        const unsigned source = next_source_;
        next_source_ = next_source_ + 1 == ranks_ ? 0 : next_source_ + 1;
        if (find_stalled(source) != nullptr) continue;
        const void* data = nullptr;
        std::size_t length = 0;
        const int result = endpoint_->view(static_cast<int>(source), &data, &length,
                                           Deadline::now(), billboard::Class::gamma);
        if (result == BBP_EPEER) lose_sources(source);
        if (result < 0) continue;
        arrived(source, {static_cast<const std::byte*>(data), length, true});
        return true;
    }
    return false;
}

Process::Stalled* Process::find_stalled(unsigned source) {
    const auto it = std::find_if(stalled_.begin(), stalled_.end(),
                                 [&](const Stalled& s) { return s.source == source; });
    return it == stalled_.end() ? nullptr : &*it;
}

/// Whether a stalled sender's frame has found its port free now.
bool Process::retry_stalled() {
    for (std::size_t tries = stalled_.size(); tries > 0 && !stalled_.empty(); --tries) {
        Stalled s = std::move(stalled_.front());
        stalled_.erase(stalled_.begin());
        if (!s.frame.is_view) s.frame.data = s.copy.data();
        int lost_port = -1;
        if (process_frame(s.source, s.frame, lost_port)) return true;
        stall(std::move(s), lost_port);
        if (lost_port >= 0) return true;
    }
    return false;
}

/// A frame that cannot be processed now is stalled.
void Process::arrived(unsigned source, const Frame& frame) {
    int lost_port = -1;
    if (process_frame(source, frame, lost_port)) [[likely]]
        return;
    Stalled stalled{source, frame, {}};
    if (!frame.is_view) stalled.copy.assign(frame.data, frame.data + frame.length);
    count(Counter::sources_stalled);
    stall(std::move(stalled), lost_port);
}

/// Tells of the loss before the frame, with the frame put by: the error handler may take in more.
void Process::stall(Stalled stalled, int lost_port) {
    RMEM_CHECK(find_stalled(stalled.source) == nullptr);  // (G2)
    stalled_.push_back(std::move(stalled));
    if (lost_port >= 0) break_message(static_cast<unsigned>(lost_port), GAMMA_ELOST);
}

/// False: not now, the frame is still the caller's. `lost_port`: because frames before it were
/// lost, which comes first.
bool Process::process_frame(unsigned source, const Frame& frame, int& lost_port) {
    if (frame.length < kHeaderBytes) {
        refuse(frame);
        return true;
    }
    const Header h = Header::of(word_at(frame.data, 0));
    switch (h.kind) {
        [[likely]] case Kind::message : return message_arrived(source, h, frame, lost_port);
        case Kind::lost: notice_arrived(source, h, frame); break;
        case Kind::barrier: barrier_arrived(source, h, frame); break;
        case Kind::hello: hello_arrived(source, h, frame); break;
        default: refuse(frame);
    }
    return true;
}

void Process::done_with(const Frame& frame) {
    if (frame.is_view) endpoint_->release(frame.data);
}

void Process::refuse(const Frame& frame) {
    done_with(frame);
    count(Counter::frames_refused);
}

// ---- Messages

bool Process::message_arrived(unsigned source, const Header& h, const Frame& frame,
                              int& lost_port) {
    const bool in_parts = (h.flags & kParts) != 0;
    if (h.port > kLastPort || (h.par_pid != par_pid_ && is_formed_) ||
        (h.flags & ~(kParts | kBroadcast)) != 0 || (in_parts && frame.length <= kPartsHeaderBytes))
        [[unlikely]] {
        refuse(frame);
        return true;
    }
    Port& p = ports_[h.port];
    if (p.is_in_use || (p.source >= 0 && p.source != static_cast<int>(source))) [[unlikely]]
        return false;
    auto& numbers = (h.flags & kBroadcast) != 0 ? from_rank_to_all_ : from_rank_;
    std::uint32_t& expected = numbers[source * std::size_t{kPorts} + h.port];
    const std::uint32_t number = word_at(frame.data, 4);
    if (number != expected) [[unlikely]] {
        const auto gap = static_cast<std::int32_t>(number - expected);
        if (gap < 0) {
            refuse(frame);
            return true;
        }
        count(Counter::frames_lost, static_cast<std::uint64_t>(gap));
        expected = number;
        lost_port = static_cast<int>(h.port);
        return false;
    }
    ++expected;
    if (p.out.dest == kUnbound) [[unlikely]] {
        done_with(frame);
        count(Counter::frames_unbound);
    } else if (in_parts) {
        part_arrived(source, h.port, frame);
    } else {
        single_arrived(h.port, frame);
    }
    return true;
}

void Process::single_arrived(unsigned port, const Frame& frame) {
    Port& p = ports_[port];
    const std::size_t bytes = frame.length - kHeaderBytes;
    const bool breaks_off = p.source >= 0;  // its sender has given up the one before
    if (bytes > p.size || breaks_off) [[unlikely]] {
        done_with(frame);
        if (bytes > p.size) count(Counter::messages_overlong);
        break_message(port, bytes > p.size ? GAMMA_EOVERLONG : GAMMA_ECORRUPT);
        return;
    }
    rmem::copy_bytes(p.buffer, frame.data + kHeaderBytes, bytes);
    done_with(frame);
    deliver(port, bytes);
}

/// One frame of a longer message goes where the others of it are, as it comes.
void Process::part_arrived(unsigned source, unsigned port, const Frame& frame) {
    Port& p = ports_[port];
    const std::size_t bytes = frame.length - kPartsHeaderBytes;
    const std::size_t total = word_at(frame.data, 8), offset = word_at(frame.data, 12);
    const bool begins = offset == 0;
    const bool goes_on = p.source == static_cast<int>(source);
    const bool fits =
        begins ? !goes_on && bytes <= total
               : goes_on && total == p.total && offset == p.received && bytes <= total - p.received;
    if (begins && fits && total > p.size) {
        done_with(frame);
        count(Counter::messages_overlong);
        raise_error(port, GAMMA_EOVERLONG);
        return;
    }
    if (!fits) {
        done_with(frame);
        if (goes_on) {
            break_message(port, GAMMA_ECORRUPT);
        } else {
            count(begins ? Counter::frames_refused : Counter::frames_skipped);
        }
        return;
    }
    std::memcpy(p.buffer + offset, frame.data + kPartsHeaderBytes, bytes);
    done_with(frame);
    if (begins) {
        p.source = static_cast<int>(source);
        p.total = total;
        p.received = 0;
        coming_in_.push_back(port);
    }
    p.received += bytes;
    RMEM_CHECK(p.received <= p.total && p.total <= p.size);
    if (p.received < total) return;
    p.source = -1;
    std::erase(coming_in_, port);
    deliver(port, total);
}

// ---- Errors

/// The message that is coming in at this port, if any, will not be whole; the error is told in any
/// case.
void Process::break_message(unsigned port, int error) {
    Port& p = ports_[port];
    if (p.source >= 0) {
        p.source = -1;
        std::erase(coming_in_, port);
        count(Counter::messages_broken);
    }
    raise_error(port, error);
}

void Process::raise_error(unsigned port, int error) {
    Port& p = ports_[port];
    if (p.out.dest == kUnbound) return;  // nobody expects anything there
    count(Counter::errors_raised);
    if (p.on_error == nullptr || p.is_in_error) {
        semaphores_[p.semaphore].error = error;
        return;
    }
    const int outer = std::exchange(visible_.error, error);
    p.is_in_error = true;
    run(p.on_error, port);
    p.is_in_error = false;
    if (depth_ != 0) visible_.error = outer;
}

/// Of a message in parts whose sender is dead, the rest will not come.
void Process::watch_sources() {
    for (std::size_t i = 0; i < coming_in_.size(); ++i) is_gone(ports_[coming_in_[i]].source);
}

void Process::lose_sources(unsigned rank) {
    if (!std::exchange(peers_[rank].is_gone, true)) count(Counter::peers_gone);
    for (unsigned port = 0; port <= kLastPort; ++port) {
        if (ports_[port].source == static_cast<int>(rank)) break_message(port, GAMMA_EPEER);
    }
}

// ---- Control

void Process::notice_arrived(unsigned source, const Header& h, const Frame& frame) {
    const std::uint32_t next = word_at(frame.data, 4);
    if (h.port > kLastPort || h.par_pid != par_pid_ || (h.flags & ~kBroadcast) != 0 ||
        frame.length != kHeaderBytes) {
        refuse(frame);
        return;
    }
    done_with(frame);
    auto& numbers = (h.flags & kBroadcast) != 0 ? from_rank_to_all_ : from_rank_;
    std::uint32_t& expected = numbers[source * std::size_t{kPorts} + h.port];
    const auto gap = static_cast<std::int32_t>(next - expected);
    if (gap <= 0) return;  // a frame that came before it has told
    expected = next;
    count(Counter::frames_lost, static_cast<std::uint64_t>(gap));
    const bool is_others =
        ports_[h.port].source >= 0 && ports_[h.port].source != static_cast<int>(source);
    if (is_others) {
        raise_error(h.port, GAMMA_ELOST);
    } else {
        break_message(h.port, GAMMA_ELOST);
    }
}

/// A new incarnation of that rank, or its answer: all streams begin, both ways each with the hello
/// that is sent that way.
void Process::hello_arrived(unsigned source, const Header& h, const Frame& frame) {
    constexpr std::size_t kEach = 8;
    const std::uint32_t wanted = frame.length >= kHelloBytes ? word_at(frame.data, 8) : 0;
    if (frame.length < kHelloBytes || (frame.length - kHelloBytes) % kEach != 0 || source == me_ ||
        (wanted & 0xff) != kVersion || (h.flags & ~kAnswer) != 0) {
        refuse(frame);
        return;
    }
    Peer& peer = peers_[source];
    const std::uint32_t first = word_at(frame.data, 4), barriers = word_at(frame.data, 12);
    const auto begin = static_cast<std::ptrdiff_t>(source * kPorts);
    std::fill_n(from_rank_.begin() + begin, kPorts, first);
    std::fill_n(from_rank_to_all_.begin() + begin, kPorts, first);
    for (std::size_t at = kHelloBytes; at < frame.length; at += kEach) {
        const std::uint32_t port = word_at(frame.data, at);
        if (port <= kLastPort)
            from_rank_to_all_[source * std::size_t{kPorts} + port] = word_at(frame.data, at + 4);
    }
    done_with(frame);
    // Barriers go on where the others are.
    if (!is_formed_ && static_cast<std::int32_t>(barriers - barriers_) > 0) barriers_ = barriers;
    const bool asks = (h.flags & kAnswer) == 0;
    const bool is_another = asks && peer.has_greeted;
    if (!is_formed_) {
        peer.request = {wanted >> 8 & 0xff, std::nullopt};
        if ((wanted & kAsksPid) != 0) peer.request.par_pid = wanted >> 16 & 0xff;
    }
    if (is_another) {
        ++peer.incarnations;
        peer.is_returned = is_formed_;
    }
    peer.has_greeted = true;
    peer.answer_due |= asks;
    count_detours();
    if (is_another) lose_sources(source);
    peer.is_gone = false;
}

void Process::barrier_arrived(unsigned source, const Header& h, const Frame& frame) {
    if (frame.length != kHeaderBytes || h.port != kBarrierPort || h.source_port >= kMaxRounds ||
        (h.flags & ~kFailed) != 0) {
        refuse(frame);
        return;
    }
    peers_[source].arrived[h.source_port] = {word_at(frame.data, 4), (h.flags & kFailed) != 0};
    done_with(frame);
}

}  // namespace ports::gamma
