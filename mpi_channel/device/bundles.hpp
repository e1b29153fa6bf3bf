// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A BUNDLE that is put together: several packets that leave as one. It is read in
/// mpi_channel/device/packets.hpp.
///
///     BundleWriter bundle(room);
///     while (… && bundle.has_room(message_bytes)) bundle.add(packet, parts, message_bytes);
///
/// Thread safety: one thread at a time. Errors: none. `room` outlives it.
/// Invariant, checked in debug builds: what has been added lies in the room.

#include "mpi_channel/device/packets.hpp"
#include "mpi_channel/device/parts.hpp"
#include "rmem/base/check.hpp"

#include <cstddef>
#include <cstring>
#include <span>

namespace mpi_channel {

class BundleWriter {
public:
    explicit BundleWriter(std::span<std::byte> room) : room_(room) {}

    /// Of a packet with a message of that length.
    [[nodiscard]] bool has_room(std::size_t message_bytes) const noexcept {
        return sizeof(BundledLength) + kMaxPacketBytes + message_bytes <= room_.size() - size_;
    }
    /// The message is all of the parts; null if it has no bytes.
    void add(const Packet& packet, const Parts* message, std::size_t message_bytes) {
        RMEM_CHECK_IF(false, has_room(message_bytes));
        std::byte* const to = room_.data() + size_ + sizeof(BundledLength);
        const std::size_t header_bytes = write(packet, to);
        if (message_bytes != 0) copy_out(*message, to + header_bytes);
        const auto length = static_cast<BundledLength>(header_bytes + message_bytes);
        std::memcpy(to - sizeof length, &length, sizeof length);
        size_ += sizeof length + length;
        ++count_;
    }
    [[nodiscard]] std::size_t count() const noexcept { return count_; }
    [[nodiscard]] std::span<const std::byte> bytes() const noexcept { return room_.first(size_); }

private:
    std::span<std::byte> room_;
    std::size_t size_ = 0;
    std::size_t count_ = 0;
};

}  // namespace mpi_channel
