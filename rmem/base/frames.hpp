// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Frames in a stream of bytes, for protocols over a connection.
///
/// A frame is a header, the length of its body in 32 bits, its kind in 16 and 16 zero bits, and the
/// body. Numbers are little-endian. What the kinds are, and the fields of each, is a protocol's.
/// Invariants, executed: no more bytes leave a ByteQueue than it has; a frame is popped that has
///   come whole.
/// Thread safety: values. Nothing here knows sockets or clocks.
/// Trust: what is read is another's; each length is checked here, each value where it is used.
/// Units: bytes.

#include "rmem/base/little_endian.hpp"
#include "rmem/error.hpp"

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace rmem {

/// Bytes on their way: written behind, taken in front.
class ByteQueue {
public:
    [[nodiscard]] std::span<const std::byte> left() const {
        return std::span(bytes_).subspan(sent_);
    }
    [[nodiscard]] bool empty() const { return sent_ == bytes_.size(); }
    /// Those bytes of left() are gone, the first ones.
    RMEM_API void sent(std::size_t bytes);
    /// To append to.
    [[nodiscard]] std::vector<std::byte>& bytes() { return bytes_; }

private:
    std::vector<std::byte> bytes_;
    std::size_t sent_ = 0;
};

/// Appends one frame to bytes that are to be sent; the length is put in at the end.
class RMEM_API FrameWriter {
public:
    static constexpr std::size_t kHeaderBytes = 8;

    template <class Kind>
    requires std::is_enum_v<Kind> FrameWriter(std::vector<std::byte>& to, Kind kind)
        : FrameWriter(to, static_cast<std::uint16_t>(kind)) {}
    ~FrameWriter();
    FrameWriter(const FrameWriter&) = delete;
    FrameWriter& operator=(const FrameWriter&) = delete;

    template <std::unsigned_integral Number>
    FrameWriter& put(Number value) {
        to_.resize(to_.size() + sizeof value);
        store(to_.data() + to_.size() - sizeof value, value);
        return *this;
    }
    FrameWriter& put(std::span<const std::byte> data);
    FrameWriter& put(std::string_view text);

private:
    FrameWriter(std::vector<std::byte>& to, std::uint16_t kind);

    std::vector<std::byte>& to_;
    const std::size_t begin_;
};

/// The fields of a body, in their order.
class FieldReader {
public:
    explicit FieldReader(std::span<const std::byte> body) : left_(body) {}

    /// 0 behind the end.
    template <std::unsigned_integral Number>
    [[nodiscard]] Number take() {
        if (left_.size() < sizeof(Number)) {
            is_short_ = true;
            left_ = {};
            return 0;
        }
        const auto value = load<Number>(left_.data());
        left_ = left_.subspan(sizeof value);
        return value;
    }
    [[nodiscard]] std::span<const std::byte> rest() { return std::exchange(left_, {}); }
    [[nodiscard]] std::size_t left() const { return left_.size(); }
    /// All fields were there, and nothing is left.
    [[nodiscard]] bool is_whole() const { return !is_short_ && left_.empty(); }

private:
    std::span<const std::byte> left_;
    bool is_short_ = false;
};

/// A frame that has come. The body is valid until the frame is popped.
struct Frame {
    std::uint16_t kind;
    std::span<const std::byte> body;
};

/// Frames out of a stream of bytes.
class RMEM_API FrameQueue {
public:
    explicit FrameQueue(std::size_t most_body_bytes) : most_(most_body_bytes) {}

    void add(std::span<const std::byte> bytes);
    /// The oldest; nothing: it has not come whole, or is_broken().
    [[nodiscard]] std::optional<Frame> front() const;
    void pop();
    /// A header cannot be right, and there is no telling where the next one is.
    [[nodiscard]] bool is_broken() const;
    /// What has not been taken.
    [[nodiscard]] std::span<const std::byte> rest() const { return queue_.left(); }

private:
    const std::size_t most_;
    ByteQueue queue_;
};

}  // namespace rmem
