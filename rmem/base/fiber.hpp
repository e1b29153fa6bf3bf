// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A function with a stack of its own, which runs until it suspends itself.
///
/// A fiber that is destroyed before it has ended is abandoned: its stack is released and nothing of
/// it runs any more, no destructor either, as when a process is killed. Objects that its frames own
/// are lost.
///
/// Thread safety: a fiber belongs to the thread that made it. Stacks are pooled for each thread.
/// Errors: an exception that leaves the body leaves `resume`; the constructor throws
///   Error(no_space) without memory for a stack. Overflowing a stack is a fault (SIGSEGV at a guard
///   page).
/// Cost: a switch below 20 ns; a fiber on a stack that was used before well below 1 us.
/// Sanitizers: know of each switch. An allocation of a fiber is never called a leak, as the fiber
/// may be abandoned.

#include "rmem/error.hpp"

#include <cstddef>
#include <exception>
#include <functional>

namespace rmem::sim {

class RMEM_API Fiber {
public:
    static constexpr std::size_t kDefaultStackBytes = std::size_t{256} * 1024;

    /// Does not start it. The stack has this size or a little more.
    explicit Fiber(std::function<void()> body, std::size_t stack_bytes = kDefaultStackBytes);
    ~Fiber();
    Fiber(const Fiber&) = delete;
    Fiber& operator=(const Fiber&) = delete;

    /// Runs it until it suspends itself or ends. Not from inside of it, and not once it has ended.
    void resume();
    /// Back to the code that resumed it. Only from inside of it.
    void suspend();
    bool ended() const noexcept { return ended_; }

private:
    struct Switch;

    /// One side of a switch: where it goes on; the rest is for sanitizers.
    struct Side {
        void* context = nullptr;
        const void* stack = nullptr;
        std::size_t stack_bytes = 0;
        void* shadow = nullptr;
    };

    std::function<void()> body_;
    std::byte* stack_ = nullptr;  ///< its lowest address, above the guard page
    std::size_t stack_bytes_;
    Side inside_;
    Side outside_;  ///< the code that resumed it
    bool ended_ = false;
    std::exception_ptr thrown_;
};

}  // namespace rmem::sim
