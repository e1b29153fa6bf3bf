// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The Token Buffer Pool: memory of fixed size for what has arrived at one endpoint.
///
/// Its unit is the token buffer: a token (length, link to the next one) and as many bytes as the
/// message has. Tokens are chained in the order of arrival, in three parts:
///
///     oldest … | read in place, not flushed | unread … newest
///
/// `put` appends; `next`, `read` and `skip` go forward without freeing; `flush` gives the oldest
/// back that were read. A message that was delivered by another way is skipped: it stays until
/// those before it are flushed, and counts as no flush.
///
/// Invariants: tokens lie whole within the pool and never overlap; a buffer in view does not move;
/// memory is used again only after its flush. Thread safety: one thread, which holds the process
/// endpoint. Progress: each call is wait-free; `put` looks at the tokens flushed since the last
/// one. Units: bytes; buffers lie at 16.
/// Errors: the constructor throws std::system_error when the memory cannot be had. Source: the
/// paper, 4.2 and Figure 4.

#include "rmem/base/check.hpp"
#include "rmem/error.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace ports::dp {

class RMEM_API TokenPool {
public:
    /// `bytes` is rounded up to whole pages.
    explicit TokenPool(std::size_t bytes);
    ~TokenPool();
    TokenPool(const TokenPool&) = delete;
    TokenPool& operator=(const TokenPool&) = delete;

    std::byte* base() const noexcept { return base_; }
    std::size_t size() const noexcept { return size_; }

    /// Room for a message, to be filled before anything else is called; null: the pool is full.
    [[nodiscard]] std::byte* put(std::size_t length) noexcept {
        free_flushed();
        const std::size_t at = find(bytes_of(length));
        if (at == kNowhere) return nullptr;
        append(at, length);
        if (unread_ == 0) next_ = at;
        newest_length_ = length;
        ++unread_;
        return base_ + at + kTokenBytes;
    }
    /// `put` for a message that is still to come: room for kLandingBytes of it, beginning with a
    /// header of 8 bytes, which lies before the buffer then; null: the pool is full. Nothing of
    /// that is in the pool before `land`.
    static constexpr std::size_t kLandingBytes = 64;
    [[nodiscard]] std::byte* landing() noexcept {
        free_flushed();
        landing_ = find(kTokenBytes + kLandingBytes);
        return landing_ == kNowhere ? nullptr : base_ + landing_ + kHeaderAt;
    }
    /// It has come to the landing, with `length` bytes behind its header, and nothing unread is in
    /// the pool: it has been read.
    [[nodiscard]] std::byte* land(std::size_t length) noexcept {
        append(landing_, length);
        ++reads_;
        return base_ + landing_ + kTokenBytes;
    }
    /// Whether `put` would find room now.
    [[nodiscard]] bool has_room(std::size_t length) noexcept;

    [[nodiscard]] std::size_t unread() const noexcept { return unread_; }
    /// The oldest unread message.
    [[nodiscard]] std::byte* next() const noexcept { return base_ + next_ + kTokenBytes; }
    [[nodiscard]] std::size_t next_length() const noexcept {
        return unread_ == 1 ? newest_length_ : token_at(next_).length;
    }
    /// It has been read in place: the next one is next.
    void read() noexcept {
        ++reads_;
        advance();
    }
    /// It was delivered by another way.
    void skip() noexcept {
        token_at(next_).skipped = 1;
        advance();
    }

    /// Flushes the n oldest messages of those that were read in place; returns how many there were.
    std::uint32_t flush(std::uint32_t n) noexcept {
        const std::uint32_t some = std::min(n, reads_ - flushes_);
        flushes_ += some;
        RMEM_CHECK_IF(false, reads_ - flushes_ <= tokens_);
        return some;
    }
    /// Messages in it, read or not, that are not flushed.
    [[nodiscard]] std::size_t used() noexcept {
        collect();
        return tokens_;
    }

private:
    struct Token {
        std::uint32_t length;
        std::uint32_t link;  ///< offset of the next token
        std::uint32_t skipped;
        std::uint32_t unused;
    };
    static constexpr std::size_t kTokenBytes = sizeof(Token), kAlign = 16;
    static constexpr std::size_t kHeaderAt = kTokenBytes - 8;  ///< of a landing
    static constexpr std::size_t kNowhere = ~std::size_t{0};

    Token& token_at(std::size_t offset) const noexcept {
        return *reinterpret_cast<Token*>(base_ + offset);
    }
    [[nodiscard]] static constexpr std::size_t bytes_of(std::size_t length) noexcept {
        return kTokenBytes + (length + kAlign - 1) / kAlign * kAlign;
    }
    /// Chains the token of a message behind the newest one.
    void append(std::size_t at, std::size_t length) noexcept {
        token_at(at) = {static_cast<std::uint32_t>(length), 0, 0, 0};
        if (tokens_ != 0) token_at(newest_).link = static_cast<std::uint32_t>(at);
        newest_ = at;
        end_ = at + bytes_of(length);
        ++tokens_;
        RMEM_CHECK_IF(false, end_ <= size_ && (at >= oldest_ || end_ <= oldest_));
    }
    void free_flushed() noexcept {
        if (unread_ == 0 && reads_ == flushes_) [[likely]] {  // all of it is free
            tokens_ = 0;
            collected_ = flushes_;
        } else {
            collect();
        }
    }
    void advance() noexcept {
        RMEM_CHECK_IF(false, unread_ != 0 && unread_ <= tokens_);
        if (--unread_ != 0) next_ = token_at(next_).link;
    }
    void collect() noexcept;
    [[nodiscard]] std::size_t find(std::size_t need) noexcept {
        if (tokens_ == 0) {
            oldest_ = 0;
            return need <= size_ ? 0 : kNowhere;
        }
        if (end_ > oldest_) {
            if (size_ - end_ >= need) return end_;
            return oldest_ >= need ? 0 : kNowhere;
        }
        return oldest_ - end_ >= need ? end_ : kNowhere;
    }

    std::byte* base_;
    std::size_t size_;
    std::size_t oldest_ = 0, next_ = 0, newest_ = 0, end_ = 0, landing_ = 0;  ///< offsets
    std::size_t newest_length_ =
        0;  ///< the last one is often the next: known without a look at the pool
    std::size_t tokens_ = 0, unread_ = 0;
    std::uint32_t collected_ = 0;  ///< flushed messages whose memory is free again
    std::uint32_t reads_ = 0;      ///< messages read in place
    std::uint32_t flushes_ = 0;    ///< of these, flushed
};

}  // namespace ports::dp
