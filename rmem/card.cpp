// SPDX-License-Identifier: Apache-2.0
#include "rmem/card.hpp"

#include "rmem/direct_card.hpp"
#include "rmem/ring_memory.hpp"
#include "rmem/sim/sim_card.hpp"
#include "rmem/udp_memory.hpp"

#include <fmt/format.h>

#include <type_traits>
#include <utility>

namespace rmem {

namespace {

/// A card of a link with a bank per node.
template <class M>
class ReplicaCard final : public HostCard {
public:
    ReplicaCard(std::shared_ptr<Ring> ring, Member member)
        : HostCard(std::move(ring), member),
          memory_(member_),
          interrupts_(member_.ring(), member.rank, memory_.interrupts()) {}

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
        memory_.write(offset, from, bytes);
    }
    void commit() override { memory_.commit(); }
    bool flush(Deadline deadline) override { return memory_.flush(deadline); }
    void poll() override { memory_.progress(); }
    void before_load(std::size_t) override { memory_.progress(); }
    void keep_applying() override { memory_.keep_applying(true); }

    void begin_wait(std::optional<std::size_t>) override { memory_.begin_wait(); }
    Step wait(Deadline deadline) override { return memory_.wait(deadline); }
    void end_wait() override { memory_.end_wait(); }
    void has_seen(std::size_t, std::uint32_t, std::int64_t) override {}  // the engine measures

    void set_write_me_last(bool on) override { memory_.set_write_me_last(on); }
    void set_data_filter(bool on) override { memory_.set_data_filter(on); }
    CardInterrupts& interrupts() override { return interrupts_; }
    std::int64_t bound_ns() const override { return memory_.bound_ns(); }
    void on_bound_violation(std::function<void(const BoundViolation&)> callback) override {
        memory_.on_bound_violation(std::move(callback));
    }

private:
    M memory_;
    HostInterrupts interrupts_;  // last: it uses the memory's
};

}  // namespace

std::unique_ptr<Card> Card::open() {
    if (sim::Process* process = sim::current_process()) {
        return std::make_unique<sim::SimCard>(*process);
    }
    const Environment environment = Environment::read();
    const RingConfig config = environment.ring_config();
    const auto timeout = environment.join_timeout_ns.value_or(kDefaultJoinTimeoutNs);
    const Member member = environment.member(config);
    return make(Ring::open(config, Deadline::in(timeout), member.node), member);
}

std::unique_ptr<Card> Card::make(std::shared_ptr<Ring> ring, Member member) {
    const LinkKind link = ring->config().link;
    if (link == LinkKind::direct) return std::make_unique<DirectCard>(std::move(ring), member);
    if (link == LinkKind::ring) {
        return std::make_unique<ReplicaCard<RingMemory>>(std::move(ring), member);
    }
    if (link == LinkKind::udp) {
        return std::make_unique<ReplicaCard<UdpMemory>>(std::move(ring), member);
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

}  // namespace rmem
