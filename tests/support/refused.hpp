// SPDX-License-Identifier: Apache-2.0
#pragma once

/// That a call is refused, and with which sentence.
///
///     EXPECT_THAT(refused(Errc::bad_rank, [&] { world.kill(7); }), HasSubstr("rank 7"));

#include "rmem/error.hpp"

#include <gtest/gtest.h>

#include <string>

namespace rmem::test {

/// The sentence of the error with this code that `call` must throw.
template <class Call>
std::string refused(Errc code, Call&& call, const char* file = __builtin_FILE(),
                    int line = __builtin_LINE()) {
    const ::testing::ScopedTrace trace(file, line, "what is to be refused");
    try {
        call();
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), code) << error.what();
        return error.what();
    }
    ADD_FAILURE() << "it was not refused";
    return "";
}

}  // namespace rmem::test
