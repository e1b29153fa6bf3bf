// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The map of a ring's memory, as text that rmem does not read: maps/ring_map.hpp does. A ring has
/// none, or one for as long as it is there; each segment of a ring over several hosts has its own.
///
/// Invariants, executed: a text is as large as its room at most.
/// Thread safety: any process. One that is killed while it puts a map there has put none.
/// Trust: others may have written it; it is copied, and bounded.
/// Errors: `rmem::Error`: no_space, timed_out.

#include "rmem/error.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace rmem {

class Ring;

inline constexpr std::size_t kMaxMapBytes = std::size_t{16} << 20;

/// By the hash that it was put there with; 0: there is none.
[[nodiscard]] RMEM_API std::uint64_t map_hash(const Ring& ring) noexcept;
/// Empty: there is none, or it has no room.
[[nodiscard]] RMEM_API std::string map_text(const Ring& ring);
/// `hash`: not 0. False: the ring has one.
[[nodiscard]] RMEM_API bool put_map(const Ring& ring, std::uint64_t hash, std::string_view text);

}  // namespace rmem
