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
/// A bell is rung once until its owner clears it: the slot says so, and the next that would ring
/// goes on. Owner and ringer change that word by one instruction each, between the post and the
/// look, so of the two one sees what the other has done, and no fence has to be made for it:
///
///     ringer                                   owner
///     post                                     empty the pipe
///     if (exchange(rung, 1) == 0) write        exchange(rung, 0)
///                                              look for posts
///
/// A ringer that is killed before it writes leaves a bell that says it was rung (was_rung()) and is
/// not: the thread behind the descriptor signals such a bell when it looks.
///
/// Thread safety: a RankBell by its owner's lock, but signal() by any thread; ring_bell by any.
/// Progress: nothing waits; a bell that was rung thousands of times unheard stays rung.
/// Trust: what is opened is a pipe with the inode that the slot names, or left alone. So a process
///   that writes nonsense into a slot has no file written to but pipes of its own user.
/// Errors: the constructor throws Error(system).

#include "rmem/ring/ring.hpp"
#include "rmem/ring/segment.hpp"

#include <sys/types.h>

namespace rmem {

class RMEM_API RankBell {
public:
    /// `also`: a descriptor of this process that makes the handle readable, too, while it is
    /// itself; below 0: none.
    RankBell(Ring& ring, unsigned rank, BellUse use, int also = -1);
    /// In a process forked since, the bell is the parent's.
    ~RankBell();
    RankBell(const RankBell&) = delete;
    RankBell& operator=(const RankBell&) = delete;

    /// To be waited for with poll(2).
    int handle() const noexcept { return both_.get() >= 0 ? both_.get() : read_.get(); }
    /// From now on others may ring it; it is hidden at first.
    void show() noexcept;
    void hide() noexcept;
    /// Readable.
    void signal() noexcept;
    /// Forgets that it was rung. Look for what it is rung for once more after that.
    void clear() noexcept;
    /// Since it was cleared.
    [[nodiscard]] bool was_rung() const noexcept;

private:
    BellPlace& place_;
    const pid_t owner_;
    Descriptor read_, write_;
    Descriptor both_;      ///< of the pipe and `also`
    unsigned unrung_ = 0;  ///< times that it was cleared for nothing
};

/// Rings a rank's bell, if it was not rung since the rank cleared it; after that for which it is
/// rung. False: it shows none that can be rung here, and the rank is to be woken.
[[nodiscard]] RMEM_API bool ring_bell(const Ring& ring, unsigned rank, BellUse use) noexcept;

}  // namespace rmem
