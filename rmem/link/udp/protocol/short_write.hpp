// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A write of a word or two with its time, on its way into a stream that takes many in a row.

#include "rmem/link/udp/protocol/format.hpp"

#include <array>
#include <cstddef>
#include <cstdint>

namespace rmem::udp {

struct ShortWrite {
    static constexpr std::size_t kMostWords = 2;  ///< a word or a double

    std::int64_t written_ns = 0;
    Place place;  ///< of kMostWords words at most
    std::array<std::uint32_t, kMostWords> words{};
};
static_assert(sizeof(ShortWrite) == 32);

}  // namespace rmem::udp
