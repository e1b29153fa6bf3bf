// SPDX-License-Identifier: Apache-2.0
#include "rmem/card.hpp"

#include "rmem/direct_card.hpp"
#include "rmem/ring_memory.hpp"

#include <fmt/format.h>

#include <utility>

namespace rmem {

namespace {

class RingCard final : public Card {
public:
    explicit RingCard(Membership& member) : memory_(member) {}

    bool room(std::size_t bytes) override { return memory_.room(bytes); }
    void write(std::size_t offset, const void* from, std::size_t bytes) override {
        memory_.write(offset, from, bytes);
    }
    void commit() override { memory_.commit(); }
    bool flush(Deadline deadline) override { return memory_.flush(deadline); }
    void poll() override { memory_.progress(); }
    void keep_applying() override { memory_.keep_applying(true); }

    void begin_wait() override { memory_.begin_wait(); }
    Step wait(Deadline deadline) override { return memory_.wait(deadline); }
    void end_wait() override { memory_.end_wait(); }
    void has_seen(std::size_t, std::uint32_t, std::int64_t) override {}  // the engine measures

    void set_write_me_last(bool on) override { memory_.set_write_me_last(on); }
    void set_data_filter(bool on) override { memory_.set_data_filter(on); }
    InterruptBoard& interrupts() override { return memory_.interrupts(); }
    std::int64_t bound_ns() const override { return memory_.bound_ns(); }
    void on_bound_violation(std::function<void(const BoundViolation&)> callback) override {
        memory_.engine().on_bound_violation(std::move(callback));
    }

private:
    RingMemory memory_;
};

}  // namespace

std::unique_ptr<Card> Card::make(Membership& member) {
    const LinkKind link = member.ring().config().link;
    if (link == LinkKind::direct) return std::make_unique<DirectCard>(member);
    if (link == LinkKind::ring) return std::make_unique<RingCard>(member);
    throw Error(
        Errc::unknown_link,
        fmt::format("link '{}' is not for a process on one host (RMEM_LINK); give direct or ring",
                    name_of(link)));
}

}  // namespace rmem
