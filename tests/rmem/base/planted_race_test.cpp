// SPDX-License-Identifier: Apache-2.0
// ctest: tsan
#include "rmem/ring/ring.hpp"
#include "tests/support/child.hpp"
#include "tests/support/sanitizers.hpp"

#include <atomic>
#include <cstdlib>
#include <thread>

namespace rmem {
namespace {

/// Two members of a ring, as the other tests have them, and between them what none may do: a flag
/// that orders nothing, and data read plainly because of it.
[[noreturn]] void race_on_a_ring() {
    {
        test::RingName name;
        const auto ring = Ring::open(name.config(1), Deadline::never());
        auto* words = reinterpret_cast<std::uint32_t*>(ring->bank(0));
        auto& flag = *reinterpret_cast<std::atomic<std::uint32_t>*>(words);
        std::thread writer([&] {
            words[16] = 42;
            flag.store(1, std::memory_order_relaxed);
        });
        while (flag.load(std::memory_order_relaxed) == 0) std::this_thread::yield();
        const std::uint32_t read = words[16];
        writer.join();
        if (read != 42) std::abort();
    }
    std::exit(0);  // the sanitizer makes it 66 if it has reported anything
}

// If it were not, the silence of the other tests would mean nothing.
TEST(PlantedRaceTest, the_thread_sanitizer_reports_a_race_on_a_rings_memory) {
    if (!test::kThreadSanitizer) GTEST_SKIP() << "this build has no thread sanitizer";
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    EXPECT_EXIT(race_on_a_ring(), ::testing::ExitedWithCode(66), "data race");
}

}  // namespace
}  // namespace rmem
