// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Runs the `rmem` command of this build and keeps what it says.
///
///     const Ran ran = run_tool({"peek", "a-ring", "0"});
///     Tool job({"run", "-n", "2", "--", "sleep", "60"});   // in the background
///
/// RMEM_ variables of the test do not reach it, but for that of scripts/mutants. A Tool that goes
/// out of scope is told to end, so that it tidies up.

#include "rmem/ring/ring.hpp"
#include "tests/support/checks.hpp"
#include "tests/support/child.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#ifndef RMEM_TOOL  // tests/CMakeLists.txt gives the one of this build
#define RMEM_TOOL "rmem"
#endif

namespace rmem::test {

/// The arguments of a command.
using Arguments = std::vector<std::string>;

inline Arguments concat(Arguments first, const Arguments& rest) {
    first.insert(first.end(), rest.begin(), rest.end());
    return first;
}

/// Takes rmem's variables from this process.
inline void forget_settings() {
    std::vector<std::string> names;
    for (char** entry = environ; *entry != nullptr; ++entry) {
        const std::string assignment = *entry;
        if (assignment.starts_with("RMEM_") && !assignment.starts_with("RMEM_MUTANT="))
            names.push_back(assignment.substr(0, assignment.find('=')));
    }
    for (const auto& name : names) ::unsetenv(name.c_str());
}

/// With stdout going to the descriptor.
inline void with_stdout(int descriptor, const std::function<void()>& call) {
    std::fflush(stdout);
    const int own = ::dup(STDOUT_FILENO);
    ::dup2(descriptor, STDOUT_FILENO);
    call();
    ::dup2(own, STDOUT_FILENO);
    ::close(own);
}

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
    explicit Tool(Arguments arguments, const std::string& input = "")
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
    [[noreturn]] void become(Arguments arguments) const {
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
        forget_settings();
        ::execv(words[0], words.data());
        ::_exit(127);
    }

    int in_, out_, err_;
    Child child_;
};

inline Ran run_tool(Arguments arguments, const std::string& input = "") {
    return Tool(std::move(arguments), input).wait();
}
/// One in the background, which has printed that text.
inline std::unique_ptr<Tool> start_tool(Arguments arguments, const std::string& text) {
    auto tool = std::make_unique<Tool>(std::move(arguments));
    EXPECT_TRUE(tool->prints(text)) << tool->err();
    return tool;
}
/// That it says it listens at.
inline std::uint16_t port_of(const Tool& tool) {
    const std::string before = " port ";
    EXPECT_TRUE(tool.prints(before)) << tool.err();
    const std::string said = tool.out() + tool.err();
    return static_cast<std::uint16_t>(std::stoul(said.substr(said.rfind(before) + before.size())));
}
/// What `rmem <command> <ring> --json` says.
inline nlohmann::json json_of(const std::string& command, const std::string& ring) {
    return run_tool({command, ring, "--json"}).json();
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
inline Arguments run_script(const Arguments& options, const std::string& script) {
    return concat(concat({"run"}, options), {"--", "sh", "-c", script});
}

/// For what commands show of it.
inline std::shared_ptr<Ring> open_ring(const RingConfig& config, unsigned node = 0) {
    return Ring::open(config, Deadline::in(kDefaultJoinTimeoutNs), node);
}
/// What a process leaves that has done `last` as that rank of the ring and was killed.
inline void leave_dead(
    const RingConfig& config, unsigned rank,
    const std::function<void(Ring&)>& last = [](Ring&) {}) {
    Child dead([&] {
        const auto ring = open_ring(config);
        const Membership member(ring, {rank, rank});
        last(*ring);
        ::kill(::getpid(), SIGKILL);
    });
    EXPECT_EQ(dead.wait(), -SIGKILL);
}

}  // namespace rmem::test
