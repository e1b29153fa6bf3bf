// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The interrupts that have come to a card, for any number of readers.
///
/// The last kEntries are kept, whether or not somebody has read them. A reader holds no more than
/// the number of the next one that it takes, so readers are independent of each other.
/// Invariants, executed: a reader waits for a number that take() has given it.
/// Thread safety: any thread.
/// Errors: a code of scgtapi.h, with the sentence in rmem_last_error().
/// Trust: a reader's number is a program's, and checked here.
/// Source: the vendor's driver, for the numbers (28 bits, so that none is a reader's first) and for
///   what a reader that is too slow gets.

#include "cards/common/handle_table.hpp"
#include "cards/scgt/scgtapi.h"

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace cards::scgt {

class InterruptQueue {
public:
    static constexpr std::uint32_t kEntries = 1024;
    static constexpr std::uint32_t kLastNumber = 0x0FFFFFFF;
    static constexpr scgtIntrHandle kFromNowOn = 0xFFFFFFFF;

    /// Gives it its number.
    void put(scgtInterrupt interrupt);
    /// Takes what is there for the reader `next`; SCGT_TIMEOUT: nothing is.
    /// SCGT_BAD_PARAMETER: it is no reader, or its handle is being closed.
    [[nodiscard]] uint32 take(scgtIntrHandle& next, scgtInterrupt* to, uint32 room, uint32& taken,
                              const Calls& calls);
    /// Whether take(), which has given the number, has something to say, by one look.
    [[nodiscard]] bool has(scgtIntrHandle next) const noexcept;
    /// Until there is something for the reader, its handle is closed, or the time has come.
    void wait(scgtIntrHandle next, std::int64_t until_ns, const Calls& calls);
    /// After a handle has begun to close.
    void wake();

    [[nodiscard]] std::uint32_t waiting() const;

private:
    mutable std::mutex mutex_;
    std::condition_variable news_;
    std::array<scgtInterrupt, kEntries> entries_{};
    std::atomic<std::uint32_t> next_ = 0;  ///< the number of the next; changed under the lock
    std::uint32_t kept_ = 0;
    std::uint32_t waiting_ = 0;
};

}  // namespace cards::scgt
