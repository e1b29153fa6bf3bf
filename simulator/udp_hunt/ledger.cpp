// SPDX-License-Identifier: Apache-2.0
#include "simulator/udp_hunt/ledger.hpp"

#include "rmem/base/check.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace simulator::udp {

Ledger::Ledger(unsigned nodes, std::size_t bank_words, Findings& findings)
    : findings_(findings),
      written_(1),
      current_(nodes, Position::kNone),
      last_(bank_words),
      readers_(nodes) {}

std::uint32_t Ledger::next_value(unsigned node, std::uint64_t incarnation, std::uint64_t place) {
    std::uint32_t& current = current_[node];
    if (current == Position::kNone || incarnations_[current].incarnation != incarnation) {
        RMEM_CHECK(current == Position::kNone || incarnations_[current].incarnation < incarnation);
        current = static_cast<std::uint32_t>(incarnations_.size());
        incarnations_.push_back({node, incarnation, 0});
    }
    const auto value = static_cast<std::uint32_t>(written_.size());
    written_.push_back({current, incarnations_[current].words++, place});
    last_[place] = value;
    return value;
}

void Ledger::applies(unsigned reader, std::uint64_t reader_incarnation, unsigned origin,
                     const rmem::udp::Batch& batch) {
    Reader& state = readers_[reader];
    if (state.incarnation != reader_incarnation || state.of.empty()) {
        state.incarnation = reader_incarnation;
        state.of.assign(readers_.size(), Position());
    }
    ++findings_.messages;
    for (const rmem::udp::Record& record : batch.records()) {
        for (std::size_t i = 0; i < record.place.words; ++i) {
            applies_word(reader, origin, record.place.index + i, record.words[i]);
        }
    }
}

void Ledger::applies_word(unsigned reader, unsigned origin, std::uint64_t place,
                          std::uint32_t value) {
    const auto complain = [&](const char* what) {
        findings_.violate(fmt::format("node {} applied a word of node {} at {} (value {}) that {}",
                                      reader, origin, place, value, what));
    };
    if (value == 0 || value >= written_.size()) return complain("nobody has written");
    const Written& written = written_[value];
    if (incarnations_[written.incarnation].node != origin || written.place != place) {
        return complain("was written by another node, or elsewhere");
    }
    Position& position = readers_[reader].of[origin];
    if (position.incarnation != written.incarnation) {
        if (position.incarnation != Position::kNone && written.incarnation < position.incarnation) {
            return complain("is a former incarnation's, after a newer one's");
        }
        position = {written.incarnation, written.index};
    }
    if (written.index < position.next) complain("it has applied before");
    if (written.index > position.next) complain("is not the next one");
    position.next = written.index + 1;
}

void Ledger::check_quiet(const std::vector<std::span<const std::uint32_t>>& banks,
                         bool nothing_ended) {
    RMEM_CHECK(banks.size() == readers_.size());
    for (std::size_t node = 0; node < banks.size(); ++node) {
        for (std::size_t word = 0; word < last_.size(); ++word) {
            const std::uint32_t value = banks[node][word];
            if (value != banks[0][word]) {
                return findings_.violate(
                    fmt::format("at quiet, word {} is {} at node {} and {} at node 0", word, value,
                                node, banks[0][word]));
            }
            const bool is_written =
                value == 0 || (value < written_.size() && written_[value].place == word);
            if (!is_written || (nothing_ended && value != last_[word])) {
                return findings_.violate(fmt::format(
                    "at quiet, word {} is {} at node {}, {} {}", word, value, node,
                    is_written ? "the last written was" : "which nobody wrote there; the last was",
                    last_[word]));
            }
        }
    }
}

}  // namespace simulator::udp
