// SPDX-License-Identifier: Apache-2.0
// The wire model's TX FIFOs: which writes get in and when, how full they are, which are lost with a
// failing card.
#include "rmem/wire/state.hpp"

#include <algorithm>

namespace rmem {

/// Its writes enter in order. Whether one fits, if that is not sure, is known when it gets there.
void WireModel::State::enter(std::uint16_t id, std::uint64_t number) {
    Node& node = nodes_[id];
    Record& record = node.records[number];
    record.entry = std::max(record.stored + record.held_back, node.last_entry);
    node.last_entry = record.entry;
    if (number < node.unadmitted) return;
    push(profile_.instant != 0 ? WireEventKind::instant : WireEventKind::entry, record.entry, id);
}

void WireModel::State::admit(Node& node, Record& record) {
    node.admitted_words += record.words;
    record.end_word = node.admitted_words;
    ++node.unadmitted;
}

void WireModel::State::on_entry(std::uint16_t id) {
    Node& node = nodes_[id];
    Record& record = node.records[node.unadmitted];
    const std::uint64_t waiting =
        node.admitted_words - node.started_words + unstarted_of_packet(node);
    const bool full = waiting + record.words > profile_.fifo_words;
    if (full && profile_.overflow == FifoPolicy::lose) {
        refuse(node, node.unadmitted, WireLoss::fifo_full);
    } else if (full) {
        ++node.counters.held_off;
    }
    admit(node, record);
    arm(id);
    drop_finished(node);
}

/// It gets a place in the stream of words, but none of them.
void WireModel::State::refuse(Node& node, std::uint64_t number, WireLoss cause) {
    Record& record = node.records[number];
    lose(node, number, static_cast<std::uint16_t>(&node - nodes_.data()), cause);
    node.submitted_words -= record.words;
    record.words = 0;
}

// Words of the packet under way that have not reached the wire are still in the FIFO.
std::uint64_t WireModel::State::unstarted_of_packet(const Node& node) const noexcept {
    if (now_ >= node.own_end || node.own_words < 2) return 0;
    const std::uint64_t elapsed = now_ - node.own_start;
    const auto end = tail_.begin() + node.own_words;
    return static_cast<std::uint64_t>(end - std::upper_bound(tail_.begin() + 1, end, elapsed));
}

// The mark is exact because the FIFO only fills between two insertions.
void WireModel::State::note_entered(Node& node) {
    node.entered_record = std::max(node.entered_record, node.next_record);
    while (node.entered_record < node.unadmitted &&
           node.records[node.entered_record].entry <= now_) {
        const Record& record = node.records[node.entered_record++];
        std::uint64_t words = record.end_word - node.started_words;
        if (profile_.fifo_words != 0) {
            words = std::min<std::uint64_t>(words, profile_.fifo_words);
        }
        node.counters.max_fifo_words = std::max(node.counters.max_fifo_words, words);
    }
}

void WireModel::State::skip_lost(Node& node) {
    while (node.next_record < node.unadmitted && node.records[node.next_record].words == 0) {
        ++node.next_record;
    }
}

bool WireModel::State::sendable(const Node& node) const noexcept {
    return node.next_record < node.unadmitted &&
           node.records[node.next_record].entry + profile_.insertion_ps <= now_;
}

// A bypassed node's queue is gone, with the writes that faults delay in the card; a write that is
// half on the wire is lost as a whole.
void WireModel::State::drop_queue(std::uint16_t id) {
    Node& node = nodes_[id];
    if (node.armed || node.unadmitted != node.records.end()) cancel_turns(id);
    while (node.next_record != node.records.end()) {
        Record& record = node.records[node.next_record];
        if (record.stored > now_) break;
        if (node.next_record == node.unadmitted) {
            refuse(node, node.next_record, WireLoss::dead_node);
            admit(node, record);
        } else if (record.words != 0) {
            lose(node, node.next_record, id, WireLoss::dead_node);
        }
        node.started_words = record.end_word;
        ++node.next_record;
    }
    node.last_entry = std::min(node.last_entry, now_);
    for (std::uint64_t n = node.next_record; n != node.records.end(); ++n) enter(id, n);
    drop_finished(node);
    arm(id);
}

/// Writes that wait at this node, for the FIFO or for the wire, do so no more.
void WireModel::State::cancel_turns(std::uint16_t id) {
    nodes_[id].armed = false;
    queue_.extract([id](const WireEvent& event) {
        return event.node == id &&
               (event.kind() == WireEventKind::insertion || event.kind() == WireEventKind::entry ||
                event.kind() == WireEventKind::instant);
    });
}

std::uint32_t WireModel::State::occupancy(const Node& node) const noexcept {
    std::uint64_t words = unstarted_of_packet(node);
    const bool all_entered =
        node.next_record < node.records.end() && node.records[node.records.end() - 1].entry <= now_;
    if (all_entered) {  // the usual case, without looking at each
        words += node.submitted_words - node.started_words;
        return static_cast<std::uint32_t>(
            profile_.fifo_words != 0 ? std::min<std::uint64_t>(words, profile_.fifo_words) : words);
    }
    for (std::uint64_t n = node.next_record; n < node.records.end(); ++n) {
        const Record& record = node.records[n];
        if (record.entry > now_) break;
        words += n == node.next_record && n < node.unadmitted ? record.end_word - node.started_words
                                                              : record.words;
        if (profile_.fifo_words != 0 && words >= profile_.fifo_words) return profile_.fifo_words;
    }
    return static_cast<std::uint32_t>(words);
}

/// When the next word of the packet under way leaves the FIFO.
std::int64_t WireModel::State::next_word_ns(const Node& node) const noexcept {
    const std::uint64_t unstarted = unstarted_of_packet(node);
    return unstarted == 0 ? kNever : to_ns(node.own_start + tail_[node.own_words - unstarted]);
}

std::int64_t WireModel::State::room_at(const Node& node, std::uint32_t words) const noexcept {
    const std::uint64_t depth = profile_.fifo_words;
    const std::uint64_t wanted = std::min<std::uint64_t>(words, depth);
    const std::uint64_t taken =
        node.submitted_words - node.started_words + unstarted_of_packet(node);
    if (depth == 0 || taken + wanted <= depth) return now_ns();
    // Words make room as they start; others' packets can only make it later.
    const std::uint64_t wait_for = taken + wanted - depth;
    const std::uint64_t unstarted = unstarted_of_packet(node);
    if (wait_for <= unstarted) {
        return to_ns(node.own_start + tail_[node.own_words - unstarted + wait_for - 1]);
    }
    const std::uint64_t limit = tail_.size() - 1;
    const std::uint64_t packets = (wait_for - unstarted + limit - 1) / limit;
    const std::uint64_t start = std::max({now_, node.pace, own_turn(node), free_at(node)});
    return to_ns(start + (packets - 1) * (tail_[1] + gap_));
}

}  // namespace rmem
