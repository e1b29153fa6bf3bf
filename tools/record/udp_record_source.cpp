// SPDX-License-Identifier: Apache-2.0
// The writes of a ring on link `udp`, as the engine of one of this host's nodes shows them
// (rmem/link/udp/tap.hpp).

#include "rmem/base/check.hpp"
#include "rmem/base/clock.hpp"
#include "rmem/link/udp/tap.hpp"
#include "rmem/ring/write_log.hpp"
#include "tools/record/record_source.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <limits>
#include <thread>
#include <utility>
#include <vector>

namespace tools {

namespace {

using rmem::LogReader;
using rmem::RecordedWrite;
using rmem::udp::TappedWrite;

constexpr std::int64_t kOpenNs = 10'000'000'000;

class UdpSource final : public RecordSource {
public:
    explicit UdpSource(std::shared_ptr<rmem::Ring> ring)
        : ring_(std::move(ring)),
          node_(ring_->own_node()),
          log_(rmem::LogArea(ring_->tap(), rmem::kTapBytes), LogReader::Role::observer),
          last_ns_(ring_->config().nodes) {}

    const rmem::RingConfig& config() const override { return ring_->config(); }
    std::int64_t interval_ns() const override { return kLookNs; }
    bool has_writers() const override { return ring_->has_members(); }

    void begin(std::int64_t now_ns, const Sink& sink) override {
        await_open();
        log_.skip_all();
        std::fill(last_ns_.begin(), last_ns_.end(), now_ns);
        RecordedWrite write = mark_of(node_, RecordedWrite::kAtStart);
        give_memory(ring_->bank(node_), config().bank_bytes(), write, sink);
    }

    bool look(std::int64_t now_ns, const Sink& sink) override {
        rmem::udp::listen(*ring_, now_ns);
        const std::uint64_t before = log_.position();
        std::size_t given = 0;
        while (given < kMaxAtOnce && find(sink)) {
            give(sink);
            ++given;
        }
        return given == kMaxAtOnce || log_.position() - before > log_.capacity() / kMuchOfLog;
    }

private:
    void await_open() {
        const rmem::Deadline deadline = rmem::Deadline::in(kOpenNs);
        for (;;) {
            const std::int64_t now = rmem::now_ns();
            if (rmem::udp::listen(*ring_, now)) return;
            if (deadline.passed(now) || !ring_->has_members()) break;
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
        throw rmem::Error(
            rmem::Errc::timed_out,
            fmt::format(
                "nobody runs the engine of '{}', which shows the writes: its process has ended "
                "or is stopped; `rmem info {}` tells more",
                ring_->segment_name(), ring_->segment_name()));
    }

    /// The next record, checked. False when there is none now.
    bool find(const Sink& sink) {
        for (;;) {
            switch (log_.peek(next_)) {
                case LogReader::Found::none: return false;
                case LogReader::Found::record:
                    write_ = rmem::udp::unpacked(next_.record);
                    if (can_be(write_)) return true;
                    [[fallthrough]];
                case LogReader::Found::corrupt: log_.skip_all(); break;
                case LogReader::Found::lapped: log_.seek(log_.oldest()); break;
            }
            give_missed(sink);
        }
    }

    bool can_be(const TappedWrite& write) const noexcept {
        const std::uint64_t bytes = std::uint64_t{write.words} * rmem::kWordBytes;
        const std::uint64_t all = config().bank_bytes();
        return write.origin < config().nodes && bytes <= all && write.offset <= all - bytes;
    }

    void give(const Sink& sink) {
        const bool is_whole = log_.load_words(next_, words_.data());
        log_.pass(next_);
        if (!is_whole || write_.is_gap) return give_missed(sink);
        std::int64_t& last_ns = last_ns_[write_.origin];
        // Estimates of one clock differ a little; an origin's times go forward anyway.
        last_ns = std::max(last_ns, write_.written_ns);
        RecordedWrite write = mark_of(write_.origin, RecordedWrite::kApplied);
        write.delay_ns = static_cast<std::uint32_t>(std::clamp<std::int64_t>(
            write_.applied_ns - write.time_ns, 0, std::numeric_limits<std::uint32_t>::max()));
        write.offset = write_.offset;
        if (write_.is_interrupt) write.flags |= RecordedWrite::kInterrupt;
        if (write_.is_me_last) write.flags |= RecordedWrite::kMeLast;
        if (write_.has_more) write.flags |= RecordedWrite::kMore;
        write.flags |= RecordedWrite::flags_of(write_.part);
        write.words = std::as_bytes(std::span(words_).first(write_.words));
        RMEM_CHECK(is_recordable(write, config()));
        sink(write);
    }

    /// Nobody knows whose writes were missed: a mark for each member's.
    void give_missed(const Sink& sink) {
        for (unsigned node = 0; node < config().nodes; ++node) {
            // relaxed is enough: for people
            const auto members = ring_->board().members[node / 64].load(std::memory_order_relaxed);
            if ((members >> node % 64 & 1) == 0 && node != node_) continue;
            sink(mark_of(node, RecordedWrite::kMissed));
        }
    }

    /// Datagrams do not tell which of a node's ranks wrote: it is always the first.
    RecordedWrite mark_of(unsigned node, std::uint16_t flags) const {
        RecordedWrite write;
        write.time_ns = last_ns_[node];
        write.node = node;
        write.rank = node * config().ranks / config().nodes;
        write.flags = flags;
        return write;
    }

    const std::shared_ptr<rmem::Ring> ring_;
    const unsigned node_;
    LogReader log_;
    LogReader::Entry next_;
    TappedWrite write_;                  // next_, unpacked
    std::vector<std::int64_t> last_ns_;  // of each node: its last write's time
    std::array<std::uint32_t, rmem::kMaxRecordWords> words_{};  // of one write
};

}  // namespace

std::unique_ptr<RecordSource> make_udp_source(std::shared_ptr<rmem::Ring> ring) {
    return std::make_unique<UdpSource>(std::move(ring));
}

}  // namespace tools
