// SPDX-License-Identifier: Apache-2.0
#include "bridge/secure_line.hpp"

#include "rmem/base/check.hpp"
#include "rmem/base/little_endian.hpp"

#include <fmt/format.h>
#include <sodium.h>

#include <algorithm>
#include <cstring>
#include <new>

namespace bridge {

namespace {

using rmem::load;
using rmem::store;

constexpr std::uint32_t kLineMagic = 0x4C524252;  // "RBRL"
constexpr std::size_t kKeyAt = 8;
constexpr std::size_t kLengthBytes = 4;
constexpr std::size_t kSealBytes = crypto_secretstream_xchacha20poly1305_ABYTES;
constexpr std::size_t kHeaderBytes = crypto_secretstream_xchacha20poly1305_HEADERBYTES;
static_assert(kKeyAt + crypto_kx_PUBLICKEYBYTES == SecureLine::kGreetingBytes);
static_assert(crypto_kx_SESSIONKEYBYTES == crypto_secretstream_xchacha20poly1305_KEYBYTES);

const unsigned char* raw(const std::byte* bytes) {
    return reinterpret_cast<const unsigned char*>(bytes);
}
unsigned char* raw(std::byte* bytes) {
    return reinterpret_cast<unsigned char*>(bytes);
}

}  // namespace

/// In memory that is kept from swap and core dumps as far as the host allows.
struct SecureLine::Keys {
    std::array<unsigned char, rmem::udp::MasterKey::kBytes> shared;
    std::array<unsigned char, crypto_kx_PUBLICKEYBYTES> own_public;
    std::array<unsigned char, crypto_kx_SECRETKEYBYTES> own_secret;
    std::array<unsigned char, crypto_kx_SESSIONKEYBYTES> receive, send;
    crypto_secretstream_xchacha20poly1305_state opening, sealing;
};

void SecureLine::Wipe::operator()(Keys* keys) const noexcept {
    sodium_free(keys);
}

SecureLine::SecureLine(const rmem::udp::MasterKey& key, Side side) : side_(side) {
    // It has started: the key is in its memory.
    keys_.reset(static_cast<Keys*>(sodium_malloc(sizeof(Keys))));
    if (!keys_) throw std::bad_alloc();
    std::memcpy(keys_->shared.data(), key.bytes().data(), key.bytes().size());
    crypto_kx_keypair(keys_->own_public.data(), keys_->own_secret.data());
    store(greeting_.data(), kLineMagic);
    store(greeting_.data() + 4, kVersion);
    std::memcpy(greeting_.data() + kKeyAt, keys_->own_public.data(), keys_->own_public.size());
    out_.bytes().assign(greeting_.begin(), greeting_.end());
}

SecureLine::~SecureLine() = default;

void SecureLine::fail(const std::string& sentence) {
    problem_ = sentence;
    came_.clear();
}

// ---- What comes

void SecureLine::receive(std::span<const std::byte> bytes) {
    if (!problem_.empty() || has_ended_) return;
    came_.insert(came_.end(), bytes.begin(), bytes.end());
    for (bool goes_on = true; goes_on && problem_.empty() && !has_ended_;) {
        switch (waits_) {
            case Waits::greeting: goes_on = take_greeting(); break;
            case Waits::header: goes_on = take_header(); break;
            case Waits::message: goes_on = take_message(); break;
        }
    }
    RMEM_CHECK(has_ended_ || came_.size() < kLengthBytes + kMaxPlainBytes + kSealBytes);
}

bool SecureLine::take_greeting() {
    const auto known = static_cast<std::ptrdiff_t>(std::min(came_.size(), sizeof kLineMagic));
    if (!std::equal(came_.begin(), came_.begin() + known, greeting_.begin())) {
        fail("what comes is of no `rmem bridge`; look at the address and the port");
        return false;
    }
    if (came_.size() < kKeyAt) return false;
    if (const auto version = load<std::uint16_t>(came_.data() + 4); version != kVersion) {
        fail(
            fmt::format("the other site's `rmem bridge` speaks version {} of the line and this "
                        "one {}; take both from one release",
                        version, kVersion));
        return false;
    }
    if (came_.size() < kGreetingBytes) return false;
    make_keys(std::span(came_).first(kGreetingBytes));
    if (!problem_.empty()) return false;
    came_.erase(came_.begin(), came_.begin() + kGreetingBytes);
    waits_ = Waits::header;
    return true;
}

void SecureLine::make_keys(std::span<const std::byte> theirs) {
    Keys& keys = *keys_;
    const bool is_caller = side_ == Side::caller;
    const auto make = is_caller ? crypto_kx_client_session_keys : crypto_kx_server_session_keys;
    if (make(keys.receive.data(), keys.send.data(), keys.own_public.data(), keys.own_secret.data(),
             raw(theirs.data()) + kKeyAt) != 0)
        return fail("the other site's fresh key is none; somebody in between has changed it");
    const auto mix = [&](std::array<unsigned char, crypto_kx_SESSIONKEYBYTES>& key) {
        crypto_generichash_state state;
        crypto_generichash_init(&state, keys.shared.data(), keys.shared.size(), key.size());
        crypto_generichash_update(&state, key.data(), key.size());
        const std::byte* const first = is_caller ? greeting_.data() : theirs.data();
        const std::byte* const second = is_caller ? theirs.data() : greeting_.data();
        crypto_generichash_update(&state, raw(first), kGreetingBytes);
        crypto_generichash_update(&state, raw(second), kGreetingBytes);
        crypto_generichash_final(&state, key.data(), key.size());
        sodium_memzero(&state, sizeof state);
    };
    mix(keys.receive);
    mix(keys.send);
    // Neither is needed again: what was said stays closed to those who steal the shared key later.
    sodium_memzero(keys.own_secret.data(), keys.own_secret.size());
    sodium_memzero(keys.shared.data(), keys.shared.size());
    auto& to = out_.bytes();
    to.resize(to.size() + kHeaderBytes);
    crypto_secretstream_xchacha20poly1305_init_push(
        &keys.sealing, raw(to.data() + to.size() - kHeaderBytes), keys.send.data());
    sodium_memzero(keys.send.data(), keys.send.size());
    seal({}, crypto_secretstream_xchacha20poly1305_TAG_MESSAGE);
}

bool SecureLine::take_header() {
    if (came_.size() < kHeaderBytes) return false;
    crypto_secretstream_xchacha20poly1305_init_pull(&keys_->opening, raw(came_.data()),
                                                    keys_->receive.data());
    sodium_memzero(keys_->receive.data(), keys_->receive.size());
    came_.erase(came_.begin(), came_.begin() + kHeaderBytes);
    waits_ = Waits::message;
    return true;
}

bool SecureLine::take_message() {
    if (came_.size() < kLengthBytes) return false;
    const auto length = load<std::uint32_t>(came_.data());
    const bool can_be = length >= kSealBytes && length <= kMaxPlainBytes + kSealBytes;
    if (can_be && came_.size() < kLengthBytes + length) return false;
    std::array<std::byte, kMaxPlainBytes> plain;
    unsigned long long bytes = 0;
    unsigned char tag = 0;
    if (!can_be ||
        crypto_secretstream_xchacha20poly1305_pull(&keys_->opening, raw(plain.data()), &bytes, &tag,
                                                   raw(came_.data()) + kLengthBytes, length,
                                                   raw(came_.data()), kLengthBytes) != 0) {
        fail(is_ready_ ? "what comes is not what the other site has sent: it was changed on its "
                         "way, and the line is given up"
                       : "the other site has another key; give both the same file, made by `rmem "
                         "key`");
        return false;
    }
    plain_.insert(plain_.end(), plain.begin(), plain.begin() + static_cast<std::ptrdiff_t>(bytes));
    came_.erase(came_.begin(), came_.begin() + static_cast<std::ptrdiff_t>(kLengthBytes + length));
    is_ready_ = true;
    has_ended_ = tag == crypto_secretstream_xchacha20poly1305_TAG_FINAL;
    return true;
}

// ---- What leaves

void SecureLine::seal(std::span<const std::byte> plain, unsigned char tag) {
    auto& to = out_.bytes();
    const std::size_t at = to.size();
    const std::size_t length = plain.size() + kSealBytes;
    to.resize(at + kLengthBytes + length);
    store(to.data() + at, static_cast<std::uint32_t>(length));
    crypto_secretstream_xchacha20poly1305_push(&keys_->sealing, raw(to.data()) + at + kLengthBytes,
                                               nullptr, raw(plain.data()), plain.size(),
                                               raw(to.data()) + at, kLengthBytes, tag);
}

void SecureLine::send(std::span<const std::byte> plain) {
    RMEM_CHECK(waits_ != Waits::greeting);
    while (!plain.empty()) {
        const auto part = plain.first(std::min(plain.size(), kMaxPlainBytes));
        seal(part, crypto_secretstream_xchacha20poly1305_TAG_MESSAGE);
        plain = plain.subspan(part.size());
    }
}

void SecureLine::send_last() {
    seal({}, crypto_secretstream_xchacha20poly1305_TAG_FINAL);
}

}  // namespace bridge
