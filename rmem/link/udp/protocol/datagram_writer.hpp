// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Writing a datagram of the udp link (rmem/link/udp/protocol/format.hpp) into a buffer of the
/// caller's.
///
///     DatagramWriter writer(buffer);
///     writer.begin(header);
///     writer.begin_batch(sequence, now);
///     writer.add_record({index, words}, from);
///     const auto kept = writer.end_batch();              // for the history
///     writer.add_ack(ack);
///     std::span<std::byte> datagram = writer.finish();   // then the tag: covered(), tag()
///
/// Entries of one kind added in a row make one section. What does not fit is not written at all:
/// the function returns false (or nullptr), and the datagram stays as it was.
/// Callers owe: node ids below kMaxNodes, sequences from 1, places with words that end within
///   kPlaceIndices; a record that a reader would refuse is not added either.
/// Threads: one user at a time. Progress: no call waits or allocates.
/// Errors:  only the constructor throws, Error(invalid_argument).

#include "rmem/link/udp/protocol/format.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace rmem::udp {

/// Words of a batch's only record when the batch is as large as it may be.
constexpr std::size_t most_batch_words(std::size_t limit) noexcept {
    return (limit - kEnvelopeBytes - kSectionHeadBytes - kMaxBatchHeadBytes - Place::kBytes) /
           kWordBytes;
}

class RMEM_API DatagramWriter {
public:
    /// `limit`: the ring's payload limit, kLeastPayload to kMaxPayload; the buffer has that much.
    explicit DatagramWriter(std::span<std::byte> buffer, std::size_t limit = kDefaultPayload);

    // ---- The datagram

    /// The buffer of the next datagrams, as large as the first one.
    void use(std::span<std::byte> buffer) noexcept { data_ = buffer.data(); }
    /// Of the datagrams that are begun from now on; at most the constructor's.
    void set_limit(std::size_t limit) noexcept { end_ = limit - kTagBytes; }
    std::span<std::byte> buffer() const noexcept { return {data_, end_ + kTagBytes}; }
    /// Starts it again.
    void begin(const Header& header) noexcept;
    /// What its header says is known when it leaves.
    void restamp(std::uint64_t number, std::int64_t sent_ns, std::uint32_t newest) noexcept {
        Header::restamp(data_, number, sent_ns, newest);
    }
    /// Bytes for sections, their heads included, that are left.
    std::size_t room() const noexcept { return end_ - used_; }
    bool is_empty() const noexcept { return used_ == kHeaderBytes; }
    /// Makes it as long as the limit.
    void pad() noexcept;
    /// Sets its length, makes the tag zero. All of it; valid until the next begin().
    std::span<std::byte> finish() noexcept;
    /// After finish(): what the tag covers, and the tag.
    std::span<const std::byte> covered() const noexcept { return {data_, used_}; }
    std::span<std::byte> tag() noexcept { return {data_ + used_, kTagBytes}; }

    // ---- Batches

    /// `flags`: Section::kAckAtOnce.
    bool begin_batch(std::uint64_t sequence, std::int64_t first_store_ns,
                     std::uint8_t flags = 0) noexcept;
    /// Adds to the batch that has begun; `from` has `place.words` words of the host at any
    /// alignment.
    bool add_record(const Place& place, const void* from) noexcept;
    /// Words that one more record of the batch can have; 0: none fits.
    std::size_t record_room() const noexcept;
    /// What a history keeps: the batch's body, valid until the next begin().
    std::span<const std::byte> end_batch() noexcept;
    /// Before its end.
    void flag_batch(std::uint8_t flags) noexcept {
        if (is_last(SectionType::batch)) data_[last_ + 1] |= std::byte{flags};
    }
    /// A batch again: the body that end_batch() or Batch::body() gave.
    bool add_batch(std::span<const std::byte> body, std::uint8_t flags = 0) noexcept;
    /// A batch of another node. As batches leave room for that, one fits any datagram alone.
    bool add_forwarded(const MemberIncarnation& origin, std::span<const std::byte> body,
                       std::uint8_t flags = 0) noexcept;

    // ---- Entries

    /// `flags`: Section::kEnded.
    bool add_ack(const Ack& ack, std::uint8_t flags = 0) noexcept;
    /// `flags`: Section::kFromAnybody.
    bool add_nak(const Nak& nak, std::uint8_t flags = 0) noexcept;
    bool add_echo(const Echo& echo) noexcept;
    [[nodiscard]] bool add_greeting(const Greeting& greeting) noexcept;
    /// Text of at most kMaxAboutBytes.
    bool add_about(std::string_view text) noexcept;
    bool add_status(const Status& status) noexcept;
    bool add_join(const Join& join) noexcept;
    bool add_admit(const Admit& admit) noexcept;

    // ---- Longer parts of joining

    /// A welcome without incarnations; add_incarnation() adds to it, false when the next datagram
    /// needs another.
    bool begin_welcome(const NodeIncarnation& joiner, std::uint64_t cookie,
                       std::uint64_t ring_incarnation, const NodeSet& view) noexcept;
    bool add_incarnation(const MemberIncarnation& member) noexcept;
    /// An ask without parts; add_part() adds to it.
    [[nodiscard]] bool begin_snapshot_request(const RequestId& id) noexcept;
    bool add_part(const Place& place) noexcept;
    /// `positions` has one for each node; those of `origins` are sent.
    bool add_vector(const RequestId& id, std::uint64_t incarnation_sum, const NodeSet& origins,
                    std::span<const std::uint64_t, kMaxNodes> positions) noexcept;
    /// Where the chunk's words go, little-endian, at a multiple of 4 of the buffer; nullptr: no
    /// room.
    std::byte* add_chunk(const RequestId& id, const Place& place) noexcept;
    /// A part of the bank with nothing but zeros in it.
    [[nodiscard]] bool add_zeros(const RequestId& id, const Place& place) noexcept;
    /// Words that one more chunk can have; 0: none fits.
    std::size_t chunk_room() const noexcept;

private:
    bool is_last(SectionType type) const noexcept {
        return last_ != 0 && data_[last_] == static_cast<std::byte>(type);
    }
    std::byte* open(SectionType type, std::uint8_t flags, std::size_t bytes) noexcept;
    std::byte* extend(SectionType type, std::size_t bytes) noexcept;
    template <class T>
    [[nodiscard]] bool add_to_list(const T& entry, std::uint8_t flags = 0) noexcept;
    template <class T>
    [[nodiscard]] bool add_alone(const T& entry) noexcept;

    std::byte* data_;
    std::size_t end_;                  // of the sections: what is behind is the tag's
    std::size_t used_ = kHeaderBytes;  // header and sections
    std::size_t last_ = 0;             // where the section is that can be added to; 0: none
    std::size_t batch_end_ = 0;        // how far the batch may reach
};

}  // namespace rmem::udp
