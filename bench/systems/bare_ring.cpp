// SPDX-License-Identifier: Apache-2.0
//
// The least that a message of any size takes: a ring for each direction, in which a header word and
// the payload behind it lie side by side. Nothing is checked, several senders, classes, lost ranks
// and sleep are not thought of.
//
// The variant is a message's alignment: 64 starts each on a line of its own, which is best for one
// message to and fro; 16 puts several into a line, which is best in a stream.
#include "bench/harness/harness.hpp"

#include <array>

namespace {

using namespace bench;

constexpr std::size_t ring_bytes = std::size_t{1} << 17;
constexpr std::size_t piece_bytes = ring_bytes / 8;  // of a message that is longer
constexpr std::size_t told_each = ring_bytes / 4;
constexpr std::uint32_t wrap = ~std::uint32_t{0};  // a length: the next message is at the beginning

struct Ring {
    alignas(kLineBytes) std::byte bytes[ring_bytes];
    alignas(kLineBytes) std::atomic<std::uint64_t> taken{0};
};

/// The header says that its message is there: sequence above, length below.
std::atomic<std::uint64_t>& header_at(Ring& ring, std::size_t at) {
    return *reinterpret_cast<std::atomic<std::uint64_t>*>(ring.bytes + at);
}

template <std::size_t alignment>
std::size_t room_of(std::size_t size) {
    return (sizeof(std::uint64_t) + size + alignment - 1) / alignment * alignment;
}

template <std::size_t alignment>
class RingChannel {
public:
    RingChannel(Ring& out, Ring& in) : out_(out), in_(in) {}

    void send(const void* data, std::size_t size) {
        const auto* from = static_cast<const std::byte*>(data);
        for (; size > piece_bytes; from += piece_bytes, size -= piece_bytes)
            send_piece(from, piece_bytes);
        send_piece(from, size);
    }

    void receive(void* data, std::size_t size) {
        auto* to = static_cast<std::byte*>(data);
        for (; size > piece_bytes; to += piece_bytes, size -= piece_bytes) receive_piece(to);
        receive_piece(to);
    }

private:
    void send_piece(const std::byte* from, std::size_t size) {
        const std::size_t room = room_of<alignment>(size);
        if (sent_ % ring_bytes + room > ring_bytes) {
            await_room(ring_bytes - sent_ % ring_bytes);
            post(wrap, ring_bytes - sent_ % ring_bytes);
        }
        await_room(room);
        std::memcpy(out_.bytes + sent_ % ring_bytes + sizeof(std::uint64_t), from, size);
        post(std::uint32_t(size), room);
        // The next message's first lines, while nobody waits for them.
        for (std::size_t line = 0; line < std::min(room, 16 * kLineBytes); line += kLineBytes)
            __builtin_prefetch(out_.bytes + (sent_ + line) % ring_bytes, 1);
    }

    void post(std::uint32_t length, std::size_t room) {
        header_at(out_, sent_ % ring_bytes)
            .store(std::uint64_t(++posts_) << 32 | length, std::memory_order_release);
        sent_ += room;
    }

    void await_room(std::size_t room) {
        while (sent_ + room - known_taken_ > ring_bytes) {
            known_taken_ = out_.taken.load(std::memory_order_acquire);
            if (sent_ + room - known_taken_ > ring_bytes) cpu_relax();
        }
    }

    void receive_piece(std::byte* to) {
        std::uint32_t length;
        while ((length = next_length()) == wrap) take(ring_bytes - received_ % ring_bytes);
        std::memcpy(to, in_.bytes + received_ % ring_bytes + sizeof(std::uint64_t), length);
        take(room_of<alignment>(length));
    }

    std::uint32_t next_length() {
        std::uint64_t header;
        ++takes_;
        while ((header = header_at(in_, received_ % ring_bytes).load(std::memory_order_acquire)) >>
                   32 !=
               takes_)
            cpu_relax();
        return std::uint32_t(header);
    }

    void take(std::size_t room) {
        received_ += room;
        if (received_ - told_ < told_each) return;
        told_ = received_;
        in_.taken.store(told_, std::memory_order_release);
    }

    Ring& out_;
    Ring& in_;
    std::uint64_t sent_ = 0, known_taken_ = 0, received_ = 0, told_ = 0;
    std::uint32_t posts_ = 0, takes_ = 0;
};

}  // namespace

int bench::measure(const Setup& setup) {
    const Common<std::array<Ring, 2>> common;
    Ring* const rings = common->data();
    if (setup.variant == "64")
        return measure_ranks(
            setup, [&](int r, Meeting&) { return RingChannel<64>(rings[r], rings[1 - r]); });
    return measure_ranks(setup,
                         [&](int r, Meeting&) { return RingChannel<16>(rings[r], rings[1 - r]); });
}
