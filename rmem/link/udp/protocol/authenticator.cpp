// SPDX-License-Identifier: Apache-2.0
#include "rmem/link/udp/protocol/authenticator.hpp"

#include <sodium.h>

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>

namespace rmem::udp {

namespace {

/// So that no other use of the same master key, and no later version, makes the same incarnation
/// keys.
constexpr std::string_view kContext = "rmem-udp-life-v1";

using Nonce = std::array<unsigned char, 12>;
using Key = std::array<unsigned char, 32>;

static_assert(kTagBytes == crypto_aead_aes256gcm_ABYTES);
static_assert(kTagBytes == crypto_aead_chacha20poly1305_ietf_ABYTES);
static_assert(Nonce{}.size() == crypto_aead_aes256gcm_NPUBBYTES);
static_assert(Nonce{}.size() == crypto_aead_chacha20poly1305_ietf_NPUBBYTES);
static_assert(Key{}.size() == crypto_aead_aes256gcm_KEYBYTES);
static_assert(Key{}.size() == crypto_aead_chacha20poly1305_ietf_KEYBYTES);
static_assert(MasterKey::kBytes == crypto_generichash_KEYBYTES);

const unsigned char* raw(const std::byte* bytes) {
    return reinterpret_cast<const unsigned char*>(bytes);
}
unsigned char* raw(std::byte* bytes) {
    return reinterpret_cast<unsigned char*>(bytes);
}

/// Little-endian, as all on the wire.
template <typename Number>
unsigned char* put(unsigned char* at, Number number) {
    for (std::size_t i = 0; i < sizeof number; ++i) {
        *at++ = static_cast<unsigned char>(number >> (8 * i));
    }
    return at;
}

Nonce nonce_of(std::uint16_t origin, std::uint64_t number) {
    Nonce nonce{};
    put(put(nonce.data(), origin) + 2, number);
    return nonce;
}

/// Every field has its fixed place, so no two incarnations give the same bytes.
Key derive(const MasterKey& master, const IncarnationId& id, TagKind kind) {
    std::array<unsigned char, kContext.size() + 8 + 2 + 8 + 8 + 1> input;
    unsigned char* at = std::copy(kContext.begin(), kContext.end(), input.data());
    at = put(at, id.ring);
    at = put(at, id.origin);
    at = put(at, id.incarnation);
    at = put(at, id.salt);
    *at = static_cast<unsigned char>(kind);
    Key key;
    crypto_generichash(key.data(), key.size(), input.data(), input.size(),
                       raw(master.bytes().data()), MasterKey::kBytes);
    return key;
}

/// The prepared state lies in plain bytes, so that the header needs nothing of libsodium.
const crypto_aead_aes256gcm_state* aes_state(const std::byte* state) {
    return reinterpret_cast<const crypto_aead_aes256gcm_state*>(state);
}
crypto_aead_aes256gcm_state* aes_state(std::byte* state) {
    return reinterpret_cast<crypto_aead_aes256gcm_state*>(state);
}

/// No secret: it need not take the same time whatever the tag is.
bool is_zero(std::span<const std::byte, kTagBytes> tag) {
    static constexpr std::array<std::byte, kTagBytes> kZero{};
    return std::memcmp(tag.data(), kZero.data(), kTagBytes) == 0;
}

TagKind best_kind() {
    return is_available(TagKind::aes_256_gcm) ? TagKind::aes_256_gcm : TagKind::chacha20_poly1305;
}

}  // namespace

bool is_available(TagKind kind) noexcept {
    // libsodium looks at the processor when it starts; asked once, because each datagram asks.
    static const bool sodium = sodium_init() >= 0;
    static const bool aes = sodium && crypto_aead_aes256gcm_is_available() != 0;
    switch (kind) {
        case TagKind::none: return true;
        case TagKind::aes_256_gcm: return aes;
        case TagKind::chacha20_poly1305: return sodium;
        case TagKind::kCount: break;
    }
    return false;
}

IncarnationKey::~IncarnationKey() {
    sodium_memzero(state_.data(), kind_ == TagKind::none ? 0 : state_.size());
}

void IncarnationKey::sign(std::uint64_t number, std::span<const std::byte> covered,
                          Tag tag) const noexcept {
    if (kind_ == TagKind::none) {
        std::memset(tag.data(), 0, tag.size());
        return;
    }
    const Nonce nonce = nonce_of(origin_, number);
    unsigned char nothing = 0;  // the cipher text, of no bytes, must have an address
    switch (kind_) {
        case TagKind::none:
        case TagKind::kCount: return;
        case TagKind::aes_256_gcm:
            crypto_aead_aes256gcm_encrypt_detached_afternm(
                &nothing, raw(tag.data()), nullptr, nullptr, 0, raw(covered.data()), covered.size(),
                nullptr, nonce.data(), aes_state(state_.data()));
            return;
        case TagKind::chacha20_poly1305:
            crypto_aead_chacha20poly1305_ietf_encrypt_detached(
                &nothing, raw(tag.data()), nullptr, nullptr, 0, raw(covered.data()), covered.size(),
                nullptr, nonce.data(), raw(state_.data()));
            return;
    }
}

bool IncarnationKey::verify(std::uint64_t number, std::span<const std::byte> covered,
                            ConstTag tag) const noexcept {
    if (kind_ == TagKind::none) return is_zero(tag);
    const Nonce nonce = nonce_of(origin_, number);
    const unsigned char nothing = 0;
    switch (kind_) {
        case TagKind::aes_256_gcm:
            return crypto_aead_aes256gcm_decrypt_detached_afternm(
                       nullptr, nullptr, &nothing, 0, raw(tag.data()), raw(covered.data()),
                       covered.size(), nonce.data(), aes_state(state_.data())) == 0;
        case TagKind::chacha20_poly1305:
            return crypto_aead_chacha20poly1305_ietf_decrypt_detached(
                       nullptr, nullptr, &nothing, 0, raw(tag.data()), raw(covered.data()),
                       covered.size(), nonce.data(), raw(state_.data())) == 0;
        case TagKind::none:
        case TagKind::kCount: break;
    }
    return false;
}

Authenticator::Authenticator(MasterKey key) : Authenticator(std::move(key), best_kind()) {}

Authenticator::Authenticator(MasterKey key, TagKind kind) : key_(std::move(key)), kind_(kind) {
    if (kind == TagKind::none) {
        throw Error(Errc::invalid_argument, "a node with a key must sign: choose a kind of tag");
    }
    if (!is_available(kind)) {
        throw Error(Errc::invalid_argument,
                    "this processor has no instructions for AES-256-GCM: choose ChaCha20-Poly1305 "
                    "on all nodes of the ring");
    }
}

Authenticator::Kind Authenticator::check(std::uint8_t kind) const noexcept {
    if (kind >= static_cast<std::uint8_t>(TagKind::kCount)) return Kind::unknown;
    if (kind == static_cast<std::uint8_t>(TagKind::none))
        return key_ ? Kind::unsigned_ : Kind::fine;
    if (!key_) return Kind::signed_;
    return is_available(TagKind{kind}) ? Kind::fine : Kind::unavailable;
}

IncarnationKey Authenticator::incarnation_key(const IncarnationId& id,
                                              TagKind kind) const noexcept {
    // Whatever is asked for: with a master key, never an incarnation key that takes what is not
    // signed.
    if (check(static_cast<std::uint8_t>(kind)) != Kind::fine) kind = kind_;
    IncarnationKey made(kind, id.origin);
    static_assert(sizeof made.state_ >= sizeof(crypto_aead_aes256gcm_state));
    static_assert(alignof(IncarnationKey) >= alignof(crypto_aead_aes256gcm_state));
    if (kind == TagKind::none) return made;
    Key key = derive(*key_, id, kind);
    if (kind == TagKind::aes_256_gcm) {
        crypto_aead_aes256gcm_beforenm(aes_state(made.state_.data()), key.data());
    } else {
        std::memcpy(made.state_.data(), key.data(), key.size());
    }
    sodium_memzero(key.data(), key.size());
    return made;
}

}  // namespace rmem::udp
