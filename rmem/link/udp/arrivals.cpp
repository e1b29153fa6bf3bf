// SPDX-License-Identifier: Apache-2.0
#include "rmem/link/udp/arrivals.hpp"

#include "rmem/base/check.hpp"
#include "rmem/link/memory.hpp"
#include "rmem/ring/node_slot.hpp"

#include <algorithm>
#include <bit>

namespace rmem::udp {

namespace {

constexpr std::size_t kMaxViolations = 64;

/// The words of a write, or the bytes. The first one is stored last if it may be the flag of the
/// others.
void store(const Bank& bank, const Place& place, const Words& words, bool any_twin) noexcept {
    const std::size_t offset = place.index * kWordBytes;
    if (place.part() != kWholeWord)
        return bank.store_part(offset, words[0], place.part(), any_twin);
    if constexpr (std::endian::native == std::endian::little) {
        bank.store(offset, words.bytes().data(), words.bytes().size(), any_twin,
                   words.size() <= kLinePostWords);
    } else {
        for (std::size_t i = words.size(); i-- > 0;)
            bank.store_word(offset + i * kWordBytes, words[i], any_twin);
    }
}

/// Nanoseconds, rounded up: never early.
constexpr std::int64_t up_to_ns(std::uint64_t ps) noexcept {
    return static_cast<std::int64_t>((ps + 999) / 1000);
}

}  // namespace

Arrivals::Arrivals(Ring& ring, unsigned node, InterruptBoard& interrupts, Roster& roster, Tap& tap)
    : ring_(ring),
      node_(node),
      slot_(ring.node(node)),
      bank_(ring, node),
      applier_(ring, ring.board().applier),
      interrupts_(interrupts),
      roster_(roster),
      tap_(tap),
      punctuality_(ring.config(), slot_),
      keeps_time_(ring.config().timing.instant == 0),
      wire_free_ns_(ring.config().nodes),
      deferred_(ring.config().nodes),
      taken_(ring.config().nodes) {}

/// When the card here would have the last word of a write.
std::int64_t Arrivals::card_time(unsigned origin, std::size_t words,
                                 std::int64_t written) noexcept {
    const TimingProfile& timing = ring_.config().timing;
    const std::size_t most = std::max<std::size_t>(timing.packet_bytes / kWordBytes, 1);
    const std::size_t full = (words - 1) / most;
    const auto rest = static_cast<std::uint32_t>(words - full * most);
    const std::uint64_t own = packet_ps(timing, rest);
    const std::uint64_t ahead =
        full * (packet_ps(timing, static_cast<std::uint32_t>(most)) + gap_ps(timing));
    const unsigned hops = (node_ + ring_.config().nodes - origin) % ring_.config().nodes;
    const std::int64_t start =
        std::max(written + up_to_ns(timing.insertion_ps), wire_free_ns_[origin]) + up_to_ns(ahead);
    wire_free_ns_[origin] = start + up_to_ns(own + gap_ps(timing));
    return start + up_to_ns(own + hops * (timing.node_delay_ps + timing.cable_ps));
}

void Arrivals::take(unsigned origin, const Batch& batch, std::optional<RoundTrip::Estimate> written,
                    std::int64_t now, Showing showing) {
    taken_[origin] = batch.sequence();
    const bool is_timed = keeps_time_ && written && showing == Showing::in_time;
    if (!is_timed && deferred_[origin].empty()) return apply(origin, batch, written, now);
    const auto records = batch.records();
    for (auto next = records.begin(); next != records.end();) {
        const Record record = *next;
        ++next;
        Write write{record.place, origin, written, now, batch.sequence(), next != records.end()};
        if (is_timed) {
            // What is here was written before now, whatever its origin says.
            const std::int64_t latest = std::min(written->value_ns + written->error_ns, now);
            write.due_ns = std::max(now, card_time(origin, record.place.words, latest));
        }
        if (write.due_ns <= now && deferred_[origin].empty()) {
            apply(write, record.words, now);
            continue;
        }
        RMEM_CHECK_IF(false, deferred_[origin].empty() ||
                                 deferred_[origin].back().write.sequence <= write.sequence);
        ++deferred_count_;
        const auto bytes = record.words.bytes();
        deferred_[origin].push_back({write, {bytes.begin(), bytes.end()}});
        due_ns_ = std::min(due_ns_, write.due_ns);
    }
}

/// A batch that nothing holds back. Its writes have one time of coming: all are measured at once.
void Arrivals::apply(unsigned origin, const Batch& batch,
                     std::optional<RoundTrip::Estimate> written, std::int64_t now) {
    std::uint64_t writes = 0;
    std::size_t words = 0;
    const auto records = batch.records();
    for (auto next = records.begin(); next != records.end();) {
        const Record record = *next;
        ++next;
        put({record.place, origin, written, now, batch.sequence(), next != records.end()},
            record.words, now);
        ++writes;
        words += record.place.words;
    }
    count(writes, words);
    if (!written || writes == 0 || (!keeps_time_ && measure(origin, *written, writes, now))) return;
    for (const Record& record : records) {
        measure({record.place, origin, written, now, batch.sequence()}, now);
    }
}

void Arrivals::apply(const Write& write, const Words& words, std::int64_t now) {
    put(write, words, now);
    count(1, write.place.words);
    measure(write, now);
}

void Arrivals::count(std::uint64_t writes, std::size_t words) noexcept {
    slot_.link.add(LinkCounter::writes_applied, writes);
    slot_.link.add(LinkCounter::bytes_applied, words * kWordBytes);
}

void Arrivals::put(const Write& write, const Words& words, std::int64_t now) {
    const std::size_t offset = write.place.index * kWordBytes;
    {
        const Applying applying(applier_, offset, words.size(), write.place.part());
        store(bank_, write.place, words, applying.any_twin());
    }
    any_ = true;
    any_of_users_ = any_of_users_ || offset < ring_.config().user_bytes;
    if (offset + write.place.words * kWordBytes > ring_.config().roster_offset()) {
        roster_.applied(offset, write.place.words);
    }
    if (tap_.is_open()) [[unlikely]]
        show(write, words, now);
    if (interrupts_.anyone_watches()) {
        interrupts_.applied(write.origin, offset, write.place.words * kWordBytes,
                            (write.place.flags & Place::kInterrupt) != 0);
    }
}

void Arrivals::show(const Write& write, const Words& words, std::int64_t now) noexcept {
    TappedWrite shown;
    shown.origin = write.origin;
    shown.written_ns = write.written ? std::min(write.written->value_ns, now) : now;
    shown.applied_ns = now;
    shown.offset = write.place.index * kWordBytes;
    shown.part = write.place.part();
    shown.is_interrupt = (write.place.flags & Place::kInterrupt) != 0;
    shown.has_more = write.has_more;
    tap_.show(shown, words.bytes());
}

void Arrivals::measure(const Write& write, std::int64_t now) {
    if (!write.written) return;  // its clock is not known yet
    Punctuality::Arrival arrival;
    arrival.origin = write.origin;
    arrival.offset = write.place.index * kWordBytes;
    arrival.words = write.place.words;
    arrival.written_ns = write.written->value_ns;
    arrival.doubt_ns = write.written->error_ns;
    arrival.due_ns = keeps_time_ ? write.due_ns : Punctuality::kWhenItComes;
    arrival.applied_ns = now;
    const auto violation = punctuality_.arrived(arrival);
    if (violation && violations_.size() < kMaxViolations) violations_.push_back(*violation);
    const std::int64_t propagation = std::max<std::int64_t>(now - arrival.written_ns, 0);
    ring_.node(write.origin).propagation.record(static_cast<std::uint64_t>(propagation));
}

/// That many writes at a time. False: one may have broken the bound, and none was recorded.
bool Arrivals::measure(unsigned origin, const RoundTrip::Estimate& written, std::uint64_t writes,
                       std::int64_t now) noexcept {
    const std::int64_t propagation = std::max<std::int64_t>(now - written.value_ns, 0);
    if (!punctuality_.arrived_in_time(propagation, written.error_ns, writes)) return false;
    ring_.node(origin).propagation.record(static_cast<std::uint64_t>(propagation), writes);
    return true;
}

void Arrivals::apply_due(std::int64_t now) {
    if (now >= due_ns_) apply_until(now, now);
}

void Arrivals::apply_until(std::int64_t due, std::int64_t now) {
    for (unsigned origin = 0; origin < deferred_.size(); ++origin) apply_until(origin, due, now);
    find_due();
}

void Arrivals::find_due() noexcept {
    due_ns_ = kNever;
    for (const auto& deferred : deferred_) {
        if (!deferred.empty()) due_ns_ = std::min(due_ns_, deferred.front().write.due_ns);
    }
}

void Arrivals::apply_until(unsigned origin, std::int64_t due, std::int64_t now) {
    for (auto& deferred = deferred_[origin];
         !deferred.empty() && deferred.front().write.due_ns <= due;) {
        apply(deferred.front().write, Words(deferred.front().words), now);
        deferred.pop_front();
        published_.insert(origin);
    }
}

void Arrivals::apply_all_of(unsigned origin, std::int64_t now) {
    apply_until(origin, kNever, now);
    find_due();
    wire_free_ns_[origin] = 0;
}

std::uint64_t Arrivals::behind(unsigned origin) const noexcept {
    if (deferred_[origin].empty()) return 0;
    return taken_[origin] - deferred_[origin].front().write.sequence + 1;
}

}  // namespace rmem::udp
