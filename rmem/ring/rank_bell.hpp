// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A descriptor of a rank that other processes make readable without a thread of the rank between:
/// for interrupts (Node::interrupt_fd), and for posts (a protocol's descriptor).
///
/// It is a pipe of the rank's process. The rank's slot says which (its number there and its inode),
/// and those that ring open it by /proc/<pid>/fd, once. Where that is not allowed, or the process
/// lies in another namespace, nothing is rung, and the caller wakes the thread behind the
/// descriptor instead.
///
/// Thread safety: a RankBell by its owner's lock, but signal() by any thread; ring_bell by any.
/// Progress: nothing waits; a bell that was rung thousands of times unheard stays rung.
/// Trust: what is opened is a pipe with the inode that the slot names, or left alone. So a process
///   that writes nonsense into a slot has no file written to but pipes of its own user.
/// Errors: the constructor throws Error(system).

#include "rmem/ring.hpp"
#include "rmem/ring/segment.hpp"

#include <sys/types.h>

namespace rmem {

class RMEM_API RankBell {
public:
    RankBell(Ring& ring, unsigned rank, BellUse use);
    /// In a process forked since, the bell is the parent's.
    ~RankBell();
    RankBell(const RankBell&) = delete;
    RankBell& operator=(const RankBell&) = delete;

    /// To be waited for with poll(2).
    int handle() const noexcept { return read_.get(); }
    /// From now on others may ring it; it is hidden at first.
    void show() noexcept;
    void hide() noexcept;
    /// Readable.
    void signal() const noexcept;
    /// Forgets that it was rung. Look for what it is rung for once more after that.
    void clear() const noexcept;

private:
    BellPlace& place_;
    const pid_t owner_;
    Descriptor read_, write_;
};

/// Rings a rank's bell, after that for which it is rung. False: it shows none that can be rung
/// here.
[[nodiscard]] RMEM_API bool ring_bell(const Ring& ring, unsigned rank, BellUse use) noexcept;

}  // namespace rmem
