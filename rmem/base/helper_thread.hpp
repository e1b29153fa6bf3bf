// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A thread of the library beside the program's threads.
///
/// It takes none of the program's signals, and it has a name (`top -H`, debuggers). The owner keeps
/// it as its last member, so that it ends before what it works with: the destructor asks it to
/// end, wakes it, and waits for it. The work looks at is_stopping() whenever it has slept.
///
/// Fork: a child inherits the object without the thread. The destructor then leaves everything
/// alone, since a condition that a thread of the parent waits for can be neither used nor destroyed
/// there.
/// Thread safety: any thread, but pause() is for the thread itself, and the destructor for others.
/// Errors: std::system_error from the constructor when there can be no thread.

#include "rmem/error.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <thread>

namespace rmem {

class RMEM_API HelperThread {
public:
    /// Between looks at what the program does by itself.
    static constexpr std::int64_t kLookNs = 1'000'000;

    /// `name` has at most 15 characters. `end_sleep` ends each sleep of the work other than
    /// pause(); it is called once, when the thread is to end.
    HelperThread(const char* name, std::function<void()> work,
                 std::function<void()> end_sleep = nullptr);
    ~HelperThread();
    HelperThread(const HelperThread&) = delete;
    HelperThread& operator=(const HelperThread&) = delete;

    [[nodiscard]] bool is_stopping() const noexcept;
    /// Sleeps for `ns`, or until it is to end, or until `until` says so, which is asked first and
    /// after each wake(). False: it is to end.
    bool pause(std::int64_t ns, const std::function<bool()>& until = nullptr);
    /// After a change that the `until` of a pause looks at.
    void wake();

    /// The calling thread gets real-time priority, the lowest there is: woken, it runs at once,
    /// where programs spin on all processors, too. For work that blocks when it has nothing to do.
    /// False: the system does not allow it (RLIMIT_RTPRIO, CAP_SYS_NICE); nothing has changed.
    [[nodiscard]] static bool ask_for_real_time() noexcept;
    /// The calling thread is one as any other again.
    static void leave_real_time() noexcept;

private:
    /// With the system's calls (rmem/base/helper_thread_posix.cpp), as real-time priority.
    static std::thread start(const char* name, std::function<void()> work);

    struct Shared;
    std::unique_ptr<Shared> shared_;
};

}  // namespace rmem
