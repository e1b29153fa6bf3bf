// SPDX-License-Identifier: Apache-2.0
// The writes of a ring on link `ring`, from the logs of its ranks.

#include "rmem/base/check.hpp"
#include "rmem/base/clock.hpp"
#include "rmem/ring/applied.hpp"
#include "rmem/ring/delivery_board.hpp"
#include "rmem/ring/write_log.hpp"
#include "tools/record/record_source.hpp"
#include "tools/watch/bank_view.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <utility>
#include <vector>

namespace tools {

namespace {

using rmem::LogReader;
using rmem::LogRecord;
using rmem::RecordedWrite;

class RingSource final : public RecordSource {
public:
    RingSource(std::shared_ptr<rmem::Ring> ring, unsigned node)
        : ring_(std::move(ring)), node_(node) {
        auto& board = ring_->delivery();
        board.recorders.fetch_add(1, std::memory_order_relaxed);  // enough: the change orders it
        board.note_change();
    }
    ~RingSource() override {
        // relaxed is enough: writers that miss it look at the clock for nothing
        ring_->delivery().recorders.fetch_sub(1, std::memory_order_relaxed);
        ring_->delivery().note_change();
    }
    RingSource(const RingSource&) = delete;
    RingSource& operator=(const RingSource&) = delete;

    const rmem::RingConfig& config() const override { return ring_->config(); }
    std::int64_t interval_ns() const override { return kLookNs; }
    bool has_writers() const override { return may_change(*ring_); }

    void begin(std::int64_t now_ns, const Sink& sink) override {
        meet_new(now_ns);
        RecordedWrite write;
        write.time_ns = now_ns;
        write.node = node_;
        write.rank = first_rank_of(node_);
        write.flags = RecordedWrite::kAtStart;
        give_memory(ring_->bank(node_), config().bank_bytes(), write, sink);
    }

    bool look(std::int64_t now_ns, const Sink& sink) override {
        news_.clear();
        meet_new(now_ns);
        for (unsigned r = 0; r < logs_.size(); ++r) {
            if (logs_[r].refresh() && find(r, now_ns, sink)) news_.push_back(r);
        }
        std::size_t given = 0;
        std::uint64_t units = 0;
        // The oldest of all ranks' next ones, since they share the wire.
        for (; !news_.empty() && given < kMaxAtOnce; ++given) {
            const auto oldest =
                std::min_element(news_.begin(), news_.end(), [this](unsigned a, unsigned b) {
                    return next_[a].record.written_ns < next_[b].record.written_ns;
                });
            const unsigned rank = *oldest;
            units += next_[rank].next - next_[rank].position;
            give(rank, now_ns, sink);
            if (!find(rank, now_ns, sink)) news_.erase(oldest);
        }
        return !news_.empty() || units > logs_[0].capacity() / kMuchOfLog;
    }

private:
    /// Of the first to be met, earlier writes are in the bank that is read next; of later ones none
    /// was made before.
    void meet_new(std::int64_t now_ns) {
        const bool is_first = logs_.empty();
        for (auto r = static_cast<unsigned>(logs_.size()); r < ring_->seats(); ++r) {
            LogReader& log = logs_.emplace_back(ring_->log(r), LogReader::Role::observer);
            log.seek(is_first ? std::max(applied_of(*ring_, node_, r), log.oldest()) : 0);
            next_.emplace_back();
            last_ns_.push_back(now_ns);
        }
    }

    /// The next record of a rank, checked. False when there is none now.
    bool find(unsigned rank, std::int64_t now_ns, const Sink& sink) {
        LogReader& log = logs_[rank];
        for (;;) {
            switch (log.peek(next_[rank])) {
                case LogReader::Found::none: return false;
                case LogReader::Found::record:
                    if (can_be(rank, next_[rank].record)) return true;
                    [[fallthrough]];
                case LogReader::Found::corrupt: log.skip_all(); break;
                case LogReader::Found::lapped: log.seek(log.oldest()); break;
            }
            give_missed(rank, now_ns, sink);
        }
    }

    bool can_be(unsigned rank, const LogRecord& record) const noexcept {
        const std::uint64_t bytes = std::uint64_t{record.words} * rmem::kWordBytes;
        const std::uint64_t all = config().bank_bytes();
        return node_of(rank) < config().nodes && bytes <= all && record.offset <= all - bytes;
    }

    unsigned node_of(unsigned rank) const noexcept {
        // relaxed is enough: a rank's node is stored before its records are published
        return ring_->rank(rank).node.load(std::memory_order_relaxed);
    }

    /// It may have changed since it was looked at.
    unsigned bounded_node_of(unsigned rank) const noexcept {
        return std::min(node_of(rank), config().nodes - 1);
    }

    unsigned first_rank_of(unsigned node) const noexcept {
        return node * config().ranks / config().nodes;
    }
    /// A guest's write is one of its node, as a card's would be: a recording knows ranks alone.
    unsigned recorded_as(unsigned rank, unsigned node) const noexcept {
        return rank < config().ranks ? rank : first_rank_of(node);
    }

    void give(unsigned rank, std::int64_t now_ns, const Sink& sink) {
        const LogReader::Entry entry = next_[rank];
        const bool is_whole = logs_[rank].load_words(entry, words_.data());
        logs_[rank].pass(entry);
        if (!is_whole) return give_missed(rank, now_ns, sink);
        RecordedWrite write;
        write.time_ns = entry.record.written_ns;
        // One that was made while this recorder came.
        if ((entry.record.flags & LogRecord::kUntimed) != 0)
            write.time_ns = std::max(write.time_ns, last_ns_[rank]);
        write.node = bounded_node_of(rank);
        write.rank = recorded_as(rank, write.node);
        write.offset = entry.record.offset;
        if ((entry.record.flags & LogRecord::kInterrupt) != 0) {
            write.flags |= RecordedWrite::kInterrupt;
        }
        if ((entry.record.flags & LogRecord::kMeLast) != 0) write.flags |= RecordedWrite::kMeLast;
        if ((entry.record.flags & LogRecord::kMore) != 0) write.flags |= RecordedWrite::kMore;
        write.flags |= RecordedWrite::flags_of(entry.record.part());
        write.words = std::as_bytes(std::span(words_).first(entry.record.words));
        last_ns_[rank] = write.time_ns;
        RMEM_CHECK(is_recordable(write, config()));
        sink(write);
    }

    /// The times of missed writes are unknown: after the rank's last write, before the next look.
    void give_missed(unsigned rank, std::int64_t now_ns, const Sink& sink) {
        RecordedWrite write;
        write.time_ns = std::min(last_ns_[rank], now_ns);
        write.node = bounded_node_of(rank);
        write.rank = recorded_as(rank, write.node);
        write.flags = RecordedWrite::kMissed;
        sink(write);
    }

    const std::shared_ptr<rmem::Ring> ring_;
    const unsigned node_;
    std::vector<LogReader> logs_;         // of each rank
    std::vector<LogReader::Entry> next_;  // of each rank in news_
    std::vector<std::int64_t> last_ns_;   // of each rank: its last write's time
    std::vector<unsigned> news_;          // ranks with unread records
    std::array<std::uint32_t, rmem::kMaxRecordWords> words_{};  // of one write
};

}  // namespace

std::unique_ptr<RecordSource> make_ring_source(std::shared_ptr<rmem::Ring> ring, unsigned node) {
    return std::make_unique<RingSource>(std::move(ring), node);
}

}  // namespace tools
