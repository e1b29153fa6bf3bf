// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The part of a REMOTE packet behind its header: access to memory that another rank has
/// registered.
///
///   kind       who       adds                                               then, in the order in
///              which they were asked
///   write      initiator place 40, source 8, and the bytes, or bulk         done
///   write_get  initiator place 40, source 8: where the target reads them    done
///   read       initiator place 40, source 8                                 reply, or done when it
///              is refused
///   read_get   initiator place 40, source 8                                 granted, or done when
///              it is refused
///   done       target    value 8: 0                                         -
///   reply      target    value 8: size, and the bytes, or bulk              -
///   granted    target    value 8: where the initiator reads them            -
///
/// A place is what the initiator was told (key, address, extent: the whole of one access) and the
/// piece of it that the packet is about (at, size). A target checks the whole, so that an access
/// that it must refuse has done nothing. The header's `data` is the initiator's word for the
/// target.
///
/// Trust: read() bounds what it gives; whether it means anything is the device's to check.

#include "mpi_channel/device/regions.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace mpi_channel {

enum class RemoteKind : std::uint8_t { write, write_get, read, read_get, done, reply, granted };

struct RemotePacket {
    RemoteKind kind = RemoteKind::done;
    bool is_long = false;  ///< the bytes are bulk
    bool is_last = false;  ///< piece of its access
    RemoteStatus status = RemoteStatus::ok;
    // Of the initiator
    RemotePlace place;
    std::uint64_t at = 0;
    std::uint64_t size = 0;
    std::uint64_t source = 0;  ///< of write_get: where the bytes lie in the initiator's memory
    // Of the target
    std::uint64_t value = 0;

    [[nodiscard]] bool is_answer() const noexcept { return kind >= RemoteKind::done; }
};

inline constexpr std::size_t kMaxRemoteBytes = 52;

/// Into `to`, which has kMaxRemoteBytes; returns how many.
[[nodiscard]] std::size_t write(const RemotePacket& packet, std::byte* to) noexcept;

/// Nothing if it is no such packet. `bytes` becomes the part of the memory that the packet carries.
[[nodiscard]] std::optional<RemotePacket> read_remote(std::span<const std::byte>& bytes) noexcept;

}  // namespace mpi_channel
