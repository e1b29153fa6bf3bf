// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What passes between `rmem serve` and a program elsewhere: frames (rmem/base/frames.hpp) on two
/// connections.
///
/// Each connection begins with a hello of the client. On the first, for calls, the client asks and
/// the server answers, in order; a write and a sent interrupt have no answer. On the second, for
/// news, the server alone speaks: changes of the memory that the client has mapped, and
/// interrupts. docs/design/serve.md says why there are two.
///
/// Of the memory it is the bytes as they lie in the node's bank.
/// Thread safety: values and functions. Nothing here knows sockets, clocks or the memory.
/// Trust: what is read is another's; each length and field is checked here, each value where it is
///   used.
/// Units: bytes, nanoseconds.

#include "rmem/base/frames.hpp"
#include "rmem/base/limits.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace remote {

using rmem::FieldReader;
using rmem::Frame;
using rmem::FrameQueue;
using rmem::FrameWriter;
using rmem::kPageBytes;  ///< by which what is mapped is compared
using rmem::kWordBytes;

inline constexpr std::uint32_t kMagic = 0x4D454D52;  ///< "RMEM"
inline constexpr std::uint16_t kVersion = 2;
/// Of the first unit; the next one's is one more.
inline constexpr std::uint16_t kFirstPort = 5565;

/// Of the memory, in one frame. More is several frames.
inline constexpr std::size_t kMaxDataBytes = std::size_t{64} << 10;
inline constexpr std::size_t kMaxCounterNameBytes = 64;  ///< of a counter
inline constexpr std::size_t kMaxBodyBytes = kMaxDataBytes + 64;

/// The fields of each, in their order. A field without a type has 64 bits.
enum class Kind : std::uint16_t {
    // ---- Of a client
    hello = 1,   ///< magic (32), version (16), channel (16), session: of the news, else 0
    read,        ///< offset, bytes (32); data
    write,       ///< offset, data to the end; no answer
    send,        ///< node or -1 (32), number (32), value (32); no answer
    accept,      ///< numbers of interrupts; done
    flush,       ///< nanoseconds; number, what rmem_flush returns
    counter,     ///< its name to the end; number
    is_alive,    ///< rank (32); number
    is_member,   ///< number
    map,         ///< offset, bytes: whole pages; done, and shown as news
    write_part,  ///< offset of a word, value (32), which of its bytes (32); no answer
    is_present,  ///< node (32); number
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

[[nodiscard]] inline Kind kind_of(const Frame& frame) {
    return static_cast<Kind>(frame.kind);
}

void write_hello(std::vector<std::byte>& to, const Hello& hello);
/// Returns nothing if it is not one.
[[nodiscard]] std::optional<Hello> read_hello(const Frame& frame);
void write_welcome(std::vector<std::byte>& to, const Welcome& welcome);
[[nodiscard]] std::optional<Welcome> read_welcome(const Frame& frame);

}  // namespace remote
