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

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/types.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <system_error>
#include <vector>

namespace rmem::test {

/// Bytes of its own pages; 0: it is gone. Those of shared memory count where it is touched first,
/// which may be late.
inline std::uint64_t memory_of(pid_t pid) {
    std::ifstream status(fmt::format("/proc/{}/status", pid));
    for (std::string word; status >> word;) {
        std::uint64_t kilobytes = 0;
        if (word == "RssAnon:" && status >> kilobytes) return kilobytes * 1024;
    }
    return 0;
}

inline std::uint64_t descriptors_of(pid_t pid) {
    std::error_code gone;
    const std::filesystem::directory_iterator open(fmt::format("/proc/{}/fd", pid), gone);
    return static_cast<std::uint64_t>(std::distance(begin(open), end(open)));
}

/// Bytes that the ring's files have in /dev/shm.
inline std::uint64_t shared_memory_of(const std::string& ring) {
    std::uint64_t bytes = 0;
    std::error_code gone;
    for (const auto& entry : std::filesystem::directory_iterator("/dev/shm", gone)) {
        if (entry.path().filename().string().find(ring) == std::string::npos) continue;
        struct stat facts {};
        if (::stat(entry.path().c_str(), &facts) == 0) {
            bytes += static_cast<std::uint64_t>(facts.st_blocks) * 512;
        }
    }
    return bytes;
}

class Growth {
public:
    static constexpr std::size_t kFewest = 8;
    static constexpr std::size_t kFilled = 60;
    /// Allocators take pages now and then.
    static constexpr std::uint64_t kAllowedBytes = 256 * 1024;
    static constexpr std::uint64_t kHistoryBytes = 4 * 1024 * 1024;  ///< of udp, two nodes'

    explicit Growth(std::string ring) : ring_(std::move(ring)) {}

    void sample(const std::map<pid_t, std::string>& processes) {
        for (const auto& [pid, name] : processes) {
            const std::uint64_t memory = memory_of(pid);
            if (memory == 0) continue;
            Process& process = processes_[pid];
            process.name = fmt::format("{} (process {})", name, pid);
            process.memory.push_back(memory);
            process.descriptors.push_back(descriptors_of(pid));
        }
        shared_memory_.push_back(shared_memory_of(ring_));
    }

    /// The growths, a sentence each.
    std::vector<std::string> complaints() const {
        std::vector<std::string> found;
        const auto judge = [&](const std::string& whose, const char* what, const Series& series,
                               std::uint64_t allowed) {
            const Quarters q = quarters(series);
            if (!q.judged || q.after <= q.before + allowed) return;
            found.push_back(
                fmt::format("{}: {} grew from {} to {}", whose, what, q.before, q.after));
        };
        for (const auto& [pid, process] : processes_) {
            const bool is_filled = process.memory.size() >= kFilled;
            judge(process.name, "bytes of memory", process.memory,
                  is_filled ? kAllowedBytes : kHistoryBytes);
            judge(process.name, "open descriptors", process.descriptors, 0);
        }
        judge("ring " + ring_, "bytes in /dev/shm", shared_memory_, 0);
        return found;
    }

    /// The measurements, a line each.
    std::vector<std::string> summary() const {
        std::vector<std::string> lines;
        for (const auto& [pid, process] : processes_) {
            const Quarters memory = quarters(process.memory);
            const Quarters descriptors = quarters(process.descriptors);
            if (!memory.judged) continue;
            lines.push_back(
                fmt::format("{}: {} samples, memory {} KiB, later {} KiB, descriptors {}, later {}",
                            process.name, process.memory.size(), memory.before / 1024,
                            memory.after / 1024, descriptors.before, descriptors.after));
        }
        const Quarters q = quarters(shared_memory_);
        if (q.judged) {
            lines.push_back(
                fmt::format("/dev/shm: {} KiB, later {} KiB", q.before / 1024, q.after / 1024));
        }
        return lines;
    }

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

    static Quarters quarters(const Series& series) {
        if (series.size() < kFewest) return {};
        const auto at = [&](std::size_t quarter) {
            return series.begin() + static_cast<std::ptrdiff_t>(series.size() * quarter / 4);
        };
        return {*std::max_element(at(1), at(2)), *std::min_element(at(3), series.end()), true};
    }

    std::string ring_;
    std::map<pid_t, Process> processes_;
    Series shared_memory_;
};

}  // namespace rmem::test
