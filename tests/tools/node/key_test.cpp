// SPDX-License-Identifier: Apache-2.0
// `rmem key`.

#include "rmem/link/udp/key_file.hpp"
#include "tests/support/tool.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <string>

namespace rmem::test {
namespace {

struct Key : ::testing::Test {
    std::string folder = ::testing::TempDir() + "key-XXXXXX";
    std::string file;

    Key() { file = std::string(::mkdtemp(folder.data())) + "/rig.key"; }
    ~Key() override { std::filesystem::remove_all(folder); }
};

TEST_F(Key, makes_a_file_that_only_its_owner_reads_and_links_take) {
    ASSERT_EQ(run_tool({"key", "--out", file}).code, 0);
    struct stat status {};
    ASSERT_EQ(::stat(file.c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777U, 0600U);
    EXPECT_NO_THROW(udp::read_key(file));
}

TEST_F(Key, says_what_to_do_next) {
    expect_out(run_tool({"key", "--out", file}), 0,
               {"scp -p " + file, "export RMEM_KEY_FILE=" + file});
}

TEST_F(Key, tells_programs_where_it_is) {
    const auto json = run_tool({"key", "--out", file, "--json"}).json();
    EXPECT_EQ(json["file"], file);
    EXPECT_EQ(json["mode"], "0600");
}

TEST_F(Key, replaces_no_file) {
    ASSERT_EQ(run_tool({"key", "--out", file}).code, 0);
    const auto before = udp::read_key(file);
    expect_err(run_tool({"key", "--out", file}), 1, {"[bad-key]"});
    const auto after = udp::read_key(file);
    EXPECT_TRUE(std::equal(before.bytes().begin(), before.bytes().end(), after.bytes().begin()));
}

TEST_F(Key, two_keys_differ) {
    ASSERT_EQ(run_tool({"key", "--out", file}).code, 0);
    ASSERT_EQ(run_tool({"key", "--out", file + "2"}).code, 0);
    const auto one = udp::read_key(file);
    const auto other = udp::read_key(file + "2");
    EXPECT_FALSE(std::equal(one.bytes().begin(), one.bytes().end(), other.bytes().begin()));
}

}  // namespace
}  // namespace rmem::test
