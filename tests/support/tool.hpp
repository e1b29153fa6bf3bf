// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Runs the `rmem` command of this build and keeps what it says.
///
///     const Ran ran = run_tool({"peek", "a-ring", "0"});
///     Tool job({"run", "-n", "2", "--", "sleep", "60"});   // in the background
///
/// RMEM_ variables of the test do not reach it. A Tool that goes out of scope is told to
/// end, so that it tidies up.

#include "tests/support/checks.hpp"
#include "tests/support/child.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#ifndef RMEM_TOOL  // tests/CMakeLists.txt gives the one of this build
#define RMEM_TOOL "rmem"
#endif

namespace rmem::test {

/// The end of a command, and its output.
struct Ran {
    int code = 0;  ///< 128 + signal if it died of one
    std::string out, err;

    nlohmann::json json() const { return nlohmann::json::parse(out); }
    bool says(const std::string& text) const {
        return out.find(text) != std::string::npos || err.find(text) != std::string::npos;
    }
};

class Tool {
public:
    /// `input` is all of its stdin.
    explicit Tool(std::vector<std::string> arguments, const std::string& input = "")
        : in_(new_file(input)),
          out_(new_file("")),
          err_(new_file("")),
          child_([&] { become(std::move(arguments)); }) {}
    ~Tool() {
        if (child_.pid() > 0) {
            child_.signal(SIGTERM);
            eventually([&] { return child_.poll().has_value(); });
        }
        for (const int fd : {in_, out_, err_}) ::close(fd);
    }
    Tool(const Tool&) = delete;
    Tool& operator=(const Tool&) = delete;

    pid_t pid() const { return child_.pid(); }
    void signal(int number) const { child_.signal(number); }
    std::string out() const { return text_of(out_); }
    std::string err() const { return text_of(err_); }

    /// Waits until it has printed the text; false after 30 s.
    bool prints(const std::string& text) const {
        return eventually([&] {
            return out().find(text) != std::string::npos || err().find(text) != std::string::npos;
        });
    }
    Ran wait() {
        const int code = child_.wait();
        return {code < 0 ? 128 - code : code, out(), err()};
    }

private:
    static int new_file(const std::string& content) {
        const int fd = ::memfd_create("tool", MFD_CLOEXEC);
        EXPECT_EQ(::write(fd, content.data(), content.size()),
                  static_cast<ssize_t>(content.size()));
        ::lseek(fd, 0, SEEK_SET);
        return fd;
    }
    static std::string text_of(int fd) {
        std::string text;
        char buffer[4096];
        ssize_t got = 0;
        while ((got = ::pread(fd, buffer, sizeof buffer, static_cast<off_t>(text.size()))) > 0) {
            text.append(buffer, static_cast<std::size_t>(got));
        }
        return text;
    }
    [[noreturn]] void become(std::vector<std::string> arguments) const {
        arguments.insert(arguments.begin(), RMEM_TOOL);
        std::vector<char*> words;
        for (auto& argument : arguments) words.push_back(argument.data());
        words.push_back(nullptr);
        ::dup2(in_, STDIN_FILENO);
        // Several processes write there: each at the end of it.
        ::fcntl(out_, F_SETFL, O_APPEND);
        ::fcntl(err_, F_SETFL, O_APPEND);
        ::dup2(out_, STDOUT_FILENO);
        ::dup2(err_, STDERR_FILENO);
        std::vector<std::string> names;
        for (char** entry = environ; *entry != nullptr; ++entry) {
            const std::string assignment = *entry;
            if (assignment.starts_with("RMEM_"))
                names.push_back(assignment.substr(0, assignment.find('=')));
        }
        for (const auto& name : names) ::unsetenv(name.c_str());
        ::execv(words[0], words.data());
        ::_exit(127);
    }

    int in_, out_, err_;
    Child child_;
};

inline Ran run_tool(std::vector<std::string> arguments, const std::string& input = "") {
    return Tool(std::move(arguments), input).wait();
}

/// It has ended with that code, and all this is in what it has printed to stderr.
inline void expect_err(const Ran& ran, int code, const std::vector<std::string>& words,
                       Place place = Place::here()) {
    const testing::ScopedTrace trace(place.file, place.line, ran.out);
    EXPECT_EQ(ran.code, code) << ran.err;
    for (const std::string& word : words) EXPECT_THAT(ran.err, testing::HasSubstr(word));
}
/// The same of stdout.
inline void expect_out(const Ran& ran, int code, const std::vector<std::string>& words,
                       Place place = Place::here()) {
    expect_err({ran.code, ran.err, ran.out}, code, words, place);
}

/// "rmem run" of a shell script in each rank; options come before.
inline std::vector<std::string> run_script(std::vector<std::string> options,
                                           const std::string& script) {
    options.insert(options.begin(), "run");
    for (const char* word : {"--", "sh", "-c"}) options.emplace_back(word);
    options.push_back(script);
    return options;
}

}  // namespace rmem::test
