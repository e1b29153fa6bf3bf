// SPDX-License-Identifier: Apache-2.0
#include "rmem/link/owned_card.hpp"

#include "rmem/base/clock.hpp"
#include "rmem/base/small_file.hpp"
#include "rmem/base/time.hpp"
#include "rmem/ring/owners.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <functional>
#include <optional>
#include <string>
#include <utility>

namespace rmem {

namespace {

/// CLOCK_REALTIME, for people.
std::int64_t wall_ns() noexcept {
    std::timespec now{};
    std::timespec_get(&now, TIME_UTC);
    return now.tv_sec * kNsPerSecond + now.tv_nsec;
}

/// Eight bytes from there on, as far as there are any.
std::uint64_t eight_at(const void* from, std::size_t bytes) noexcept {
    std::uint64_t eight = 0;
    std::memcpy(&eight, from, std::min(bytes, sizeof eight));
    return eight;
}

/// Tells of the writes of others' bytes that one card was to make.
class ForeignWrites {
public:
    /// Of `bytes` bytes from one on that is another's. Whether they may be written all the same;
    /// throws where they may not and `throws`.
    [[gnu::cold]] bool tell(const Card& card, const Owners& owners, bool throws, std::size_t offset,
                            const std::byte* from, std::size_t bytes);

private:
    static constexpr unsigned kMaxLines = 32;  ///< on stderr
    unsigned lines_ = 0;
};

bool ForeignWrites::tell(const Card& card, const Owners& owners, bool throws, std::size_t offset,
                         const std::byte* from, std::size_t bytes) {
    const bool is_refused = owners.mode() == OwnerMode::enforce;
    ForeignWrite write;
    write.time_ns = wall_ns();
    write.offset = offset;
    write.bytes = bytes;
    write.before = eight_at(card.bank() + offset, bytes);
    write.after = eight_at(from, bytes);
    write.node = card.member().node;
    write.rank = card.member().rank;
    write.pid = static_cast<std::uint32_t>(::getpid());
    write.owner = owners.owner_of(offset);
    write.refused = is_refused ? 1 : 0;
    std::string program = small_file("/proc/self/comm");
    if (!program.empty() && program.back() == '\n') program.pop_back();
    std::copy_n(program.data(), std::min(program.size(), write.program.size() - 1),
                write.program.data());
    owners.report(write);
    const std::string sentence = fmt::format(
        "{:#x} is {}'s, and this program ('{}', process {}) is node {}, rank {}; `rmem who {} "
        "{:#x}` says more",
        offset, text_of(write.owner), program, write.pid, write.node, write.rank,
        card.config().name, offset);
    if (is_refused && throws) {
        throw Error(Errc::invalid_argument, "nothing was written: " + sentence);
    }
    if (lines_++ < kMaxLines) {
        fmt::print(stderr, "rmem: {}: {}\n", is_refused ? "nothing was written" : "written",
                   sentence);
    }
    return !is_refused;
}

class OwnedCard final : public Card {
public:
    OwnedCard(std::shared_ptr<Card> card, bool throws)
        : card_(std::move(card)), throws_(throws), owners_(*card_->ring(), card_->member()) {}

    const RingConfig& config() const override { return card_->config(); }
    Member member() const override { return card_->member(); }
    bool is_alive(unsigned rank) const override { return card_->is_alive(rank); }
    bool is_member() const override { return card_->is_member(); }
    const Ring* ring() const override { return card_->ring(); }
    std::uint64_t counter(LinkCounter id) const override { return card_->counter(id); }
    const Histogram& propagation() const override { return card_->propagation(); }
    std::int64_t bound_ns() const override { return card_->bound_ns(); }
    void on_bound_violation(std::function<void(const BoundViolation&)> callback) override {
        card_->on_bound_violation(std::move(callback));
    }

    std::byte* bank() const override { return card_->bank(); }
    bool room(std::size_t bytes) override { return card_->room(bytes); }
    void write(std::size_t offset, const void* from, std::size_t bytes) override {
        if (may_write(offset, from, bytes)) card_->write(offset, from, bytes);
    }
    void write_part(std::size_t offset, std::uint32_t value, WordPart part) override {
        if (may_write_part(offset, value, part)) card_->write_part(offset, value, part);
    }
    /// What is another's goes the long way, where it is told.
    bool write_at_once(std::size_t offset, std::uint32_t value, WordPart part) override {
        if (!owners_.is_in_own_line(offset)) [[unlikely]]
            return write_beside_others(offset, value, part);
        return card_->write_at_once(offset, value, part);
    }
    void forward(std::size_t offset, const void* from, std::size_t bytes) override {
        if (may_write(offset, from, bytes)) card_->forward(offset, from, bytes);
    }
    void forward_part(std::size_t offset, std::uint32_t value, WordPart part) override {
        if (may_write_part(offset, value, part)) card_->forward_part(offset, value, part);
    }
    void refuse_foreign(std::size_t offset, const void* from, std::size_t bytes) override {
        if (owners_.mode() == OwnerMode::enforce) static_cast<void>(may_write(offset, from, bytes));
    }
    Card& for_stores() override {
        if (stores_ == nullptr) stores_ = std::make_unique<OwnedCard>(card_, false);
        return *stores_;
    }
    void commit() override { card_->commit(); }
    void send(unsigned number, const SentInterrupt& sent) override { card_->send(number, sent); }
    bool flush(Deadline deadline) override { return card_->flush(deadline); }
    void poll() override { card_->poll(); }
    void give_way() override { card_->give_way(); }
    void before_load(std::size_t words) override { card_->before_load(words); }
    void keep_applying() override { card_->keep_applying(); }

    void begin_wait(std::optional<std::size_t> offset) override { card_->begin_wait(offset); }
    Step wait(Deadline deadline) override { return card_->wait(deadline); }
    void end_wait() override { card_->end_wait(); }
    void has_seen(std::size_t offset, std::uint32_t value, std::int64_t since) override {
        card_->has_seen(offset, value, since);
    }

    void set_write_me_last(bool on) override { card_->set_write_me_last(on); }
    void set_data_filter(bool on) override { card_->set_data_filter(on); }
    CardInterrupts& interrupts() override { return card_->interrupts(); }

private:
    /// Out of line, so that the usual way needs no stack.
    [[gnu::noinline]] bool write_beside_others(std::size_t offset, std::uint32_t value,
                                               WordPart part) {
        return !owners_.find_foreign(offset, kWordBytes) &&
               card_->write_at_once(offset, value, part);
    }
    bool may_write_part(std::size_t offset, std::uint32_t value, WordPart part) {
        const auto first = static_cast<std::size_t>(std::countr_zero(part));
        const auto end = static_cast<std::size_t>(std::bit_width(part));
        const auto* const bytes = reinterpret_cast<const std::byte*>(&value);
        return may_write(offset + first, bytes + first, end - first);
    }
    bool may_write(std::size_t offset, const void* from, std::size_t bytes) {
        const auto foreign = owners_.find_foreign(offset, bytes);
        if (!foreign) [[likely]]
            return true;
        return foreign_.tell(*card_, owners_, throws_, *foreign,
                             static_cast<const std::byte*>(from) + (*foreign - offset),
                             offset + bytes - *foreign);
    }
    const std::shared_ptr<Card> card_;
    const bool throws_;
    const Owners owners_;
    std::unique_ptr<OwnedCard> stores_;
    ForeignWrites foreign_;
};

}  // namespace

std::unique_ptr<Card> looked_after(std::unique_ptr<Card> card) {
    if (Owners::mode_of(*card->ring()) == OwnerMode::off) return card;
    return std::make_unique<OwnedCard>(std::move(card), true);
}

}  // namespace rmem
