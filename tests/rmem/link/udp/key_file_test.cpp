// SPDX-License-Identifier: Apache-2.0
#include "rmem/link/udp/key_file.hpp"

#include "tests/support/child.hpp"
#include "tests/support/own_network.hpp"
#include "tests/support/refused.hpp"
#include "tests/support/users.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

namespace rmem::udp {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

const std::string kHexKey = "000102030405060708090a0b0c0d0e0f101112131415161718191A1B1C1D1E1F";

std::string raw_key() {
    std::string raw;
    for (int i = 0; i < 32; ++i) raw += static_cast<char>(i);
    return raw;
}

std::string bytes_of(const MasterKey& key) {
    return {reinterpret_cast<const char*>(key.bytes().data()), key.bytes().size()};
}

class KeyFileTest : public testing::Test {
protected:
    void write(const std::string& contents, mode_t mode = 0600) const {
        std::filesystem::remove(path_);
        std::ofstream(path_, std::ios::binary) << contents;
        ASSERT_EQ(::chmod(path_.c_str(), mode), 0);
    }
    /// The sentence with which it is refused; it always names the file and quotes no key.
    std::string refusal() const {
        const auto sentence = test::refused(Errc::bad_key, [&] { read_key(path_); });
        EXPECT_THAT(sentence, AllOf(HasSubstr(path_), Not(HasSubstr("0405060708"))));
        return sentence;
    }

    const test::OwnDirectory directory_;
    const std::string folder_ = directory_.path();
    std::string path_ = folder_ + "/key";
};

TEST_F(KeyFileTest, reads_64_hex_digits_with_white_space_around_them) {
    for (const char* around : {"", "\n", "\r\n", "  \t\n", "\n\n\n"}) {
        write(around + kHexKey + around);
        EXPECT_EQ(bytes_of(read_key(path_)), raw_key());
    }
}

TEST_F(KeyFileTest, reads_32_raw_bytes) {
    write(raw_key());
    EXPECT_EQ(bytes_of(read_key(path_)), raw_key());
    const std::string white = std::string(8, ' ') + std::string(16, '\xfe') + std::string(8, '\n');
    write(white);
    EXPECT_EQ(bytes_of(read_key(path_)), white) << "raw bytes that look like white space are bytes";
}

TEST_F(KeyFileTest, refuses_a_missing_file) {
    EXPECT_THAT(refusal(), AllOf(HasSubstr("is missing"), HasSubstr("rmem key")));
    path_ += "/below";
    EXPECT_THAT(refusal(), HasSubstr("is missing"));
}

TEST_F(KeyFileTest, refuses_a_file_that_others_than_its_owner_may_use) {
    for (const mode_t mode : {0640U, 0620U, 0610U, 0604U, 0602U, 0601U, 0644U, 0666U, 0440U}) {
        write(kHexKey, mode);
        EXPECT_THAT(refusal(), AllOf(HasSubstr("mode 0"), HasSubstr("chmod 600"))) << mode;
    }
    for (const mode_t mode : {0600U, 0400U}) {
        write(kHexKey, mode);
        EXPECT_EQ(bytes_of(read_key(path_)), raw_key()) << mode;
    }
}

TEST_F(KeyFileTest, refuses_a_file_of_another_user) {
    if (::geteuid() != 0) GTEST_SKIP() << "only root can give a file away";
    write(kHexKey);
    ASSERT_EQ(::chown(path_.c_str(), 65534, 65534), 0);
    EXPECT_THAT(refusal(), AllOf(HasSubstr("belongs to user 65534"), HasSubstr("chown")));
}

TEST_F(KeyFileTest, says_who_may_not_read_it) {
    if (::geteuid() != 0) GTEST_SKIP() << "only root can become another user";
    write(kHexKey);
    ASSERT_EQ(::chmod(folder_.c_str(), 0755), 0);
    ASSERT_EQ(::seteuid(65534), 0);
    const std::string sentence = refusal();
    ASSERT_EQ(::seteuid(0), 0);
    EXPECT_THAT(sentence, AllOf(HasSubstr("may not be read by user 65534"), HasSubstr("chown")));
}

TEST_F(KeyFileTest, refuses_what_is_no_regular_file_without_waiting) {
    ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
    EXPECT_THAT(refusal(), HasSubstr("regular file"));
    std::filesystem::remove(path_);
    std::filesystem::create_directory(path_);
    EXPECT_THAT(refusal(), HasSubstr("regular file"));
}

TEST_F(KeyFileTest, a_link_is_judged_by_the_file_behind_it) {
    const std::string file = path_;
    const std::string link = folder_ + "/link";
    std::filesystem::create_symlink(file, link);
    write(kHexKey);
    EXPECT_EQ(bytes_of(read_key(link)), raw_key());
    write(kHexKey, 0644);
    path_ = link;
    EXPECT_THAT(refusal(), HasSubstr("mode 0644"));
}

TEST_F(KeyFileTest, refuses_contents_that_are_no_key_and_says_what_it_found) {
    for (const auto& [contents, says] :
         std::vector<std::pair<std::string, std::vector<std::string>>>{
             {"", {"holds 0 bytes", "64 hex digits"}},
             {raw_key() + "\n", {"holds 33 bytes", "32 raw bytes"}},
             {raw_key().substr(1), {"holds 31 bytes"}},
             {kHexKey.substr(1), {"holds 63 hex digits; a key has 64"}},
             {kHexKey.substr(0, 32), {"holds 32 hex digits; a key has 64"}},
             {kHexKey + "0\n", {"holds 65 hex digits"}},
             {kHexKey + " " + kHexKey, {"holds 129 bytes"}},
             {"x" + kHexKey.substr(1), {"holds 64 bytes, which are no key"}},
             {std::string(100'000, '\x7f'), {"too many bytes"}},
             {std::string(32, '\0'), {"zero bytes"}},
             {std::string(64, '0'), {"zero bytes"}}}) {
        write(contents);
        for (const std::string& part : says) EXPECT_THAT(refusal(), HasSubstr(part));
    }
}

TEST_F(KeyFileTest, a_new_key_can_be_read_and_is_its_owners_alone) {
    write_new_key(path_);
    struct stat status {};
    ASSERT_EQ(::stat(path_.c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 07777U, 0600U);
    EXPECT_EQ(status.st_size, 65);
    const std::string first = bytes_of(read_key(path_));
    std::filesystem::remove(path_);
    write_new_key(path_);
    EXPECT_NE(bytes_of(read_key(path_)), first);
}

TEST_F(KeyFileTest, a_new_key_never_replaces_a_file) {
    write(kHexKey);
    EXPECT_THAT(test::refused(Errc::bad_key, [&] { write_new_key(path_); }),
                AllOf(HasSubstr(path_), HasSubstr("exists")));
    EXPECT_EQ(bytes_of(read_key(path_)), raw_key());
}

TEST_F(KeyFileTest, a_new_key_needs_its_folder) {
    EXPECT_THAT(test::refused(Errc::system, [&] { write_new_key(path_ + "/below"); }),
                HasSubstr("No such file"));
}

TEST_F(KeyFileTest, a_new_key_does_not_follow_a_link) {
    std::filesystem::create_symlink(folder_ + "/elsewhere", path_);
    EXPECT_THROW(write_new_key(path_), Error);
    EXPECT_FALSE(std::filesystem::exists(folder_ + "/elsewhere"));
}

TEST(KeyWithoutName, is_read_by_the_own_users_processes_while_its_maker_is_alive) {
    const Descriptor key = new_key_without_name();
    const std::string path =
        "/proc/" + std::to_string(::getpid()) + "/fd/" + std::to_string(key.get());
    const std::string bytes = bytes_of(read_key(path));
    test::Child other([&] {
        EXPECT_LT(key.get(), 0) << "it need not be inherited";
        EXPECT_EQ(bytes_of(read_key(path)), bytes);
    });
    EXPECT_EQ(other.wait(), 0);
    EXPECT_LT(::write(key.get(), "x", 1), 0) << "and stays as it is";
    const Descriptor another = new_key_without_name();
    EXPECT_NE(bytes_of(read_key("/proc/self/fd/" + std::to_string(another.get()))), bytes);
}

TEST(KeyWithoutName, is_kept_from_other_users) {
    if (::geteuid() != 0) GTEST_SKIP() << test::kNeedsRoot;
    test::SharedValue<std::atomic<int>> fd;
    test::Child alice([&] {
        test::become(test::kAlice);
        ::prctl(PR_SET_DUMPABLE, 1);  // as after an exec
        const Descriptor key = new_key_without_name();
        *fd = key.get();
        ::pause();
    });
    ASSERT_TRUE(test::eventually([&] { return *fd > 0; }));
    const std::string path = "/proc/" + std::to_string(alice.pid()) + "/fd/" + std::to_string(*fd);
    test::Child bob([&] {
        test::become(test::kBob);
        EXPECT_THROW(read_key(path), Error);
    });
    EXPECT_EQ(bob.wait(), 0);
}

MasterKey key_of(const std::string& raw) {
    return MasterKey(std::span<const std::byte, MasterKey::kBytes>(
        reinterpret_cast<const std::byte*>(raw.data()), MasterKey::kBytes));
}

TEST(MasterKeyTest, moves_with_its_bytes) {
    MasterKey key = key_of(raw_key());
    const MasterKey moved = std::move(key);
    EXPECT_EQ(bytes_of(moved), raw_key());
}

TEST(MasterKeyDeathTest, cannot_be_overwritten) {
    const MasterKey key = key_of(raw_key());
    EXPECT_DEATH(const_cast<std::byte&>(key.bytes()[0]) = std::byte{1}, "");
}

}  // namespace
}  // namespace rmem::udp
