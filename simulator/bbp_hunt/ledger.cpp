// SPDX-License-Identifier: Apache-2.0
#include "simulator/bbp_hunt/ledger.hpp"

#include "billboard/bbp.h"
#include "rmem/base/check.hpp"
#include "rmem/base/random.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

namespace simulator::bbp {

Ledger::Ledger(const Scenario& scenario, Findings& findings, LinkChecker& link)
    : findings_(findings),
      link_(link),
      ranks_(Scenario::kRanks),
      pairs_(std::size_t{Scenario::kRanks} * Scenario::kRanks) {
    for (Pair& pair : pairs_) pair.entries.reserve(scenario.messages / 4);
}

// ---- Incarnations

void Ledger::starts(unsigned rank) {
    RankState& r = ranks_[rank];
    RMEM_CHECK(!r.alive);
    r.alive = true;
    ++r.incarnation;
    r.node_died.resize(r.incarnation + 1);
    if (r.node_died[r.incarnation - 1]) link_.forget_losses(rank);
    for (unsigned peer = 0; peer < Scenario::kRanks; ++peer) {
        pair(rank, peer).told = ranks_[peer].deaths;
        pair(rank, peer).met = 0;
        // A rank that has died may be found dead, or in its new incarnation already.
        pair(rank, peer).unsure = peer != rank && ranks_[peer].deaths != 0;
    }
}

void Ledger::dies(unsigned rank, bool with_node) {
    RankState& r = ranks_[rank];
    if (!r.alive) return;
    r.alive = false;
    ++r.deaths;
    r.node_died[r.incarnation] = with_node;
    for (unsigned to = 0; to < Scenario::kRanks; ++to) {
        for (Entry& entry : pair(rank, to).entries) {
            if (entry.incarnation == r.incarnation && entry.status == Status::open)
                entry.status = Status::perhaps;
        }
    }
}

// ---- Sending

void Ledger::fill(std::span<std::byte> bytes, unsigned rank, unsigned incarnation,
                  std::uint64_t number) {
    rmem::Random random(number << 16 ^ incarnation << 8 ^ rank);
    while (!bytes.empty()) {
        const std::uint64_t word = random.next();
        const std::size_t part = std::min(bytes.size(), sizeof word);
        std::memcpy(bytes.data(), &word, part);
        bytes = bytes.subspan(part);
    }
}

void Ledger::begins(unsigned rank, std::span<const int> dests, std::uint64_t number,
                    std::size_t bytes) {
    for (const int dest : dests) {
        const auto to = static_cast<unsigned>(dest);
        const Pair& p = pair(rank, to);
        RMEM_CHECK(p.entries.empty() || p.entries.back().number < number);
        const bool is_known = p.told == ranks_[to].deaths && ranks_[to].alive && !p.unsure;
        pair(rank, to).entries.push_back({number, bytes, ranks_[rank].incarnation,
                                          is_known ? ranks_[to].incarnation : 0, Status::open,
                                          false});
    }
}

void Ledger::ends(unsigned rank, std::span<const int> dests, std::uint64_t number, int code) {
    for (const int dest : dests) {
        const auto to = static_cast<unsigned>(dest);
        auto& entries = pair(rank, to).entries;
        const auto entry = std::find_if(entries.rbegin(), entries.rend(),
                                        [&](const Entry& e) { return e.number == number; });
        RMEM_CHECK(entry != entries.rend() && entry->status == Status::open);
        const bool still = entry->to_incarnation == ranks_[to].incarnation && ranks_[to].alive;
        entry->status = code == BBP_EPEER ? Status::perhaps
                        : code < 0        ? Status::not_sent
                        : still           ? Status::sent
                                          : Status::perhaps;
        if (entry->status == Status::not_sent && entry->received) {
            complain(rank, to,
                     fmt::format("message {} was received, though sending it failed with {}",
                                 number, code));
        }
    }
    if (code == BBP_OK) ++posted_;
}

// ---- Receiving

bool Ledger::matches(const Entry& entry, unsigned from, std::span<const std::byte> bytes) const {
    if (entry.bytes != bytes.size()) return false;
    rmem::Random random(entry.number << 16 ^ entry.incarnation << 8 ^ from);
    for (std::size_t at = 0; at < bytes.size(); at += sizeof(std::uint64_t)) {
        const std::uint64_t word = random.next();
        if (std::memcmp(bytes.data() + at, &word, std::min(bytes.size() - at, sizeof word)) != 0) {
            return false;
        }
    }
    return true;
}

void Ledger::receives(unsigned rank, unsigned from, bool by_name,
                      std::span<const std::byte> bytes) {
    Pair& p = pair(from, rank);
    ++findings_.messages;
    for (std::size_t i = p.next; i < p.entries.size(); ++i) {
        const Entry& entry = p.entries[i];
        if (entry.received || entry.status == Status::not_sent) continue;
        const bool is_former =
            entry.to_incarnation != 0 && entry.to_incarnation != ranks_[rank].incarnation;
        if (matches(entry, from, bytes)) {
            if (is_former) {
                complain(from, rank,
                         fmt::format("message {} was for a former incarnation", entry.number));
            }
            return note_received(i, from, rank, by_name);
        }
        if (!may_be_missing(entry, from, rank)) break;
    }
    complain(from, rank,
             fmt::format("a message of {} bytes was received that is not the next one; "
                         "that is number {}, of {} bytes",
                         bytes.size(), p.next < p.entries.size() ? p.entries[p.next].number : 0,
                         p.next < p.entries.size() ? p.entries[p.next].bytes : 0));
}

void Ledger::note_received(std::size_t place, unsigned from, unsigned rank, bool by_name) {
    Pair& p = pair(from, rank);
    Entry& entry = p.entries[place];
    if (entry.incarnation != ranks_[from].incarnation || !ranks_[from].alive)
        findings_.cover(CoverageMark::drained);
    entry.received = true;
    p.next = place + 1;
    Pair& back = pair(rank, from);
    back.met = std::max(back.met, entry.incarnation);
    // Of a former incarnation's end it would have been told before; of this one's perhaps not yet.
    const bool is_present = entry.incarnation == ranks_[from].incarnation && ranks_[from].alive;
    if (by_name && is_present) back.unsure = false;
}

bool Ledger::has_losses(unsigned from, unsigned to) const {
    return link_.has_lost(from) || link_.has_lost(to);
}

/// Passed over, or never received.
bool Ledger::may_be_missing(const Entry& entry, unsigned from, unsigned to) const {
    if (entry.status != Status::sent) return true;
    if (entry.to_incarnation != ranks_[to].incarnation || !ranks_[to].alive) return true;
    if (entry.incarnation == ranks_[from].incarnation && ranks_[from].alive) return false;
    // With a card goes what it had not sent yet, of processes that died before, too.
    const auto& died = ranks_[from].node_died;
    return std::find(died.begin() + static_cast<std::ptrdiff_t>(entry.incarnation), died.end(),
                     true) != died.end();
}

void Ledger::complain(unsigned from, unsigned to, std::string sentence) {
    if (has_losses(from, to)) return findings_.cover(CoverageMark::forgiven);
    findings_.violate(fmt::format("from rank {} to rank {}: {}", from, to, sentence));
}

void Ledger::is_told(unsigned rank, unsigned peer) {
    findings_.cover(CoverageMark::peer_error);
    Pair& p = pair(rank, peer);
    // It says so again while it does not know better.
    const bool knows = p.met == ranks_[peer].incarnation && ranks_[peer].alive;
    if (p.told >= ranks_[peer].deaths && knows && !p.unsure) {
        complain(peer, rank, "BBP_EPEER, though it has not died since the last one");
    }
    // It does not say of which death: certain only where one was left to be told, of an incarnation
    // that it knew, and no other ended during the call.
    const unsigned ended =
        ranks_[peer].alive ? ranks_[peer].incarnation - 1 : ranks_[peer].incarnation;
    const bool knew = p.met >= ended || (ended == 1 && ranks_[rank].incarnation == 1);
    const bool one_left = !p.unsure && p.deaths_before <= p.told + 1;
    p.told = p.deaths_before;
    p.unsure = !knew || !one_left || p.deaths_before != ranks_[peer].deaths;
}

void Ledger::is_told_of_some(unsigned rank, std::span<const int> dests) {
    findings_.cover(CoverageMark::peer_error);
    for (const int dest : dests) {
        const auto peer = static_cast<unsigned>(dest);
        if (ranks_[peer].deaths != 0) pair(rank, peer).unsure = true;
    }
}

void Ledger::calls(unsigned rank) {
    for (unsigned peer = 0; peer < Scenario::kRanks; ++peer) {
        pair(rank, peer).deaths_before = ranks_[peer].deaths;
    }
}

void Ledger::complain_of(unsigned rank, std::string sentence) {
    if (any_losses()) return findings_.cover(CoverageMark::forgiven);
    complain(rank, rank, std::move(sentence));
}

bool Ledger::any_losses() const {
    for (unsigned r = 0; r < Scenario::kRanks; ++r) {
        if (link_.has_lost(r)) return true;
    }
    return false;
}

bool Ledger::any_deaths() const {
    return std::any_of(ranks_.begin(), ranks_.end(),
                       [](const RankState& r) { return r.deaths != 0; });
}

bool Ledger::is_settled() const {
    for (unsigned from = 0; from < Scenario::kRanks; ++from) {
        for (unsigned to = 0; to < Scenario::kRanks; ++to) {
            if (has_losses(from, to)) continue;
            const Pair& p = pair(from, to);
            for (std::size_t i = p.next; i < p.entries.size(); ++i) {
                const Entry& entry = p.entries[i];
                if (!entry.received && !may_be_missing(entry, from, to)) return false;
            }
        }
    }
    return true;
}

void Ledger::check_settled() {
    for (unsigned from = 0; from < Scenario::kRanks; ++from) {
        for (unsigned to = 0; to < Scenario::kRanks; ++to) {
            const Pair& p = pair(from, to);
            for (std::size_t i = p.next; i < p.entries.size(); ++i) {
                const Entry& entry = p.entries[i];
                if (entry.received || may_be_missing(entry, from, to)) continue;
                complain(from, to,
                         fmt::format("message {} of {} bytes was sent, and never received",
                                     entry.number, entry.bytes));
                break;
            }
        }
    }
}

}  // namespace simulator::bbp
