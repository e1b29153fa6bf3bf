// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A forked process that runs one function, and a ring name that leaves nothing behind.
///
///     Child other([&] { EXPECT_TRUE(ring->is_alive(0)); });
///     EXPECT_EQ(other.wait(), 0);                            // or both in one: run_in_child()
///
/// All processes of the tests are forked here; one that runs a program calls exec in its function.
/// The child's exit code is 0 unless a gtest check failed in it (1) or it threw (2); both are
/// printed. It is killed when the Child goes out of scope or the test dies. Fork only from one
/// thread.

#include "rmem/ring/config.hpp"
#include "rmem/ring/segment.hpp"
#include "tests/support/leftovers.hpp"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <functional>
#include <new>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace rmem::test {

inline constexpr std::int64_t kPatienceNs = 30'000'000'000;  ///< for what must come

class Child {
public:
    explicit Child(const std::function<void()>& body) {
        std::fflush(nullptr);
        const pid_t parent = ::getpid();
        pid_ = ::fork();
        if (pid_ < 0) throw std::system_error(errno, std::generic_category(), "fork");
        if (pid_ == 0) run(body, parent);
    }
    Child(Child&& other) noexcept : pid_(std::exchange(other.pid_, -1)) {}
    Child& operator=(Child&&) = delete;
    ~Child() { kill(); }

    pid_t pid() const { return pid_; }

    /// The exit code, or minus the signal that ended it.
    int wait() { return collect(0).value_or(-1000); }
    /// What wait() returns, if it has ended.
    std::optional<int> poll() { return collect(WNOHANG); }
    /// Nothing once it has been waited for, since pid() is then -1: everybody.
    void signal(int number) const {
        if (pid_ > 0) ::kill(pid_, number);
    }
    /// SIGSTOP, and waits until all its threads have stopped: kill(2) returns before, and until
    /// then they go on.
    void stop() {
        signal(SIGSTOP);
        await_stop();
    }
    /// It stops by itself.
    void await_stop() const {
        int status = 0;
        ::waitpid(pid_, &status, WUNTRACED);
        EXPECT_TRUE(WIFSTOPPED(status)) << "ended instead of stopping";
    }
    void resume() const { signal(SIGCONT); }
    void kill() {
        if (pid_ <= 0) return;
        signal(SIGKILL);
        wait();
    }

private:
    std::optional<int> collect(int options) {
        int status = 0;
        if (pid_ <= 0 || ::waitpid(pid_, &status, options) != pid_) return std::nullopt;
        pid_ = -1;
        return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
    }
    [[noreturn]] static void run(const std::function<void()>& body, pid_t parent) {
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (::getppid() != parent) ::_exit(1);
        int code = 0;
        try {
            body();
            if (::testing::Test::HasFailure()) code = 1;
        } catch (const std::exception& e) {
            std::fprintf(stderr, "in a child: %s\n", e.what());
            code = 2;
        }
        std::fflush(nullptr);
        ::_exit(code);
    }

    pid_t pid_ = -1;
};

/// Runs `body` in a child, which must end well.
inline void run_in_child(const std::function<void()>& body, const char* file = __builtin_FILE(),
                         int line = __builtin_LINE()) {
    const ::testing::ScopedTrace trace(file, line, "in a child");
    EXPECT_EQ(Child(body).wait(), 0);
}

/// In a child: it goes on when its parent has died.
inline void outlive_parent() {
    ::prctl(PR_SET_PDEATHSIG, 0);
}

/// The states of a process's threads as in /proc, a letter each; empty when there is none.
inline std::vector<char> thread_states(pid_t pid) {
    std::vector<char> states;
    std::error_code ignored;
    const std::string tasks = "/proc/" + std::to_string(pid) + "/task";
    for (const auto& task : std::filesystem::directory_iterator(tasks, ignored)) {
        std::ifstream file(task.path() / "stat");
        std::string line;
        if (std::getline(file, line)) states.push_back(line[line.rfind(')') + 2]);
    }
    return states;
}

/// Whether all its threads are stopped; for processes that are not its parent, which could wait for
/// it.
inline bool is_stopped(pid_t pid) {
    const auto states = thread_states(pid);
    return !states.empty() &&
           std::all_of(states.begin(), states.end(), [](char state) { return state == 'T'; });
}

/// Whether a process holds nothing any more, waited for or not. One that is dying still may, though
/// some of its locks are free already.
inline bool has_ended(pid_t pid) {
    const auto states = thread_states(pid);
    return std::all_of(states.begin(), states.end(),
                       [](char state) { return state == 'Z' || state == 'X'; });
}

/// A value that a test shares with its children.
template <class T>
class SharedValue {
public:
    SharedValue()
        : value_(new (::mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                             -1, 0)) T{}) {}
    ~SharedValue() { ::munmap(value_, sizeof(T)); }
    SharedValue(const SharedValue&) = delete;
    SharedValue& operator=(const SharedValue&) = delete;

    T& operator*() const { return *value_; }
    T* operator->() const { return value_; }

private:
    T* value_;
};

/// A ring name of this test's own. At the end the ring must be gone, or the test fails.
class RingName {
public:
    RingName() : name_("unit-" + std::to_string(::getpid()) + "-" + std::to_string(next_++)) {
        remove_leftovers();
    }
    ~RingName() {
        if (expect_gone_) {
            EXPECT_FALSE(exists()) << Segment::object_name(name_) << " was left behind";
        }
        if (exists()) Segment::remove(name_);
        for (const std::string& node : Segment::list()) {  // of killed ones, each its own segment
            if (node.starts_with(name_ + "@")) Segment::remove(node);
        }
    }
    RingName(const RingName&) = delete;
    RingName& operator=(const RingName&) = delete;

    const std::string& get() const { return name_; }
    bool exists() const { return ::access(Segment::object_name(name_).c_str(), F_OK) == 0; }
    /// Of a ring of that name with a rank on each node.
    RingConfig config(unsigned nodes = 2, LinkKind link = LinkKind::direct,
                      std::size_t user_bytes = 4096) const {
        RingConfig config;
        config.name = name_;
        config.nodes = config.ranks = nodes;
        config.link = link;
        config.user_bytes = user_bytes;
        return config;
    }
    /// For tests that leave something behind on purpose.
    void may_be_left() { expect_gone_ = false; }

private:
    inline static int next_ = 0;
    std::string name_;
    bool expect_gone_ = true;
};

/// Polls until `holds`; false after 30 s.
inline bool eventually(const std::function<bool()>& holds) {
    for (int i = 0; i < 30'000; ++i) {
        if (holds()) return true;
        ::usleep(1000);
    }
    return false;
}

/// A child that has come to where `body` calls its argument, and stays there until it is killed.
inline Child staying(const std::function<void(const std::function<void()>& stay)>& body) {
    const SharedValue<std::atomic<bool>> is_there;
    Child child([&] {
        body([&] {
            *is_there = true;
            for (;;) ::pause();
        });
    });
    EXPECT_TRUE(eventually([&] { return is_there->load(); }));
    return child;
}

/// Runs `body` in a child that has a tmpfs of its own at `place`; where it may not have one, the
/// test, which ends with this, is skipped.
inline void run_with_mounted(const char* place, const char* options,
                             const std::function<void()>& body) {
    const SharedValue<std::atomic<bool>> is_mounted;
    run_in_child([&] {
        if (::unshare(CLONE_NEWNS) != 0) return;
        if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return;
        if (::mount("none", place, "tmpfs", 0, options) != 0) return;
        *is_mounted = true;
        body();
    });
    if (!*is_mounted) GTEST_SKIP() << "this host lets nobody mount, or none but root";
}

}  // namespace rmem::test
