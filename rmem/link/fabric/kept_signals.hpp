// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The program's signal handlers, through calls that put others in their place: libraries that
/// libfabric loads do, to print where they were when a program dies of a signal, or is ended by
/// one.
///
/// Thread safety: while it exists no other thread should change handlers: what it sets is lost.
/// Source: sigaction(2).

#include <array>
#include <csignal>

namespace rmem::fabric {

class KeptSignals {
public:
    KeptSignals() noexcept {
        for (int signal = 1; signal < kSignals; ++signal)
            ::sigaction(signal, nullptr, &handlers_[static_cast<std::size_t>(signal)]);
    }
    ~KeptSignals() {
        for (int signal = 1; signal < kSignals; ++signal) {
            if (signal == SIGKILL || signal == SIGSTOP) continue;
            ::sigaction(signal, &handlers_[static_cast<std::size_t>(signal)], nullptr);
        }
    }
    KeptSignals(const KeptSignals&) = delete;
    KeptSignals& operator=(const KeptSignals&) = delete;

private:
    static constexpr int kSignals = 32;  ///< and below those of real time
    std::array<struct sigaction, kSignals> handlers_{};
};

}  // namespace rmem::fabric
