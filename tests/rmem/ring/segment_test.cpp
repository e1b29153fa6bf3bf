// SPDX-License-Identifier: Apache-2.0
#include "rmem/ring/segment.hpp"

#include "tests/support/child.hpp"
#include "tests/support/refused.hpp"
#include "tests/support/sanitizers.hpp"
#include "tests/support/users.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>

namespace rmem::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr std::size_t kBytes = 64 * 1024;
constexpr std::uint64_t kLock = 0;

struct SegmentTest : ::testing::Test {
    RingName name;

    SegmentTest() { name.may_be_left(); }  // a Segment never removes itself
    Segment::Created create() const {
        auto made = Segment::create(name.get(), kBytes, "", kLock);
        if (!made) throw std::runtime_error("the name exists");
        return std::move(*made);
    }
    /// With which sentence; nothing of it is left.
    std::string refused_to_make(Errc code, std::size_t bytes, const char* group = "") const {
        const auto sentence =
            refused(code, [&] { Segment::create(name.get(), bytes, group, kLock); });
        EXPECT_FALSE(name.exists());
        return sentence;
    }
};

TEST_F(SegmentTest, what_one_writes_another_who_opened_it_reads) {
    const auto made = create();
    EXPECT_EQ(made.segment.size(), kBytes);
    made.segment.data()[kBytes - 1] = std::byte{42};
    run_in_child([&] {
        const auto opened = Segment::open(name.get());
        ASSERT_TRUE(opened);
        EXPECT_EQ(opened->size(), kBytes);
        EXPECT_EQ(opened->data()[kBytes - 1], std::byte{42});
    });
}

TEST_F(SegmentTest, it_tells_which_pages_were_touched) {
    constexpr std::size_t kPage = 4096;
    const auto made = Segment::create(name.get(), 8 * kPage, "", kLock);
    ASSERT_TRUE(made);
    const Segment& segment = made->segment;
    EXPECT_EQ(segment.next_touched(0), segment.size());
    EXPECT_EQ(segment.next_untouched(0), 0U);
    segment.data()[2 * kPage + 5] = std::byte{1};
    segment.data()[3 * kPage] = std::byte{0};
    EXPECT_EQ(segment.next_touched(0), 2 * kPage);
    EXPECT_EQ(segment.next_touched(2 * kPage + 9), 2 * kPage + 9);
    EXPECT_EQ(segment.next_untouched(2 * kPage), 4 * kPage);
    EXPECT_EQ(segment.next_touched(4 * kPage), segment.size());
    EXPECT_EQ(segment.next_untouched(segment.size()), segment.size());
}

TEST_F(SegmentTest, a_name_is_made_once) {
    const auto made = create();
    EXPECT_FALSE(Segment::create(name.get(), kBytes, "", kLock));
    EXPECT_TRUE(made.segment.is_linked());
}

TEST_F(SegmentTest, what_does_not_exist_cannot_be_opened_or_removed) {
    EXPECT_FALSE(Segment::open(name.get()));
    EXPECT_FALSE(Segment::remove(name.get()));
}

TEST_F(SegmentTest, one_that_was_removed_or_replaced_is_no_longer_linked) {
    const auto made = create();
    EXPECT_TRUE(made.segment.is_linked());
    Segment::remove(name.get());
    EXPECT_FALSE(made.segment.is_linked());
    const auto second = create();
    EXPECT_FALSE(made.segment.is_linked());
    EXPECT_TRUE(second.segment.is_linked());
}

TEST_F(SegmentTest, its_owner_alone_may_use_it_or_a_group_that_is_named) {
    for (const auto& [group, mode] : {std::pair{"", 0600U}, {"daemon", 0660U}}) {
        if (*group != '\0' && ::geteuid() != 0) GTEST_SKIP() << "only root is sure to be in it";
        const auto made = Segment::create(name.get(), kBytes, group, kLock);
        ASSERT_TRUE(made);
        struct stat status {};
        EXPECT_EQ(::stat(Segment::object_name(name.get()).c_str(), &status), 0);
        EXPECT_EQ(status.st_mode & 0777, mode);
        Segment::remove(name.get());
    }
}

TEST_F(SegmentTest, a_group_that_does_not_exist_is_named_and_nothing_is_left) {
    EXPECT_THAT(refused_to_make(Errc::bad_environment, kBytes, "no-such-group-anywhere"),
                HasSubstr("no-such-group-anywhere"));
}

TEST_F(SegmentTest, a_host_with_too_little_shared_memory_says_so_and_nothing_is_left) {
    run_with_mounted("/dev/shm", "size=128k", [&] {
        EXPECT_THAT(refused_to_make(Errc::no_space, std::size_t{1} << 20),
                    HasSubstr("needs 1 MiB"));
        EXPECT_TRUE(Segment::create(name.get(), kBytes, "", kLock))
            << "nothing else was lost by it";
    });
}

TEST_F(SegmentTest, what_is_no_file_is_refused) {
    const std::string path = Segment::object_name(name.get());
    const auto is_refused = [&](const std::string& what) {
        EXPECT_THAT(refused(Errc::foreign_segment, [&] { return Segment::open(name.get()); }),
                    HasSubstr(what));
        EXPECT_THAT(Segment::list(), ::testing::Contains(name.get()));
        EXPECT_EQ(std::remove(path.c_str()), 0);
    };
    ASSERT_EQ(::mkdir(path.c_str(), 0755), 0);
    is_refused("folder");
    ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
    is_refused("pipe");
    ASSERT_EQ(::symlink("/dev/shm", path.c_str()), 0);
    is_refused("link");
}

TEST_F(SegmentTest, a_limit_on_the_size_of_files_is_an_error_and_kills_nobody) {
    run_in_child([&] {
        const rlimit limit{kBytes, kBytes};
        ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
        EXPECT_THAT(refused_to_make(Errc::no_space, 2 * kBytes), HasSubstr("ulimit -f"));
        sigset_t blocked;
        ::pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
        EXPECT_EQ(sigismember(&blocked, SIGXFSZ), 0) << "the program's signals are as before";
    });
}

TEST_F(SegmentTest, a_process_that_keeps_all_of_its_memory_is_told_the_limit) {
    if (kSanitized) GTEST_SKIP() << "a sanitizer keeps no memory";
    run_in_child([&] {
        const rlimit limit{std::size_t{8} << 20, std::size_t{8} << 20};
        ASSERT_EQ(::setrlimit(RLIMIT_MEMLOCK, &limit), 0);
        if (::geteuid() == 0) become(kAlice);  // root may keep any amount
        // What is mapped already may be more than that.
        if (::mlockall(MCL_FUTURE) != 0) GTEST_SKIP() << "it may keep nothing";
        EXPECT_THAT(refused_to_make(Errc::no_space, std::size_t{16} << 20),
                    AllOf(HasSubstr("mlockall"), HasSubstr("8 MiB"), HasSubstr("ulimit -l")));
    });
}

TEST_F(SegmentTest, one_that_may_have_few_addresses_or_files_is_told_the_limit) {
    if (kSanitized) GTEST_SKIP() << "a sanitizer needs more of both itself";
    const auto is_refused = [&](__rlimit_resource which, rlim_t most, Errc code,
                                const char* option) {
        run_in_child([&] {
            const rlimit limit{most, most};
            ASSERT_EQ(::setrlimit(which, &limit), 0);
            EXPECT_THAT(refused_to_make(code, std::size_t{1} << 30), HasSubstr(option));
        });
    };
    is_refused(RLIMIT_AS, std::size_t{1} << 30, Errc::no_space, "ulimit -v");
    is_refused(RLIMIT_NOFILE, 0, Errc::system, "ulimit -n");
}

TEST_F(SegmentTest, what_the_cgroup_has_no_room_for_is_refused_before_the_kernel_ends_anybody) {
    run_with_mounted("/sys/fs/cgroup", "size=1m", [&] {
        // As it is for one in a container: its cgroup is the top of all that it sees.
        std::filesystem::create_directory("/sys/fs/cgroup/memory");
        for (const char* file : {"memory.max", "memory/memory.limit_in_bytes"})
            std::ofstream(std::string("/sys/fs/cgroup/") + file) << (24 << 20) << '\n';
        for (const char* file : {"memory.swap.max", "memory/memory.swap.max"})
            std::ofstream(std::string("/sys/fs/cgroup/") + file) << 0 << '\n';
        EXPECT_THAT(refused_to_make(Errc::no_space, std::size_t{64} << 20),
                    AllOf(HasSubstr("needs 64 MiB"), HasSubstr("room for 24 MiB")));
        EXPECT_TRUE(Segment::create(name.get(), kBytes, "", kLock));
    });
}

TEST_F(SegmentTest, a_host_where_nobody_may_make_files_says_so) {
    run_with_mounted("/dev/shm", "mode=755,size=1m", [&] {
        become(kAlice);
        EXPECT_THAT(refused_to_make(Errc::not_permitted, kBytes), HasSubstr("chmod 1777 /dev/shm"));
    });
}

// ---- Byte locks

TEST_F(SegmentTest, a_lock_is_seen_by_all_until_it_is_released) {
    const auto made = create();
    EXPECT_FALSE(made.segment.is_locked(100));
    auto lock = made.segment.try_lock(100);
    ASSERT_TRUE(lock);
    EXPECT_TRUE(lock->held());
    EXPECT_TRUE(made.segment.is_locked(100)) << "one's own lock counts";
    EXPECT_FALSE(made.segment.try_lock(100)) << "for another thread, too";
    EXPECT_FALSE(made.segment.is_locked(101));
    EXPECT_TRUE(made.segment.is_locked(90, 20)) << "a range holds it";
    run_in_child([&] {
        const auto opened = Segment::open(name.get());
        EXPECT_TRUE(opened->is_locked(100));
        EXPECT_FALSE(opened->try_lock(100));
    });
    lock->release();
    EXPECT_FALSE(made.segment.is_locked(100));
}

TEST_F(SegmentTest, shared_locks_go_together_and_keep_an_exclusive_one_away) {
    const auto made = create();
    const auto one = made.segment.try_lock_shared(1);
    const auto two = made.segment.try_lock_shared(1);
    EXPECT_TRUE(one);
    EXPECT_TRUE(two);
    EXPECT_FALSE(made.segment.try_lock(1));
    EXPECT_TRUE(made.segment.is_locked(1));
}

TEST_F(SegmentTest, the_maker_holds_the_lock_before_anybody_can_find_the_name) {
    auto made = create();
    EXPECT_TRUE(made.segment.is_locked(kLock));
    made.lock.release();
    EXPECT_FALSE(made.segment.is_locked(kLock));
}

// ---- Fork

TEST_F(SegmentTest, a_child_does_not_keep_its_dead_parents_lock_however_it_was_made) {
    // The first closes what it has inherited in the C library's fork, before it returns.
    const std::function<pid_t()> makers[] = {
        ::fork, ::_Fork,
        [] { return static_cast<pid_t>(::syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0)); }};
    for (const auto& make_child : makers) {
        Segment::remove(name.get());
        const auto made = create();
        SharedValue<std::atomic<pid_t>> grandchild;
        Child parent([&] {
            const auto opened = Segment::open(name.get());
            const auto lock = opened->try_lock(100);
            if (make_child() == 0) {
                outlive_parent();
                *grandchild = ::getpid();
            }
            ::pause();
        });
        ASSERT_TRUE(eventually([&] { return grandchild->load() != 0; }));
        EXPECT_TRUE(made.segment.is_locked(100));
        parent.kill();
        EXPECT_EQ(::kill(*grandchild, 0), 0) << "the grandchild should still live";
        EXPECT_FALSE(made.segment.is_locked(100));
        ::kill(*grandchild, SIGKILL);
    }
}

TEST_F(SegmentTest, what_a_child_inherits_holds_nothing_and_releases_nothing) {
    const auto made = create();
    auto lock = made.segment.try_lock(100);
    run_in_child([&] {
        EXPECT_FALSE(lock->held());
        const auto own = Segment::open(name.get());  // takes descriptor numbers that are free here
        const auto own_lock = own->try_lock(101);
        lock.reset();
        EXPECT_TRUE(own->is_locked(100)) << "the child released its parent's lock";
        EXPECT_TRUE(own->is_locked(101)) << "the child closed another file of that number";
    });
    EXPECT_TRUE(made.segment.is_locked(100));
}

}  // namespace
}  // namespace rmem::test
