// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The growth of processes: their memory, their descriptors, and their ring's files in /dev/shm.
///
///     Growth growth("my-ring");
///     …each second: growth.sample({{pid, "rank 0"}, …});
///     for (const std::string& line : growth.complaints()) …
///
/// Of each process the first quarter of its samples is its warm-up. Growth is what the least of the
/// last quarter is above the most of the second, so a value that goes up and down does not count.
/// A link's histories take their pages as they are first written to: a run of less than kFilled
/// samples may not have filled them, and may grow by as much as they hold.
/// A process that has fewer than kFewest samples, because it has not lived for long, is not judged.
/// Thread safety: one thread. Errors: none; a process that is gone gives no sample.

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace rmem::test {

class Growth {
public:
    static constexpr std::size_t kFewest = 8;
    static constexpr std::size_t kFilled = 60;
    /// Allocators take pages now and then.
    static constexpr std::uint64_t kAllowedBytes = 256 * 1024;
    static constexpr std::uint64_t kHistoryBytes = 4 * 1024 * 1024;  ///< of udp, two nodes'

    explicit Growth(std::string ring) : ring_(std::move(ring)) {}

    void sample(const std::map<pid_t, std::string>& processes);

    /// The growths, a sentence each.
    std::vector<std::string> complaints() const;
    /// The measurements, a line each.
    std::vector<std::string> summary() const;

private:
    using Series = std::vector<std::uint64_t>;
    struct Process {
        std::string name;
        Series memory, descriptors;
    };
    /// The most of the second quarter, and the least of the last.
    struct Quarters {
        std::uint64_t before = 0, after = 0;
        bool judged = false;
    };
    static Quarters quarters(const Series& series);

    std::string ring_;
    std::map<pid_t, Process> processes_;
    Series shared_memory_;
};

}  // namespace rmem::test
