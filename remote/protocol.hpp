// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What passes between `rmem serve` and a program elsewhere: frames on two connections.
///
/// Each connection begins with a hello of the client. On the first, for calls, the client asks and
/// the server answers, in order; a write and a sent interrupt have no answer. On the second, for
/// news, the server alone speaks: changes of the memory that the client has mapped, and
/// interrupts. docs/design/serve.md says why there are two.
///
/// A frame is a header, the length of its body in 32 bits, its kind in 16 and 16 zero bits, and the
/// body. Numbers are little-endian; of the memory it is the bytes as they lie in the node's bank.
/// Thread safety: values and functions. Nothing here knows sockets, clocks or the memory.
/// Trust: what is read is another's; each length and field is checked here, each value where it is
///   used.
/// Units: bytes, nanoseconds.

#include "rmem/base/little_endian.hpp"

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace remote {

inline constexpr std::uint32_t kMagic = 0x4D454D52;  ///< "RMEM"
inline constexpr std::uint16_t kVersion = 1;
/// Of the first unit; the next one's is one more.
inline constexpr std::uint16_t kFirstPort = 5565;

inline constexpr std::size_t kHeaderBytes = 8;
/// Of the memory, in one frame. More is several frames.
inline constexpr std::size_t kMostDataBytes = std::size_t{64} << 10;
inline constexpr std::size_t kMostNameBytes = 64;  ///< of a counter
inline constexpr std::size_t kMostBodyBytes = kMostDataBytes + 64;
/// What is mapped is compared in pages.
inline constexpr std::size_t kPageBytes = 4096;
inline constexpr std::size_t kWordBytes = 4;

/// The fields of each, in their order. A field without a type has 64 bits.
enum class Kind : std::uint16_t {
    // ---- Of a client
    hello = 1,  ///< magic (32), version (16), channel (16), session: of the news, else 0
    read,       ///< offset, bytes (32); data
    write,      ///< offset, data to the end; no answer
    send,       ///< node or -1 (32), number (32), value (32); no answer
    accept,     ///< numbers of interrupts; done
    flush,      ///< nanoseconds; number, what rmem_flush returns
    counter,    ///< its name to the end; number
    is_alive,   ///< rank (32); number
    is_member,  ///< number
    map,        ///< offset, bytes: whole pages; done, and shown as news
    // ---- Of the server, as answers
    welcome = 64,  ///< as Welcome
    done,
    data,    ///< to the end
    number,  ///< one
    failed,  ///< code (32), sentence to the end
    // ---- Of the server, as news
    change = 128,  ///< writes made of this client's, offset, words to the end
    shown,         ///< how many maps have been shown whole
    interrupt      ///< offset or number, value (32), origin (32), missed, kind (32)
};

enum class Channel : std::uint16_t { calls = 0, news = 1 };

struct Hello {
    std::uint16_t version = 0;
    Channel channel = Channel::calls;
    std::uint64_t session = 0;
};

/// Which node the client has.
struct Welcome {
    std::uint64_t session = 0;
    std::uint64_t memory_bytes = 0;
    std::uint32_t node = 0;
    std::uint32_t nodes = 0;
    std::uint32_t rank = 0;
    std::uint32_t ranks = 0;
};

/// Appends one frame to bytes that are to be sent; the length is put in at the end.
class FrameWriter {
public:
    FrameWriter(std::vector<std::byte>& to, Kind kind);
    ~FrameWriter();
    FrameWriter(const FrameWriter&) = delete;
    FrameWriter& operator=(const FrameWriter&) = delete;

    template <std::unsigned_integral Number>
    FrameWriter& put(Number value) {
        to_.resize(to_.size() + sizeof value);
        rmem::udp::store(to_.data() + to_.size() - sizeof value, value);
        return *this;
    }
    FrameWriter& put(std::span<const std::byte> data);
    FrameWriter& put(std::string_view text);

private:
    std::vector<std::byte>& to_;
    const std::size_t begin_;
};

/// The fields of a body, in their order.
class FieldReader {
public:
    explicit FieldReader(std::span<const std::byte> body) : left_(body) {}

    /// 0 behind the end.
    template <std::unsigned_integral Number>
    Number take() {
        if (left_.size() < sizeof(Number)) {
            is_short_ = true;
            left_ = {};
            return 0;
        }
        const auto value = rmem::udp::load<Number>(left_.data());
        left_ = left_.subspan(sizeof value);
        return value;
    }
    std::span<const std::byte> rest() { return std::exchange(left_, {}); }
    std::size_t left() const { return left_.size(); }
    /// All fields were there, and nothing is left.
    bool is_whole() const { return !is_short_ && left_.empty(); }

private:
    std::span<const std::byte> left_;
    bool is_short_ = false;
};

/// A frame that has come. The body is valid until the FrameQueue is given more.
struct Frame {
    Kind kind;
    std::span<const std::byte> body;
};

/// Frames out of a stream of bytes.
class FrameQueue {
public:
    explicit FrameQueue(std::size_t most_body_bytes = kMostBodyBytes) : most_(most_body_bytes) {}

    void add(std::span<const std::byte> bytes);
    /// The oldest; nothing: it has not come whole, or is_broken().
    std::optional<Frame> front() const;
    void pop();
    /// A header cannot be right, and there is no telling where the next one is.
    bool is_broken() const;
    std::size_t bytes() const { return bytes_.size() - begin_; }
    /// What has not been taken, for another queue.
    std::span<const std::byte> rest() const { return std::span(bytes_).subspan(begin_); }

private:
    std::size_t body_bytes() const;

    const std::size_t most_;
    std::vector<std::byte> bytes_;
    std::size_t begin_ = 0;  ///< of the oldest
};

void write_hello(std::vector<std::byte>& to, const Hello& hello);
/// Nothing: it is none.
std::optional<Hello> read_hello(const Frame& frame);
void write_welcome(std::vector<std::byte>& to, const Welcome& welcome);
std::optional<Welcome> read_welcome(const Frame& frame);

}  // namespace remote
