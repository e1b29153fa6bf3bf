// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A program's view of its bank, whose plain stores are taken.
///
/// The bank itself stays where it is, for the link and for loads; a view is a second mapping of the
/// same memory, so a load through it costs nothing and shows what has arrived.
/// Thread safety: any thread loads and stores through `memory()`; the object is one thread's.
/// Errors: Error(invalid_argument) where the mode is not to be had, Error(system).

#include "rmem/ring/ring.hpp"
#include "rmem/stores/mode.hpp"
#include "rmem/stores/taker.hpp"

#include <cstddef>
#include <memory>

namespace rmem::stores {

class Stores {
public:
    Stores() = default;
    virtual ~Stores() = default;
    Stores(const Stores&) = delete;
    Stores& operator=(const Stores&) = delete;

    /// The user's memory, from offset 0; the same as long as the object is there.
    [[nodiscard]] virtual std::byte* memory() const noexcept = 0;
    /// What the calling thread has stored and is not taken yet.
    virtual void publish_own() noexcept {}
    /// Waits until all that was stored before is taken; false: the deadline has passed.
    [[nodiscard]] virtual bool await_taken(Deadline) { return true; }
    /// Whole words that are taken after all else that is found with them.
    virtual void set_sync(std::size_t, std::size_t) {}
};

/// Of the node's bank. `taker` and the ring outlive it.
[[nodiscard]] std::unique_ptr<Stores> capture(StoresMode mode, const Ring& ring, unsigned node,
                                              StoreTaker& taker);

}  // namespace rmem::stores
