// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A memory mapped twice, as a bank and its view, and a taker that stores what it takes.

#include "rmem/stores/taker.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <span>
#include <vector>

namespace rmem::test {

class TwoMappings {
public:
    static constexpr std::size_t kBytes = 8192;

    TwoMappings() {
        const int fd = ::memfd_create("bank", 0);
        EXPECT_EQ(::ftruncate(fd, kBytes), 0);
        bank_ = map(fd, PROT_READ | PROT_WRITE);
        view_ = map(fd, PROT_READ);
        ::close(fd);
    }
    ~TwoMappings() {
        ::munmap(bank_, kBytes);
        ::munmap(view_, kBytes);
    }
    TwoMappings(const TwoMappings&) = delete;
    TwoMappings& operator=(const TwoMappings&) = delete;

    std::byte* bank() const { return bank_; }
    std::span<std::byte> view() const { return {view_, kBytes}; }

private:
    static std::byte* map(int fd, int access) {
        void* const place = ::mmap(nullptr, kBytes, access, MAP_SHARED, fd, 0);
        EXPECT_NE(place, MAP_FAILED);
        return static_cast<std::byte*>(place);
    }

    std::byte *bank_ = nullptr, *view_ = nullptr;
};

/// A thread's stack for signals, until it goes out of scope.
class SignalStack {
public:
    explicit SignalStack(std::span<std::byte> memory) {
        stack_.ss_sp = memory.data();
        stack_.ss_size = memory.size();
        EXPECT_EQ(::sigaltstack(&stack_, nullptr), 0);
    }
    ~SignalStack() {
        stack_.ss_flags = SS_DISABLE;
        ::sigaltstack(&stack_, nullptr);
    }
    SignalStack(const SignalStack&) = delete;
    SignalStack& operator=(const SignalStack&) = delete;

private:
    stack_t stack_{};
};

/// What a signal calls, until it goes out of scope.
class SignalHandler {
public:
    SignalHandler(int signal, void (*handler)(int), int flags = 0) : signal_(signal) {
        struct sigaction action {};
        action.sa_handler = handler;
        action.sa_flags = flags;
        EXPECT_EQ(::sigaction(signal, &action, &before_), 0);
    }
    ~SignalHandler() { ::sigaction(signal_, &before_, nullptr); }
    SignalHandler(const SignalHandler&) = delete;
    SignalHandler& operator=(const SignalHandler&) = delete;

private:
    int signal_;
    struct sigaction before_ {};
};

struct Taken {
    std::size_t offset, bytes;
    bool operator==(const Taken&) const = default;
};

class StoringTaker final : public stores::StoreTaker {
public:
    explicit StoringTaker(std::byte* bank) : bank_(bank) {}
    void begin() noexcept override {
        mutex_.lock();
        ++begun;
    }
    void end() noexcept override { mutex_.unlock(); }
    void put(std::size_t offset, const void* from, std::size_t bytes) noexcept override {
        std::memcpy(bank_ + offset, from, bytes);
        taken_.push_back({offset, bytes});
    }
    /// They are in the bank; of each call it takes `room` of them.
    std::size_t forward(std::span<const stores::StoredWords> stored) noexcept override {
        const std::lock_guard lock(mutex_);
        const std::size_t count = std::min(room.load(), stored.size());
        for (const auto& [offset, data, part] : stored.first(count)) {
            taken_.push_back({offset, data.size()});
            parts.push_back(part);
        }
        return count + untrue;
    }
    void note_look(std::int64_t, bool) noexcept override {}
    std::vector<Taken> taken() {
        const std::lock_guard lock(mutex_);
        return std::exchange(taken_, {});
    }

    std::size_t begun = 0;
    std::atomic<std::size_t> room{~std::size_t{0}};
    std::size_t untrue = 0;       ///< more than that, as it says
    std::vector<WordPart> parts;  ///< of those that it took, for when nothing is stored

private:
    std::byte* const bank_;
    std::mutex mutex_;
    std::vector<Taken> taken_;
};

}  // namespace rmem::test
