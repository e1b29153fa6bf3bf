// SPDX-License-Identifier: Apache-2.0
#pragma once

/// That a check bites: EXPECT_BROKEN(statement) expects the statement to break an invariant that is
/// checked (rmem/base/check.hpp), which ends the process.
///
/// EXPECT_BROKEN_WHERE_CHECKED is for RMEM_CHECK_IF, whose checks are no code in a release build:
/// there it skips, and the sanitized builds show it. A test ends with it.

#include "rmem/base/check.hpp"

#include <gtest/gtest.h>

#define EXPECT_BROKEN(statement)         \
    EXPECT_DEATH(                        \
        {                                \
            ::rmem::check_from_now_on(); \
            statement;                   \
        },                               \
        "broken invariant")

#define EXPECT_BROKEN_WHERE_CHECKED(statement)                       \
    do {                                                             \
        if constexpr (::rmem::kChecked) {                            \
            EXPECT_BROKEN(statement);                                \
        } else {                                                     \
            GTEST_SKIP() << "such checks are no code in this build"; \
        }                                                            \
    } while (false)
