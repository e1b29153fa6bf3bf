// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Long messages past the ring: what a sender posts instead of their bytes, and how a receiver
/// reads those. Where nodes have a bank each (rmem/link/far_memory.hpp).
///
///   sender     offered(size, place, name), read   …waits…   more … to those who could not read,
///                                                           last to all
///   receiver   reads into private memory, or the buffer of a caller that waits, and acknowledges
///              `read` and `offered`; or only `offered`: it could not read
///
/// So a message is whole, taken back or lost in its middle as one in parts is: the receiver has it
/// when the last part is there. An acknowledgement of `offered` says that nothing is read any more.
///
/// A read cannot be called back, so it goes into a chunk of its own and is copied from there.
/// Thread safety: one thread. Source: the paper's outlook (a network of high bandwidth beside the
/// ring); the get protocols of MPI.

#include "billboard/boards/layout.hpp"
#include "rmem/base/clock.hpp"
#include "rmem/link/far_memory.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <utility>

namespace billboard {

inline constexpr std::size_t kFarChunkBytes = 256 * 1024;  ///< of one read
inline constexpr unsigned kFarChunks = 4;                  ///< reads of a message under way
inline constexpr std::size_t kMaxFarName = 64;
/// At once, whatever size a sender says its message has.
inline constexpr std::size_t kFarReserveBytes = std::size_t{16} << 20;

/// What a sender posts behind the message's size.
struct FarOffer {
    rmem::FarMemory::Place place;
    std::span<const std::byte> name;  ///< of the sender, for FarMemory::meet

    static constexpr std::size_t kFixedBytes = 16;
    static constexpr std::size_t kMaxBytes = kFixedBytes + kMaxFarName;

    /// How many bytes it takes; 0: the name is too long.
    std::size_t write(std::span<std::byte, kMaxBytes> to) const noexcept {
        if (name.size() > kMaxFarName) return 0;
        std::memcpy(to.data(), &place.address, sizeof place.address);
        std::memcpy(to.data() + sizeof place.address, &place.key, sizeof place.key);
        std::copy(name.begin(), name.end(), to.begin() + kFixedBytes);
        return kFixedBytes + name.size();
    }
    /// As another rank says; nothing: no rank of this library writes such. `bytes` stay.
    static std::optional<FarOffer> read(std::span<const std::byte> bytes) noexcept {
        if (bytes.size() < kFixedBytes || bytes.size() > kMaxBytes) return std::nullopt;
        FarOffer offer;
        std::memcpy(&offer.place.address, bytes.data(), sizeof offer.place.address);
        std::memcpy(&offer.place.key, bytes.data() + sizeof offer.place.address,
                    sizeof offer.place.key);
        offer.name = bytes.subspan(kFixedBytes);
        return offer;
    }
};

/// What a rank has under way past the ring.
struct FarUses {
    unsigned count = 0;       ///< regions on offer, and messages that are being read
    std::uint32_t reads = 0;  ///< asked for so far: their numbers
};

/// Bytes on offer, while it exists.
class FarRegion {
public:
    FarRegion(rmem::FarMemory& far, std::span<const std::byte> bytes, FarUses& uses)
        : far_(far), uses_(uses), place_(far.offer(bytes)) {
        ++uses_.count;
    }
    FarRegion(const FarRegion&) = delete;
    FarRegion& operator=(const FarRegion&) = delete;
    ~FarRegion() {
        if (place_) far_.withdraw(*place_);
        --uses_.count;
    }
    /// Nothing: they cannot be read.
    [[nodiscard]] const std::optional<rmem::FarMemory::Place>& place() const noexcept {
        return place_;
    }

private:
    rmem::FarMemory& far_;
    FarUses& uses_;
    const std::optional<rmem::FarMemory::Place> place_;
};

/// A message that is being read, from its beginning on: at most kFarChunks reads at a time, whose
/// bytes are given on in order.
class FarReading {
public:
    /// Of `total` bytes. Throws std::bad_alloc.
    FarReading(rmem::FarMemory& far, unsigned from, rmem::FarMemory::Place place, std::size_t total,
               FarUses& uses)
        : far_(far),
          from_(from),
          place_(place),
          total_(total),
          uses_(uses),
          room_(std::make_unique_for_overwrite<std::byte[]>(
              std::min(total, kFarChunks * kFarChunkBytes))) {
        ++uses_.count;
    }
    FarReading(const FarReading&) = delete;
    FarReading& operator=(const FarReading&) = delete;
    /// Nothing of it is under way any more.
    ~FarReading() {
        if (under_way_ != 0) far_.drop(from_);
        give_up();
    }
    /// No rank waits for it any more.
    void give_up() noexcept {
        uses_.count -= is_wanted_ ? 1 : 0;
        is_wanted_ = false;
    }
    [[nodiscard]] bool is_under_way() const noexcept { return under_way_ != 0; }
    [[nodiscard]] unsigned from() const noexcept { return from_; }

    void ask() {
        while (!has_failed_ && under_way_ < kFarChunks && asked_ < total_) {
            const unsigned index = (first_ + under_way_) % kFarChunks;
            Chunk& chunk = chunks_[index];
            const std::size_t size = std::min(kFarChunkBytes, total_ - asked_);
            chunk = {{room_.get() + index * kFarChunkBytes, size}, ++uses_.reads};
            far_.read(from_, {place_.address + asked_, place_.key}, chunk.bytes, chunk.number);
            ++under_way_;
            asked_ += size;
        }
    }
    /// Whether it was one of its reads.
    bool end(const rmem::FarMemory::Ended& ended) noexcept {
        for (unsigned i = 0; i < under_way_; ++i) {
            Chunk& chunk = chunks_[(first_ + i) % kFarChunks];
            if (chunk.number != ended.number || chunk.is_ended) continue;
            chunk.is_ended = true;
            if (!ended.is_read) has_failed_ = true;
            return true;
        }
        return false;
    }
    /// The bytes that come next, until the next ask(); empty: they are not there.
    std::span<const std::byte> next() noexcept {
        while (under_way_ != 0 && chunks_[first_].is_ended) {
            const auto bytes = chunks_[first_].bytes;
            first_ = (first_ + 1) % kFarChunks;
            --under_way_;
            if (!has_failed_) return bytes;
        }
        return {};
    }
    /// Nothing will come any more, and nothing is under way.
    [[nodiscard]] bool is_over_for_nothing() const noexcept {
        return has_failed_ && under_way_ == 0;
    }

private:
    struct Chunk {
        std::span<std::byte> bytes;
        std::uint32_t number = 0;
        bool is_ended = false;
    };

    rmem::FarMemory& far_;
    const unsigned from_;
    const rmem::FarMemory::Place place_;
    const std::size_t total_;
    FarUses& uses_;
    std::unique_ptr<std::byte[]> room_;
    std::array<Chunk, kFarChunks> chunks_{};
    unsigned first_ = 0, under_way_ = 0;
    std::size_t asked_ = 0;
    bool has_failed_ = false, is_wanted_ = true;
};

/// How long a rank may sleep while it reads or is read from: nothing wakes it for that.
class FarPatience {
public:
    void begin(std::int64_t now) noexcept { since_ns_ = now; }
    /// 0: it had better look again.
    [[nodiscard]] std::int64_t sleep_ns(std::int64_t now) const noexcept {
        const std::int64_t sleep = (now - since_ns_) / 8;
        return sleep < kLeastNs ? 0 : std::min(sleep, kMaxNs);
    }

private:
    // Shorter sleeps take longer than they should; in the longest a socket's buffer fills.
    static constexpr std::int64_t kLeastNs = 50'000, kMaxNs = 200'000;
    std::int64_t since_ns_ = 0;
};

}  // namespace billboard
