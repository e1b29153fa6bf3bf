// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The part of its parent in a ring, which a fork()ed child must forget.
///
/// A child inherits the memory and the objects, but no descriptor, lock or thread: whatever it did
/// there would be done in its parent's name. A class that keeps such a part derives from AtFork,
/// and takes away in the child what its calls check anyway; so they pay nothing for it. The
/// inherited objects are kept and left alone.
/// Thread safety: any thread. Errors: std::bad_alloc.

#include "rmem/error.hpp"

namespace rmem {

/// The end of the sentence for a call in such a child.
inline constexpr const char* kForkedChild =
    "a fork()ed child is not on the ring: the rank is its parent's; make the call there, or let "
    "the "
    "child join with a rank of its own";

class RMEM_API AtFork {
public:
    AtFork(const AtFork&) = delete;
    AtFork& operator=(const AtFork&) = delete;

    /// In the child, before fork() returns there: it has one thread.
    virtual void in_child() noexcept = 0;

protected:
    AtFork();
    ~AtFork();
};

}  // namespace rmem
