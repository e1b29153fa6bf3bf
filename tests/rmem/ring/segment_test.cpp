// SPDX-License-Identifier: Apache-2.0
#include "rmem/ring/segment.hpp"

#include "tests/support/child.hpp"
#include "tests/support/sanitizers.hpp"
#include "tests/support/users.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/mount.h>
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

namespace rmem {
namespace {

using test::Child;
using test::eventually;
using test::RingName;
using test::SharedValue;
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
};

TEST_F(SegmentTest, what_one_writes_another_who_opened_it_reads) {
    const auto made = create();
    EXPECT_EQ(made.segment.size(), kBytes);
    made.segment.data()[kBytes - 1] = std::byte{42};
    Child other([&] {
        const auto opened = Segment::open(name.get());
        ASSERT_TRUE(opened);
        EXPECT_EQ(opened->size(), kBytes);
        EXPECT_EQ(opened->data()[kBytes - 1], std::byte{42});
    });
    EXPECT_EQ(other.wait(), 0);
}

TEST_F(SegmentTest, a_new_one_is_all_zeros) {
    const auto made = create();
    EXPECT_TRUE(std::all_of(made.segment.data(), made.segment.data() + kBytes,
                            [](std::byte b) { return b == std::byte{0}; }));
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

TEST_F(SegmentTest, it_is_listed_by_its_rings_name) {
    const auto made = create();
    EXPECT_THAT(Segment::list(), ::testing::Contains(name.get()));
    Segment::remove(name.get());
    EXPECT_THAT(Segment::list(), ::testing::Not(::testing::Contains(name.get())));
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

TEST_F(SegmentTest, its_owner_alone_may_use_it) {
    const auto made = create();
    struct stat status {};
    ASSERT_EQ(::stat(Segment::object_name(name.get()).c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777, 0600U);
}

TEST_F(SegmentTest, a_group_may_use_it_where_one_is_named) {
    if (::geteuid() != 0) GTEST_SKIP() << "only root is sure to be in a group to give away to";
    const auto made = Segment::create(name.get(), kBytes, "daemon", kLock);
    ASSERT_TRUE(made);
    struct stat status {};
    ASSERT_EQ(::stat(Segment::object_name(name.get()).c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777, 0660U);
}

TEST_F(SegmentTest, a_group_that_does_not_exist_is_named_and_nothing_is_left) {
    try {
        Segment::create(name.get(), kBytes, "no-such-group-anywhere", kLock);
        FAIL() << "a group that does not exist was taken";
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), Errc::bad_environment);
        EXPECT_THAT(error.what(), HasSubstr("no-such-group-anywhere"));
    }
    EXPECT_FALSE(name.exists());
}

TEST_F(SegmentTest, another_user_is_not_permitted) {
    if (::geteuid() != 0) GTEST_SKIP() << "only root can become another user";
    const auto made = create();
    Child other([&] {
        ASSERT_EQ(::setuid(65534), 0);
        try {
            static_cast<void>(Segment::open(name.get()));
            FAIL() << "opened another user's segment";
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), Errc::not_permitted);
            EXPECT_THAT(error.what(), HasSubstr(name.get()));
        }
    });
    EXPECT_EQ(other.wait(), 0);
}

TEST_F(SegmentTest, a_host_with_too_little_shared_memory_says_so_and_nothing_is_left) {
    if (::geteuid() != 0) GTEST_SKIP() << "only root can mount a small /dev/shm of its own";
    SharedValue<std::atomic<bool>> mounted;
    Child other([&] {
        if (::unshare(CLONE_NEWNS) != 0) return;
        if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return;
        if (::mount("none", "/dev/shm", "tmpfs", 0, "size=128k") != 0) return;
        *mounted = true;
        try {
            Segment::create(name.get(), std::size_t{1} << 20, "", kLock);
            FAIL() << "more than the host has was reserved";
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), Errc::no_space);
            EXPECT_THAT(error.what(), HasSubstr("needs 1 MiB"));
        }
        EXPECT_FALSE(name.exists());
        EXPECT_TRUE(Segment::create(name.get(), kBytes, "", kLock))
            << "nothing else was lost by it";
    });
    EXPECT_EQ(other.wait(), 0);
    if (!*mounted) GTEST_SKIP() << "this host does not allow a mount namespace";
}

TEST_F(SegmentTest, what_is_no_file_is_refused) {
    const std::string path = Segment::object_name(name.get());
    const auto refused = [&](const std::string& what) {
        try {
            static_cast<void>(Segment::open(name.get()));
            FAIL() << "it was opened";
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), Errc::foreign_segment) << error.what();
            EXPECT_THAT(error.what(), HasSubstr(what));
        }
        EXPECT_THAT(Segment::list(), ::testing::Contains(name.get()));
        EXPECT_EQ(std::remove(path.c_str()), 0);
    };
    ASSERT_EQ(::mkdir(path.c_str(), 0755), 0);
    refused("folder");
    ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
    refused("pipe");
    ASSERT_EQ(::symlink("/dev/shm", path.c_str()), 0);
    refused("link");
}

TEST_F(SegmentTest, a_limit_on_the_size_of_files_is_an_error_and_kills_nobody) {
    Child other([&] {
        const rlimit limit{kBytes, kBytes};
        ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
        try {
            Segment::create(name.get(), 2 * kBytes, "", kLock);
            FAIL() << "more than the limit was reserved";
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), Errc::no_space);
            EXPECT_THAT(error.what(), HasSubstr("ulimit -f"));
        }
        EXPECT_FALSE(name.exists());
        sigset_t blocked;
        ::pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
        EXPECT_EQ(sigismember(&blocked, SIGXFSZ), 0) << "the program's signals are as before";
    });
    EXPECT_EQ(other.wait(), 0);
}

TEST_F(SegmentTest, a_process_that_keeps_all_of_its_memory_is_told_the_limit) {
    if (test::kSanitized) GTEST_SKIP() << "a sanitizer keeps no memory";
    Child other([&] {
        const rlimit limit{std::size_t{8} << 20, std::size_t{8} << 20};
        ASSERT_EQ(::setrlimit(RLIMIT_MEMLOCK, &limit), 0);
        if (::geteuid() == 0) test::become(test::kAlice);  // root may keep any amount
        // What is mapped already may be more than that.
        if (::mlockall(MCL_FUTURE) != 0) GTEST_SKIP() << "it may keep nothing";
        try {
            Segment::create(name.get(), std::size_t{16} << 20, "", kLock);
            FAIL() << "it was kept";
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), Errc::no_space);
            EXPECT_THAT(error.what(), HasSubstr("mlockall"));
            EXPECT_THAT(error.what(), HasSubstr("8 MiB"));
            EXPECT_THAT(error.what(), HasSubstr("ulimit -l"));
        }
        EXPECT_FALSE(name.exists());
    });
    EXPECT_EQ(other.wait(), 0);
}

TEST_F(SegmentTest, one_that_may_have_few_addresses_or_files_is_told_the_limit) {
    if (test::kSanitized) GTEST_SKIP() << "a sanitizer needs more of both itself";
    const auto refused = [&](__rlimit_resource which, rlim_t most, const std::string& option) {
        Child other([&] {
            const rlimit limit{most, most};
            ASSERT_EQ(::setrlimit(which, &limit), 0);
            try {
                Segment::create(name.get(), std::size_t{1} << 30, "", kLock);
                FAIL() << "it was made";
            } catch (const Error& error) {
                EXPECT_THAT(error.what(), HasSubstr(option));
            }
            EXPECT_FALSE(name.exists());
        });
        EXPECT_EQ(other.wait(), 0);
    };
    refused(RLIMIT_AS, std::size_t{1} << 30, "ulimit -v");
    refused(RLIMIT_NOFILE, 0, "ulimit -n");
}

TEST_F(SegmentTest, what_the_cgroup_has_no_room_for_is_refused_before_the_kernel_ends_anybody) {
    if (::geteuid() != 0) GTEST_SKIP() << "only root can mount a /sys/fs/cgroup of its own";
    SharedValue<std::atomic<bool>> mounted;
    Child other([&] {
        if (::unshare(CLONE_NEWNS) != 0) return;
        if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return;
        if (::mount("none", "/sys/fs/cgroup", "tmpfs", 0, "size=1m") != 0) return;
        *mounted = true;
        // As it is for one in a container: its cgroup is the top of all that it sees.
        std::filesystem::create_directory("/sys/fs/cgroup/memory");
        for (const char* file : {"memory.max", "memory/memory.limit_in_bytes"})
            std::ofstream(std::string("/sys/fs/cgroup/") + file) << (24 << 20) << '\n';
        for (const char* file : {"memory.swap.max", "memory/memory.swap.max"})
            std::ofstream(std::string("/sys/fs/cgroup/") + file) << 0 << '\n';
        try {
            Segment::create(name.get(), std::size_t{64} << 20, "", kLock);
            FAIL() << "it was made";
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), Errc::no_space);
            EXPECT_THAT(error.what(), HasSubstr("needs 64 MiB"));
            EXPECT_THAT(error.what(), HasSubstr("room for 24 MiB"));
        }
        EXPECT_FALSE(name.exists());
        EXPECT_TRUE(Segment::create(name.get(), kBytes, "", kLock));
    });
    EXPECT_EQ(other.wait(), 0);
    if (!*mounted) GTEST_SKIP() << "this host does not allow a mount namespace";
}

TEST_F(SegmentTest, a_host_where_nobody_may_make_files_says_so) {
    if (::geteuid() != 0) GTEST_SKIP() << "only root can mount a /dev/shm of its own";
    SharedValue<std::atomic<bool>> mounted;
    Child other([&] {
        if (::unshare(CLONE_NEWNS) != 0) return;
        if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return;
        if (::mount("none", "/dev/shm", "tmpfs", 0, "mode=755,size=1m") != 0) return;
        *mounted = true;
        test::become(test::kAlice);
        try {
            create();
            FAIL() << "it was made";
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), Errc::not_permitted);
            EXPECT_THAT(error.what(), HasSubstr("chmod 1777 /dev/shm"));
        }
    });
    EXPECT_EQ(other.wait(), 0);
    if (!*mounted) GTEST_SKIP() << "this host does not allow a mount namespace";
}

// ---- Byte locks

TEST_F(SegmentTest, a_lock_is_seen_by_all_until_it_is_released) {
    const auto made = create();
    EXPECT_FALSE(made.segment.is_locked(100));
    auto lock = made.segment.try_lock(100);
    ASSERT_TRUE(lock);
    EXPECT_TRUE(lock->held());
    EXPECT_TRUE(made.segment.is_locked(100)) << "one's own lock counts";
    EXPECT_FALSE(made.segment.is_locked(101));
    EXPECT_TRUE(made.segment.is_locked(90, 20)) << "a range holds it";
    Child other([&] {
        const auto opened = Segment::open(name.get());
        EXPECT_TRUE(opened->is_locked(100));
        EXPECT_FALSE(opened->try_lock(100));
    });
    EXPECT_EQ(other.wait(), 0);
    lock->release();
    EXPECT_FALSE(made.segment.is_locked(100));
}

TEST_F(SegmentTest, threads_of_one_process_exclude_each_other_too) {
    const auto made = create();
    const auto first = made.segment.try_lock(7);
    EXPECT_TRUE(first);
    EXPECT_FALSE(made.segment.try_lock(7));
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

TEST_F(SegmentTest, a_killed_holder_no_longer_holds) {
    const auto made = create();
    SharedValue<std::atomic<bool>> held;
    Child holder([&] {
        const auto opened = Segment::open(name.get());
        const auto lock = opened->try_lock(100);
        *held = true;
        ::pause();
    });
    ASSERT_TRUE(eventually([&] { return held->load(); }));
    EXPECT_TRUE(made.segment.is_locked(100));
    holder.kill();
    EXPECT_FALSE(made.segment.is_locked(100));
}

// ---- Fork

TEST_F(SegmentTest, a_forked_child_does_not_keep_its_dead_parents_lock) {
    const auto made = create();
    SharedValue<std::atomic<pid_t>> grandchild;
    Child parent([&] {
        const auto opened = Segment::open(name.get());
        const auto lock = opened->try_lock(100);
        Child other([&] {
            test::outlive_parent();
            // Told by itself: it has closed what it inherited only when fork has returned here.
            *grandchild = ::getpid();
            ::pause();
        });
        ::pause();
    });
    ASSERT_TRUE(eventually([&] { return grandchild->load() != 0; }));
    EXPECT_TRUE(made.segment.is_locked(100));
    parent.kill();
    EXPECT_EQ(::kill(*grandchild, 0), 0) << "the grandchild should still live";
    EXPECT_FALSE(made.segment.is_locked(100));
    ::kill(*grandchild, SIGKILL);
}

TEST_F(SegmentTest, nor_does_one_that_is_made_without_the_c_librarys_fork) {
    const std::function<pid_t()> makers[] = {
        ::_Fork, [] { return static_cast<pid_t>(::syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0)); }};
    for (const auto& make_child : makers) {
        Segment::remove(name.get());
        const auto made = create();
        SharedValue<std::atomic<pid_t>> grandchild;
        Child parent([&] {
            const auto opened = Segment::open(name.get());
            const auto lock = opened->try_lock(100);
            if (make_child() == 0) {
                test::outlive_parent();
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
    Child child([&] {
        EXPECT_FALSE(lock->held());
        const auto own = Segment::open(name.get());  // takes descriptor numbers that are free here
        const auto own_lock = own->try_lock(101);
        lock.reset();
        EXPECT_TRUE(own->is_locked(100)) << "the child released its parent's lock";
        EXPECT_TRUE(own->is_locked(101)) << "the child closed another file of that number";
    });
    EXPECT_EQ(child.wait(), 0);
    EXPECT_TRUE(made.segment.is_locked(100));
}

}  // namespace
}  // namespace rmem
