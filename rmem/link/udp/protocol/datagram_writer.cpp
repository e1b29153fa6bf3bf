// SPDX-License-Identifier: Apache-2.0
#include "rmem/link/udp/protocol/datagram_writer.hpp"

#include "rmem/error.hpp"
#include "rmem/link/udp/protocol/datagram.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace rmem::udp {

namespace {

static_assert(kMaxBatchHeadBytes == ForwardedBatch::kHeadBytes + Batch::kHeadBytes);

/// Words of the host to the wire.
void put_words(std::byte* to, const void* from, std::size_t words) noexcept {
    if (words == 1) {  // no call, as for most records
        std::memcpy(to, from, kWordBytes);
    } else {
        std::memcpy(to, from, words * kWordBytes);
    }
    if constexpr (std::endian::native == std::endian::big) {
        for (std::size_t i = 0; i < words; ++i) {
            std::uint32_t word;
            std::memcpy(&word, to + i * kWordBytes, kWordBytes);
            store(to + i * kWordBytes, word);
        }
    }
}

bool is_sendable(const Place& place) noexcept {
    return place.words > 0 && place.index <= kPlaceIndices - place.words;
}

/// Words of `bytes` left that something with a head before them can have.
std::size_t words_behind(std::size_t head_bytes, std::size_t bytes) noexcept {
    return bytes < head_bytes ? 0 : (bytes - head_bytes) / kWordBytes;
}

}  // namespace

DatagramWriter::DatagramWriter(std::span<std::byte> buffer, std::size_t limit)
    : data_(buffer.data()), end_(limit - kTagBytes) {
    if (limit < kLeastPayload || limit > kMaxPayload || buffer.size() < limit) {
        throw Error(Errc::invalid_argument,
                    fmt::format("invalid datagram size: {} bytes in a buffer of {}; must be {} to "
                                "{}, and at most the buffer's size",
                                limit, buffer.size(), kLeastPayload, kMaxPayload));
    }
}

// ---- The datagram

void DatagramWriter::begin(const Header& header) noexcept {
    store(data_, kMagic);
    store(data_ + kVersionAt, kVersion);
    header.write(data_);
    store(data_ + kLengthAt, std::uint16_t{0});
    used_ = kHeaderBytes;
    last_ = 0;
}

void DatagramWriter::pad() noexcept {
    if (room() < kSectionHeadBytes) return;
    const std::size_t bytes = (room() - kSectionHeadBytes) / kWordBytes * kWordBytes;
    std::memset(open(SectionType::padding, 0, bytes), 0, bytes);
}

std::span<std::byte> DatagramWriter::finish() noexcept {
    store(data_ + kLengthAt, static_cast<std::uint16_t>(used_ - kHeaderBytes));
    std::memset(data_ + used_, 0, kTagBytes);
    last_ = 0;
    return {data_, used_ + kTagBytes};
}

/// A new section with so long a body; nullptr when it does not fit.
std::byte* DatagramWriter::open(SectionType type, std::uint8_t flags, std::size_t bytes) noexcept {
    if (room() < kSectionHeadBytes + bytes) return nullptr;
    std::byte* at = data_ + used_;
    at[0] = static_cast<std::byte>(type);
    at[1] = static_cast<std::byte>(flags);
    store(at + 2, static_cast<std::uint16_t>(bytes));
    last_ = used_;
    used_ += kSectionHeadBytes + bytes;
    return at + kSectionHeadBytes;
}

/// Makes the newest section longer; nullptr when it is of another type, or there is no room.
std::byte* DatagramWriter::extend(SectionType type, std::size_t bytes) noexcept {
    if (!is_last(type) || room() < bytes) return nullptr;
    std::byte* at = data_ + used_;
    used_ += bytes;
    store(data_ + last_ + 2, static_cast<std::uint16_t>(used_ - last_ - kSectionHeadBytes));
    return at;
}

template <class T>
bool DatagramWriter::add_to_list(const T& entry, std::uint8_t flags) noexcept {
    const bool is_more = is_last(T::kType) && data_[last_ + 1] == std::byte{flags};
    std::byte* at = is_more ? extend(T::kType, T::kBytes) : open(T::kType, flags, T::kBytes);
    if (at == nullptr) return false;
    entry.write(at);
    return true;
}
bool DatagramWriter::add_ack(const Ack& ack, std::uint8_t flags) noexcept {
    return add_to_list(ack, flags);
}
bool DatagramWriter::add_nak(const Nak& nak, std::uint8_t flags) noexcept {
    return add_to_list(nak, flags);
}
bool DatagramWriter::add_echo(const Echo& echo) noexcept {
    return add_to_list(echo);
}
bool DatagramWriter::add_greeting(const Greeting& greeting) noexcept {
    return add_to_list(greeting);
}

template <class T>
bool DatagramWriter::add_alone(const T& entry) noexcept {
    std::byte* at = open(T::kType, 0, T::kBytes);
    if (at == nullptr) return false;
    entry.write(at);
    return true;
}
bool DatagramWriter::add_status(const Status& status) noexcept {
    return add_alone(status);
}
bool DatagramWriter::add_join(const Join& join) noexcept {
    return add_alone(join);
}
bool DatagramWriter::add_admit(const Admit& admit) noexcept {
    return add_alone(admit);
}

bool DatagramWriter::add_about(std::string_view text) noexcept {
    text = text.substr(0, kMaxAboutBytes);
    const std::size_t bytes = (text.size() + kWordBytes - 1) / kWordBytes * kWordBytes;
    std::byte* at = open(SectionType::about, 0, bytes);
    if (at == nullptr) return false;
    std::memset(at, 0, bytes);
    if (!text.empty()) std::memcpy(at, text.data(), text.size());
    return true;
}

// ---- Batches

bool DatagramWriter::begin_batch(std::uint64_t sequence, std::int64_t first_store_ns,
                                 std::uint8_t flags) noexcept {
    std::byte* at = open(SectionType::batch, flags, Batch::kHeadBytes);
    if (at == nullptr) return false;
    store(at, sequence);
    store_time(at + 8, first_store_ns);
    // Not only in this datagram: forwarded, alone behind the header, it must fit too.
    batch_end_ = std::min(end_, last_ + end_ - kHeaderBytes - ForwardedBatch::kHeadBytes);
    return true;
}

std::size_t DatagramWriter::record_room() const noexcept {
    if (!is_last(SectionType::batch) || used_ > batch_end_) return 0;
    return words_behind(Place::kBytes, batch_end_ - used_);
}

bool DatagramWriter::add_record(const Place& place, const void* from) noexcept {
    const std::size_t bytes = Place::kBytes + place.words * kWordBytes;
    if (!is_sendable(place) || !is_last(SectionType::batch) || used_ + bytes > batch_end_)
        return false;
    std::byte* const at = extend(SectionType::batch, bytes);
    place.write(at);
    put_words(at + Place::kBytes, from, place.words);
    return true;
}

std::span<const std::byte> DatagramWriter::end_batch() noexcept {
    const std::size_t body = last_ + kSectionHeadBytes;
    const bool has_begun = is_last(SectionType::batch);
    last_ = 0;
    if (!has_begun) return {};
    return {data_ + body, used_ - body};
}

bool DatagramWriter::add_batch(std::span<const std::byte> body, std::uint8_t flags) noexcept {
    std::byte* at = open(SectionType::batch, flags, body.size());
    if (at == nullptr) return false;
    std::memcpy(at, body.data(), body.size());
    last_ = 0;  // what others may have already stays as it is
    return true;
}

bool DatagramWriter::add_forwarded(const MemberIncarnation& origin, std::span<const std::byte> body,
                                   std::uint8_t flags) noexcept {
    std::byte* at = open(SectionType::forwarded, flags, ForwardedBatch::kHeadBytes + body.size());
    if (at == nullptr) return false;
    origin.write(at);
    std::memcpy(at + ForwardedBatch::kHeadBytes, body.data(), body.size());
    return true;
}

// ---- Longer parts of joining

bool DatagramWriter::begin_welcome(const NodeIncarnation& joiner, std::uint64_t cookie,
                                   std::uint64_t ring_incarnation, const NodeSet& view) noexcept {
    std::byte* at = open(SectionType::welcome, 0, Welcome::kHeadBytes);
    if (at == nullptr) return false;
    joiner.write(at);
    store(at + 4, cookie);
    store(at + 12, ring_incarnation);
    view.write(at + 20);
    return true;
}

bool DatagramWriter::add_incarnation(const MemberIncarnation& member) noexcept {
    std::byte* at = extend(SectionType::welcome, MemberIncarnation::kBytes);
    if (at == nullptr) return false;
    member.write(at);
    return true;
}

bool DatagramWriter::begin_snapshot_request(const RequestId& id) noexcept {
    std::byte* at = open(SectionType::snapshot_request, 0, RequestId::kBytes);
    if (at == nullptr) return false;
    id.write(at);
    return true;
}

bool DatagramWriter::add_part(const Place& place) noexcept {
    std::byte* at =
        is_sendable(place) ? extend(SectionType::snapshot_request, Place::kBytes) : nullptr;
    if (at == nullptr) return false;
    place.write(at);
    return true;
}

bool DatagramWriter::add_vector(const RequestId& id, std::uint64_t incarnation_sum,
                                const NodeSet& origins,
                                std::span<const std::uint64_t, kMaxNodes> positions) noexcept {
    const std::size_t bytes = Vector::kHeadBytes + origins.size() * sizeof(std::uint32_t);
    std::byte* at = open(SectionType::vector, 0, bytes);
    if (at == nullptr) return false;
    id.write(at);
    store(at + RequestId::kBytes, incarnation_sum);
    origins.write(at + RequestId::kBytes + 8);
    at += Vector::kHeadBytes;
    origins.for_each([&](unsigned origin) {
        store(at, static_cast<std::uint32_t>(positions[origin]));
        at += sizeof(std::uint32_t);
    });
    return true;
}

std::size_t DatagramWriter::chunk_room() const noexcept {
    return words_behind(kSectionHeadBytes + Chunk::kHeadBytes, room());
}

std::byte* DatagramWriter::add_chunk(const RequestId& id, const Place& place) noexcept {
    if (!is_sendable(place)) return nullptr;
    std::byte* at = open(SectionType::chunk, 0, Chunk::kHeadBytes + place.words * kWordBytes);
    if (at == nullptr) return nullptr;
    id.write(at);
    place.write(at + RequestId::kBytes);
    return at + Chunk::kHeadBytes;
}

bool DatagramWriter::add_zeros(const RequestId& id, const Place& place) noexcept {
    std::byte* at =
        is_sendable(place) ? open(SectionType::chunk, Section::kZeros, Chunk::kHeadBytes) : nullptr;
    if (at == nullptr) return false;
    id.write(at);
    place.write(at + RequestId::kBytes);
    return true;
}

}  // namespace rmem::udp
