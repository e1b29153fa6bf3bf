// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The bank for a node that joins, while all others go on writing.
///
/// The joiner takes all streams from where it was admitted, and applies them to its bank at once.
/// It requests the bank of its donor in parts, some at a time; each answer is of one instant, at
/// which the donor had applied each stream up to a position. A word that a later batch than that
/// has set here already is newer than the answer's, and stays.
///
///     SnapshotTaker taker(bank words, origins);                    // the joiner
///     taker.note_write(origin, sequence, place);                   // for each write applied
///     taker.request(writer, donor, now); …                         // when request_due_ns() says
///     so taker.on_vector(vector, applied); taker.on_chunk(chunk, now, store);
///     taker.is_complete(applied)
///
///     answer(joiner, request, view, begin, send);                  // the donor
///
/// Why it is consistent: a word's last write before a stream's position p is in the answer if p is
/// at or below the vector's, and was applied here, later than the answer or marked as newer, if it
/// is above. When each stream is applied up to the greatest position of any answer, that is so for
/// every word.
///
/// Threads: one user at a time. Progress: no call waits; the joiner takes 8 bytes a word of the
/// bank until it is complete.
/// Trust: places are held against the bank, request ids against those of this joiner; positions
/// only make it wait.
/// Units: nanoseconds; places in words.

#include "rmem/base/time.hpp"
#include "rmem/link/udp/protocol/datagram.hpp"
#include "rmem/link/udp/protocol/datagram_writer.hpp"
#include "rmem/link/udp/protocol/retransmit_times.hpp"

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <span>
#include <vector>

namespace rmem::udp {

inline constexpr std::uint32_t kPartWords =
    256;  ///< of one chunk: it fits the smallest payload limit's datagram
inline constexpr unsigned kPartsARequest =
    32;  ///< answered by this number of datagrams at once, and a vector
inline constexpr unsigned kMostRequests = 4;  ///< under way

class RMEM_API SnapshotTaker {
public:
    using Applied = std::function<std::uint64_t(unsigned origin)>;
    /// Stores words at a word index.
    using Store = std::function<void(std::uint64_t index, std::uint32_t value)>;

    explicit SnapshotTaker(std::uint64_t bank_words);

    /// An incarnation of the origin: its stream is taken from there on, answers must cover all
    /// before it. Takes the time of a look at each word.
    void note_admission(unsigned origin, std::uint64_t first) noexcept;
    /// Its incarnation has ended: nothing is awaited of it any more. A donor that knows that, too,
    /// has all that any survivor has of it; what was asked before is to be requested again.
    void note_departure(unsigned origin) noexcept;
    /// This place was set by that batch of the origin.
    void note_write(unsigned origin, std::uint64_t sequence, const Place& place) noexcept;

    // ---- Asking
    void set_times(const RetransmitTimes& times) noexcept { times_ = times; }
    /// When there is something to ask; kNever when all is here.
    std::int64_t request_due_ns() const noexcept;
    /// Adds a request to the donor to the datagram. False when none is due, or there is no room.
    bool request(DatagramWriter& writer, const NodeIncarnation& donor, std::int64_t now);
    /// Another donor: what was asked and not answered is to be requested again.
    void forget_requests() noexcept { requests_.clear(); }

    // ---- Answers
    /// `incarnation_sum`: of the origins that it names, as the joiner knows them; a donor that
    /// means others has not answered.
    void on_vector(const Vector& vector, std::uint64_t incarnation_sum, const Applied& applied);
    /// Before its vector a chunk says nothing, and is requested again.
    void on_chunk(const Chunk& chunk, const Store& store);

    /// All parts are here, and each stream is applied up to where an answer had it.
    bool is_complete(const Applied& applied) const;
    std::uint64_t parts() const noexcept { return part_here_.size(); }
    std::uint64_t parts_here() const noexcept { return here_; }

private:
    struct Request {
        std::uint32_t number = 0;
        std::int64_t again_ns = 0;  ///< when it counts as lost
        std::vector<std::uint32_t> parts;
        bool has_vector = false;
        NodeSet origins;
        std::array<std::uint64_t, kMaxNodes> positions{};
    };

    Place place_of(std::uint32_t part) const noexcept;
    Request* find(const RequestId& named) noexcept;
    void drop_lost(std::int64_t now);
    void forget_writes(unsigned origin) noexcept;
    bool is_newer(std::uint64_t word, const Request& pending) const noexcept;
    bool covers_admissions(const Request& pending) const;
    bool is_all_here(const Request& pending) const noexcept;

    std::uint64_t words_;
    std::vector<std::uint64_t> set_by_;  ///< of each word: origin and sequence; 0: by none
    std::vector<bool> part_here_, part_requested_;
    std::uint64_t here_ = 0;
    std::uint32_t next_part_ = 0;  ///< where the search for one to ask for begins
    std::uint32_t numbers_ = 0;
    std::deque<Request> requests_;
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
};

/// Answers a request at this instant: `begin` begins a datagram, `send` sends it; none fails when
/// the parts lie in the bank, others are passed over.
RMEM_API void answer(const NodeIncarnation& joiner, const SnapshotRequest& request,
                     const DonorView& view, const std::function<DatagramWriter&()>& begin,
                     const std::function<void()>& send);

}  // namespace rmem::udp
