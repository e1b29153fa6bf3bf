// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The card of a process of this host on a link with a bank per node, over the memory of that link.
/// Contract and thread safety: rmem/link/card.hpp.

#include "rmem/link/host_card.hpp"

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

namespace rmem {

template <class M>
class ReplicaCard final : public HostCard {
public:
    explicit ReplicaCard(const std::shared_ptr<Seat<M>>& seat)
        : HostCard(membership_of(seat)),
          memory_(seat->memory),
          interrupts_(member_.ring(), member_.rank(), memory_.interrupts(), source_of(memory_)) {}
    /// Messages may go on with the memory.
    ~ReplicaCard() override {
        if (!member_.held()) return;
        memory_.keep_applying(false);
        if (is_told_) memory_.on_bound_violation({});
    }

    bool is_alive(unsigned rank) const override { return memory_.is_alive(rank); }

    bool is_member() const override {
        if constexpr (requires { memory_.is_over(); }) return !memory_.is_over();
        return true;
    }

    bool room(std::size_t bytes) override {
        if constexpr (requires { memory_.is_heard(); }) {
            if (!memory_.is_heard()) return false;
        }
        return (!me_last_ || fits_fifo(bytes)) && memory_.room(bytes);
    }
    void write(std::size_t offset, const void* from, std::size_t bytes) override {
        with_options(bytes, [&] { memory_.write(offset, from, bytes); });
    }
    void write_part(std::size_t offset, std::uint32_t value, WordPart part) override {
        with_options(kWordBytes, [&] { memory_.write_part(offset, value, part); });
    }
    bool write_at_once(std::size_t offset, std::uint32_t value, WordPart part) override {
        if constexpr (requires { memory_.write_at_once(offset, value, part); })
            return !me_last_ && !filter_ && memory_.write_at_once(offset, value, part);
        return false;
    }
    void forward(std::size_t offset, const void* from, std::size_t bytes) override {
        memory_.forward(offset, from, bytes / kWordBytes);
    }
    void forward_part(std::size_t offset, std::uint32_t value, WordPart part) override {
        memory_.forward_part(offset, value, part);
    }
    void commit() override { memory_.commit(); }
    bool flush(Deadline deadline) override { return memory_.flush(deadline); }
    void poll() override { memory_.progress(); }
    void give_way() override { memory_.give_way(); }
    void before_load(std::size_t) override { memory_.progress(); }
    void keep_applying() override { memory_.keep_applying(true); }

    void begin_wait(std::optional<std::size_t> offset) override {
        if constexpr (requires { memory_.begin_wait_for_interrupt(); }) {
            return offset ? memory_.begin_wait_for_word(*offset)
                          : memory_.begin_wait_for_interrupt();
        }
        memory_.begin_wait();
    }
    Step wait(Deadline deadline) override { return memory_.wait(deadline); }
    void end_wait() override { memory_.end_wait(); }
    void has_seen(std::size_t, std::uint32_t, std::int64_t) override {}  // the engine measures

    void set_write_me_last(bool on) override { me_last_ = on; }
    void set_data_filter(bool on) override { filter_ = on; }
    CardInterrupts& interrupts() override { return interrupts_; }
    std::int64_t bound_ns() const override { return memory_.bound_ns(); }
    void on_bound_violation(std::function<void(const BoundViolation&)> callback) override {
        is_told_ = callback != nullptr;
        memory_.on_bound_violation(std::move(callback));
    }

private:
    /// They are the node's alone, not of its process's messages.
    template <class Write>
    void with_options(std::size_t bytes, Write write) {
        if (!me_last_ && !filter_) return write();
        memory_.set_write_me_last(me_last_);
        memory_.set_data_filter(filter_);
        write();
        memory_.set_write_me_last(false);
        memory_.set_data_filter(false);
        if (!me_last_) return;
        coming_round_.push_back({memory_.written(), bytes});
        bytes_coming_round_ += bytes;
    }
    /// With write-me-last no more is on its way round than a card's transmit FIFO holds, or one
    /// write: so what a program reads back is not older.
    [[nodiscard]] bool fits_fifo(std::size_t bytes) {
        constexpr std::uint32_t kDefaultFifoWords = 1024;
        const std::uint32_t depth = config().timing.fifo_words;
        const std::size_t most = (depth != 0 ? depth : kDefaultFifoWords) * kWordBytes;
        for (const std::uint64_t come = memory_.come_round();
             !coming_round_.empty() && coming_round_.front().end <= come; coming_round_.pop_front())
            bytes_coming_round_ -= coming_round_.front().bytes;
        return coming_round_.empty() || bytes_coming_round_ + bytes <= most;
    }
    static InterruptSource* source_of(M& memory) noexcept {
        if constexpr (requires { memory.interrupt_source(); }) return memory.interrupt_source();
        return nullptr;
    }

    struct ComingRound {
        std::uint64_t end;  ///< of the log, with it
        std::size_t bytes;
    };

    M& memory_;
    std::deque<ComingRound> coming_round_;  ///< own writes with write-me-last
    std::size_t bytes_coming_round_ = 0;
    bool me_last_ = false;
    bool filter_ = false;
    bool is_told_ = false;
    HostInterrupts interrupts_;  // last: it uses the memory's
};

}  // namespace rmem
