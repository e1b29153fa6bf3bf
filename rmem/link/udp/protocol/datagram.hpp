// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Reading datagrams of the udp link (rmem/link/udp/protocol/format.hpp; docs/design/udp-link.md).
///
/// Reading goes in two steps, because what lies between them is the authenticator's:
///
///     Datagram datagram;
///     Refusal refusal = read_datagram(bytes, ring, limit, datagram);   // header and size
///     …the tag over datagram.covered(), the replay window…
///     Sections sections;
///     refusal = read_sections(datagram, sections);        // every bound of every section
///     for (const Section& section : sections)
///         switch (section.type()) { case SectionType::batch: apply(Batch(section)); … }
///
/// Trust:     nothing that arrives. Only read_sections() fills a Sections, and only when all of the
///            datagram is as it must be, so a datagram counts whole or not at all. Afterwards: each
///            node id is below kMaxNodes, each sequence of a batch at least 1, each place has words
///            and ends within kPlaceIndices, words lie inside the section. What remains to their
///            users: ids against the ring's nodes, places against the bank (Place::is_inside),
///            values against what they know.
/// Lifetime:  views point into the datagram's bytes, which must stay. Nothing is allocated.
/// Threads:   values without shared state; each object has one user at a time.
/// Units:     times in nanoseconds of the named clock; sizes in bytes unless they are words.
/// Errors:    a Refusal, one counter each; nothing throws.

#include "rmem/link/udp/protocol/format.hpp"

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>

namespace rmem::udp {

// ---- Refusals

/// Why a datagram is not taken; in the order in which it is looked for, header first.
enum class Refusal : std::uint8_t {
    none,        ///< it is taken
    too_short,   ///< shorter than a header and a tag
    too_long,    ///< longer than the ring's payload limit (read with a byte to spare to see it)
    magic,       ///< not of this link
    version,     ///< of another version of it
    other_ring,  ///< of another ring on this network, or one of another configuration
    tag_kind,    ///< a kind of tag that does not exist
    origin,      ///< from a node that no ring has
    length,      ///< cut or padded: not as long as its header says
    section_overrun,  ///< a section reaches beyond the sections' end
    misaligned,       ///< a section that is no multiple of 4
    section_size,     ///< a section of a known type with a size that this type cannot have
    sequence,         ///< a batch without a number
    record_overrun,   ///< a record, or a chunk, reaches beyond its section
    record_empty,     ///< a place, or a range of what is missing, of nothing
    record_wraps,     ///< a place that goes beyond the last index
    record_part,      ///< bytes of a word, and more than that word
    node,             ///< names a node that no ring has
    kCount
};
inline constexpr std::size_t kRefusals = static_cast<std::size_t>(Refusal::kCount);

/// Stable, for counters and logs: "too-short", "other-ring".
RMEM_API const char* name_of(Refusal refusal) noexcept;

// ---- Views

/// Things one behind the other, as T::read(at) finds them; each is T::kBytes long, or else
/// T::extent(at).
template <class T>
class Run {
public:
    class Iterator {
    public:
        using iterator_category = std::input_iterator_tag;
        using value_type = T;
        using difference_type = std::ptrdiff_t;
        using pointer = const T*;
        using reference = T;

        explicit Iterator(const std::byte* at = nullptr) noexcept : at_(at) {}
        T operator*() const noexcept { return T::read(at_); }
        Iterator& operator++() noexcept {
            if constexpr (requires { T::kBytes; }) {
                at_ += T::kBytes;
            } else {
                at_ += T::extent(at_);
            }
            return *this;
        }
        Iterator operator++(int) noexcept {
            const Iterator before = *this;
            ++*this;
            return before;
        }
        friend bool operator==(const Iterator&, const Iterator&) = default;

    private:
        const std::byte* at_;
    };

    Run() = default;
    explicit Run(std::span<const std::byte> bytes) noexcept : bytes_(bytes) {}

    Iterator begin() const noexcept { return Iterator(bytes_.data()); }
    Iterator end() const noexcept { return Iterator(bytes_.data() + bytes_.size()); }
    std::size_t size() const noexcept requires requires { T::kBytes; }
    { return bytes_.size() / T::kBytes; }

private:
    std::span<const std::byte> bytes_;
};

/// A section whose bounds are checked.
class Section {
public:
    static constexpr std::uint8_t kAckAtOnce =
        1;  ///< flag of batch and forwarded: do not wait with the ack
    static constexpr std::uint8_t kFromAnybody =
        1;  ///< flag of missing: of nodes that are dead here
    static constexpr std::uint8_t kEnded =
        1;  ///< flag of acks: of streams that are over here, and so go on only by what is forwarded
    static constexpr std::uint8_t kZeros = 1;  ///< flag of chunk: all its words are 0, none follow

    SectionType type() const noexcept { return static_cast<SectionType>(at_[0]); }
    std::uint8_t flags() const noexcept { return static_cast<std::uint8_t>(at_[1]); }
    std::span<const std::byte> body() const noexcept {
        return {at_ + kSectionHeadBytes, load<std::uint16_t>(at_ + 2)};
    }

    static Section read(const std::byte* at) noexcept { return Section(at); }
    static std::size_t extent(const std::byte* at) noexcept {
        return kSectionHeadBytes + load<std::uint16_t>(at + 2);
    }

private:
    explicit Section(const std::byte* at) noexcept : at_(at) {}

    const std::byte* at_;
};

/// The one entry that a section of type Status, Join or Admit is.
template <class T>
T entry_of(const Section& section) noexcept {
    return T::read(section.body().data());
}

/// The entries of a section that is nothing but these: Ack, Missing, Echo.
template <class T>
Run<T> list_of(const Section& section) noexcept {
    return Run<T>(section.body());
}

/// Words as they lie in a datagram: little-endian, at any alignment.
class Words {
public:
    Words() = default;
    explicit Words(std::span<const std::byte> bytes) noexcept : bytes_(bytes) {}

    std::size_t size() const noexcept { return bytes_.size() / kWordBytes; }
    std::uint32_t operator[](std::size_t i) const noexcept {
        return load<std::uint32_t>(bytes_.data() + i * kWordBytes);
    }
    std::span<const std::byte> bytes() const noexcept { return bytes_; }

private:
    std::span<const std::byte> bytes_;
};

/// A write: `place.words` words.
struct Record {
    Place place;
    Words words;

    static Record read(const std::byte* at) noexcept {
        const Place place = Place::read(at);
        return {place, Words({at + Place::kBytes, place.words * kWordBytes})};
    }
    static std::size_t extent(const std::byte* at) noexcept {
        return Place::kBytes + Place::read(at).words * kWordBytes;
    }
};

/// Writes of a node between two commits. It may be empty: a number of the stream like any other.
class Batch {
public:
    static constexpr std::size_t kHeadBytes = 16;  ///< in front of the records

    explicit Batch(std::span<const std::byte> body) noexcept : body_(body) {}
    explicit Batch(const Section& section) noexcept : body_(section.body()) {}

    std::uint64_t sequence() const noexcept { return load<std::uint64_t>(body_.data()); }
    /// When the first of them was stored, in the clock of the node that wrote.
    std::int64_t first_store_ns() const noexcept { return load_time(body_.data() + 8); }
    /// In the order in which they were written.
    Run<Record> records() const noexcept { return Run<Record>(body_.subspan(kHeadBytes)); }
    /// Whether each lies inside a bank of that size; asked before the first is applied.
    RMEM_API bool is_inside(std::uint64_t bank_bytes) const noexcept;
    /// What a history keeps, and DatagramWriter::add_batch and add_forwarded send again.
    std::span<const std::byte> body() const noexcept { return body_; }

private:
    std::span<const std::byte> body_;
};

/// A batch of an incarnation that has ended, passed on by a node that has it.
class ForwardedBatch {
public:
    static constexpr std::size_t kHeadBytes =
        MemberIncarnation::kBytes;  ///< in front of the batch's body

    explicit ForwardedBatch(const Section& section) noexcept : body_(section.body()) {}

    /// Whose batch it is.
    MemberIncarnation origin() const noexcept { return MemberIncarnation::read(body_.data()); }
    Batch batch() const noexcept { return Batch(body_.subspan(kHeadBytes)); }

private:
    std::span<const std::byte> body_;
};

/// A member's answer to a join. The view is whole, the incarnations may be some of its members':
/// what does not fit is in another welcome. The joiner has been welcomed when it knows the
/// incarnation of each in the view.
class Welcome {
public:
    static constexpr std::size_t kHeadBytes = 20 + NodeSet::kBytes;

    explicit Welcome(const Section& section) noexcept : body_(section.body()) {}

    NodeIncarnation joiner() const noexcept { return NodeIncarnation::read(body_.data()); }
    std::uint64_t cookie() const noexcept { return load<std::uint64_t>(body_.data() + 4); }
    std::uint64_t ring_incarnation() const noexcept {
        return load<std::uint64_t>(body_.data() + 12);
    }
    NodeSet view() const noexcept { return NodeSet::read(body_.data() + 20); }
    Run<MemberIncarnation> incarnations() const noexcept {
        return Run<MemberIncarnation>(body_.subspan(kHeadBytes));
    }

private:
    std::span<const std::byte> body_;
};

/// Parts of the bank that a joiner requests of its donor; their flags say nothing.
class SnapshotRequest {
public:
    explicit SnapshotRequest(const Section& section) noexcept : body_(section.body()) {}

    RequestId request_id() const noexcept { return RequestId::read(body_.data()); }
    Run<Place> parts() const noexcept { return Run<Place>(body_.subspan(RequestId::kBytes)); }

private:
    std::span<const std::byte> body_;
};

/// Where in each stream the donor was when it read the chunks with the same request id. Low bits
/// are enough: the position is not below what was admitted, and no window is that large.
class Vector {
public:
    static constexpr std::size_t kHeadBytes = RequestId::kBytes + 8 + NodeSet::kBytes;

    explicit Vector(const Section& section) noexcept : body_(section.body()) {}

    RequestId request_id() const noexcept { return RequestId::read(body_.data()); }
    /// A sum over the incarnations of the origins (sum_of_incarnations): both must mean the same
    /// ones.
    std::uint64_t incarnation_sum() const noexcept {
        return load<std::uint64_t>(body_.data() + RequestId::kBytes);
    }
    NodeSet origins() const noexcept { return NodeSet::read(body_.data() + RequestId::kBytes + 8); }
    /// Calls visit(origin, low bits of the position) for each origin, the lowest first.
    template <class Visit>
    void for_each(Visit visit) const {
        const std::byte* at = body_.data() + kHeadBytes;
        origins().for_each([&](unsigned origin) {
            visit(origin, load<std::uint32_t>(at));
            at += sizeof(std::uint32_t);
        });
    }

private:
    std::span<const std::byte> body_;
};

/// A part of the donor's bank.
class Chunk {
public:
    static constexpr std::size_t kHeadBytes = RequestId::kBytes + Place::kBytes;

    explicit Chunk(const Section& section) noexcept
        : body_(section.body()), zeros_((section.flags() & Section::kZeros) != 0) {}

    RequestId request_id() const noexcept { return RequestId::read(body_.data()); }
    Place place() const noexcept { return Place::read(body_.data() + RequestId::kBytes); }
    /// Whether all its words are 0; then words() is empty.
    bool is_zeros() const noexcept { return zeros_; }
    Words words() const noexcept { return Words(body_.subspan(kHeadBytes)); }

private:
    std::span<const std::byte> body_;
    bool zeros_;
};

// ---- Reading

/// Bytes of the first datagram where several may be in a row, as it says itself; all, when that
/// cannot be or it is none of ours.
RMEM_API std::size_t length_of_first(std::span<const std::byte> bytes) noexcept;

/// A datagram whose header and size are as they must be; its sections have not been looked at.
class Datagram {
public:
    const Header& header() const noexcept { return header_; }
    std::span<const std::byte> covered() const noexcept { return {bytes_, covered_}; }
    std::span<const std::byte> tag() const noexcept { return {bytes_ + covered_, kTagBytes}; }

private:
    friend RMEM_API Refusal read_datagram(std::span<const std::byte>, std::uint64_t, std::size_t,
                                          Datagram&) noexcept;
    Header header_;
    const std::byte* bytes_ = nullptr;
    std::size_t covered_ = 0;
};

/// The sections of a datagram, all of them checked. Those of types that this version does not know
/// are to be passed over: what a node may not miss raises the version, the rest can be added
/// without.
class Sections {
public:
    Run<Section>::Iterator begin() const noexcept { return all_.begin(); }
    Run<Section>::Iterator end() const noexcept { return all_.end(); }

private:
    friend RMEM_API Refusal read_sections(const Datagram&, Sections&) noexcept;
    Run<Section> all_;
};

/// Checks size and header of what came; on success fills `datagram`. `limit`: the ring's payload
/// limit.
[[nodiscard]] RMEM_API Refusal read_datagram(std::span<const std::byte> bytes, std::uint64_t ring,
                                             std::size_t limit, Datagram& datagram) noexcept;

/// Checks all sections; on success fills `sections`, else leaves it empty.
[[nodiscard]] RMEM_API Refusal read_sections(const Datagram& datagram, Sections& sections) noexcept;

}  // namespace rmem::udp
