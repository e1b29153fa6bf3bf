// SPDX-License-Identifier: Apache-2.0
#include "rmem/link/udp/protocol/snapshot.hpp"

#include "rmem/base/word_block.hpp"

#include <algorithm>
#include <atomic>

namespace rmem::udp {

namespace {

// A word's last batch in 64 bits: the origin above, the sequence below.
constexpr unsigned kSequenceBits = 48;
constexpr std::uint64_t kSequenceMask = (std::uint64_t{1} << kSequenceBits) - 1;

constexpr std::uint32_t kMaxRun = 255;  // parts: a place has 16 bits for its words
static_assert(kMaxRun * kPartWords <= UINT16_MAX);
constexpr std::size_t kMaxRuns = 32;  // of a request: they fit any datagram
static_assert(kMaxRuns * kMaxRun == kMaxPartsARequest);
constexpr std::int64_t kPartNs = 1'000;  // a donor's look at a part takes less
constexpr unsigned kMaxDoublings = 20;

static_assert(kHeaderBytes + kSectionHeadBytes + Chunk::kHeadBytes + kPartWords * kWordBytes +
                      kTagBytes <=
                  kLeastPayload,
              "a part that fits no datagram would be requested again forever");

}  // namespace

// ---- The joiner

SnapshotTaker::SnapshotTaker(std::uint64_t bank_words, std::uint64_t first_sequence, unsigned share,
                             unsigned shares)
    : words_(bank_words),
      first_sequence_(first_sequence),
      set_by_((bank_words + kPartWords - 1) / kPartWords),
      part_here_(set_by_.size()),
      requested_by_(set_by_.size()),
      next_part_(static_cast<std::uint32_t>(set_by_.size() * share / shares)) {}

void SnapshotTaker::note_write(unsigned origin, std::uint64_t sequence, const Place& place) {
    const std::uint64_t by = std::uint64_t{origin} << kSequenceBits | (sequence & kSequenceMask);
    for (std::uint64_t word = place.index; word < place.index + place.words; ++word) {
        std::unique_ptr<SetBy>& part = set_by_[word / kPartWords];
        if (!part) part = std::make_unique<SetBy>();
        if (place.part() != kWholeWord && !part->bytes) {
            part->bytes = std::make_unique<decltype(part->bytes)::element_type>();
            for (std::size_t i = 0; i < part->bytes->size(); ++i)
                (*part->bytes)[i] = part->words[i / kWordBytes];
        }
        part->words[word % kPartWords] = by;
        for (std::size_t i = 0; part->bytes && i < kWordBytes; ++i) {
            if ((place.part() >> i & 1) != 0)
                (*part->bytes)[word % kPartWords * kWordBytes + i] = by;
        }
    }
}

void SnapshotTaker::note_admission(unsigned origin, std::uint64_t first) noexcept {
    admitted_.insert(origin);
    departed_.erase(origin);
    first_[origin] = first;
    needed_[origin] = 0;
    if (first != first_sequence_) answers_.clear();  // they may not cover what it wrote before
    forget_writes(origin);
}

void SnapshotTaker::note_departure(unsigned origin) noexcept {
    admitted_.erase(origin);
    departed_.insert(origin);
    needed_[origin] = 0;
    forget_requests();
    forget_writes(origin);
}

void SnapshotTaker::forget_writes(unsigned origin) noexcept {
    for (const std::unique_ptr<SetBy>& part : set_by_) {
        if (!part) continue;
        part->for_each([origin](std::uint64_t& by) {
            if (by >> kSequenceBits == origin) by = 0;
        });
    }
}

Place SnapshotTaker::place_of(const Run& run) const noexcept {
    const std::uint64_t first = std::uint64_t{run.first} * kPartWords;
    const std::uint64_t words = std::uint64_t{run.count} * kPartWords;
    return {first, static_cast<std::uint16_t>(std::min(words, words_ - first)), 0};
}

std::int64_t SnapshotTaker::request_due_ns() const noexcept {
    if (here_ == parts()) return kNever;
    std::int64_t due = kNever;
    std::uint64_t open = 0;
    for (const Request& pending : requests_) {
        due = std::min(due, pending.again_ns);
        open += pending.open;
    }
    const bool has_more = here_ + open < parts();
    return has_more && requests_.size() < most_requests() ? 0 : due;
}

/// Its parts are free to be requested again.
void SnapshotTaker::release(const Request& request) noexcept {
    for (const Run& run : request.runs) {
        for (std::uint32_t part = run.first; part < run.first + run.count; ++part) {
            if (requested_by_[part] == request.number) requested_by_[part] = 0;
        }
    }
}

void SnapshotTaker::forget_requests() noexcept {
    for (const Request& pending : requests_) release(pending);
    requests_.clear();
    answers_.clear();
}

void SnapshotTaker::drop_lost(std::int64_t now) {
    std::erase_if(requests_, [&](const Request& pending) {
        if (pending.again_ns > now) return false;
        release(pending);
        if (!pending.has_parts) {
            ++lost_;
            most_parts_ = 1;
        }
        return true;
    });
}

/// For parts that are not here and not under way; for none, if there are no others.
SnapshotTaker::Request SnapshotTaker::next_request() {
    Request next;
    next.number = ++numbers_;
    const auto count = static_cast<std::uint32_t>(parts());
    for (std::uint32_t looked = 0; looked < count && next.open < most_parts_; ++looked) {
        const std::uint32_t part = next_part_;
        if (!part_here_[part] && requested_by_[part] == 0) {
            const bool goes_on = !next.runs.empty() && next.runs.back().count < kMaxRun &&
                                 next.runs.back().first + next.runs.back().count == part;
            if (!goes_on && next.runs.size() == kMaxRuns) break;
            if (!goes_on) next.runs.push_back({part, 0});
            ++next.runs.back().count;
            ++next.open;
        }
        next_part_ = (part + 1) % count;
    }
    return next;
}

bool SnapshotTaker::request(DatagramWriter& writer, const NodeIncarnation& donor,
                            std::int64_t now) {
    drop_lost(now);
    if (requests_.size() >= most_requests() || here_ == parts()) return false;
    Request next = next_request();
    if (next.open == 0 || !writer.begin_snapshot_request({donor, next.number})) return false;
    for (const Run& run : next.runs) {
        writer.add_part(place_of(run));
        const auto first = requested_by_.begin() + run.first;
        std::fill(first, first + run.count, next.number);
    }
    // An answer is many datagrams: it may take a while longer than one.
    const std::int64_t least =
        4 * times_.nak_retry_ns() + static_cast<std::int64_t>(next.open) * kPartNs;
    const std::int64_t longer = std::min(least << std::min(lost_, kMaxDoublings), kMaxAgainNs);
    next.again_ns = now + std::max(least, longer);
    requests_.push_back(std::move(next));
    return true;
}

const SnapshotTaker::Answer* SnapshotTaker::find(const RequestId& named) const noexcept {
    const auto found = std::find_if(answers_.begin(), answers_.end(),
                                    [&](const Answer& answer) { return answer.id == named; });
    return found == answers_.end() ? nullptr : &*found;
}

void SnapshotTaker::on_vector(const Vector& vector, std::uint64_t incarnation_sum,
                              const Applied& applied) {
    if (vector.incarnation_sum() != incarnation_sum || find(vector.request_id()) != nullptr) return;
    Answer answer;
    answer.id = vector.request_id();
    answer.origins = vector.origins();
    vector.for_each([&](unsigned origin, std::uint32_t low) {
        answer.positions[origin] = widened(low, applied(origin));
    });
    if (!covers_admissions(answer)) return;
    if (answers_.size() == kMaxAnswers) answers_.pop_front();
    answers_.push_back(answer);
}

/// What was written before this node was admitted comes with the bank or not at all; and a donor
/// that still takes a stream that has ended here does not have all of it that there is.
bool SnapshotTaker::covers_admissions(const Answer& answer) const {
    bool covers = true;
    departed_.for_each([&](unsigned origin) {
        if (answer.origins.contains(origin)) covers = false;
    });
    admitted_.for_each([&](unsigned origin) {
        if (!answer.origins.contains(origin) || answer.positions[origin] + 1 < first_[origin]) {
            covers = false;
        }
    });
    return covers;
}

/// Those bytes of the word that were set here later than the answer has them.
WordPart SnapshotTaker::newer_part(std::uint64_t word, const Answer& answer) const noexcept {
    const std::unique_ptr<SetBy>& part = set_by_[word / kPartWords];
    if (!part) return 0;
    const auto is_newer = [&](std::uint64_t by) {
        return by != 0 && (by & kSequenceMask) > answer.positions[by >> kSequenceBits];
    };
    const std::size_t at = word % kPartWords;
    if (!part->bytes) return is_newer(part->words[at]) ? kWholeWord : WordPart{0};
    unsigned newer = 0;
    for (std::size_t i = 0; i < kWordBytes; ++i)
        newer |= (is_newer((*part->bytes)[at * kWordBytes + i]) ? 1U : 0U) << i;
    return static_cast<WordPart>(newer);
}

void SnapshotTaker::store_part(std::uint32_t part, const Chunk& chunk, const Answer& answer,
                               const Store& store, const IsBlank& is_blank) {
    const Place place = place_of({part, 1});
    const bool is_there = chunk.is_zeros() && !set_by_[part] && is_blank(place);
    for (std::uint64_t i = 0; i < place.words && !is_there; ++i) {
        const auto older = static_cast<WordPart>(kWholeWord & ~newer_part(place.index + i, answer));
        if (older != 0) store(place.index + i, chunk.is_zeros() ? 0 : chunk.words()[i], older);
    }
    note_part(part, chunk.is_zeros());
}

/// It is here now, asked for or not.
void SnapshotTaker::note_part(std::uint32_t part, bool is_zeros) noexcept {
    part_here_[part] = true;
    ++here_;
    lost_ = 0;
    for (Request& pending : requests_) {
        if (pending.number != requested_by_[part]) continue;
        --pending.open;
        pending.has_parts = true;
        pending.has_words = pending.has_words || !is_zeros;
    }
}

void SnapshotTaker::end_answered() {
    std::erase_if(requests_, [this](const Request& pending) {
        if (pending.has_words) most_parts_ = std::min(most_parts_, kPartsARequest);
        if (pending.open != 0) return false;
        most_parts_ = pending.has_words ? std::min(2 * most_parts_, kPartsARequest)
                                        : std::min(kZerosGrow * most_parts_, kMaxPartsARequest);
        return true;
    });
}

void SnapshotTaker::on_chunk(const Chunk& chunk, const Store& store, const IsBlank& is_blank) {
    const Answer* const answer = find(chunk.request_id());
    const Place place = chunk.place();
    const std::uint64_t first = place.index / kPartWords;
    const std::uint64_t count = chunk.is_zeros() ? (place.words + kPartWords - 1) / kPartWords : 1;
    if (answer == nullptr || first >= parts() || count > parts() - first) return;
    const Run run{static_cast<std::uint32_t>(first), static_cast<std::uint32_t>(count)};
    if (place != place_of(run)) return;
    const std::uint64_t before = here_;
    for (std::uint32_t part = run.first; part < run.first + run.count; ++part) {
        if (!part_here_[part]) store_part(part, chunk, *answer, store, is_blank);
    }
    if (here_ == before) return;
    answer->origins.for_each([&](unsigned origin) {
        needed_[origin] = std::max(needed_[origin], answer->positions[origin]);
    });
    end_answered();
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

std::span<const std::byte> bytes_of(const DonorView& view, const Place& place) {
    return view.bank.subspan(place.index * kWordBytes, place.words * kWordBytes);
}

bool is_blank(const DonorView& view, const Place& place) {
    return view.is_blank && view.is_blank(place);
}

bool is_zeros(const DonorView& view, const Place& place) {
    const auto bytes = bytes_of(view, place);
    return is_zero_block(bytes.data(), kWordBytes) && is_zero_block(bytes.data(), bytes.size());
}

/// Adds this part of the bank; false without room.
bool add_words(DatagramWriter& writer, const RequestId& id, const Place& place,
               std::span<const std::byte> bytes) {
    std::byte* to = writer.add_chunk(id, place);
    if (to == nullptr) return false;
    for (std::size_t i = 0; i < place.words; ++i) {
        // relaxed is enough: the writer of this word here is in the streams, and the vector says
        // how far
        std::uint32_t word =
            std::atomic_ref<const std::uint32_t>(
                *reinterpret_cast<const std::uint32_t*>(bytes.data() + i * kWordBytes))
                .load(std::memory_order_relaxed);
        store(to + i * kWordBytes, word);
    }
    return true;
}

}  // namespace

void answer(const NodeIncarnation& joiner, const SnapshotRequest& request, const DonorView& view,
            const std::function<DatagramWriter&()>& begin, const std::function<void()>& send) {
    const RequestId id{joiner, request.request_id().number};
    DatagramWriter* writer = nullptr;
    const auto add = [&](auto&& put) {
        if (writer == nullptr) {
            writer = &begin();
            writer->add_vector(id, view.incarnation_sum, view.origins, view.positions);
        }
        if (put()) return;
        send();
        writer = &begin();
        put();
    };
    std::uint32_t left = kPartsARequest, looks = kMaxLooks, steps = kMaxPartsARequest;
    const auto give = [&](const Place& part) {
        if (view.given != nullptr) (*view.given)[part.index / kPartWords] = true;
    };
    for (const Place& asked : request.parts()) {
        if (!asked.is_inside(view.bank.size())) continue;
        Place zeros{asked.index, 0, 0};
        const auto end_zeros = [&] {
            if (zeros.words != 0) add([&] { return writer->add_zeros(id, zeros); });
        };
        const std::uint64_t end = asked.index + asked.words;
        for (Place part{asked.index, 0, 0}; part.index < end && looks != 0 && steps != 0;
             part.index += part.words, --steps) {
            part.words =
                static_cast<std::uint16_t>(std::min<std::uint64_t>(kPartWords, end - part.index));
            const bool is_given = view.given != nullptr && (*view.given)[part.index / kPartWords];
            if (!is_given && (is_blank(view, part) || (--looks, is_zeros(view, part)))) {
                give(part);
                zeros.words = static_cast<std::uint16_t>(zeros.words + part.words);
                continue;
            }
            end_zeros();
            zeros = {part.index + part.words, 0, 0};
            if (is_given || left == 0) continue;
            --left;
            give(part);
            add([&] { return add_words(*writer, id, part, bytes_of(view, part)); });
        }
        end_zeros();
    }
    if (writer != nullptr) send();
}

}  // namespace rmem::udp
