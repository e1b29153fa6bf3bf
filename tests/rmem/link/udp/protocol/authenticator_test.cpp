// SPDX-License-Identifier: Apache-2.0
#include "rmem/link/udp/protocol/authenticator.hpp"

#include "tests/support/refused.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <string>
#include <vector>

namespace rmem::udp {
namespace {

using Tag = std::array<std::byte, kTagBytes>;
using Octets = std::vector<std::byte>;

constexpr IncarnationId kIncarnation{.ring = 0x0123456789abcdef,
                                     .origin = 0x0102,
                                     .incarnation = 1'700'000'000'000'000'000,
                                     .salt = 0xfedcba9876543210};
constexpr std::uint64_t kNumber = 0x1122334455667788;

/// 0, 1, 2, … from `first`.
MasterKey master(unsigned first = 0) {
    std::array<std::byte, MasterKey::kBytes> bytes;
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(first + i);
    return MasterKey(bytes);
}

Octets some_bytes(std::size_t count) {
    Octets bytes(count);
    for (std::size_t i = 0; i < count; ++i) bytes[i] = static_cast<std::byte>(i * 7);
    return bytes;
}

Tag tag_of(const IncarnationKey& key, std::uint64_t number, const Octets& covered) {
    Tag tag;
    key.sign(number, covered, tag);
    return tag;
}

std::string hex(const Tag& tag) {
    std::string text;
    for (const std::byte byte : tag) {
        constexpr const char* kDigits = "0123456789abcdef";
        text += kDigits[std::to_integer<unsigned>(byte) >> 4U];
        text += kDigits[std::to_integer<unsigned>(byte) & 15U];
    }
    return text;
}

/// The same for each kind of tag that this processor has.
class AuthenticatorKindTest : public testing::TestWithParam<TagKind> {
protected:
    void SetUp() override {
        if (!is_available(GetParam())) GTEST_SKIP() << "this processor has no AES";
    }
    IncarnationKey incarnation_key(const IncarnationId& id = kIncarnation,
                                   unsigned first = 0) const {
        return Authenticator(master(first), GetParam()).incarnation_key(id);
    }
};

INSTANTIATE_TEST_SUITE_P(kinds, AuthenticatorKindTest,
                         testing::Values(TagKind::aes_256_gcm, TagKind::chacha20_poly1305),
                         [](const auto& kind) {
                             return kind.param == TagKind::aes_256_gcm ? "aes" : "chacha";
                         });

// The expected tags were computed with Python's hashlib.blake2b and OpenSSL's AEADs, from the page
// docs/design/udp-link.md: a second implementation that shares nothing with libsodium.
TEST_P(AuthenticatorKindTest, tags_are_those_that_another_implementation_computes) {
    const bool aes = GetParam() == TagKind::aes_256_gcm;
    EXPECT_EQ(hex(tag_of(incarnation_key(), kNumber, some_bytes(100))),
              aes ? "e1b8a9f8d1c4a62bd6671a2c3ebae6c3" : "333a5648569e5d603b3c77f8dcb35294");
    EXPECT_EQ(hex(tag_of(incarnation_key(), kNumber, {})),
              aes ? "9721136a1553c69f0cd5cb52da2f61b5" : "c224dcf32a995c21d826b487f41cffb7");
}

TEST_P(AuthenticatorKindTest, what_was_signed_is_verified_at_every_length) {
    const IncarnationKey sender = incarnation_key();
    const IncarnationKey receiver = incarnation_key();
    for (std::size_t count = 0; count <= 1500; ++count) {
        const Octets covered = some_bytes(count);
        EXPECT_TRUE(receiver.verify(count, covered, tag_of(sender, count, covered))) << count;
    }
    const Octets jumbo = some_bytes(8972);
    EXPECT_TRUE(receiver.verify(1, jumbo, tag_of(sender, 1, jumbo)));
}

TEST_P(AuthenticatorKindTest, each_flipped_bit_of_what_is_covered_is_found) {
    const IncarnationKey key = incarnation_key();
    for (const std::size_t count :
         {std::size_t{1}, std::size_t{56}, std::size_t{100}, std::size_t{257}}) {
        Octets covered = some_bytes(count);
        const Tag tag = tag_of(key, kNumber, covered);
        for (std::size_t bit = 0; bit < 8 * count; ++bit) {
            const auto mask = static_cast<std::byte>(1U << (bit % 8));
            covered[bit / 8] ^= mask;
            EXPECT_FALSE(key.verify(kNumber, covered, tag)) << "bit " << bit << " of " << count;
            covered[bit / 8] ^= mask;
        }
        EXPECT_TRUE(key.verify(kNumber, covered, tag));
    }
}

TEST_P(AuthenticatorKindTest,
       each_flipped_bit_of_the_tag_or_the_number_and_another_length_is_found) {
    const IncarnationKey key = incarnation_key();
    const Octets covered = some_bytes(100);
    const Tag tag = tag_of(key, kNumber, covered);
    for (std::size_t bit = 0; bit < 8 * kTagBytes; ++bit) {
        Tag other = tag;
        other[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
        EXPECT_FALSE(key.verify(kNumber, covered, other)) << bit;
    }
    EXPECT_FALSE(key.verify(kNumber, covered, Tag{})) << "zero bytes";
    for (unsigned bit = 0; bit < 64; ++bit) {
        EXPECT_FALSE(key.verify(kNumber ^ (std::uint64_t{1} << bit), covered, tag)) << bit;
    }
    for (std::size_t count = 0; count <= 200; ++count) {
        EXPECT_EQ(key.verify(kNumber, some_bytes(count), tag), count == 100) << count;
    }
}

TEST_P(AuthenticatorKindTest, a_copy_of_an_incarnation_key_is_as_good) {
    const Octets covered = some_bytes(100);
    const IncarnationKey key = incarnation_key();
    IncarnationKey copy = incarnation_key({}, 9);
    copy = key;
    EXPECT_EQ(key.kind(), GetParam());
    EXPECT_EQ(copy.kind(), GetParam());
    EXPECT_TRUE(copy.verify(kNumber, covered, tag_of(key, kNumber, covered)));
}

TEST(AuthenticatorTest, takes_the_processors_best_kind) {
    EXPECT_EQ(Authenticator(master()).kind(), is_available(TagKind::aes_256_gcm)
                                                  ? TagKind::aes_256_gcm
                                                  : TagKind::chacha20_poly1305);
}

TEST(AuthenticatorTest, a_receiver_takes_the_kind_that_the_header_names) {
    const Authenticator receiver(master());
    const Octets covered = some_bytes(100);
    for (const TagKind kind : {TagKind::aes_256_gcm, TagKind::chacha20_poly1305}) {
        if (!is_available(kind)) continue;
        ASSERT_EQ(receiver.check(static_cast<std::uint8_t>(kind)), Authenticator::Kind::fine);
        const IncarnationKey sender = Authenticator(master(), kind).incarnation_key(kIncarnation);
        const Tag tag = tag_of(sender, kNumber, covered);
        EXPECT_TRUE(receiver.incarnation_key(kIncarnation, kind).verify(kNumber, covered, tag));
    }
}

TEST(AuthenticatorTest, what_is_signed_or_not_and_kinds_of_later_versions_are_refused_by_name) {
    const Authenticator none, signing(master());
    EXPECT_EQ(signing.check(0), Authenticator::Kind::unsigned_);
    EXPECT_EQ(none.check(0), Authenticator::Kind::fine);
    for (unsigned kind = 1; kind <= 255; ++kind) {
        const auto byte = static_cast<std::uint8_t>(kind);
        EXPECT_EQ(none.check(byte),
                  kind <= 2 ? Authenticator::Kind::signed_ : Authenticator::Kind::unknown);
        EXPECT_EQ(signing.check(byte) == Authenticator::Kind::unknown, kind > 2) << kind;
    }
}

TEST(AuthenticatorTest, without_a_key_tags_are_zero_bytes_and_nothing_else) {
    const IncarnationKey key = Authenticator().incarnation_key(kIncarnation);
    EXPECT_EQ(key.kind(), TagKind::none);
    Tag tag;
    tag.fill(std::byte{0xff});
    key.sign(kNumber, some_bytes(100), tag);
    EXPECT_EQ(tag, Tag{});
    EXPECT_TRUE(key.verify(kNumber, some_bytes(100), tag));
    tag.back() = std::byte{1};
    EXPECT_FALSE(key.verify(kNumber, some_bytes(100), tag));
}

TEST(AuthenticatorTest, with_a_key_no_incarnation_key_takes_what_is_not_signed) {
    const Authenticator authenticator(master());
    for (unsigned kind = 0; kind <= 255; ++kind) {
        const IncarnationKey key = authenticator.incarnation_key(
            kIncarnation, static_cast<TagKind>(static_cast<std::uint8_t>(kind)));
        EXPECT_NE(key.kind(), TagKind::none) << kind;
        EXPECT_FALSE(key.verify(kNumber, some_bytes(100), Tag{})) << kind;
    }
}

TEST(AuthenticatorTest, a_key_and_no_tags_do_not_go_together) {
    test::refused(Errc::invalid_argument, [] { Authenticator(master(), TagKind::none); });
}

}  // namespace
}  // namespace rmem::udp
