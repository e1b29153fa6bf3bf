// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Batches that can be told apart, for tests of streams.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

namespace rmem::udp {

inline constexpr std::size_t kMaxBytes = 64;

inline std::vector<std::byte> body_of(std::uint64_t sequence) {
    std::vector<std::byte> body(8 + sequence % 50);
    std::memcpy(body.data(), &sequence, sizeof sequence);
    return body;
}

}  // namespace rmem::udp
