// SPDX-License-Identifier: Apache-2.0
#include "rmem/link/ring/race_check.hpp"

#include "rmem/ring/config.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <new>

namespace rmem {

std::string to_string(const WriterRace& race) {
    const auto first = static_cast<unsigned>(std::countr_zero(race.part));
    const auto last = static_cast<unsigned>(std::bit_width(race.part)) - 1;
    const char* what = "the word at";
    if (race.part != kWholeWord) what = first == last ? "the byte at" : "bytes of the word at";
    return fmt::format(
        "rmem: concurrent writers: nodes {} and {} both wrote {} {:#x}: node {} at {} ns, "
        "node {} "
        "{} ns later, before that write reached it at {} ns; their banks may differ now",
        race.other, race.node, what, race.offset + (first == last ? first : 0), race.other,
        race.other_written_ns, race.node, race.written_ns - race.other_written_ns,
        race.other_arrived_ns);
}

void RaceChecker::Free::operator()(Written* written) const noexcept {
    std::free(written);
}

RaceChecker::RaceChecker(std::uint32_t node, std::size_t bank_bytes, Report report)
    : node_(node),
      words_(bank_bytes / kWordBytes),
      // calloc, because its pages cost nothing before they are written
      written_(static_cast<Written*>(std::calloc(words_, sizeof(Written)))),
      report_(std::move(report)) {
    if (!written_) throw std::bad_alloc();
}

void RaceChecker::wrote(std::uint64_t offset, std::uint32_t words, std::int64_t time_ns,
                        WordPart part) noexcept {
    const std::uint64_t first = offset / kWordBytes;
    const std::uint64_t end = std::min<std::uint64_t>(first + words, words_);
    for (std::uint64_t word = first; word < end; ++word)
        written_[word] = {time_ns * Written::kParts + part};
}

unsigned RaceChecker::arrives(std::uint32_t origin, std::uint64_t offset, std::uint32_t words,
                              std::int64_t written_ns, std::int64_t arrival_ns, WordPart part) {
    unsigned races = 0;
    const std::uint64_t first = offset / kWordBytes;
    const std::uint64_t end = std::min<std::uint64_t>(first + words, words_);
    for (std::uint64_t word = first; word < end; ++word) {
        const std::int64_t own = written_[word].time_ns();
        const auto both = static_cast<WordPart>(written_[word].part() & part);
        // Of two at the same time, the higher node counts as second.
        const bool later = own > written_ns || (own == written_ns && node_ > origin);
        if (both == 0 || !later || own >= arrival_ns) continue;
        ++races;
        const WriterRace race{word * kWordBytes, node_, origin, own, written_ns, arrival_ns, both};
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
