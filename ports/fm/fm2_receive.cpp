// SPDX-License-Identifier: Apache-2.0
// Fast Messages 2.x: packets that come, and their handlers.
#include "ports/fm/fm2.hpp"
#include "rmem/base/copy.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace ports::fm {

namespace {

bool is_packet(std::span<const std::byte> frame) {
    constexpr auto kFlags = static_cast<std::byte>(kFirstPacket | kLastPacket);
    return !frame.empty() && (frame[0] & ~kFlags) == static_cast<std::byte>(Kind::packet);
}

}  // namespace

/// Whose handler runs.
class Fm2::Running {
public:
    Running(Fm2& fm2, Incoming& message)
        : fm2_(fm2), before_(std::exchange(fm2.running_, &message)) {}
    ~Running() { fm2_.running_ = before_; }
    Running(const Running&) = delete;
    Running& operator=(const Running&) = delete;

private:
    Fm2& fm2_;
    Incoming* before_;
};

std::size_t Fm2::extract(std::size_t most) {
    if (network_.handlers != 0) return 0;  // (S4)
    if (outbox_used_ != 0) [[unlikely]]
        drain();
    if (!cut_.empty()) [[unlikely]]
        end_cut();
    std::size_t bytes = 0;
    quit_ = false;
    take_over(most, bytes);
    if (bytes == 0 && most != 0) {
        const bool is_time = network_.found_nothing();
        if (network_.may_look_again()) {
            if (is_time) await_one(Deadline::now(), bytes);
            take_over(most, bytes);
        }
    }
    if (!due_.empty()) [[unlikely]]
        tell_due();
    if (bytes != 0) network_.found_something();
    return bytes;
}

/// Up to `most` bytes, what exceeds them by the last packet not counted.
void Fm2::take_over(std::size_t most, std::size_t& bytes) {
    while (bytes < most && !quit_ && take_one(bytes)) {
    }
}

/// The next packet, of the buffer or the network, or another frame. Adds a packet's bytes, one at
/// least. False: nothing.
inline bool Fm2::take_one(std::size_t& bytes) {
    if (!buffer_.empty()) [[unlikely]] {
        const Packet packet = std::move(buffer_.front());
        buffer_.pop_front();
        bytes += std::max<std::size_t>(1, packet.size - kFm2Header);
        process(packet.node, {packet.bytes.get(), packet.size});
        return true;
    }
    std::size_t size = 0;
    const int from = network_.take_at_once(small_, size);
    if (from < 0) return from != BBP_EAGAIN && await_one(Deadline::now(), bytes);
    take(static_cast<unsigned>(from), {small_, size}, bytes);
    return true;
}

/// The same of the network, however it comes; and waits for it.
bool Fm2::await_one(Deadline deadline, std::size_t& bytes) {
    std::span<const std::byte> frame;
    const int from = network_.take(small_, frame, deadline);
    if (from < 0) return from == BBP_ECORRUPT;
    /// What a handler throws passes through.
    struct Release {
        Network& network;
        const std::byte* small;
        std::span<const std::byte> frame;
        ~Release() { network.endpoint().release(small, frame); }
    } const release{network_, small_, frame};
    take(static_cast<unsigned>(from), frame, bytes);
    return true;
}

inline void Fm2::take(unsigned from, std::span<const std::byte> frame, std::size_t& bytes) {
    if (!is_packet(frame)) [[unlikely]]
        return network_.deliver(from, frame);
    if (!admit(from, frame)) [[unlikely]]
        return;
    bytes += std::max<std::size_t>(1, frame.size() - kFm2Header);
    process(from, frame);
}

void Fm2::take_in(unsigned from, std::span<const std::byte> frame) {
    if (!is_packet(frame)) {
        if (frame.size() != sizeof(Credit)) return network_.is_corrupt();
        if (!network_.is_ahead(from))
            hear_of_limit(peers_[from], read_as<Credit>(frame.data()).limit);
        return;
    }
    if (!admit(from, frame)) return;
    Packet packet{static_cast<std::uint16_t>(from), static_cast<std::uint16_t>(frame.size()),
                  std::make_unique_for_overwrite<std::byte[]>(frame.size())};
    std::memcpy(packet.bytes.get(), frame.data(), frame.size());
    buffer_.push_back(std::move(packet));
}

/// Whether it is the packet that is next from there, and within its credit.
inline bool Fm2::admit(unsigned from, std::span<const std::byte> frame) {
    Peer& p = peers_[from];
    if (frame.size() < kFm2Header || frame.size() > packet_bytes_) {
        network_.is_corrupt();
        return false;
    }
    const auto head = read_as<Fm2Header>(frame.data());
    if (head.number != p.come || p.come == p.granted || head.stream >= kStreams) {
        network_.is_corrupt();
        return false;
    }
    ++p.come;
    if (!network_.is_ahead(from)) hear_of_limit(p, head.limit);
    return true;
}

inline void Fm2::process(unsigned from, std::span<const std::byte> frame) {
    /// Its place is free again, even if a handler throws.
    struct Done {
        Fm2& fm2;
        unsigned from;
        ~Done() {
            Peer& p = fm2.peers_[from];
            if (p.done == p.come) return;  // a new incarnation has begun
            ++p.done;
            --fm2.outstanding_;
            const auto untold = static_cast<std::uint16_t>(p.done + fm2.share_ - p.told);
            if (untold < (fm2.share_ + 1) / 2 || p.is_due) return;
            p.is_due = true;
            fm2.due_.push_back(static_cast<std::uint16_t>(from));
        }
    } const done{*this, from};
    const auto head = read_as<Fm2Header>(frame.data());
    run(from, head, frame.subspan(kFm2Header));
}

inline FM_handler* Fm2::handler_of(unsigned from, std::uint16_t id) {
    FM_handler* const handler = id < handlers_.size() ? handlers_[id] : nullptr;
    if (handler == nullptr) [[unlikely]]
        say_invalid(from, id);
    return handler;
}

void Fm2::say_invalid(unsigned from, std::uint16_t id) {
    network_.counts().add(Counter::invalid_handlers);
    network_.say(fmt::format("Received invalid handler ID {} from node {}", id, from));
}

inline void Fm2::run(unsigned from, const Fm2Header& head, std::span<const std::byte> payload) {
    const bool is_first = (head.kind & kFirstPacket) != 0, is_last = (head.kind & kLastPacket) != 0;
    auto& stream = peers_[from].streams[head.stream];
    if (is_first == (stream != nullptr)) return network_.is_corrupt();
    if (is_first && is_last) [[likely]]
        return run_whole(from, head, payload);
    if (is_first) return start(from, head, payload);
    Incoming& message = *stream;
    message.rest = payload;
    message.is_last = is_last;
    go_on(message);
    // Where its handler has found that its sender is gone, it is among the cut ones by now.
    if (is_last && stream.get() == &message) stream.reset();
}

inline void Fm2::run_whole(unsigned from, const Fm2Header& head,
                           std::span<const std::byte> payload) {
    FM_handler* const handler = handler_of(from, head.handler);
    if (handler == nullptr) return;
    Incoming message;
    message.rest = payload;
    message.is_last = true;
    const Running running(*this, message);
    const Handling handling(network_);
    if (handler(&message, from) == FM_QUIT) quit_ = true;
}

void Fm2::start(unsigned from, const Fm2Header& head, std::span<const std::byte> payload) {
    auto& stream = peers_[from].streams[head.stream];
    stream = std::make_unique<Incoming>();
    Incoming& message = *stream;
    message.rest = payload;
    FM_handler* const handler = handler_of(from, head.handler);
    message.is_discarding = handler == nullptr;
    if (handler == nullptr) return;
    message.fiber = std::make_unique<rmem::sim::Fiber>([this, &message, handler, from] {
        network_.counts().add(Counter::handlers_entered);
        message.result = handler(&message, from);
        network_.counts().add(Counter::handlers_left);
    });
    go_on(message);
}

/// Lets the handler go on with what has come; to its end, if no more will.
void Fm2::go_on(Incoming& message) {
    if (message.is_discarding) return;
    /// A handler that throws has ended, too.
    struct Inside {
        Fm2& fm2;
        Incoming& message;
        ~Inside() {
            --fm2.network_.handlers;
            message.rest = {};
            if (!message.fiber->ended()) return;
            message.is_discarding = true;
            message.fiber.reset();
        }
    } const inside{*this, message};
    ++network_.handlers;
    const Running running(*this, message);
    do {
        message.fiber->resume();
    } while (message.is_last && !message.fiber->ended());
    if (message.fiber->ended() && message.result == FM_QUIT) quit_ = true;
}

/// Those whose senders are gone find nothing more, and come to their end.
void Fm2::end_cut() {
    while (!cut_.empty()) {
        const auto message = std::move(cut_.back());
        cut_.pop_back();
        message->is_last = true;
        go_on(*message);
    }
}

/// Of more than has come with the present packet.
int Fm2::receive_slowly(void* to, std::size_t bytes) {
    Incoming& message = *running_;
    auto* next = static_cast<std::byte*>(to);
    while (bytes != 0) {
        const std::size_t piece = std::min(bytes, message.rest.size());
        rmem::copy_bytes(next, message.rest.data(), piece);
        message.rest = message.rest.subspan(piece);
        next += piece;
        bytes -= piece;
        if (bytes == 0 || message.is_last) break;
        network_.counts().add(Counter::handlers_suspended);
        message.fiber->suspend();
    }
    return static_cast<int>(bytes);
}

}  // namespace ports::fm
