// SPDX-License-Identifier: Apache-2.0
//
// The program of a folder's tests: GoogleTest's own command line, and
//   --of=<folder>/<name>   only the cases of tests/<folder>/<name>_test.cpp, unless GTEST_FILTER
//                          says which
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace {

/// A filter of the cases of that source; empty, and told why, if there are none, or some that no
/// source would be asked for.
std::string cases_of(std::string_view path) {
    const std::string source = fmt::format("/tests/{}_test.cpp", path);
    const ::testing::UnitTest& all = *::testing::UnitTest::GetInstance();
    std::string filter;
    for (int i = 0; i < all.total_test_suite_count(); ++i) {
        const ::testing::TestSuite& suite = *all.GetTestSuite(i);
        std::string cases;
        int found = 0;
        for (int j = 0; j < suite.total_test_count(); ++j) {
            const ::testing::TestInfo& test = *suite.GetTestInfo(j);
            const std::string_view file = test.file();
            if (!file.ends_with("_test.cpp")) {
                fmt::print(stderr, "{} is of {}: what includes that is to be `apart`\n",
                           suite.name(), file);
                return {};
            }
            if (!file.ends_with(source)) continue;
            cases += fmt::format("{}.{}:", suite.name(), test.name());
            ++found;
        }
        filter += found == suite.total_test_count() ? fmt::format("{}.*:", suite.name()) : cases;
    }
    if (filter.empty()) fmt::print(stderr, "there are no tests of {} here\n", path);
    return filter;
}

}  // namespace

int main(int argc, char** argv) {
    constexpr std::string_view kOf = "--of=";
    ::testing::InitGoogleTest(&argc, argv);
    if (argc == 1) return RUN_ALL_TESTS();
    const std::string_view asked = argv[1];
    if (argc != 2 || !asked.starts_with(kOf)) {
        fmt::print(stderr, "{}: give --of=<folder>/<name>, or --help, and not {}\n", argv[0],
                   asked);
        return 2;
    }
    if (::testing::GTEST_FLAG(filter) != "*") return RUN_ALL_TESTS();
    const std::string filter = cases_of(asked.substr(kOf.size()));
    if (filter.empty()) return 2;
    ::testing::GTEST_FLAG(filter) = filter;
    return RUN_ALL_TESTS();
}
