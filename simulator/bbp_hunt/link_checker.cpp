// SPDX-License-Identifier: Apache-2.0
#include "simulator/bbp_hunt/link_checker.hpp"

#include "rmem/base/check.hpp"
#include "rmem/base/hash.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace simulator::bbp {

using rmem::kWordBytes;
using rmem::sim::Event;
using rmem::sim::EventKind;

namespace {

std::uint64_t sum_of(std::span<const std::byte> bytes) {
    std::uint64_t sum = bytes.size();
    for (std::size_t at = 0; at + kWordBytes <= bytes.size(); at += kWordBytes) {
        std::uint32_t word;
        std::memcpy(&word, bytes.data() + at, sizeof word);
        sum = rmem::golden_mix(sum, word);
        sum ^= sum >> 32;
    }
    return sum;
}

std::string write_text(const Event& e) {
    return fmt::format("write {} of node {} ({} bytes at {:#x})", e.number, e.origin, e.bytes,
                       e.offset);
}

}  // namespace

LinkChecker::LinkChecker(rmem::sim::World& world, Findings& findings)
    : world_(world),
      findings_(findings),
      nodes_(world.nodes()),
      writer_(world.ring().bank_bytes() / kWordBytes),
      value_(writer_.size()),
      unequal_(writer_.size()),
      late_(world.nodes()) {
    for (NodeState& node : nodes_) node.last.resize(world.nodes());
}

void LinkChecker::on_event(const Event& e) {
    ++findings_.events;
    switch (e.kind) {
        case EventKind::stored: return on_stored(e);
        case EventKind::arrived: return on_arrived(e);
        case EventKind::lost: return on_lost(e);
        case EventKind::returned: return on_returned(e);
        case EventKind::repeated: return findings_.met(FaultKind::duplicate);
        case EventKind::delayed: return findings_.met(FaultKind::delay);
        case EventKind::late: return findings_.cover(CoverageMark::bound_broken);
        case EventKind::node_failed: nodes_[e.node].joining = true; return;
        case EventKind::node_joined:
            nodes_[e.node].joining = false;
            // It has now what its neighbour had; it will not get the writes that it missed.
            for (unsigned o = 0; o < world_.nodes(); ++o) nodes_[e.node].last[o] = 0;
            return except_composed(e.node);
        default: return;
    }
}

void LinkChecker::on_stored(const Event& e) {
    RMEM_CHECK(e.offset % kWordBytes == 0 && e.data.size() == e.bytes);
    NodeState& node = nodes_[e.node];
    if (e.number != node.first + node.stored.size()) {
        findings_.violate(fmt::format("{} is not the next one of its node", write_text(e)));
    }
    node.stored.push_back({e.offset, e.bytes, sum_of(e.data), false});
    for (std::uint64_t at = e.offset; at < e.offset + e.bytes; at += kWordBytes) {
        std::uint8_t& writer = writer_[at / kWordBytes];
        if (writer == 0) writer = static_cast<std::uint8_t>(e.rank + 1);
        if (writer != e.rank + 1) {
            findings_.violate(fmt::format("the word at {:#x} has two writers: ranks {} and {}", at,
                                          writer - 1, e.rank));
        }
        std::memcpy(&value_[at / kWordBytes], e.data.data() + (at - e.offset), kWordBytes);
        unequal_[at / kWordBytes] = 0;
    }
}

LinkChecker::Stored* LinkChecker::find(unsigned origin, std::uint64_t number) {
    NodeState& from = nodes_[origin];
    const std::uint64_t place = number - from.first;
    return number >= from.first && place < from.stored.size() ? &from.stored[place] : nullptr;
}

void LinkChecker::on_arrived(const Event& e) {
    NodeState& node = nodes_[e.node];
    std::uint64_t& last = node.last[e.origin];
    if (e.time_ns < e.stored_ns) {
        findings_.violate(
            fmt::format("{} arrived at node {} before it was stored", write_text(e), e.node));
    }
    if (last != 0 && e.number <= last) {
        findings_.violate(
            fmt::format("{} arrived at node {} after write {}", write_text(e), e.node, last));
    }
    const Stored* stored = find(e.origin, e.number);
    if (stored != nullptr && stored->sum != sum_of(e.data)) {
        findings_.violate(
            fmt::format("{} arrived at node {} with other bytes", write_text(e), e.node));
    }
    if (last != 0 && !node.joining) check_missing(e, last + 1);
    last = std::max(last, e.number);
    if (e.stored_ns < node.newest_stored_ns) findings_.cover(CoverageMark::overtaken);
    node.newest_stored_ns = std::max(node.newest_stored_ns, e.stored_ns);
    if (world_.bound_ns() != 0 && e.time_ns - e.stored_ns > world_.bound_ns()) ++late_[e.node];
}

/// Earlier ones must have come, or be known as lost.
void LinkChecker::check_missing(const Event& e, std::uint64_t from) {
    for (; from < e.number; ++from) {
        const Stored* missing = find(e.origin, from);
        if (missing == nullptr || missing->lost) continue;
        findings_.violate(
            fmt::format("{} arrived at node {}, but write {} did not, and nothing said "
                        "that it was lost",
                        write_text(e), e.node, from));
    }
}

void LinkChecker::on_lost(const Event& e) {
    if (Stored* stored = find(e.origin, e.number)) stored->lost = true;
    ++nodes_[e.origin].lost;
    for (std::uint64_t at = e.offset; at < e.offset + e.bytes; at += kWordBytes) {
        unequal_[at / kWordBytes] = 1;
    }
}

void LinkChecker::on_returned(const Event& e) {
    NodeState& from = nodes_[e.origin];
    while (!from.stored.empty() && from.first <= e.number) {
        from.stored.pop_front();
        ++from.first;
    }
}

/// The memory that a joining node takes over holds its owner's messages under composition, too.
void LinkChecker::except_composed(unsigned n) {
    for (std::size_t i = 0; i < value_.size(); ++i) {
        const std::uint32_t word = world_.word(n, i * kWordBytes);
        if (writer_[i] == 0 || word == value_[i]) continue;
        if (word == world_.word(world_.node_of(writer_[i] - 1U), i * kWordBytes)) unequal_[i] = 1;
    }
}

/// Every live bank but the writer's own, in which messages may be under composition.
void LinkChecker::check_bank(unsigned n) {
    for (std::size_t i = 0; i < value_.size(); ++i) {
        const bool is_own = writer_[i] == 0 || world_.node_of(writer_[i] - 1U) == n;
        if (is_own || unequal_[i] != 0 || world_.word(n, i * kWordBytes) == value_[i]) continue;
        findings_.violate(fmt::format(
            "all is quiet, but the word at {:#x}, last set to {:#x} by rank {}, is {:#x} in node "
            "{}",
            i * kWordBytes, value_[i], writer_[i] - 1, world_.word(n, i * kWordBytes), n));
        return;
    }
}

void LinkChecker::check_quiet() {
    for (unsigned n = 0; n < world_.nodes(); ++n) {
        if (world_.is_node_alive(n) && !nodes_[n].joining) check_bank(n);
        const std::uint64_t counted = world_.counter(n, rmem::LinkCounter::bound_violations);
        if (counted == late_[n]) continue;
        findings_.violate(fmt::format("node {} counted {} writes beyond the bound; there were {}",
                                      n, counted, late_[n]));
    }
}

}  // namespace simulator::bbp
