// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The thread that attends to a process's arrivals while its program computes.
///
/// It rests while the program polls by itself: looks once in kLookNs, no more. Where the program
/// has not polled for one of the attendants since the last look, the thread goes on duty: it asks
/// the ring to wake it, attends at once to all that comes, and sleeps in between. So the first
/// message to a program that has gone off to compute may wait for kLookNs, or a tick of the host's
/// clock; those after it wait for a wake-up each. When the program polls again, it rests again:
/// sent by that poll where there is one attendant, for until then each message costs its sender a
/// wake-up, else when it wakes.
///
/// Progress: it never holds the endpoint while it sleeps. A fork()ed child has no such thread.
/// Thread safety: made and destroyed by the owner's thread, which does not hold the endpoint
/// meanwhile.
/// Errors: std::system_error when there can be no thread.

#include "billboard/process/process_endpoint.hpp"
#include "rmem/base/helper_thread.hpp"
#include "rmem/ring/ring.hpp"

#include <atomic>

namespace billboard {

class ProgressThread {
public:
    explicit ProgressThread(ProcessEndpoint& process);
    /// By the holder of the endpoint.
    void send_to_rest() noexcept;

private:
    void run();
    bool rest();  ///< until the program has not polled, or false: the end
    void be_on_duty();
    bool attend();
    [[nodiscard]] bool attend_while_busy();

    ProcessEndpoint& process_;
    rmem::Ring& ring_;
    unsigned rank_;
    std::atomic<bool> sleeps_on_duty_{false};  ///< or is about to
    rmem::HelperThread thread_;
};

}  // namespace billboard
