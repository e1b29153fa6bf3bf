// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Who has written a place of a ring's memory, by the logs that its ranks write anyway.
///
/// A log holds the last megabyte of a rank's writes, or less just after it has wrapped; on `direct`
/// there are none, and on link udp this host's programs alone have some.
/// Thread safety: functions of their arguments; nobody is disturbed. Trust: what logs hold is
/// bounded, and is a hint: each program that has the memory could have written it.

#include "rmem/ring/ring.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace tools {

struct WriteOf {
    std::int64_t written_ns = 0;  ///< rmem/base/clock.hpp
    bool is_later = false;        ///< then or later: its writer had not looked at the clock
    unsigned rank = 0, node = 0;  ///< of a guest its seat
    std::uint32_t pid = 0;        ///< that is this rank now; 0: none is
    std::uint64_t offset = 0;
    std::vector<std::byte> bytes;  ///< empty: not kept, or overwritten meanwhile
};

/// The last `most` writes that meet [begin, end), the oldest first.
[[nodiscard]] std::vector<WriteOf> last_writes(const rmem::Ring& ring, std::uint64_t begin,
                                               std::uint64_t end, std::size_t most);

/// "1234 (simulator)"; empty: there is none.
std::string process_text(std::uint32_t pid);

}  // namespace tools
