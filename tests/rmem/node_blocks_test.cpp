// SPDX-License-Identifier: Apache-2.0
// ctest: check tsan

/// Blocks of every size, from and to every alignment, change exactly what they cover, in all banks;
/// and no word of them is ever half of one write and half of another.

#include "tests/support/link_nodes.hpp"
#include "tests/support/patterns.hpp"
#include "tests/support/test_ring.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

namespace rmem::test {
namespace {

constexpr std::size_t kMaxBytes = 300;
constexpr std::size_t kOffsets = 16;  ///< modulo which every offset is tried
constexpr std::size_t kPitch = 512;   ///< from one block to the next
constexpr std::size_t kMargin = 64;   ///< before each

/// As ASSERT_EQ, but without printing all bytes.
::testing::AssertionResult same(std::span<const std::byte> found,
                                std::span<const std::byte> expected) {
    if (found.size() != expected.size()) return ::testing::AssertionFailure() << "sizes differ";
    const auto [one, other] = std::mismatch(found.begin(), found.end(), expected.begin());
    if (one == found.end()) return ::testing::AssertionSuccess();
    return ::testing::AssertionFailure()
           << "byte " << one - found.begin() << " is " << std::to_integer<unsigned>(*one)
           << " instead of " << std::to_integer<unsigned>(*other);
}

/// Bytes at every distance from a boundary of 16.
class Buffer {
public:
    explicit Buffer(std::size_t bytes) : bytes_(bytes + 2 * kOffsets) {}
    std::span<std::byte> at(std::size_t alignment, std::size_t bytes) {
        const auto address = reinterpret_cast<std::uintptr_t>(bytes_.data());
        const std::size_t to_boundary = (kOffsets - address % kOffsets) % kOffsets;
        return std::span(bytes_).subspan(to_boundary + alignment, bytes);
    }

private:
    std::vector<std::byte> bytes_;
};

class NodeBlocks : public ::testing::TestWithParam<LinkCase> {
protected:
    static RingSpec spec(std::size_t bytes) {
        const LinkCase& at = GetParam();
        return {.link = at.link, .timing = at.timing, .user_bytes = bytes, .joins = true};
    }
    /// All banks hold what they should.
    static void expect_everywhere(const TestRing& ring, std::span<const std::byte> expected) {
        ring.flush();
        for (unsigned node = 0; node < 2; ++node) {
            const std::vector<std::byte> found = memory_of(ring.node(node));
            ASSERT_TRUE(same(found, expected)) << "at node " << node;
        }
    }
};

TEST_P(NodeBlocks, of_each_size_at_each_offset_from_each_alignment_change_what_they_cover) {
    const TestRing ring(spec(kOffsets * kPitch));
    std::vector<std::byte> expected = pattern(kOffsets * kPitch, 18);
    write_all(ring.node(0), 0, expected.data(), expected.size());
    Buffer buffer(kMaxBytes);
    for (std::size_t bytes = 0; bytes <= kMaxBytes; ++bytes) {
        for (std::size_t offset = 0; offset < kOffsets; ++offset) {
            const std::size_t at = offset * kPitch + kMargin + offset;
            // Over all sizes each offset meets each alignment.
            const auto source = buffer.at((bytes + 3 * offset) % kOffsets, bytes);
            fill(source, bytes * kOffsets + offset);
            write_all(ring.node(0), at, source.data(), bytes);
            std::copy(source.begin(), source.end(), expected.data() + at);
        }
        expect_everywhere(ring, expected);
        if (HasFailure()) FAIL() << "blocks of " << bytes << " bytes";
    }
}

TEST_P(NodeBlocks, large_ones_change_what_they_cover) {
    constexpr std::size_t kBytes = std::size_t{2} << 20;
    const TestRing ring(spec(kBytes));
    std::vector<std::byte> expected(kBytes);
    Buffer buffer(kBytes);
    constexpr unsigned kMebibyte = 1U << 20;
    const bool slow = GetParam().timing != "none";
    for (const std::size_t bytes :
         {511U, 1024U, 1401U, 1472U, 4095U, 4096U, 8191U, 9000U, 65'535U, 65'540U,
          2 * kMebibyte / 7, kMebibyte - 1, kMebibyte, kMebibyte + 5}) {
        if (slow && bytes > 100'000) break;
        for (const std::size_t offset : {0U, 1U, 4099U}) {
            const auto source = buffer.at(bytes % kOffsets, bytes);
            fill(source, bytes + offset);
            write_all(ring.node(0), offset, source.data(), bytes);
            std::copy(source.begin(), source.end(), expected.data() + offset);
            expect_everywhere(ring, expected);
            if (HasFailure()) FAIL() << "a block of " << bytes << " bytes at " << offset;
        }
    }
}

TEST_P(NodeBlocks, of_each_size_at_each_offset_are_read_to_each_alignment_and_no_further) {
    const TestRing ring(spec(2 * kPitch));
    const std::vector<std::byte> memory = pattern(2 * kPitch, 19);
    write_all(ring.node(0), 0, memory.data(), memory.size());
    ring.flush();
    Buffer buffer(kMaxBytes + 2 * kOffsets);
    for (std::size_t bytes = 0; bytes <= kMaxBytes; ++bytes) {
        for (std::size_t offset = 0; offset < kOffsets; ++offset) {
            const auto around = buffer.at((bytes + 3 * offset) % kOffsets, bytes + 2 * kOffsets);
            std::vector<std::byte> expected(around.size(), std::byte{0x5a});
            std::copy(expected.begin(), expected.end(), around.begin());
            ring.node(1).read(kMargin + offset, around.data() + kOffsets, bytes);
            std::memcpy(expected.data() + kOffsets, memory.data() + kMargin + offset, bytes);
            ASSERT_TRUE(same(around, expected)) << bytes << " bytes from " << kMargin + offset;
        }
    }
}

INSTANTIATE_TEST_SUITE_P(EachLink, NodeBlocks,
                         ::testing::Values(LinkCase{LinkKind::direct}, LinkCase{LinkKind::ring},
                                           LinkCase{LinkKind::ring, "gt200"},
                                           LinkCase{LinkKind::udp}, LinkCase{LinkKind::fabric}),
                         conformance_case_name);

// ---- Two that write one block

class NodeTorn : public LinkConformance {};

TEST_P(NodeTorn, each_word_of_a_block_that_two_write_is_of_one_of_them) {
    constexpr std::uint32_t kRounds = 400;
    constexpr std::size_t kBegin = 0x104;
    constexpr std::size_t kWords = 75;
    constexpr std::array<std::uint32_t, 2> kPatterns = {0x11223344, 0xeeddccbb};
    run(3, [&](Self& self) {
        if (self.id < 2) {
            std::vector<std::byte> bytes(4 * kWords + 4);
            for (std::uint32_t round = 0; round < kRounds; ++round) {
                const std::uint32_t word = kPatterns.at((round + self.id) % 2);
                std::byte* from = bytes.data() + round % 4;
                for (std::size_t i = 0; i < kWords; ++i) std::memcpy(from + 4 * i, &word, 4);
                const std::size_t skip = round % 7;
                self.write(kBegin + 4 * skip, from, 4 * (kWords - skip));
            }
            ++self.shared.words[0];
            return;
        }
        std::vector<std::uint32_t> seen(kWords);
        std::size_t looks = 0;
        for (bool is_last = false; !is_last; ++looks) {
            is_last = self.shared.words[0] == 2;
            self.node.read(kBegin, seen.data(), 4 * kWords);
            for (std::size_t i = 0; i < kWords; ++i) {
                for (const std::uint32_t word : {seen[i], self.raw(kBegin + 4 * i)}) {
                    ASSERT_TRUE(word == 0 || word == kPatterns[0] || word == kPatterns[1])
                        << std::hex << word << " at word " << std::dec << i << ", look " << looks;
                }
            }
        }
    });
}

INSTANTIATE_TEST_SUITE_P(EachLink, NodeTorn,
                         conformance_on({{LinkKind::direct, {"none"}},
                                         {LinkKind::ring, {"none", "scramnet-burst-plus"}},
                                         {LinkKind::fabric, {"none"}},
                                         {LinkKind::udp, {"none"}}}),
                         conformance_case_name);

}  // namespace
}  // namespace rmem::test
