// SPDX-License-Identifier: Apache-2.0
#include "rmem/link/ring/engine_instant.hpp"

#include "rmem/base/check.hpp"

#include <algorithm>

namespace rmem {

std::int64_t EngineInstant::pass() {
    std::vector<unsigned>& news = logs_.news();
    if (news.empty()) return kNever;
    for (const unsigned r : news) members_.meet(r);
    // Own writes first: the checker must know of them.
    std::partition(news.begin(), news.end(), [&](unsigned r) { return members_.is_of_node(r); });
    std::int64_t next = kNever;
    for (const unsigned r : news) next = std::min(next, pass(r));
    return next;
}

std::int64_t EngineInstant::pass(unsigned rank) {
    const std::int64_t now = own_.time.now();
    const bool is_own = members_.is_of_node(rank);
    Held& held = held_[rank];
    LogReader& log = logs_[rank];
    LogReader::Entry entry;
    while (logs_.has_news(rank) && logs_.peek(rank, entry)) {
        const LogRecord& record = entry.record;
        if (entry.next > held.seen_end) {
            held.seen_end = entry.next;
            held.published_ns = own_.time.publication_of(record);
        }
        const std::int64_t due = std::max(held.published_ns + record.delay_ns, held.due_ns);
        if (due > now && record.delay_ns != 0) return due;
        if (is_own && members_.is_awaited(rank, entry)) return now + EngineMembers::kHeldLookNs;
        RMEM_CHECK_IF(false, held.due_ns <= due);
        held.due_ns = due;
        const std::int64_t unseen = held.published_ns - record.written_ns;
        log.pass(entry);
        if (is_own) {
            arrival_.note_own(record);
            arrival_.come_round(log, rank, entry);
            continue;
        }
        if (unseen != 0 && (record.flags & LogRecord::kUntimed) == 0)
            own_.slot.link.add(LinkCounter::late_published);
        arrival_.arrive(log, rank, {.entry = entry, .unseen_ns = unseen}, due);
    }
    return kNever;
}

}  // namespace rmem
