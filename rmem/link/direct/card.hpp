// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A node's card on the `direct` link: a store is the transfer, the rest is what a card does
/// besides.
///
/// Every word is stored as one release (rmem/base/word_block.hpp), so a reader that acquired a word
/// of a later write may read an earlier one plainly. There is always room; flush and write-me-last
/// are true by nature. Propagation is sampled (rmem/ring/propagation_samples.hpp).
///
/// A store of a word is the store, a count of writes and bytes, and two looks that find nothing: at
/// the number of the write, for what is not usual, and whether anybody sleeps for the word's line
/// or watches it. Waiting and loading are inline, too: Node calls this class by its type.
/// Contract and thread safety: rmem/link/card.hpp.

#include "rmem/link/direct/memory.hpp"
#include "rmem/link/host_card.hpp"
#include "rmem/ring/propagation_samples.hpp"

namespace rmem {

class DirectCard final : public HostCard {
public:
    explicit DirectCard(const std::shared_ptr<Seat<DirectMemory>>& seat);

    bool is_alive(unsigned rank) const override { return ring_.is_alive(rank); }

    bool room(std::size_t) override { return true; }
    void write(std::size_t offset, const void* from, std::size_t bytes) override;
    /// A byte, at any offset.
    [[gnu::always_inline]] void write_byte(std::size_t offset, std::uint8_t value) {
        const std::uint64_t writes = sent_.get(LinkCounter::writes_sent) + 1;
        const std::size_t inside = offset % kWordBytes;
        if ((writes & usual_) == 0) [[unlikely]] {
            return write_part_unusual(offset - inside, word_with(&value, inside, 1),
                                      part_of_word(inside, 1));
        }
        store_byte(bank_ + offset, value);
        note(offset - inside, writes);
    }
    void write_part(std::size_t offset, std::uint32_t value, WordPart part) override {
        if (part == kWholeWord) return write_word(offset, value);
        const std::uint64_t writes = sent_.get(LinkCounter::writes_sent) + 1;
        if ((writes & usual_) == 0) [[unlikely]]
            return write_part_unusual(offset, value, part);
        rmem::store_part(bank_ + offset, value, part);
        note(offset, writes);
    }
    void write_word(std::size_t offset, std::uint32_t value) {
        const std::uint64_t writes = sent_.get(LinkCounter::writes_sent) + 1;
        if ((writes & usual_) == 0) [[unlikely]]
            return write_unusual(offset, value);
        store_word(offset, value, writes);
    }
    void commit() override {}
    void send(unsigned number, const SentInterrupt& sent) override;
    bool flush(Deadline deadline) override;
    void poll() override {}
    void give_way() override { waiter_.give_way(); }
    void before_load(std::size_t) override {}
    void keep_applying() override {}

    void begin_wait(std::optional<std::size_t> offset) override {
        if (offset) return waiter_.begin_for_word(sleepers_, *offset);
        board_.attend();
        waiter_.begin_for_interrupt();
    }
    Step wait(Deadline deadline) override { return waiter_.step(deadline); }
    void end_wait() override { waiter_.end(); }
    void has_seen(std::size_t offset, std::uint32_t value, std::int64_t waited_since_ns) override {
        if (const auto late = samples_.seen(offset, value, waited_since_ns)) report(*late);
    }

    void set_write_me_last(bool) override {}
    void set_data_filter(bool on) override {
        filter_ = on;
        usual_ = on ? 0 : kStampEvery - 1;
    }
    CardInterrupts& interrupts() override { return interrupts_; }
    std::int64_t bound_ns() const override { return samples_.bound_ns(); }
    void on_bound_violation(std::function<void(const BoundViolation&)> callback) override {
        on_violation_ = std::move(callback);
    }

private:
    std::atomic<std::uint32_t>& word(std::size_t offset) const noexcept {
        return *reinterpret_cast<std::atomic<std::uint32_t>*>(bank_ + offset);
    }
    /// `writes`: what was sent, this one included.
    void store_word(std::size_t offset, std::uint32_t value, std::uint64_t writes) {
        // (1) - this release-store synchronizes-with the acquire-loads rmem/node_impl.hpp (1) and
        // tools/record/record_source.cpp (1) of a reader
        word(offset).store(value, std::memory_order_release);
        note(offset, writes);
    }
    [[gnu::always_inline]] void note(std::size_t offset, std::uint64_t writes) {
        count(writes);
        if (sleepers_.is_wanted(offset)) [[unlikely]]
            tell(offset, kWordBytes);
    }
    /// One sum is carried from store to store, not two: a store waits for that of the last one.
    void count(std::uint64_t writes) {
        Counters& sent = sent_;
        sent.set(LinkCounter::writes_sent, writes);
        sent.set(LinkCounter::bytes_sent, writes * kWordBytes + block_bytes_);
    }
    /// Those that may want to know of a write. Out of line: a store needs no stack for it.
    [[gnu::noinline]] void tell(std::size_t offset, std::size_t bytes);
    [[gnu::noinline]] void write_unusual(std::size_t offset, std::uint32_t value);
    [[gnu::noinline]] void write_part_unusual(std::size_t offset, std::uint32_t value,
                                              WordPart part);
    void store_changed(std::size_t offset, const std::byte* from, std::size_t bytes);
    void report(const BoundViolation& late);

    Ring& ring_;
    const unsigned node_;
    const unsigned rank_;
    std::byte* const bank_;
    Counters& sent_;
    const WordSleepers sleepers_;
    Waiter waiter_;
    InterruptBoard board_;
    PropagationSamples samples_;
    /// A write whose number has none of these bits is stamped, or filtered.
    std::uint64_t usual_ = kStampEvery - 1;
    std::uint64_t block_bytes_;  ///< of writes, beyond a word for each
    bool filter_ = false;
    std::function<void(const BoundViolation&)> on_violation_;
    HostInterrupts interrupts_;  // last: it uses the board
};

}  // namespace rmem
