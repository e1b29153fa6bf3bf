// SPDX-License-Identifier: Apache-2.0

/// Which node is which unit of the host, for programs of cards.

#include "cards/common/unit.hpp"

#include "tests/support/child.hpp"
#include "tests/support/refused.hpp"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace cards {
namespace {

using rmem::test::Child;
using rmem::test::RingName;
using rmem::test::run_in_child;
using ::testing::HasSubstr;

constexpr int kPrograms = 64;

struct Units : ::testing::Test {
    RingName name;
    std::filesystem::path folder = std::filesystem::temp_directory_path() / ("units-" + name.get());

    Units() {
        std::filesystem::create_directory(folder);
        ::setenv("XDG_RUNTIME_DIR", folder.c_str(), 1);
    }
    ~Units() override {
        ::unsetenv("XDG_RUNTIME_DIR");
        std::filesystem::remove_all(folder);
    }
    Settings settings(const char* node, const char* ranks = "2") const {
        return {{"RMEM_RING", name.get()}, {"RMEM_LINK", "direct"}, {"RMEM_NODE", node},
                {"RMEM_NODES", "2"},       {"RMEM_RANKS", ranks},   {"RMEM_SIZE", "8192"}};
    }
    static rmem_node* expect_open(unsigned unit) {
        int code = 1;
        rmem_node* const node = open_unit(unit, code).release();
        EXPECT_NE(node, nullptr) << rmem_last_error();
        EXPECT_EQ(code, RMEM_OK);
        return node;
    }
    static void expect_none(unsigned unit, int expected, const char* part) {
        int code = 1;
        EXPECT_EQ(open_unit(unit, code), nullptr);
        EXPECT_EQ(code, expected);
        EXPECT_THAT(rmem_last_error(), HasSubstr(part));
    }
};

TEST_F(Units, a_published_unit_is_the_node_that_its_settings_name) {
    const PublishedUnit first(0, settings("0")), second(7, settings("1"));
    rmem_node* const a = expect_open(0);
    rmem_node* const b = expect_open(7);
    EXPECT_EQ(rmem_id(a), 0);
    EXPECT_EQ(rmem_id(b), 1);
    EXPECT_EQ(rmem_size(b), 8192U);
    EXPECT_EQ(rmem_write_word(a, 16, 5), RMEM_OK);
    EXPECT_EQ(rmem_load(b, 16), 5U);
    rmem_close(b);
    rmem_close(a);
}

TEST_F(Units, handles_take_the_nodes_ranks_and_are_its_guests_then) {
    const PublishedUnit unit(1, settings("1", "4"));
    std::vector<rmem_node*> all;
    for (int i = 0; i < 2 + kPrograms; ++i) all.push_back(expect_open(1));
    for (rmem_node* const node : all) EXPECT_EQ(rmem_id(node), 1);
    EXPECT_EQ(rmem_rank(all[0]), 2);
    EXPECT_EQ(rmem_rank(all[1]), 3);
    EXPECT_GT(rmem_rank(all[2]), 3);
    expect_none(1, RMEM_EBUSY, "64 programs beside its ranks");
    rmem_close(all[0]);
    all[0] = expect_open(1);
    EXPECT_EQ(rmem_rank(all[0]), 2) << "a rank again";
    for (rmem_node* const node : all) rmem_close(node);
}

TEST_F(Units, programs_that_are_no_launchers_need_not_say_how_many_they_are) {
    ::setenv("RMEM_RING", name.get().c_str(), 1);
    ::setenv("RMEM_NODES", "2", 1);
    ::setenv("RMEM_RANK", "1", 1);  // as `rmem run` gives it to the program, and its children
    rmem_node* const first = expect_open(0);
    EXPECT_EQ(rmem_rank(first), 1);
    rmem_node* const second = expect_open(0);
    EXPECT_EQ(rmem_id(second), 1);
    run_in_child([] {
        rmem_node* const third = expect_open(0);
        EXPECT_EQ(rmem_id(third), 1);
        EXPECT_EQ(rmem_write_word(third, 0x40, 5), RMEM_OK);
        rmem_close(third);
    });
    EXPECT_EQ(rmem_load(first, 0x40), 5U);
    rmem_close(second);
    rmem_close(first);
    for (const char* variable : {"RMEM_RING", "RMEM_NODES", "RMEM_RANK"}) ::unsetenv(variable);
}

TEST_F(Units, a_unit_that_nobody_keeps_is_none) {
    expect_none(3, RMEM_ESYS, "rmem node --unit 3");
    { const PublishedUnit unit(3, settings("0")); }
    EXPECT_FALSE(std::filesystem::exists(unit_file(3)));
    expect_none(3, RMEM_ESYS, "no unit 3");
    // One that was killed has left its file.
    Child keeper([&] {
        const PublishedUnit unit(3, settings("0"));
        ::raise(SIGSTOP);
    });
    keeper.await_stop();
    keeper.kill();
    EXPECT_TRUE(std::filesystem::exists(unit_file(3)));
    expect_none(3, RMEM_ESYS, "no unit 3");
    const PublishedUnit next(3, settings("0"));
    rmem_close(expect_open(3));
}

TEST_F(Units, a_unit_is_kept_by_one_process) {
    const PublishedUnit unit(2, settings("0"));
    EXPECT_THAT(rmem::test::refused(rmem::Errc::rank_taken,
                                    [&] { const PublishedUnit again(2, settings("1")); }),
                HasSubstr("unit 2"));
    rmem_close(expect_open(2));
}

TEST_F(Units, unit_0_is_the_environments_node_where_nobody_keeps_it) {
    expect_none(0, RMEM_ESYS, "RMEM_RING is not set");
    ::setenv("RMEM_RING", name.get().c_str(), 1);
    rmem_close(expect_open(0));
    expect_none(1, RMEM_ESYS, "no unit 1");
    ::unsetenv("RMEM_RING");
}

TEST_F(Units, unit_0_is_the_environments_node_where_it_says_which) {
    const RingName own;
    const PublishedUnit unit(0, settings("0"));
    ::setenv("RMEM_RING", own.get().c_str(), 1);
    ::setenv("RMEM_SIZE", "4096", 1);
    for (const char* const which : {"RMEM_NODE", "RMEM_RANK"}) {
        rmem_node* node = expect_open(0);
        EXPECT_EQ(rmem_size(node), 8192U) << "of the kept one: nothing says which";
        rmem_close(node);
        ::setenv(which, "0", 1);
        node = expect_open(0);
        EXPECT_EQ(rmem_size(node), 4096U);
        rmem_close(node);
        ::unsetenv(which);
    }
    ::unsetenv("RMEM_RING");
    ::unsetenv("RMEM_SIZE");
}

TEST_F(Units, unit_0_has_all_ranks_of_the_environments_node_unless_it_says_which) {
    const std::pair<const char*, std::string> variables[] = {
        {"RMEM_RING", name.get()}, {"RMEM_NODES", "2"}, {"RMEM_RANKS", "4"}, {"RMEM_NODE", "1"}};
    for (const auto& [variable, value] : variables) ::setenv(variable, value.c_str(), 1);
    rmem_node* const a = expect_open(0);
    rmem_node* const b = expect_open(0);
    EXPECT_EQ(rmem_rank(a), 2);
    EXPECT_EQ(rmem_rank(b), 3);
    ::setenv("RMEM_RANK", "2", 1);
    rmem_node* const c = expect_open(0);
    EXPECT_EQ(rmem_id(c), 1);
    EXPECT_GT(rmem_rank(c), 3);
    for (rmem_node* const node : {a, b, c}) rmem_close(node);
    ::unsetenv("RMEM_RANK");
    for (const auto& [variable, value] : variables) ::unsetenv(variable);
}

TEST_F(Units, a_folder_that_others_may_write_to_is_refused) {
    const auto shared = folder / "rmem";
    std::filesystem::create_directory(shared);
    ASSERT_EQ(::chmod(shared.c_str(), 0777), 0);
    EXPECT_THROW(PublishedUnit(0, settings("0")), rmem::Error);
}

TEST_F(Units, a_file_of_nonsense_is_an_error_and_no_crash) {
    const PublishedUnit unit(0, settings("0"));
    {
        // The file is the same, and so is its keeper's lock.
        std::ofstream file(unit_file(0), std::ios::in | std::ios::out | std::ios::trunc);
        file << "no settings at all\nCOLOUR=red\n";
    }
    expect_none(0, RMEM_EINVAL, "COLOUR");
}

}  // namespace
}  // namespace cards
