// SPDX-License-Identifier: Apache-2.0
#include "rmem/link/ring/race_check.hpp"

#include "rmem/ring/config.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <new>

namespace rmem {

std::string to_string(const WriterRace& race) {
    return fmt::format(
        "rmem: concurrent writers: nodes {} and {} both wrote the word at {:#x}: node {} at {} ns, "
        "node {} "
        "{} ns later, before that write reached it at {} ns; their banks may differ now",
        race.other, race.node, race.offset, race.other, race.other_written_ns, race.node,
        race.written_ns - race.other_written_ns, race.other_arrived_ns);
}

void RaceChecker::Free::operator()(std::int64_t* times) const noexcept {
    std::free(times);
}

RaceChecker::RaceChecker(std::uint32_t node, std::size_t bank_bytes, Report report)
    : node_(node),
      words_(bank_bytes / kWordBytes),
      // calloc, because its pages cost nothing before they are written
      written_(static_cast<std::int64_t*>(std::calloc(words_, sizeof(std::int64_t)))),
      report_(std::move(report)) {
    if (!written_) throw std::bad_alloc();
}

void RaceChecker::wrote(std::uint64_t offset, std::uint32_t words, std::int64_t time_ns) noexcept {
    const std::uint64_t first = offset / kWordBytes;
    const std::uint64_t end = std::min<std::uint64_t>(first + words, words_);
    for (std::uint64_t word = first; word < end; ++word) written_[word] = time_ns;
}

unsigned RaceChecker::arrives(std::uint32_t origin, std::uint64_t offset, std::uint32_t words,
                              std::int64_t written_ns, std::int64_t arrival_ns) {
    unsigned races = 0;
    const std::uint64_t first = offset / kWordBytes;
    const std::uint64_t end = std::min<std::uint64_t>(first + words, words_);
    for (std::uint64_t word = first; word < end; ++word) {
        const std::int64_t own = written_[word];
        // Of two at the same time, the higher node counts as second.
        const bool later = own > written_ns || (own == written_ns && node_ > origin);
        if (!later || own >= arrival_ns) continue;
        ++races;
        const WriterRace race{word * kWordBytes, node_, origin, own, written_ns, arrival_ns};
        if (report_) {
            report_(race);
        } else {
            print(race);
        }
    }
    return races;
}

void RaceChecker::print(const WriterRace& race) {
    if (printed_ > kMaxLines) return;
    if (printed_++ == kMaxLines) {
        fmt::print(stderr, "rmem: node {}: further races are only counted (races_found)\n", node_);
        return;
    }
    fmt::print(stderr, "{}\n", to_string(race));
}

}  // namespace rmem
