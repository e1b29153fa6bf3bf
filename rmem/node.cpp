// SPDX-License-Identifier: Apache-2.0
#include "rmem/node.hpp"

#include "rmem/base/word_block.hpp"
#include "rmem/link/owned_card.hpp"
#include "rmem/link/replica_card.hpp"
#include "rmem/link/ring/memory.hpp"
#include "rmem/link/sim/card.hpp"
#include "rmem/link/udp/memory.hpp"
#include "rmem/link/write_bytes.hpp"
#include "rmem/node_impl.hpp"
#include "rmem/ring/join_notice.hpp"
#include "rmem/ring/joining.hpp"
#include "rmem/ring/waiting/awaiting.hpp"
#include "rmem/stores/signal_chain.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <optional>
#include <thread>
#include <type_traits>
#include <utility>

namespace rmem {

namespace {

/// The last load of this thread. A program that polls loads one word over and over; one that reads
/// its memory goes on to others.
struct LastLoad {
    const std::byte* place;
    std::uint32_t value;
    unsigned times;
};
[[gnu::tls_model("initial-exec")]] constinit thread_local LastLoad last_load{};
constexpr std::chrono::microseconds kShortestPause{250}, kLongestPause{4000};
constexpr unsigned kLoadsPerLook = 16;  // of one word, with one value: a look that found nothing

void note_load(Card& card, const std::byte* place, std::uint32_t value) {
    LastLoad& last = last_load;
    if (last.place != place || last.value != value) {
        last = {place, value, 0};
    } else if (++last.times % kLoadsPerLook == 0) {
        card.give_way();
    }
}

/// Comes round, past 0.
std::uint32_t next_number(std::atomic<std::uint32_t>& last) noexcept {
    // relaxed is enough, twice: only to count
    const std::uint32_t number = last.fetch_add(1, std::memory_order_relaxed) + 1;
    return number != 0 ? number : last.fetch_add(1, std::memory_order_relaxed) + 1;
}

// ---- Its card

template <class M>
typename M::Options options_of(const Ring& ring) {
    if constexpr (std::is_same_v<M, RingMemory>)
        return RingOptions::from(Environment::read(), ring.config());
    if constexpr (std::is_same_v<M, UdpMemory>) return UdpOptions::from(Environment::read());
    return {};
}

template <class M, class CardOf>
std::unique_ptr<Card> make_card_of(std::shared_ptr<Ring> ring, Member member, bool is_the_process) {
    const auto options = options_of<M>(*ring);
    return looked_after(std::make_unique<CardOf>(
        is_the_process ? take_seat<M>(std::move(ring), member, options, SeatUse::node)
                       : std::make_shared<Seat<M>>(std::move(ring), member, options)));
}

/// The card for the ring's link. `is_the_process`: its node, beside its messages.
std::unique_ptr<Card> make_card(std::shared_ptr<Ring> ring, Member member, bool is_the_process) {
    const LinkKind link = ring->config().link;
    if (link == LinkKind::direct)
        return make_card_of<DirectMemory, DirectCard>(std::move(ring), member, is_the_process);
    if (link == LinkKind::ring) {
        return make_card_of<RingMemory, ReplicaCard<RingMemory>>(std::move(ring), member,
                                                                 is_the_process);
    }
    if (ring->config().is_remote()) {
        return make_card_of<UdpMemory, ReplicaCard<UdpMemory>>(std::move(ring), member,
                                                               is_the_process);
    }
    if (link == LinkKind::sim) {
        throw Error(Errc::unknown_link,
                    "link sim has no processes of its own (RMEM_LINK), its programs are functions "
                    "in one process (rmem/sim/world.hpp), which use Node::open(); give direct, "
                    "ring, udp or fabric");
    }
    throw Error(Errc::unknown_link,
                fmt::format("there is no link '{}' (RMEM_LINK); give direct, ring, udp or fabric",
                            name_of(link)));
}

/// Joins the ring that the environment names; in a simulated process, its world's.
std::unique_ptr<Card> open_card() {
    if (sim::Process* process = sim::current_process()) {
        return std::make_unique<sim::SimCard>(*process);
    }
    const Environment environment = Environment::read();
    const auto timeout = environment.join_timeout_ns.value_or(kDefaultJoinTimeoutNs);
    Joined joined = join_ring(
        environment, Deadline::in(timeout),
        [](const Environment& all, const RingConfig*) { return all.ring_config(); },
        config_to_make);
    return make_card(std::move(joined.ring), joined.member, true);
}

}  // namespace

void Node::Impl::refuse_range(std::size_t offset, std::size_t bytes) const {
    throw Error(
        Errc::invalid_argument,
        fmt::format("{} bytes at {:#x} are not within the memory of ring '{}', which has {} "
                    "bytes; give a range inside it",
                    bytes, offset, card_->config().name, size_));
}

void Node::Impl::refuse_word(std::size_t offset) const {
    check_range(offset, kWordBytes);
    throw Error(Errc::invalid_argument,
                fmt::format("{:#x} is not the offset of a word of ring '{}'; give a multiple of {}",
                            offset, card_->config().name, kWordBytes));
}

void Node::Impl::read(std::size_t offset, std::byte* to, std::size_t bytes) const noexcept {
    const auto read_part = [&](std::size_t part) {
        const std::size_t inside = offset % kWordBytes;
        const std::uint32_t value = word(offset - inside);
        std::memcpy(to, reinterpret_cast<const std::byte*>(&value) + inside, part);
        offset += part;
        to += part;
        bytes -= part;
    };
    if (offset % kWordBytes != 0) read_part(std::min(bytes, kWordBytes - offset % kWordBytes));
    const std::size_t whole = bytes / kWordBytes * kWordBytes;
    load_block(to, bank_ + offset, whole);
    offset += whole;
    to += whole;
    bytes -= whole;
    if (bytes != 0) read_part(bytes);
}

template <class C>
WriteResult Node::Impl::write(C& card, std::size_t offset, const std::byte* from,
                              std::size_t bytes) {
    check_range(offset, bytes);
    if (bytes == 0) return WriteResult::ok;
    if (!card.room(bytes + kCompletedBytes)) return refusal();
    write_bytes(card, offset, from, bytes);
    card.commit();
    return WriteResult::ok;
}

WriteResult Node::Impl::write_part(std::size_t offset, std::uint32_t value, WordPart part) {
    const auto held = hold();
    if (card_->write_at_once(offset, value, part)) return WriteResult::ok;
    if (!card_->room(kWordBytes)) return refusal();
    if (part == kWholeWord) {
        card_->write(offset, &value, kWordBytes);
    } else {
        card_->write_part(offset, value, part);
    }
    card_->commit();
    return WriteResult::ok;
}

template <class C>
std::uint32_t Node::Impl::wait_change(C& card, std::size_t offset, std::uint32_t old,
                                      Deadline deadline) {
    card.before_load(1);
    std::uint32_t value = word(offset);
    if (value != old) return value;
    const std::int64_t since = now_ns();
    auto held = hold();
    card.begin_wait(offset);
    bool expired = false;
    while (value == old && !expired) {
        expired = card.wait(deadline) == Step::expired;
        value = word(offset);
        if (held.is_awaited()) [[unlikely]]
            give_way(card, held, offset);
    }
    if (value != old) card.has_seen(offset, value, since);
    card.end_wait();
    return value;
}

// ---- Joining

Node Node::open() {
    return open(Await::read().others.value_or(true));
}

Node Node::open(bool awaits_others) {
    const auto timeout = Environment::read().join_timeout_ns.value_or(kDefaultJoinTimeoutNs);
    const Deadline deadline = Deadline::in(timeout);
    for (;;) {
        Node node(std::make_unique<Impl>(open_card()));
        if (!awaits_others || node.await(deadline)) return node;
        // On link udp rings that have begun side by side become one, and this was of the other.
        if (node.is_member() || deadline.passed(now_ns())) {
            throw Error(Errc::timed_out, not_come(node.ring(), {node.rank(), node.id()}));
        }
    }
}

bool Node::await(Deadline deadline) {
    const Ring* const ring = impl_->card().ring();
    if (ring == nullptr) return true;  // the nodes of a world are there from its beginning
    const unsigned expected = Await::read().expected(config().ranks, rank());
    JoinNotice notice(now_ns());
    for (auto pause = kShortestPause;; pause = std::min(2 * pause, kLongestPause)) {
        impl_->card().poll();
        if (!is_member()) return false;
        const auto missing = missing_nodes(*ring, expected);
        if (missing.empty()) return true;
        const std::int64_t now = now_ns();
        if (deadline.passed(now)) return false;
        if (notice.is_due(now)) {
            const std::string names = names_of_nodes(missing) + heard_of_others(*ring);
            notice.tell(rank(), config().name, names);
        }
        std::this_thread::sleep_for(pause);
    }
}

bool Node::is_alone() const noexcept {
    const Ring* const ring = impl_->card().ring();
    return ring != nullptr && rmem::is_alone(*ring, id());
}

Node::Node(const RingConfig& config, Member member)
    : Node(Ring::open(config, Deadline::in(kDefaultJoinTimeoutNs), member.node), member) {}

Node::Node(std::shared_ptr<Ring> ring, Member member)
    : Node(std::make_unique<Impl>(make_card(std::move(ring), member, false))) {}

Node::Node(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Node::Node(Node&&) noexcept = default;
Node::~Node() = default;

unsigned Node::id() const noexcept {
    return impl_->card().member().node;
}
unsigned Node::rank() const noexcept {
    return impl_->card().member().rank;
}
const RingConfig& Node::config() const noexcept {
    return impl_->card().config();
}
bool Node::is_alive(unsigned rank) const noexcept {
    return impl_->card().is_alive(rank);
}
bool Node::is_member() const noexcept {
    return impl_->card().is_member();
}
const Ring& Node::ring() const {
    if (const Ring* ring = impl_->card().ring()) return *ring;
    throw Error(Errc::unknown_link,
                fmt::format("the ring '{}' of a simulated process is not in shared memory; use "
                            "Node::config, or the functions of rmem/sim/world.hpp",
                            config().name));
}

// ---- Memory

std::size_t Node::size() const noexcept {
    return impl_->size();
}

const std::byte* Node::bank() {
    impl_->card().keep_applying();
    return impl_->memory();
}

std::byte* Node::stores(StoresMode mode) {
    Card& card = impl_->card();
    const Ring* const ring = card.ring();
    if (ring == nullptr) {
        throw Error(Errc::unknown_link,
                    "a simulated process (link sim) stores by Node::write alone: its memory is "
                    "no shared memory; use link direct, ring, udp or fabric");
    }
    card.keep_applying();
    if (impl_->is_direct()) return impl_->memory();
    if (impl_->captured() == nullptr) {
        impl_->capture(mode);
        if (mode == StoresMode::scan) {
            for (const WordRange& range : sync_words_setting())
                set_sync_words(range.offset, range.bytes);
        }
    }
    stores::stay_first();
    if (impl_->captured()->mode() == mode) return impl_->captured()->memory();
    throw Error(Errc::invalid_argument,
                fmt::format("the stores of this node are captured in the way {} already, and not "
                            "{} as well; ask for one of them",
                            name_of(impl_->captured()->mode()), name_of(mode)));
}

std::uint32_t Node::load(std::size_t offset) {
    impl_->check_word(offset);
    impl_->with_card([](auto& card) { card.before_load(1); });
    const std::uint32_t value = impl_->word(offset);
    note_load(impl_->card(), impl_->bank() + offset, value);
    return value;
}

void Node::read(std::size_t offset, void* to, std::size_t bytes) {
    impl_->check_range(offset, bytes);
    impl_->card().before_load((offset % kWordBytes + bytes + kWordBytes - 1) / kWordBytes);
    impl_->read(offset, static_cast<std::byte*>(to), bytes);
    if (bytes == 0) return;
    std::uint32_t first = 0;
    std::memcpy(&first, to, std::min(bytes, sizeof first));
    note_load(impl_->card(), impl_->bank() + offset, first);
}

WriteResult Node::write(std::size_t offset, const void* from, std::size_t bytes) {
    if (impl_->store_bytes(offset, from, bytes)) return WriteResult::ok;
    if (const std::size_t inside = offset % kWordBytes;
        inside + bytes <= kWordBytes && bytes != 0) {
        impl_->check_range(offset, bytes);
        return impl_->write_part(offset - inside, word_with(from, inside, bytes),
                                 part_of_word(inside, bytes));
    }
    const auto held = impl_->hold();
    return impl_->with_card([&](auto& card) {
        return impl_->write(card, offset, static_cast<const std::byte*>(from), bytes);
    });
}

WriteResult Node::write_group(std::span<const GroupedWrite> writes) {
    static_assert(kMaxGrouped == kMaxGroupWrites);
    if (writes.size() > kMaxGrouped) {
        throw Error(Errc::invalid_argument,
                    fmt::format("{} writes are too many for one group on ring '{}'; give at most "
                                "{}",
                                writes.size(), config().name, kMaxGrouped));
    }
    const auto held = impl_->hold();
    Card& card = impl_->card();
    std::size_t bytes = 0;
    for (const GroupedWrite& write : writes) {
        impl_->check_range(write.offset, write.bytes);
        if (write.bytes != 0) bytes += write.bytes + kCompletedBytes;
    }
    if (bytes == 0) return WriteResult::ok;
    if (!card.room(bytes)) return impl_->refusal();
    for (const GroupedWrite& write : writes)
        card.refuse_foreign(write.offset, write.from, write.bytes);
    for (const GroupedWrite& write : writes) {
        write_bytes(card, write.offset, static_cast<const std::byte*>(write.from), write.bytes);
    }
    card.commit();
    return WriteResult::ok;
}

WriteResult Node::publish(std::size_t offset, const void* from, std::size_t bytes) {
    impl_->check_published(offset, bytes);
    const std::uint32_t number = next_number(impl_->publications());
    const std::size_t end = offset + published_bytes(bytes);
    const GroupedWrite parts[] = {{offset, &number, kWordBytes},
                                  {offset + kWordBytes, from, bytes},
                                  {end - kWordBytes, &number, kWordBytes}};
    return write_group(parts);
}

/// The last word first: when it has come all before it has, and if the first word is the same then,
/// nothing of the next publication had come before that was looked at.
bool Node::snapshot(std::size_t offset, void* to, std::size_t bytes) {
    impl_->check_published(offset, bytes);
    const std::size_t end = offset + published_bytes(bytes);
    Card& card = impl_->card();
    for (unsigned looks = 0; looks < kSnapshotLooks; ++looks) {
        card.before_load((end - offset) / kWordBytes);
        const std::uint32_t number = impl_->word(end - kWordBytes);
        if (number == impl_->word(offset)) {
            if (number == 0) return false;
            impl_->read(offset + kWordBytes, static_cast<std::byte*>(to), bytes);
            if (number == impl_->word(offset)) return true;
        }
        card.give_way();
    }
    return false;
}

WriteResult Node::write_word(std::size_t offset, std::uint32_t value) {
    if (impl_->store_word(offset, value)) [[likely]]
        return WriteResult::ok;
    impl_->check_word(offset);
    return impl_->write_part(offset, value, kWholeWord);
}

WriteResult Node::write_part(std::size_t offset, std::uint32_t value, WordPart part) {
    impl_->check_word(offset);
    if ((part & kWholeWord) != part) {
        throw Error(Errc::invalid_argument,
                    "more bytes than a word has; give a bit for each, at most 0xf");
    }
    return part == 0 ? WriteResult::ok : impl_->write_part(offset, value, part);
}

bool Node::flush(Deadline deadline) {
    Card& card = impl_->card();
    if (impl_->captured() == nullptr) return card.flush(deadline);
    if (!impl_->captured()->await_taken(deadline)) return false;
    for (;;) {  // in slices, between which others may store
        auto held = impl_->hold();
        const Deadline slice = Deadline::in(CapturedStores::kLongestHoldNs);
        const bool is_last = deadline.at_ns <= slice.at_ns;
        if (card.flush(is_last ? deadline : slice)) return true;
        if (is_last || !card.is_member()) return false;
        held.give_way();
    }
}

void Node::poll() {
    impl_->card().poll();
    impl_->card().give_way();  // only the bank shows whether the awaited write is there
}

void Node::set_sync_words(std::size_t offset, std::size_t bytes) {
    check_watchable(config(), offset, bytes);
    impl_->check_word(offset);
    if (CapturedStores* const captured = impl_->captured()) captured->set_sync(offset, bytes);
}

std::uint32_t Node::wait_change(std::size_t offset, std::uint32_t old, Deadline deadline) {
    impl_->check_word(offset);
    return impl_->with_card(
        [&](auto& card) { return impl_->wait_change(card, offset, old, deadline); });
}

void Node::set_write_me_last(bool on) {
    const auto held = impl_->hold();
    impl_->card().set_write_me_last(on);
}
void Node::set_data_filter(bool on) {
    const auto held = impl_->hold();
    impl_->card().set_data_filter(on);
}

// ---- Interrupts

void Node::watch(std::size_t offset, std::size_t bytes, Trigger trigger) {
    const auto held = impl_->hold();
    impl_->card().interrupts().watch(offset, bytes, trigger);
}
void Node::unwatch(std::size_t offset, std::size_t bytes) {
    const auto held = impl_->hold();
    impl_->card().interrupts().unwatch(offset, bytes);
}
void Node::mark(std::size_t offset, std::size_t bytes) {
    const auto held = impl_->hold();
    impl_->card().interrupts().mark(offset, bytes);
}
void Node::unmark(std::size_t offset, std::size_t bytes) {
    const auto held = impl_->hold();
    impl_->card().interrupts().unmark(offset, bytes);
}

WriteResult Node::send_interrupt(unsigned to, unsigned number, std::uint32_t value) {
    Card& card = impl_->card();
    check_sendable(card.config(), to, number);
    const auto held = impl_->hold();
    if (!card.room(kRegisterBytes)) return impl_->refusal();
    card.send(number, {to, value});
    return WriteResult::ok;
}

void Node::accept_interrupts(std::uint64_t numbers) {
    const auto held = impl_->hold();
    impl_->card().interrupts().accept(numbers);
}

std::optional<Interrupt> Node::next_interrupt(Deadline deadline) {
    Card& card = impl_->card();
    CardInterrupts& interrupts = card.interrupts();
    auto held = impl_->hold();
    // One that is here already is not held up by what else there is to do.
    auto taken = interrupts.take();
    if (taken) return taken;
    card.poll();
    taken = interrupts.take();
    if (taken) return taken;
    if (deadline.passed(program_now_ns())) {
        card.give_way();
        return taken;
    }
    card.begin_wait(std::nullopt);
    bool expired = false;
    while (!taken && !expired) {
        expired = card.wait(deadline) == Step::expired;
        taken = interrupts.take();
        if (held.is_awaited()) [[unlikely]]
            impl_->give_way(card, held, std::nullopt);
    }
    card.end_wait();
    return taken;
}

int Node::interrupt_fd() {
    return impl_->card().interrupts().fd();
}

void Node::on_interrupt(std::function<void(const Interrupt&)> callback) {
    impl_->card().interrupts().on_interrupt(std::move(callback));
}

// ---- The bound

std::int64_t Node::bound_ns() const noexcept {
    return impl_->card().bound_ns();
}

const Histogram& Node::propagation() const noexcept {
    return impl_->card().propagation();
}

void Node::on_bound_violation(std::function<void(const BoundViolation&)> callback) {
    impl_->card().on_bound_violation(std::move(callback));
}

std::uint64_t Node::counter(LinkCounter id) const noexcept {
    return impl_->card().counter(id);
}

}  // namespace rmem
