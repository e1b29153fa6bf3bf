// SPDX-License-Identifier: Apache-2.0
#include "rmem/ring/waiting/bell.hpp"

#include "tests/support/refused.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>

namespace rmem::test {
namespace {

using testing::HasSubstr;

class BellTest : public ::testing::Test {
protected:
    ~BellTest() override { Bell::remove(segment); }

    static bool is_rung(const Bell& bell) {
        pollfd one{bell.handle(), POLLIN, 0};
        return ::poll(&one, 1, 0) == 1 && (one.revents & POLLIN) != 0;
    }

    const std::string segment = "unit-bell-" + std::to_string(::getpid());
    const std::string path = "/dev/shm/rmem-bell." + segment;
};

TEST_F(BellTest, is_heard_until_it_is_cleared) {
    const Bell listener = Bell::make(segment);
    const Bell rope = Bell::open(segment);
    EXPECT_FALSE(is_rung(listener));
    rope.ring();
    EXPECT_TRUE(is_rung(listener));
    EXPECT_TRUE(is_rung(listener)) << "looking does not clear it";
    listener.clear();
    EXPECT_FALSE(is_rung(listener));
    for (int i = 0; i < 256; ++i) rope.ring();
    listener.clear();
    EXPECT_FALSE(is_rung(listener)) << "many are one";
}

TEST_F(BellTest, rung_thousands_of_times_unheard_stays_rung_and_holds_up_nobody) {
    const Bell listener = Bell::make(segment);
    const Bell rope = Bell::open(segment);
    for (int i = 0; i < 200'000; ++i) rope.ring();
    EXPECT_TRUE(is_rung(listener));
    listener.clear();
    EXPECT_FALSE(is_rung(listener));
    rope.ring();
    EXPECT_TRUE(is_rung(listener));
}

TEST_F(BellTest, where_there_is_none_nothing_rings) {
    const Bell rope = Bell::open(segment);
    rope.ring();
    EXPECT_EQ(rope.handle(), -1);
    EXPECT_NE(::access(path.c_str(), F_OK), 0) << "who rings makes none";
}

TEST_F(BellTest, passes_to_the_next_listener_unrung) {
    const Bell rope = [this] {
        const Bell first = Bell::make(segment);
        Bell opened = Bell::open(segment);
        opened.ring();
        return opened;
    }();
    const Bell next = Bell::make(segment);
    EXPECT_FALSE(is_rung(next)) << "that was for its predecessor";
    rope.ring();
    EXPECT_TRUE(is_rung(next));
}

TEST_F(BellTest, goes_with_its_name) {
    const Bell listener = Bell::make(segment);
    Bell::remove(segment);
    EXPECT_NE(::access(path.c_str(), F_OK), 0);
    EXPECT_EQ(Bell::open(segment).handle(), -1);
    Bell::remove(segment);  // what is not there is no error
}

TEST_F(BellTest, is_refused_where_something_else_has_its_name) {
    const Descriptor file(::open(path.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600));
    ASSERT_GE(file.get(), 0);
    EXPECT_THAT(refused(Errc::foreign_segment, [&] { Bell::make(segment); }), HasSubstr(path));
    const Bell rope = Bell::open(segment);
    rope.ring();
    struct stat found {};
    ASSERT_EQ(::fstat(file.get(), &found), 0);
    EXPECT_EQ(found.st_size, 0) << "nothing is written to who has it";
}

TEST_F(BellTest, is_not_made_through_a_link_that_somebody_laid) {
    const std::string elsewhere = path + ".elsewhere";
    ASSERT_EQ(::mkfifo(elsewhere.c_str(), 0600), 0);
    ASSERT_EQ(::symlink(elsewhere.c_str(), path.c_str()), 0);
    EXPECT_THROW(Bell::make(segment), Error);
    EXPECT_EQ(Bell::open(segment).handle(), -1);
    ::unlink(elsewhere.c_str());
}

TEST_F(BellTest, can_be_rung_by_whom_the_segment_is_shared_with_and_by_nobody_else_later) {
    struct stat found {};
    {
        const Bell listener = Bell::make(segment, ::getegid());
        ASSERT_EQ(::stat(path.c_str(), &found), 0);
        EXPECT_EQ(found.st_mode & 0777U, 0660U);
        EXPECT_EQ(found.st_gid, ::getegid());
    }
    const Bell listener = Bell::make(segment);
    ASSERT_EQ(::stat(path.c_str(), &found), 0);
    EXPECT_EQ(found.st_mode & 0777U, 0600U);
}

}  // namespace
}  // namespace rmem::test
