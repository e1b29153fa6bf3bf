// SPDX-License-Identifier: Apache-2.0
#include "rmem/link/udp/protocol/snapshot.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>

namespace rmem::udp {

namespace {

// A word's last batch in 64 bits: the origin above, the sequence below.
constexpr unsigned kSequenceBits = 48;
constexpr std::uint64_t kSequenceMask = (std::uint64_t{1} << kSequenceBits) - 1;

static_assert(kHeaderBytes + kSectionHeadBytes + Chunk::kHeadBytes + kPartWords * kWordBytes +
                      kTagBytes <=
                  kLeastPayload,
              "a part that fits no datagram would be requested again forever");

}  // namespace

// ---- The joiner

SnapshotTaker::SnapshotTaker(std::uint64_t bank_words)
    : words_(bank_words),
      set_by_(bank_words),
      part_here_((bank_words + kPartWords - 1) / kPartWords),
      part_requested_(part_here_.size()) {}

void SnapshotTaker::note_write(unsigned origin, std::uint64_t sequence,
                               const Place& place) noexcept {
    const std::uint64_t by = std::uint64_t{origin} << kSequenceBits | (sequence & kSequenceMask);
    const auto first = set_by_.begin() + static_cast<std::ptrdiff_t>(place.index);
    std::fill(first, first + place.words, by);
}

void SnapshotTaker::note_admission(unsigned origin, std::uint64_t first) noexcept {
    admitted_.insert(origin);
    departed_.erase(origin);
    first_[origin] = first;
    needed_[origin] = 0;
    forget_writes(origin);
}

void SnapshotTaker::note_departure(unsigned origin) noexcept {
    admitted_.erase(origin);
    departed_.insert(origin);
    needed_[origin] = 0;
    requests_.clear();
    forget_writes(origin);
}

void SnapshotTaker::forget_writes(unsigned origin) noexcept {
    for (std::uint64_t& by : set_by_) {
        if (by >> kSequenceBits == origin) by = 0;
    }
}

Place SnapshotTaker::place_of(std::uint32_t part) const noexcept {
    const std::uint64_t first = std::uint64_t{part} * kPartWords;
    return {first, static_cast<std::uint16_t>(std::min<std::uint64_t>(kPartWords, words_ - first)),
            0};
}

std::int64_t SnapshotTaker::request_due_ns() const noexcept {
    if (here_ == parts()) return kNever;
    std::int64_t due = kNever;
    std::uint64_t open = 0;
    for (const Request& pending : requests_) {
        due = std::min(due, pending.again_ns);
        for (const std::uint32_t part : pending.parts) open += part_here_[part] ? 0U : 1U;
    }
    const bool has_more = here_ + open < parts();
    return has_more && requests_.size() < kMostRequests ? 0 : due;
}

/// What was not answered in time is free to be requested again.
void SnapshotTaker::drop_lost(std::int64_t now) {
    std::erase_if(requests_, [now](const Request& pending) { return pending.again_ns <= now; });
    std::fill(part_requested_.begin(), part_requested_.end(), false);
    for (const Request& pending : requests_) {
        for (const std::uint32_t part : pending.parts) part_requested_[part] = true;
    }
}

bool SnapshotTaker::request(DatagramWriter& writer, const NodeIncarnation& donor,
                            std::int64_t now) {
    drop_lost(now);
    if (requests_.size() >= kMostRequests || here_ == parts()) return false;
    Request pending;
    pending.number = ++numbers_;
    const auto count = static_cast<std::uint32_t>(parts());
    for (std::uint32_t looked = 0; looked < count && pending.parts.size() < kPartsARequest;
         ++looked) {
        const std::uint32_t part = next_part_;
        next_part_ = (next_part_ + 1) % count;
        if (!part_here_[part] && !part_requested_[part]) pending.parts.push_back(part);
    }
    if (pending.parts.empty() || !writer.begin_snapshot_request({donor, pending.number}))
        return false;
    for (const std::uint32_t part : pending.parts) writer.add_part(place_of(part));
    // An answer is many datagrams: it may take a while longer than one.
    pending.again_ns = now + 4 * times_.nak_retry_ns();
    requests_.push_back(std::move(pending));
    return true;
}

SnapshotTaker::Request* SnapshotTaker::find(const RequestId& named) noexcept {
    const auto found =
        std::find_if(requests_.begin(), requests_.end(),
                     [&](const Request& pending) { return pending.number == named.number; });
    return found == requests_.end() ? nullptr : &*found;
}

void SnapshotTaker::on_vector(const Vector& vector, std::uint64_t incarnation_sum,
                              const Applied& applied) {
    Request* pending = find(vector.request_id());
    if (pending == nullptr || pending->has_vector || vector.incarnation_sum() != incarnation_sum)
        return;
    pending->origins = vector.origins();
    vector.for_each([&](unsigned origin, std::uint32_t low) {
        pending->positions[origin] = widened(low, applied(origin));
    });
    pending->has_vector = covers_admissions(*pending);
}

/// What was written before this node was admitted comes with the bank or not at all; and a donor
/// that still takes a stream that has ended here does not have all of it that there is.
bool SnapshotTaker::covers_admissions(const Request& pending) const {
    bool covers = true;
    departed_.for_each([&](unsigned origin) {
        if (pending.origins.contains(origin)) covers = false;
    });
    admitted_.for_each([&](unsigned origin) {
        if (!pending.origins.contains(origin) || pending.positions[origin] + 1 < first_[origin]) {
            covers = false;
        }
    });
    return covers;
}

bool SnapshotTaker::is_newer(std::uint64_t word, const Request& pending) const noexcept {
    const std::uint64_t by = set_by_[word];
    return by != 0 && (by & kSequenceMask) > pending.positions[by >> kSequenceBits];
}

bool SnapshotTaker::is_all_here(const Request& pending) const noexcept {
    return std::all_of(pending.parts.begin(), pending.parts.end(),
                       [this](std::uint32_t part) { return part_here_[part]; });
}

void SnapshotTaker::on_chunk(const Chunk& chunk, const Store& store) {
    Request* pending = find(chunk.request_id());
    const Place place = chunk.place();
    const std::uint64_t part = place.index / kPartWords;
    if (pending == nullptr || !pending->has_vector || part >= parts()) return;
    const auto number = static_cast<std::uint32_t>(part);
    if (place != place_of(number) || part_here_[number]) return;
    const auto& requested = pending->parts;
    if (std::find(requested.begin(), requested.end(), number) == requested.end()) return;
    for (std::uint64_t i = 0; i < place.words; ++i) {
        if (is_newer(place.index + i, *pending)) continue;
        store(place.index + i, chunk.is_zeros() ? 0 : chunk.words()[i]);
    }
    part_here_[number] = true;
    ++here_;
    pending->origins.for_each([&](unsigned origin) {
        needed_[origin] = std::max(needed_[origin], pending->positions[origin]);
    });
    if (is_all_here(*pending)) {
        std::erase_if(requests_, [n = pending->number](const Request& q) { return q.number == n; });
    }
}

bool SnapshotTaker::is_complete(const Applied& applied) const {
    if (here_ != parts()) return false;
    for (unsigned origin = 0; origin < kMaxNodes; ++origin) {
        if (needed_[origin] != 0 && applied(origin) < needed_[origin]) return false;
    }
    return true;
}

// ---- The donor

namespace {

/// Adds this part of the bank; false without room.
bool add_part(DatagramWriter& writer, const RequestId& id, const Place& place,
              std::span<const std::byte> bank) {
    const auto words = bank.subspan(place.index * kWordBytes, place.words * kWordBytes);
    const bool is_zeros =
        std::all_of(words.begin(), words.end(), [](std::byte b) { return b == std::byte{0}; });
    if (is_zeros) return writer.add_zeros(id, place);
    std::byte* to = writer.add_chunk(id, place);
    if (to == nullptr) return false;
    for (std::size_t i = 0; i < place.words; ++i) {
        // relaxed is enough: the writer of this word here is in the streams, and the vector says
        // how far
        std::uint32_t word =
            std::atomic_ref<const std::uint32_t>(
                *reinterpret_cast<const std::uint32_t*>(words.data() + i * kWordBytes))
                .load(std::memory_order_relaxed);
        store(to + i * kWordBytes, word);
    }
    return true;
}

}  // namespace

void answer(const NodeIncarnation& joiner, const SnapshotRequest& request, const DonorView& view,
            const std::function<DatagramWriter&()>& begin, const std::function<void()>& send) {
    const RequestId id{joiner, request.request_id().number};
    DatagramWriter* writer = &begin();
    writer->add_vector(id, view.incarnation_sum, view.origins, view.positions);
    for (const Place& place : request.parts()) {
        if (!place.is_inside(view.bank.size()) || place.words > kPartWords) continue;
        if (add_part(*writer, id, place, view.bank)) continue;
        send();
        writer = &begin();
        add_part(*writer, id, place, view.bank);
    }
    send();
}

}  // namespace rmem::udp
