// SPDX-License-Identifier: Apache-2.0
// ctest: tsan
// Fast Messages 2.x from several threads of one node, which sends to itself.
#include "tests/ports/fm/fm_support.hpp"
#include "tests/support/child.hpp"
#include "tests/support/sanitizers.hpp"

#include <atomic>
#include <cstdlib>
#include <thread>

namespace rmem::test {
namespace {

std::atomic<int> received{0};
std::atomic<int> wrong{0};

int count_bytes(FM_stream* s, unsigned) {
    std::uint32_t size = 0;
    FM_receive(&size, s, sizeof size);
    std::vector<std::byte> bytes(size);
    FM_receive(bytes.data(), s, size);
    if (first_difference(bytes, 7) != size) ++wrong;
    ++received;
    return FM_CONTINUE;
}

class Fm2Threads : public ::testing::Test {
protected:
    Fm2Threads() {
        ::setenv("RMEM_RING", name_.get().c_str(), 1);
        ::setenv("RMEM_LINK", "direct", 1);
        ::setenv("RMEM_RANKS", "1", 1);
        ::setenv("RMEM_NODES", "1", 1);
        ::setenv("RMEM_RANK", "0", 1);
        ::setenv("RMEM_PARTITION", "64K", 1);
        FM_register_handler(0, count_bytes);
        FM_initialize();
        received = wrong = 0;
    }
    ~Fm2Threads() override { FM_finalize(); }

    RingName name_;
};

TEST_F(Fm2Threads, one_thread_sends_while_two_extract_and_handlers_go_on_in_either) {
    constexpr int kMessages = kSanitized ? 300 : 1000;
    const auto extract = [] {
        while (received < kMessages) FM_extract(~0UL);
    };
    std::thread first(extract), second(extract);
    for (int i = 0; i < kMessages; ++i) {
        auto bytes = pattern(static_cast<std::size_t>(i) * 31 % 20'000, 7);
        std::uint32_t size = static_cast<std::uint32_t>(bytes.size());
        FM_stream* const s = FM_begin_message(0, sizeof size + size, 0);
        ASSERT_NE(s, nullptr);
        FM_send_piece(s, &size, sizeof size);
        FM_send_piece(s, bytes.data(), size);
        FM_end_message(s);
    }
    first.join();
    second.join();
    EXPECT_EQ(received, kMessages);
    EXPECT_EQ(wrong, 0);
}

TEST_F(Fm2Threads, a_second_thread_gets_NULL_while_a_message_is_open) {
    FM_stream* const mine = FM_begin_message(0, 4, 0);
    ASSERT_NE(mine, nullptr);
    std::thread([] {
        errno = 0;
        EXPECT_EQ(FM_begin_message(0, 4, 0), nullptr);
        EXPECT_EQ(errno, EBUSY);
    }).join();
    FM_end_message(mine);
    std::thread([] {
        FM_stream* const its = FM_begin_message(0, 4, 0);
        EXPECT_NE(its, nullptr);
        FM_end_message(its);
    }).join();
}

}  // namespace
}  // namespace rmem::test
