// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Says who may speak: makes the tag of a datagram, and checks it.
///
/// Terms
///   master key       what all nodes of a ring share (master_key.hpp)
///   incarnation key  BLAKE2b of the master key and all that tells one incarnation from every
///                    other, so that no two incarnations, rings or kinds of tag use the same key
///   number           of a datagram, counts all of an incarnation; with the origin it is the nonce
/// A number must never be signed twice in an incarnation: anyone who has two such datagrams could
/// forge others.
///
/// Tags are AES-256-GCM where the processor has AES, ChaCha20-Poly1305 elsewhere, both used as a
/// MAC: everything is additional data, nothing is encrypted. The header's kind byte says which it
/// is, and lies in what the tag covers. A sender uses one kind; a receiver takes each that it can
/// check. A ring of different processors gives the same kind to all nodes (the constructor's second
/// argument).
///
/// A tag shows that somebody with the master key made this datagram in this incarnation, not when:
/// replay_window.hpp refuses replays, and greeter.hpp finds out which incarnation is of now.
///
/// Thread safety: const calls from any thread at once. Errors: constructors throw
/// `Error(invalid_argument)` for a kind that cannot be had here; the others never throw.

#include "rmem/error.hpp"
#include "rmem/link/udp/protocol/format.hpp"
#include "rmem/link/udp/protocol/master_key.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace rmem::udp {

/// Whether this processor can make and check such tags (`none`: always).
[[nodiscard]] RMEM_API bool is_available(TagKind kind) noexcept;

/// What tells an incarnation from every other.
struct IncarnationId {
    std::uint64_t ring = 0;
    std::uint16_t origin = 0;
    std::uint64_t incarnation = 0;
    std::uint64_t salt = 0;
    friend bool operator==(const IncarnationId&, const IncarnationId&) = default;
};

/// The prepared key of one incarnation: one per sender. Making one takes less than a microsecond;
/// without a key (`none`) tags are zero bytes. Its memory is overwritten at its end.
class RMEM_API IncarnationKey {
public:
    using Tag = std::span<std::byte, kTagBytes>;
    using ConstTag = std::span<const std::byte, kTagBytes>;

    IncarnationKey(const IncarnationKey&) = default;
    IncarnationKey& operator=(const IncarnationKey&) = default;
    ~IncarnationKey();

    TagKind kind() const noexcept { return kind_; }
    /// Writes the tag of datagram `number`, which covers these bytes.
    void sign(std::uint64_t number, std::span<const std::byte> covered, Tag tag) const noexcept;
    /// Whether that is the tag; takes the same time wherever it differs.
    [[nodiscard]] bool verify(std::uint64_t number, std::span<const std::byte> covered,
                              ConstTag tag) const noexcept;

private:
    friend class Authenticator;
    static constexpr std::size_t kStateBytes = 512;
    IncarnationKey(TagKind kind, std::uint16_t origin) noexcept : kind_(kind), origin_(origin) {}

    /// AES-GCM: its expanded key. ChaCha20-Poly1305: the key, at the front.
    alignas(16) std::array<std::byte, kStateBytes> state_{};
    TagKind kind_;
    std::uint16_t origin_;
};

/// A node's side of it: its master key or none, and the kind of its own tags.
class RMEM_API Authenticator {
public:
    /// What is to be said of a datagram's kind before its tag is looked at.
    enum class Kind {
        fine,         ///< look at the tag
        unsigned_,    ///< it has no tag, and we have a key
        signed_,      ///< it has a tag, and we have no key
        unknown,      ///< a kind that this version does not know
        unavailable,  ///< a kind that this processor cannot check
    };

    /// Without a key: signs nothing, takes only what is not signed.
    Authenticator() = default;
    /// The best kind of this processor.
    explicit Authenticator(MasterKey key);
    Authenticator(MasterKey key, TagKind kind);

    /// Of the own tags.
    TagKind kind() const noexcept { return kind_; }
    /// What the kind byte of a header means here.
    Kind check(std::uint8_t kind) const noexcept;
    /// The key of an incarnation whose datagrams have tags of that kind, which `check` found fine;
    /// of any other kind: the key for the own kind, which their tags do not fit.
    IncarnationKey incarnation_key(const IncarnationId& id, TagKind kind) const noexcept;
    /// The key of an own incarnation.
    IncarnationKey incarnation_key(const IncarnationId& id) const noexcept {
        return incarnation_key(id, kind_);
    }

private:
    std::optional<MasterKey> key_;
    TagKind kind_ = TagKind::none;
};

}  // namespace rmem::udp
