// SPDX-License-Identifier: Apache-2.0
#include "rmem/base/host_limits.hpp"

#include "tests/support/own_network.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <string>

namespace rmem {
namespace {

/// A host's files in a folder.
class HostLimits : public ::testing::Test {
protected:
    using Files = std::map<std::string, std::string>;

    void put(const Files& files) const {
        for (const auto& [path, text] : files) {
            const std::filesystem::path file = root() + path;
            std::filesystem::create_directories(file.parent_path());
            std::ofstream(file) << text << '\n';
        }
    }
    std::string root() const { return folder_.path(); }

private:
    const test::OwnDirectory folder_;
};

TEST_F(HostLimits, there_are_none_where_nothing_says_so) {
    EXPECT_FALSE(processors_of_cgroup(root()));
    EXPECT_FALSE(memory_of_cgroup(root()));
    put({{"/proc/self/cgroup", "4:memory:/\n0::/"},
         {"/sys/fs/cgroup/cpu.max", "max 100000"},
         {"/sys/fs/cgroup/memory.max", "max"},
         {"/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712"}});
    EXPECT_FALSE(processors_of_cgroup(root()));
    EXPECT_FALSE(memory_of_cgroup(root()));
}

TEST_F(HostLimits, of_a_cgroup_and_of_those_above_it_the_smallest_counts) {
    put({{"/proc/self/cgroup", "0::/system.slice/rig.service"},
         {"/sys/fs/cgroup/system.slice/rig.service/cpu.max", "150000 100000"},
         {"/sys/fs/cgroup/system.slice/rig.service/memory.max", "max"},
         {"/sys/fs/cgroup/system.slice/cpu.max", "50000 100000"},
         {"/sys/fs/cgroup/system.slice/memory.max", "1000000"}});
    EXPECT_EQ(processors_of_cgroup(root()), 0.5);
    EXPECT_EQ(memory_of_cgroup(root())->limit, 1'000'000U);
}

TEST_F(HostLimits, in_a_container_the_folder_of_its_cgroup_is_the_top) {
    put({{"/proc/self/cgroup", "7:cpu,cpuacct:/docker/0123\n4:memory:/docker/0123"},
         {"/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "200000"},
         {"/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000"},
         {"/sys/fs/cgroup/memory/memory.limit_in_bytes", "2000000"}});
    EXPECT_EQ(processors_of_cgroup(root()), 2.0);
    EXPECT_EQ(memory_of_cgroup(root())->limit, 2'000'000U);
}

TEST_F(HostLimits, room_is_what_others_leave_with_what_can_be_given_back) {
    put({{"/proc/self/cgroup", "0::/"},
         {"/proc/meminfo", "MemFree: 7 kB\nSwapFree:            2 kB"},
         {"/sys/fs/cgroup/memory.max", "1000000"},
         {"/sys/fs/cgroup/memory.current", "400000"},
         {"/sys/fs/cgroup/memory.stat", "anon 5\ninactive_file 1000\nactive_file 2000"}});
    EXPECT_EQ(memory_of_cgroup(root())->room, 603'000U + 2048U);
    put({{"/sys/fs/cgroup/memory.swap.max", "0"}});
    EXPECT_EQ(memory_of_cgroup(root())->room, 603'000U);
    put({{"/sys/fs/cgroup/memory.current", "2000000"}});
    EXPECT_EQ(memory_of_cgroup(root())->room, 0U);
}

}  // namespace
}  // namespace rmem
