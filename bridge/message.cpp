// SPDX-License-Identifier: Apache-2.0
#include "bridge/message.hpp"

namespace bridge {

using rmem::FieldReader;

namespace {

std::int64_t time_of(std::uint64_t field) {
    return static_cast<std::int64_t>(field);
}
std::uint64_t field_of(std::int64_t time) {
    return static_cast<std::uint64_t>(time);
}

/// The next bytes; nothing, where there are fewer.
std::optional<std::span<const std::byte>> take(FieldReader& fields, std::size_t bytes) {
    if (fields.left() < bytes) return std::nullopt;
    const auto all = fields.rest();
    fields = FieldReader(all.subspan(bytes));
    return all.first(bytes);
}

bool read_piece(FieldReader& fields, Piece& piece) {
    piece.region = fields.take<std::uint16_t>();
    piece.flags = fields.take<std::uint16_t>();
    piece.word = fields.take<std::uint32_t>();
    const auto words = fields.take<std::uint32_t>();
    if (words == 0 || words > kMaxFrameBytes / kWordBytes) return false;
    const auto found = take(fields, words * kWordBytes);
    if (found) piece.words = *found;
    return found.has_value();
}

}  // namespace

void write_open(std::vector<std::byte>& to, std::span<const Offer> offers) {
    MessageWriter message(to, Kind::open);
    message.put(kMagic).put(kVersion).put(static_cast<std::uint16_t>(offers.size()));
    for (const Offer& offer : offers) {
        message.put(offer.bytes).put(static_cast<std::uint16_t>(offer.name.size()));
        message.put(std::string_view(offer.name));
    }
}

std::optional<Opening> read_open(std::span<const std::byte> body) {
    FieldReader fields(body);
    const auto magic = fields.take<std::uint32_t>();
    Opening opening;
    opening.version = fields.take<std::uint16_t>();
    if (magic != kMagic) return std::nullopt;
    if (opening.version != kVersion) return opening;
    const auto count = fields.take<std::uint16_t>();
    if (count > kMaxRegions) return std::nullopt;
    for (unsigned i = 0; i < count; ++i) {
        Offer offer;
        offer.bytes = fields.take<std::uint64_t>();
        const auto length = fields.take<std::uint16_t>();
        const auto name = length <= kMaxRingNameBytes ? take(fields, length) : std::nullopt;
        if (!name) return std::nullopt;
        offer.name.assign(reinterpret_cast<const char*>(name->data()), name->size());
        opening.offers.push_back(std::move(offer));
    }
    if (!fields.is_whole()) return std::nullopt;
    return opening;
}

void write_refuse(std::vector<std::byte>& to, std::uint16_t region, Reason reason,
                  std::string_view sentence) {
    MessageWriter(to, Kind::refuse)
        .put(region)
        .put(static_cast<std::uint16_t>(reason))
        .put(sentence);
}

void write_path(std::vector<std::byte>& to, std::uint16_t region, const Path& path) {
    MessageWriter message(to, Kind::path);
    message.put(region).put(static_cast<std::uint16_t>(path.size()));
    for (const std::uint64_t hop : path) message.put(hop);
}

std::optional<Path> read_path(FieldReader& fields) {
    const auto hops = fields.take<std::uint16_t>();
    // One more than a path may have is said, so that it can be refused with a sentence.
    if (hops > kMaxHops + 1) return std::nullopt;
    Path path;
    for (unsigned i = 0; i < hops; ++i) path.push_back(fields.take<std::uint64_t>());
    if (!fields.is_whole()) return std::nullopt;
    return path;
}

void write_status(std::vector<std::byte>& to, const Status& status) {
    MessageWriter(to, Kind::status)
        .put(status.taken)
        .put(field_of(status.sent_ns))
        .put(field_of(status.echoed_ns))
        .put(field_of(status.held_ns));
}

std::optional<Status> read_status(std::span<const std::byte> body) {
    FieldReader fields(body);
    Status status;
    status.taken = fields.take<std::uint64_t>();
    status.sent_ns = time_of(fields.take<std::uint64_t>());
    status.echoed_ns = time_of(fields.take<std::uint64_t>());
    status.held_ns = time_of(fields.take<std::uint64_t>());
    if (!fields.is_whole()) return std::nullopt;
    return status;
}

void append_piece(std::vector<std::byte>& pieces, const Piece& piece) {
    const std::size_t at = pieces.size();
    pieces.resize(at + kPieceHeaderBytes);
    std::byte* const header = pieces.data() + at;
    rmem::store(header, piece.region);
    rmem::store(header + 2, piece.flags);
    rmem::store(header + 4, piece.word);
    rmem::store(header + 8, static_cast<std::uint32_t>(piece.words.size() / kWordBytes));
    pieces.insert(pieces.end(), piece.words.begin(), piece.words.end());
}

void write_frame(std::vector<std::byte>& to, const FrameHead& head,
                 std::span<const std::byte> pieces) {
    MessageWriter(to, Kind::frame)
        .put(head.number)
        .put(head.flags)
        .put(field_of(head.stored_ns))
        .put(pieces);
}

bool read_frame(std::span<const std::byte> body, FrameMessage& frame) {
    FieldReader fields(body);
    frame.head.number = fields.take<std::uint64_t>();
    frame.head.flags = fields.take<std::uint32_t>();
    frame.head.stored_ns = time_of(fields.take<std::uint64_t>());
    frame.pieces.clear();
    while (fields.left() != 0) {
        Piece piece;
        if (frame.pieces.size() == kMaxPieces || !read_piece(fields, piece)) return false;
        frame.pieces.push_back(piece);
    }
    return fields.is_whole() && !frame.pieces.empty();
}

}  // namespace bridge
