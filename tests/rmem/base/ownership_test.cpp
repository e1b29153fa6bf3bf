// SPDX-License-Identifier: Apache-2.0
// Whose rings and bells are used: users against each other, by two that root becomes.

#include "rmem/base/ownership.hpp"

#include "rmem/ring/ring.hpp"
#include "rmem/ring/waiting/bell.hpp"
#include "tests/support/child.hpp"
#include "tests/support/refused.hpp"
#include "tests/support/users.hpp"

#include <gmock/gmock.h>
#include <grp.h>
#include <sys/stat.h>
#include <unistd.h>

#include <memory>
#include <optional>
#include <string>

namespace rmem::test {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr gid_t kGroup = 4711;

struct stat file_of(uid_t user, gid_t group, mode_t mode) {
    struct stat file {};
    file.st_uid = user;
    file.st_gid = group;
    file.st_mode = S_IFREG | mode;
    return file;
}

std::string refused(const std::function<void()>& call) {
    return test::refused(Errc::not_permitted, call);
}

TEST(Ownership, trusts_oneself_and_root) {
    for (const mode_t mode : {0600U, 0660U, 0666U}) {
        EXPECT_TRUE(is_for_us(file_of(::geteuid(), kGroup, mode), {}));
        EXPECT_TRUE(is_for_us(file_of(0, kGroup, mode), {}));
    }
}

TEST(Ownership, trusts_others_in_the_group_that_was_asked_for_if_nobody_else_gets_in) {
    const uid_t other = ::geteuid() + 1;
    EXPECT_TRUE(is_for_us(file_of(other, kGroup, 0660), {.group = kGroup}));
    EXPECT_FALSE(is_for_us(file_of(other, kGroup, 0660), {}));
    EXPECT_FALSE(is_for_us(file_of(other, kGroup + 1, 0660), {.group = kGroup}));
    for (const mode_t mode : {0661U, 0662U, 0664U, 0666U})
        EXPECT_FALSE(is_for_us(file_of(other, kGroup, mode), {.group = kGroup})) << mode;
}

TEST(Ownership, lets_root_look_at_all_and_others_at_what_their_groups_have) {
    const Trust looks{.only_looks = true};
    const bool is_root = ::geteuid() == 0;
    EXPECT_TRUE(is_for_us(file_of(::geteuid() + 1, kGroup, 0660), looks));
    EXPECT_EQ(is_for_us(file_of(::geteuid() + 1, kGroup, 0666), looks), is_root);
}

TEST(Ownership, says_whose_a_file_is_and_what_to_do) {
    EXPECT_THAT(refused([] { check_owner("/dev/shm/rmem.trap", file_of(kBob, kGroup, 0666), {}); }),
                AllOf(HasSubstr("/dev/shm/rmem.trap"), HasSubstr("user 65502"),
                      HasSubstr("mode 0666"), HasSubstr("RMEM_UNIX_GROUP")));
    EXPECT_THAT(
        refused([] { check_owner("/dev/shm/rmem.shared", file_of(kBob, kGroup, 0660), {}); }),
        HasSubstr("set RMEM_UNIX_GROUP=4711"));
}

// ---- Bob has made something; Alice comes

class OtherUsers : public ::testing::Test {
protected:
    void SetUp() override {
        name_.may_be_left();  // Bob is killed
        if (::geteuid() != 0) GTEST_SKIP() << kNeedsRoot;
        const ::group* users = ::getgrnam("users");
        if (users == nullptr) GTEST_SKIP() << "this host has no group 'users'";
        group_ = users->gr_gid;
    }
    ~OtherUsers() override { Bell::remove(name_.get()); }

    std::shared_ptr<Ring> open(const std::string& group = "") const {
        RingConfig config = name_.config(1);
        config.unix_group = group;
        return Ring::open(config, Deadline::in(kPatienceNs));
    }
    std::string object() const { return Segment::object_name(name_.get()); }
    /// Bob does this, and stays until the end of the test.
    void bob(const std::function<void()>& makes) {
        bob_.emplace(staying([&](const auto& stay) {
            become(kBob, {group_});
            makes();
            stay();
        }));
    }
    void kill_bob() { bob_.reset(); }
    void alice(const std::function<void()>& comes) const {
        run_in_child([&] {
            become(kAlice, {group_});
            comes();
        });
    }
    RingName name_;
    gid_t group_ = 0;

private:
    std::optional<Child> bob_;
};

TEST_F(OtherUsers, do_not_get_what_is_written_by_making_the_ring_first_and_opening_it_to_all) {
    std::shared_ptr<Ring> ring;
    bob([&] {
        ring = open();
        ::chmod(object().c_str(), 0666);
    });
    alice([&] {
        EXPECT_THAT(refused([&] { open(); }), AllOf(HasSubstr("user 65502"), HasSubstr("0666")));
        refused([&] { open("users"); });
        refused([&] { Ring::attach(name_.get()); });
        refused([&] { Ring::observe(name_.get()); });
        EXPECT_THAT(Segment::list(), Not(Contains(name_.get())));
        EXPECT_THAT(Segment::others(), Contains(name_.get()));
        EXPECT_EQ(Segment::owner(name_.get()), "65502");
    });
    refused([&] { open(); });  // root writes into no trap either
    EXPECT_TRUE(Ring::observe(name_.get())->has_members()) << "but may look";
}

TEST_F(OtherUsers, share_a_ring_by_the_group_that_both_name) {
    std::shared_ptr<Ring> ring;
    bob([&] { ring = open("users"); });
    alice([&] {
        EXPECT_THAT(refused([&] { open(); }), HasSubstr("set RMEM_UNIX_GROUP=users"));
        EXPECT_TRUE(open("users")->has_members());
        EXPECT_TRUE(Ring::observe(name_.get())->has_members());
        EXPECT_THAT(Segment::list(), Contains(name_.get()));
        ::setenv("RMEM_UNIX_GROUP", "users", 1);  // NOLINT(concurrency-mt-unsafe): one thread
        EXPECT_TRUE(Ring::attach(name_.get())->has_members());
    });
}

TEST_F(OtherUsers, leave_what_only_they_can_remove_and_are_named) {
    std::shared_ptr<Ring> ring;
    bob([&] { ring = open("users"); });
    kill_bob();
    alice([&] {
        EXPECT_THAT(refused([&] { open("users"); }),
                    AllOf(HasSubstr("nobody is in it, and only 65502 or root"),
                          HasSubstr("rmem clean " + name_.get())));
    });
    EXPECT_TRUE(Segment::remove(name_.get())) << "root may";
}

TEST_F(OtherUsers, are_named_where_the_host_lets_nobody_in) {
    std::shared_ptr<Ring> ring;
    bob([&] { ring = open(); });
    alice([&] {
        EXPECT_THAT(refused([&] { open(); }), AllOf(HasSubstr("user 65502"), HasSubstr("0600")));
        EXPECT_THAT(Segment::others(), Contains(name_.get()));
    });
}

TEST_F(OtherUsers, take_nobodys_bell_away) {
    bob([&] {
        ASSERT_EQ(::mkfifo(("/dev/shm/rmem-bell." + name_.get()).c_str(), 0600), 0);
        ::chmod(("/dev/shm/rmem-bell." + name_.get()).c_str(), 0666);
    });
    alice([&] {
        EXPECT_THAT(refused([&] { Bell::make(name_.get()); }), HasSubstr("user 65502"));
        EXPECT_EQ(Bell::open(name_.get()).handle(), -1);
    });
}

TEST_F(OtherUsers, pass_the_bell_on_in_their_group) {
    bob([&] { Bell::make(name_.get(), group_); });
    alice([&] {
        refused([&] { Bell::make(name_.get()); });
        const Bell listener = Bell::make(name_.get(), group_);
        EXPECT_GE(listener.handle(), 0);
        EXPECT_GE(Bell::open(name_.get(), group_).handle(), 0);
    });
}

}  // namespace
}  // namespace rmem::test
