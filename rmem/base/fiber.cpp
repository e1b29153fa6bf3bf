// SPDX-License-Identifier: Apache-2.0
#include "rmem/base/fiber.hpp"

#include "rmem/base/limits.hpp"

#include <boost/context/detail/fcontext.hpp>

#include <cxxabi.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <utility>
#include <vector>

#if defined(__has_feature)
#define RMEM_HAS_FEATURE(x) __has_feature(x)
#else
#define RMEM_HAS_FEATURE(x) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || RMEM_HAS_FEATURE(address_sanitizer)
#define RMEM_ASAN 1
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#include <sanitizer/lsan_interface.h>
#else
#define RMEM_ASAN 0
#endif
#if defined(__SANITIZE_THREAD__) || RMEM_HAS_FEATURE(thread_sanitizer)
#define RMEM_TSAN 1
#include <sanitizer/tsan_interface.h>
#else
#define RMEM_TSAN 0
#endif

namespace rmem::sim {

namespace context = boost::context::detail;

namespace {

std::size_t page_bytes() {
    static const auto bytes = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    return bytes;
}

/// Stacks that are free, with a guard page below each. Most fibers of a thread have stacks of one
/// size.
class Stacks {
public:
    ~Stacks() {
        for (const Stack& stack : free_) unmap(stack);
    }

    std::byte* take(std::size_t bytes) {
        while (!free_.empty()) {
            const Stack stack = free_.back();
            free_.pop_back();
            if (stack.bytes == bytes) return stack.bottom;
            unmap(stack);
        }
        void* const memory = ::mmap(nullptr, page_bytes() + bytes, PROT_READ | PROT_WRITE,
                                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (memory == MAP_FAILED) refuse();
        const Stack stack{static_cast<std::byte*>(memory) + page_bytes(), bytes};
        if (::mprotect(memory, page_bytes(), PROT_NONE) != 0) {
            unmap(stack);
            refuse();
        }
        return stack.bottom;
    }
    void give_back(std::byte* bottom, std::size_t bytes) {
#if RMEM_ASAN
        ASAN_UNPOISON_MEMORY_REGION(bottom, bytes);  // abandoned frames have left their marks
#endif
        free_.push_back({bottom, bytes});
    }

private:
    struct Stack {
        std::byte* bottom;
        std::size_t bytes;
    };
    [[noreturn]] static void refuse() {
        throw Error(Errc::no_space,
                    "no memory for the stack of a simulated process; run fewer, or "
                    "with smaller stacks");
    }
    static void unmap(const Stack& stack) {
        ::munmap(stack.bottom - page_bytes(), page_bytes() + stack.bytes);
    }

    std::vector<Stack> free_;
};

thread_local Stacks stacks;

/// The exceptions that are being handled, of which the C++ runtime keeps one list for a thread:
/// each fiber, and the code that resumes it, must find its own.
class Handled {
public:
    Handled() { std::memcpy(saved_, abi::__cxa_get_globals(), sizeof saved_); }
    ~Handled() { std::memcpy(static_cast<void*>(abi::__cxa_get_globals()), saved_, sizeof saved_); }
    Handled(const Handled&) = delete;
    Handled& operator=(const Handled&) = delete;

private:
    // The Itanium C++ ABI, 2.2.2: a pointer to the list, and a count.
    std::byte saved_[sizeof(void*) + sizeof(unsigned)];
};

}  // namespace

/// The switches themselves, and their announcement to sanitizers.
///
/// The bare switch of Boost.Context, not its class `fiber`: that one's destructor resumes what has
/// not ended and unwinds it by force, and would have to be kept from running. Here a stack is given
/// back, and that is all.
struct Fiber::Switch {
    /// Into the fiber; returns when it suspends or ends.
    static void enter(Fiber& f) {
        const Handled handled;
#if RMEM_TSAN
        f.outside_.shadow = __tsan_get_current_fiber();
        __tsan_switch_to_fiber(f.inside_.shadow, 0);
#endif
#if RMEM_ASAN
        void* frames = nullptr;
        __lsan_disable();  // objects of an abandoned fiber are lost on purpose
        __sanitizer_start_switch_fiber(&frames, f.stack_, f.stack_bytes_);
#endif
        f.inside_.context = context::jump_fcontext(f.inside_.context, &f).fctx;
#if RMEM_ASAN
        __sanitizer_finish_switch_fiber(frames, nullptr, nullptr);
        __lsan_enable();
#endif
    }
    /// Out of the fiber; returns when it is resumed, never if it has ended.
    static void leave(Fiber& f) {
        const Handled handled;
#if RMEM_TSAN
        __tsan_switch_to_fiber(f.outside_.shadow, 0);
#endif
#if RMEM_ASAN
        void* frames = nullptr;
        __sanitizer_start_switch_fiber(f.ended_ ? nullptr : &frames, f.outside_.stack,
                                       f.outside_.stack_bytes);
#endif
        f.outside_.context = context::jump_fcontext(f.outside_.context, nullptr).fctx;
#if RMEM_ASAN
        __sanitizer_finish_switch_fiber(frames, &f.outside_.stack, &f.outside_.stack_bytes);
#endif
    }

    /// The first frame of a fiber.
    static void start(context::transfer_t from) {
        Fiber& f = *static_cast<Fiber*>(from.data);
        f.outside_.context = from.fctx;
#if RMEM_ASAN
        __sanitizer_finish_switch_fiber(nullptr, &f.outside_.stack, &f.outside_.stack_bytes);
#endif
        std::memset(static_cast<void*>(abi::__cxa_get_globals()), 0,
                    sizeof(void*) + sizeof(unsigned));  // it handles none
        try {
            f.body_();
        } catch (...) {
            f.thrown_ = std::current_exception();
        }
        f.ended_ = true;
        leave(f);
    }
};

Fiber::Fiber(std::function<void()> body, std::size_t stack_bytes)
    : body_(std::move(body)), stack_bytes_(round_up(stack_bytes, page_bytes())) {
    stack_ = stacks.take(stack_bytes_);
    inside_.context = context::make_fcontext(stack_ + stack_bytes_, stack_bytes_, Switch::start);
#if RMEM_TSAN
    inside_.shadow = __tsan_create_fiber(0);
#endif
}

Fiber::~Fiber() {
#if RMEM_TSAN
    __tsan_destroy_fiber(inside_.shadow);
#endif
    stacks.give_back(stack_, stack_bytes_);
}

void Fiber::resume() {
    Switch::enter(*this);
    if (thrown_) std::rethrow_exception(std::exchange(thrown_, nullptr));
}

void Fiber::suspend() {
    Switch::leave(*this);
}

}  // namespace rmem::sim
