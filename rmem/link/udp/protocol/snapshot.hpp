// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The bank for a node that joins, while all others go on writing.
///
/// The joiner takes all streams from where it was admitted, and applies them to its bank at once.
/// It requests the bank of its donor in parts, some at a time; each answer is of one instant, at
/// which the donor had applied each stream up to a position. A word, or a byte, that a later batch
/// than that has set here already is newer than the answer's, and stays. All hear each answer, so a
/// joiner also takes what the donor answers to others, and what comes later than it was waited for.
///
///     SnapshotTaker taker(bank words);                             // the joiner
///     taker.note_write(origin, sequence, place);                   // for each write applied
///     taker.request(writer, donor, now); …                         // when request_due_ns() says
///     so taker.on_vector(vector, applied); taker.on_chunk(chunk, store, is_blank);
///     taker.is_complete(applied)
///
///     answer(joiner, request, view, begin, send);                  // the donor
///
/// Why it is consistent: a word's last write before a stream's position p is in the answer if p is
/// at or below the vector's, and was applied here, later than the answer or marked as newer, if it
/// is above. When each stream is applied up to the greatest position of any answer, that is so for
/// every word.
///
/// Threads: one user at a time. Progress: no call waits; until the bank is complete the joiner
/// takes 8 bytes for each word of the parts that streams write, or each byte of those of which
/// they write bytes.
/// Trust: places are held against the bank; positions only make it wait. Answers are the donor's.
/// Units: nanoseconds; places in words.

#include "rmem/base/time.hpp"
#include "rmem/link/udp/protocol/datagram.hpp"
#include "rmem/link/udp/protocol/datagram_writer.hpp"
#include "rmem/link/udp/protocol/retransmit_times.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <vector>

namespace rmem::udp {

inline constexpr std::uint32_t kPartWords =
    256;  ///< of one chunk: it fits the smallest payload limit's datagram
/// An answer has words of this number of parts at the most, a datagram each, and a vector. The
/// first request is for one part, and each that is answered doubles that. Zeros take no room: where
/// nothing else comes the next one is for kZerosGrow times as many, up to the third number (8 MiB,
/// as many as a request can name). A donor looks at the words of kMaxLooks parts (1 MiB: 100 µs),
/// but for what was never touched.
inline constexpr std::uint32_t kPartsARequest = 32;
inline constexpr std::uint32_t kZerosGrow = 32;
inline constexpr std::uint32_t kMaxPartsARequest = 8160;
inline constexpr std::uint32_t kMaxLooks = 1024;
inline constexpr unsigned kMaxRequests = 4;  ///< under way, as soon as they are large
inline constexpr unsigned kMaxAnswers = 16;  ///< of which the rest may still come
/// A request whose answer is lost, or cannot be used (the donor has not met all that the joiner
/// has), is made again after a time that doubles up to this, and alone: where many nodes join at a
/// time, they would else ask faster than they can come to know each other.
inline constexpr std::int64_t kMaxAgainNs = 50'000'000;

class RMEM_API SnapshotTaker {
public:
    using Applied = std::function<std::uint64_t(unsigned origin)>;
    /// Stores a word, or a part of it, at a word index.
    using Store = std::function<void(std::uint64_t index, std::uint32_t value, WordPart part)>;
    /// Whether a part of the bank is zeros already, where neither a stream nor an answer has
    /// written: so a bank that was never used is not stored into.
    using IsBlank = std::function<bool(const Place&)>;

    /// `first_sequence`: of each stream. `share` of `shares`: where it begins to ask, so that many
    /// joiners ask for different parts.
    explicit SnapshotTaker(std::uint64_t bank_words, std::uint64_t first_sequence = 1,
                           unsigned share = 0, unsigned shares = 1);

    /// An incarnation of the origin: its stream is taken from there on, answers must cover all
    /// before it. Takes the time of a look at each word.
    void note_admission(unsigned origin, std::uint64_t first) noexcept;
    /// Its incarnation has ended: nothing is awaited of it any more. A donor that knows that, too,
    /// has all that any survivor has of it; what was asked before is to be requested again.
    void note_departure(unsigned origin) noexcept;
    /// This place was set by that batch of the origin.
    void note_write(unsigned origin, std::uint64_t sequence, const Place& place);

    // ---- Asking
    void set_times(const RetransmitTimes& times) noexcept { times_ = times; }
    /// When there is something to ask; kNever when all is here.
    std::int64_t request_due_ns() const noexcept;
    /// Adds a request to the donor to the datagram. False when none is due, or there is no room.
    bool request(DatagramWriter& writer, const NodeIncarnation& donor, std::int64_t now);
    /// Another donor: what was asked and not answered is to be requested again, and what the former
    /// one has answered is not taken any more.
    void forget_requests() noexcept;

    // ---- Answers, of the donor, to whomever
    /// `incarnation_sum`: of the origins that it names, as the joiner knows them; a donor that
    /// means others has not answered.
    void on_vector(const Vector& vector, std::uint64_t incarnation_sum, const Applied& applied);
    /// Before its vector a chunk says nothing, and is requested again.
    void on_chunk(const Chunk& chunk, const Store& store, const IsBlank& is_blank);

    /// All parts are here, and each stream is applied up to where an answer had it.
    bool is_complete(const Applied& applied) const;
    std::uint64_t parts() const noexcept { return part_here_.size(); }
    std::uint64_t parts_here() const noexcept { return here_; }

private:
    struct Run {
        std::uint32_t first = 0, count = 0;  ///< parts
    };
    struct Request {
        std::uint32_t number = 0;
        std::int64_t again_ns = 0;  ///< when it counts as lost
        std::vector<Run> runs;
        std::uint64_t open = 0;  ///< parts that are not here
        bool has_parts = false;  ///< some have come,
        bool has_words = false;  ///< and not only zeros
    };
    /// What a vector has said, if it can be used.
    struct Answer {
        RequestId id;
        NodeSet origins;
        std::array<std::uint64_t, kMaxNodes> positions{};
    };

    Place place_of(const Run& run) const noexcept;
    const Answer* find(const RequestId& named) const noexcept;
    void note_part(std::uint32_t part, bool is_zeros) noexcept;
    void end_answered();
    unsigned most_requests() const noexcept {
        return lost_ == 0 && most_parts_ >= kPartsARequest ? kMaxRequests : 1;
    }
    void drop_lost(std::int64_t now);
    void release(const Request& request) noexcept;
    [[nodiscard]] Request next_request();
    void store_part(std::uint32_t part, const Chunk& chunk, const Answer& answer,
                    const Store& store, const IsBlank& is_blank);
    void forget_writes(unsigned origin) noexcept;
    WordPart newer_part(std::uint64_t word, const Answer& answer) const noexcept;
    bool covers_admissions(const Answer& answer) const;

    std::uint64_t words_;
    std::uint64_t first_sequence_;
    /// Of each word of a part: origin and sequence of the batch that set it last; 0: none did. And
    /// once a batch has set bytes of one, of each of its bytes in place of that.
    struct SetBy {
        std::array<std::uint64_t, kPartWords> words{};
        std::unique_ptr<std::array<std::uint64_t, kPartWords * kWordBytes>> bytes;

        template <class Visit>
        void for_each(Visit visit) {
            std::for_each(words.begin(), words.end(), visit);
            if (bytes) std::for_each(bytes->begin(), bytes->end(), visit);
        }
    };
    std::vector<std::unique_ptr<SetBy>> set_by_;  ///< of each part that a stream has written
    std::vector<bool> part_here_;
    std::vector<std::uint32_t> requested_by_;  ///< of each part: the request under way; 0: none
    std::uint32_t most_parts_ = 1;             ///< of the next request
    unsigned lost_ = 0;                        ///< in a row, of which nothing has come
    std::uint64_t here_ = 0;
    std::uint32_t next_part_ = 0;  ///< where the search for one to ask for begins
    std::uint32_t numbers_ = 0;
    std::deque<Request> requests_;
    std::deque<Answer> answers_;  ///< the last ones
    NodeSet admitted_, departed_;
    std::array<std::uint64_t, kMaxNodes> first_{};  ///< of each of these: it is taken from there on
    std::array<std::uint64_t, kMaxNodes> needed_{};  ///< of each stream
    RetransmitTimes times_;
};

/// What a donor needs to answer a question.
struct DonorView {
    NodeSet origins;
    std::uint64_t incarnation_sum = 0;                 ///< sum_of_incarnations() of them
    std::array<std::uint64_t, kMaxNodes> positions{};  ///< in the bank, of each origin
    std::span<const std::byte> bank;
    std::function<bool(const Place&)> is_blank;  ///< zeros, without a look; no is always right
    /// Parts that all have just been given, which are not answered again; null: none.
    std::vector<bool>* given = nullptr;
};

/// Answers a request at this instant: `begin` begins a datagram, `send` sends it; none fails when
/// the parts lie in the bank, others are passed over, as are those beyond kPartsARequest that are
/// not zeros.
RMEM_API void answer(const NodeIncarnation& joiner, const SnapshotRequest& request,
                     const DonorView& view, const std::function<DatagramWriter&()>& begin,
                     const std::function<void()>& send);

}  // namespace rmem::udp
