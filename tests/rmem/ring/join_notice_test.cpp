// SPDX-License-Identifier: Apache-2.0
#include "rmem/ring/join_notice.hpp"

#include <gtest/gtest.h>
#include <pty.h>
#include <unistd.h>

#include <array>
#include <string>

namespace rmem {
namespace {

class Terminal {
public:
    Terminal() { EXPECT_EQ(::openpty(&other_, &own_, nullptr, nullptr, nullptr), 0); }
    ~Terminal() {
        ::close(own_);
        ::close(other_);
    }
    int descriptor() const { return own_; }
    std::string shown() const {
        std::array<char, 256> text{};
        const auto got = ::read(other_, text.data(), text.size());
        return {text.data(), static_cast<std::size_t>(got < 0 ? 0 : got)};
    }

private:
    int own_ = -1, other_ = -1;
};

TEST(JoinNotice, tells_a_person_once_and_only_after_a_while) {
    const Terminal terminal;
    JoinNotice notice(1'000, terminal.descriptor());
    EXPECT_FALSE(notice.is_due(1'000));
    EXPECT_FALSE(notice.is_due(999 + JoinNotice::kAfterNs));
    ASSERT_TRUE(notice.is_due(1'000 + JoinNotice::kAfterNs));
    EXPECT_FALSE(notice.is_due(2 * JoinNotice::kAfterNs));
    notice.tell(0, "rig", "ranks 1 2");
    EXPECT_EQ(terminal.shown(), "rmem: rank 0 of ring 'rig' is waiting for ranks 1 2\r\n");
}

TEST(JoinNotice, tells_nobody_where_no_person_reads) {
    std::array<int, 2> ends{};
    ASSERT_EQ(::pipe(ends.data()), 0);
    JoinNotice notice(0, ends[1]);
    EXPECT_FALSE(notice.is_due(10 * JoinNotice::kAfterNs));
    for (const int end : ends) ::close(end);
}

}  // namespace
}  // namespace rmem
