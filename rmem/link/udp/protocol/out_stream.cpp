// SPDX-License-Identifier: Apache-2.0
#include "rmem/link/udp/protocol/out_stream.hpp"

#include "rmem/base/check.hpp"

#include <algorithm>
#include <new>

namespace rmem::udp {

OutStream::OutStream(std::uint32_t most_batches, std::size_t most_bytes, std::uint64_t first)
    : history_(most_batches, most_bytes, kMaxWindowBytes),
      again_(history_.places()),
      newest_(first - 1),
      least_(first - 1) {}

// ---- Receivers

std::uint64_t OutStream::admit(unsigned node) noexcept {
    receivers_.insert(node);
    acked_[node] = newest_;
    update_least();
    return newest_ + 1;
}

bool OutStream::drop(unsigned node) noexcept {
    receivers_.erase(node);
    return update_least();
}

/// The batch is under way, or no more.
void OutStream::count(std::uint64_t sequence, bool is_added) noexcept {
    const std::size_t bytes = history_.bytes(sequence);
    const std::size_t charged = bytes_charged(bytes + kEnvelopeBytes);
    bytes_ = is_added ? bytes_ + bytes : bytes_ - bytes;
    charged_ = is_added ? charged_ + charged : charged_ - charged;
}

/// Looks for what all have by now.
bool OutStream::update_least() noexcept {
    std::uint64_t least = newest_;
    receivers_.for_each([&](unsigned node) { least = std::min(least, acked_[node]); });
    RMEM_CHECK(least >= least_ && newest_ - least <= history_.places());
    const bool has_grown = least > least_;
    while (least_ != least) count(++least_, false);
    if (is_idle()) probe_due_ns_ = kNever;
    return has_grown;
}

// ---- Sending

void OutStream::add(std::span<const std::byte> body, std::int64_t now) {
    RMEM_CHECK(newest_ - least_ < history_.places());
    if (!history_.put(newest_ + 1, body)) throw std::bad_alloc();  // what is lost must be here
    ++newest_;
    again(newest_) = {};
    if (receivers_.empty()) {
        least_ = newest_;
        return;
    }
    count(newest_, true);
    probes_ = 0;
    schedule_probe(now);
}

std::span<const std::byte> OutStream::body(std::uint64_t sequence) const noexcept {
    if (sequence <= least_ || sequence > newest_) return {};
    return history_.find(sequence);
}

void OutStream::schedule_probe(std::int64_t now) noexcept {
    const unsigned crowds = std::max(receivers_.size() / kProbedAtOnce, 1U);
    probe_due_ns_ = now + doubled(times_.probe_ns(), probes_) * crowds;
}

// ---- What receivers say

bool OutStream::on_ack(unsigned node, std::uint64_t up_to, std::int64_t now) noexcept {
    if (!receivers_.contains(node) || up_to > newest_ || up_to <= acked_[node]) return false;
    const bool was_slowest = acked_[node] == least_;
    acked_[node] = up_to;
    if (!was_slowest) return false;
    const bool has_grown = update_least();
    if (has_grown && !is_idle()) {
        probes_ = 0;
        schedule_probe(now);
    }
    return has_grown;
}

void OutStream::on_nak(std::uint64_t first, std::uint64_t count, std::int64_t now) noexcept {
    first = std::max(first, least_ + 1);
    if (first > newest_) return;
    const std::uint64_t end = first + std::min(count, newest_ + 1 - first);
    for (std::uint64_t n = first; n < end; ++n) {
        Again& entry = again(n);
        const bool is_on_its_way =
            entry.sent_ns != INT64_MIN && now - entry.sent_ns < times_.answer_once_ns();
        if (is_on_its_way || entry.wanted) continue;
        entry.wanted = true;
        if (wanted_first_ == wanted_end_) wanted_first_ = wanted_end_ = n;
        wanted_first_ = std::min(wanted_first_, n);
        wanted_end_ = std::max(wanted_end_, n + 1);
    }
}

// ---- Sending again

std::optional<std::uint64_t> OutStream::next_retransmission(std::int64_t now) noexcept {
    // What all have by now needs no sending; its places may be another batch's.
    wanted_first_ = std::min(std::max(wanted_first_, least_ + 1), wanted_end_);
    while (wanted_first_ != wanted_end_) {
        const std::uint64_t sequence = wanted_first_++;
        Again& entry = again(sequence);
        if (!entry.wanted) continue;
        entry = {now, false};
        RMEM_CHECK(sequence > least_ && sequence <= newest_ && history_.contains(sequence));
        return sequence;
    }
    return std::nullopt;
}

std::optional<std::uint64_t> OutStream::probe(std::int64_t now) noexcept {
    if (now < probe_due_ns_) return std::nullopt;
    ++probes_;
    schedule_probe(now);
    again(newest_).sent_ns = now;
    return newest_;
}

}  // namespace rmem::udp
