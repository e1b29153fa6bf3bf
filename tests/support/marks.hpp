// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The kill marks (rmem/base/marks.hpp) as they are in the sources, so that a test that kills at
/// each of them meets a new one without being changed, and fails if it does not pass it.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <iterator>
#include <ostream>
#include <regex>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

namespace rmem::test {

/// The marks of these files below `root` (RMEM_SOURCE_DIR), those in comments left out.
inline std::vector<std::string> marks_in(const std::string& root,
                                         const std::vector<std::string>& files) {
    static const std::regex pattern(R"re(\n[^/\n]*RMEM_MARK\("([^"]+)"\))re");
    std::vector<std::string> marks;
    for (const auto& file : files) {
        std::ifstream source(std::filesystem::path(root) / file);
        if (!source) throw std::runtime_error("there is no " + file + " to read the marks from");
        const std::string text{std::istreambuf_iterator<char>(source), {}};
        for (std::sregex_iterator it(text.begin(), text.end(), pattern), end; it != end; ++it) {
            marks.push_back((*it)[1]);
        }
    }
    return marks;
}

/// The sources of a folder below `root`, as paths from there.
inline std::vector<std::string> sources_of(const std::string& root, const std::string& folder) {
    std::vector<std::string> files;
    for (const auto& entry :
         std::filesystem::recursive_directory_iterator(std::filesystem::path(root) / folder)) {
        const auto suffix = entry.path().extension();
        if (suffix == ".hpp" || suffix == ".cpp")
            files.push_back(std::filesystem::relative(entry.path(), root).string());
    }
    return files;
}

/// A mark as part of a test's name.
inline std::string test_name_of_mark(std::string mark) {
    for (char& c : mark) c = c == '.' || c == '-' ? '_' : c;
    return mark;
}

/// Where a process is to die: at a mark, at one of its passes.
struct Death {
    std::string mark;
    unsigned pass;
};
inline std::ostream& operator<<(std::ostream& out, const Death& death) {
    return out << death.mark << ':' << death.pass;
}
inline std::string name_of_death(const ::testing::TestParamInfo<Death>& death) {
    return test_name_of_mark(death.param.mark) + "_" + std::to_string(death.param.pass);
}

/// At each mark of these files, which may be in several places, at each of these passes.
inline std::vector<Death> deaths_at_marks(const std::string& root,
                                          const std::vector<std::string>& files,
                                          std::initializer_list<unsigned> passes) {
    const auto found = marks_in(root, files);
    std::vector<Death> all;
    for (const auto& mark : std::set<std::string>(found.begin(), found.end())) {
        for (const unsigned pass : passes) all.push_back({mark, pass});
    }
    return all;
}

}  // namespace rmem::test
