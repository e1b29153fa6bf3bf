// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Other users of this host, by numbers that no account needs to have.
///
///     if (::geteuid() != 0) GTEST_SKIP() << kNeedsRoot;
///     Child bob([&] { become(kBob); … });
///
/// A process that has become one cannot go back.

#include <grp.h>
#include <gtest/gtest.h>
#include <sys/types.h>
#include <unistd.h>

#include <vector>

namespace rmem::test {

inline constexpr uid_t kAlice = 65501, kBob = 65502;
inline constexpr const char* kNeedsRoot = "only root can become other users";

/// `groups`: besides the one that has the user's number.
inline void become(uid_t user, const std::vector<gid_t>& groups = {}) {
    ASSERT_EQ(::setgroups(groups.size(), groups.data()), 0);
    ASSERT_EQ(::setresgid(user, user, user), 0);
    ASSERT_EQ(::setresuid(user, user, user), 0);
    ASSERT_NE(::setuid(0), 0);
}

}  // namespace rmem::test
