// SPDX-License-Identifier: Apache-2.0
#include "rmem/stores/mode.hpp"

#include <gtest/gtest.h>

#include <cstdlib>

namespace rmem {
namespace {

TEST(StoresMode, a_way_and_words_are_told_alone_or_together) {
    ::setenv("RMEM_STORES", "scan,0x100,8192+64", 1);
    EXPECT_EQ(stores_setting(), StoresMode::scan);
    const auto words = sync_words_setting();
    ASSERT_EQ(words.size(), 2U);
    EXPECT_EQ(words[0].offset + words[0].bytes, 0x100U + kWordBytes);
    EXPECT_EQ(words[1].offset + words[1].bytes, 8192U + 64);
    ::setenv("RMEM_STORES", "instrumented", 1);
    EXPECT_TRUE(sync_words_setting().empty());
    ::unsetenv("RMEM_STORES");
    const StoresMode otherwise = stores_setting();
    ::setenv("RMEM_STORES", "256", 1);
    EXPECT_EQ(stores_setting(), otherwise);
    for (const char* wrong : {"sometimes", "scan,sync", "0x", "scan,1+", "scan,,8", "+8"}) {
        ::setenv("RMEM_STORES", wrong, 1);
        EXPECT_THROW(sync_words_setting(), Error) << wrong;
    }
    ::unsetenv("RMEM_STORES");
}

}  // namespace
}  // namespace rmem
