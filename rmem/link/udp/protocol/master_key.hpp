// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The key that all nodes of a ring share.
///
/// Thread safety: a key may be read by any thread.
/// Errors: `Error(system)` where libsodium does not start.

#include "rmem/error.hpp"

#include <cstddef>
#include <memory>
#include <span>

namespace rmem::udp {

/// Before the first use of libsodium. Throws.
void need_sodium();

/// 32 secret bytes, in memory of their own that is read-only, kept from swap and core dumps as far
/// as the host allows, and overwritten at the end.
class RMEM_API MasterKey {
public:
    static constexpr std::size_t kBytes = 32;

    /// Copies; overwriting the source is the caller's.
    explicit MasterKey(std::span<const std::byte, kBytes> bytes);

    std::span<const std::byte, kBytes> bytes() const noexcept {
        return std::span<const std::byte, kBytes>(bytes_.get(), kBytes);
    }

private:
    struct Free {
        void operator()(std::byte* bytes) const noexcept;
    };
    std::unique_ptr<std::byte[], Free> bytes_;
};

}  // namespace rmem::udp
