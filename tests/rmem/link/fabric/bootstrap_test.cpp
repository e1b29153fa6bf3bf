// SPDX-License-Identifier: Apache-2.0
#include "rmem/link/fabric/bootstrap.hpp"

#include "tests/support/own_network.hpp"
#include "tests/support/refused.hpp"

#include <gmock/gmock.h>

#include <sys/stat.h>

#include <fstream>
#include <string>

namespace rmem::fabric {
namespace {

using ::testing::HasSubstr;

Bootstrap::Name name(std::initializer_list<int> bytes) {
    Bootstrap::Name result;
    for (const int byte : bytes) result.push_back(static_cast<std::byte>(byte));
    return result;
}

class BootstrapIn : public ::testing::Test {
protected:
    void put(const std::string& text, unsigned node = 1) {
        std::ofstream(directory_.path() + "/rig.node-" + std::to_string(node)) << text;
    }
    test::OwnDirectory directory_;
    Bootstrap bootstrap_{directory_.path(), "rig", "tcp"};
};

TEST_F(BootstrapIn, finds_what_a_node_has_said_last) {
    EXPECT_FALSE(bootstrap_.find(3));
    bootstrap_.publish(3, name({0x02, 0xff, 0x00}));
    EXPECT_EQ(bootstrap_.find(3), name({0x02, 0xff, 0x00}));
    bootstrap_.publish(3, name({9}));
    EXPECT_EQ(bootstrap_.find(3), name({9}));
    EXPECT_TRUE(bootstrap_.is_published(3, name({9})));
}

TEST_F(BootstrapIn, keeps_rings_and_providers_apart) {
    bootstrap_.publish(0, name({1}));
    EXPECT_FALSE(Bootstrap(directory_.path(), "other", "tcp").find(0));
    EXPECT_FALSE(Bootstrap(directory_.path(), "rig", "verbs").find(0));
}

TEST_F(BootstrapIn, forgets_the_name_of_a_dead_nodes_segment_and_no_other_file) {
    ::setenv("RMEM_GROUP", directory_.path().c_str(), 1);  // NOLINT(concurrency-mt-unsafe)
    bootstrap_.publish(0, name({1}));
    bootstrap_.publish(1, name({2}));
    put("no name of a node\n", 2);
    for (const char* segment : {"rig@0", "rig@2", "rig", "rig@7", "../rig@1"})
        Bootstrap::forget(segment);
    ::unsetenv("RMEM_GROUP");  // NOLINT(concurrency-mt-unsafe): there is one thread
    EXPECT_FALSE(bootstrap_.find(0));
    EXPECT_TRUE(bootstrap_.find(1));
    EXPECT_TRUE(std::filesystem::exists(directory_.path() + "/rig.node-2"));
}

TEST_F(BootstrapIn, takes_away_its_own_name_alone) {
    bootstrap_.publish(0, name({1}));
    bootstrap_.withdraw(0, name({2}));
    EXPECT_TRUE(bootstrap_.find(0)) << "another has taken its place";
    bootstrap_.withdraw(0, name({1}));
    EXPECT_FALSE(bootstrap_.find(0));
    EXPECT_TRUE(std::filesystem::is_empty(directory_.path()));
}

TEST_F(BootstrapIn, takes_nothing_else_for_a_name) {
    const std::string before = "rmem fabric 1\nprovider tcp\nname ";
    put(before + "0a0b\n");
    EXPECT_EQ(bootstrap_.find(1), name({10, 11}));
    for (const std::string& bad :
         {std::string(), before, before + "\n", before + "0a0\n", before + "0A\n", before + "0a",
          before + "0a\n\n",
          before + std::string(2 * Bootstrap::kMaxProviderNameBytes + 2, '0') + "\n",
          std::string(100'000, 'x'), std::string("rmem fabric 2\nprovider tcp\nname 0a\n")}) {
        put(bad);
        EXPECT_FALSE(bootstrap_.find(1)) << bad.substr(0, 60);
    }
    put(before + "0a\n", 7);
    std::filesystem::create_symlink(directory_.path() + "/rig.node-7",
                                    directory_.path() + "/rig.node-2");
    EXPECT_FALSE(bootstrap_.find(2)) << "a link may lead anywhere";
    std::filesystem::create_directory(directory_.path() + "/rig.node-4");
    EXPECT_FALSE(bootstrap_.find(4));
    ASSERT_EQ(::mkfifo((directory_.path() + "/rig.node-5").c_str(), 0600), 0);
    EXPECT_FALSE(bootstrap_.find(5)) << "and nobody waits for a writer";
}

TEST_F(BootstrapIn, says_where_it_cannot_write) {
    EXPECT_THAT(test::refused(Errc::bad_environment,
                              [] { Bootstrap("/proc", "rig", "tcp").publish(2, name({1})); }),
                HasSubstr("the directory '/proc': node 2's address"));
    std::filesystem::create_directory(directory_.path() + "/rig.node-2");
    EXPECT_THROW(bootstrap_.publish(2, name({1})), Error);
    std::filesystem::remove(directory_.path() + "/rig.node-2");
    EXPECT_TRUE(std::filesystem::is_empty(directory_.path()));
}

}  // namespace
}  // namespace rmem::fabric
