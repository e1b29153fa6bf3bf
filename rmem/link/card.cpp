// SPDX-License-Identifier: Apache-2.0
#include "rmem/link/card.hpp"

#include "rmem/link/direct/card.hpp"
#include "rmem/link/ring/memory.hpp"
#include "rmem/link/sim/card.hpp"
#include "rmem/link/udp/memory.hpp"
#include "rmem/ring/joining.hpp"

#include <fmt/format.h>

#include <type_traits>
#include <utility>

namespace rmem {

namespace {

/// A card of a link with a bank per node.
template <class M>
class ReplicaCard final : public HostCard {
public:
    explicit ReplicaCard(const std::shared_ptr<Seat<M>>& seat)
        : HostCard(membership_of(seat)),
          memory_(seat->memory),
          interrupts_(member_.ring(), member_.rank(), memory_.interrupts()) {}
    /// Messages may go on with the memory.
    ~ReplicaCard() override {
        if (!member_.held()) return;
        memory_.keep_applying(false);
        if (is_told_) memory_.on_bound_violation({});
    }

    bool is_alive(unsigned rank) const override { return memory_.is_alive(rank); }

    bool is_member() const override {
        if constexpr (std::is_same_v<M, UdpMemory>) return !memory_.is_over();
        return true;
    }

    bool room(std::size_t bytes) override {
        if constexpr (std::is_same_v<M, UdpMemory>) {
            if (!memory_.is_heard()) return false;
        }
        return memory_.room(bytes);
    }
    void write(std::size_t offset, const void* from, std::size_t bytes) override {
        if (!me_last_ && !filter_) return memory_.write(offset, from, bytes);
        memory_.set_write_me_last(me_last_);  // the node's alone, not of its process's messages
        memory_.set_data_filter(filter_);
        memory_.write(offset, from, bytes);
        memory_.set_write_me_last(false);
        memory_.set_data_filter(false);
    }
    void commit() override { memory_.commit(); }
    bool flush(Deadline deadline) override { return memory_.flush(deadline); }
    void poll() override { memory_.progress(); }
    void give_way() override { memory_.give_way(); }
    void before_load(std::size_t) override { memory_.progress(); }
    void keep_applying() override { memory_.keep_applying(true); }

    void begin_wait(std::optional<std::size_t>) override { memory_.begin_wait(); }
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
    M& memory_;
    bool me_last_ = false;
    bool filter_ = false;
    bool is_told_ = false;
    HostInterrupts interrupts_;  // last: it uses the memory's
};

template <class M>
typename M::Options options_of(const Ring& ring) {
    if constexpr (std::is_same_v<M, RingMemory>)
        return RingOptions::from(Environment::read(), ring.config());
    if constexpr (std::is_same_v<M, UdpMemory>) return UdpOptions::from(Environment::read());
    return {};
}

template <class M, class CardOf>
std::unique_ptr<Card> make_card(std::shared_ptr<Ring> ring, Member member, bool is_the_process) {
    const auto options = options_of<M>(*ring);
    return std::make_unique<CardOf>(
        is_the_process ? take_seat<M>(std::move(ring), member, options, SeatUse::node)
                       : std::make_shared<Seat<M>>(std::move(ring), member, options));
}

/// `is_the_process`: its node, beside its messages.
std::unique_ptr<Card> make_any(std::shared_ptr<Ring> ring, Member member, bool is_the_process) {
    const LinkKind link = ring->config().link;
    if (link == LinkKind::direct)
        return make_card<DirectMemory, DirectCard>(std::move(ring), member, is_the_process);
    if (link == LinkKind::ring) {
        return make_card<RingMemory, ReplicaCard<RingMemory>>(std::move(ring), member,
                                                              is_the_process);
    }
    if (link == LinkKind::udp) {
        return make_card<UdpMemory, ReplicaCard<UdpMemory>>(std::move(ring), member,
                                                            is_the_process);
    }
    if (link == LinkKind::sim) {
        throw Error(Errc::unknown_link,
                    "link sim has no processes of its own (RMEM_LINK), its programs are functions "
                    "in one process (rmem/sim/world.hpp), which use Node::open(); give direct, "
                    "ring or udp");
    }
    throw Error(
        Errc::unknown_link,
        fmt::format("there is no link '{}' (RMEM_LINK); give direct, ring or udp", name_of(link)));
}

}  // namespace

std::unique_ptr<Card> Card::open() {
    if (sim::Process* process = sim::current_process()) {
        return std::make_unique<sim::SimCard>(*process);
    }
    const Environment environment = Environment::read();
    const auto timeout = environment.join_timeout_ns.value_or(kDefaultJoinTimeoutNs);
    Joined joined = join_ring(
        environment, Deadline::in(timeout),
        [](const Environment& all, const RingConfig*) { return all.ring_config(); },
        config_to_make);
    return make_any(std::move(joined.ring), joined.member, true);
}

std::unique_ptr<Card> Card::make(std::shared_ptr<Ring> ring, Member member) {
    return make_any(std::move(ring), member, false);
}

}  // namespace rmem
