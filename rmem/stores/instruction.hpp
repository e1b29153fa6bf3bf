// SPDX-License-Identifier: Apache-2.0
#pragma once

/// An instruction that stores into the memory of a ring, performed in the processor's place.
///
/// A program's view of its bank cannot be written, so a store there stops the program before the
/// instruction. `perform` finds out where the instruction stores, and has a copy of it executed on
/// memory of its own (rmem/stores/slot.hpp), with the program's registers; only the address is
/// another. What that stores is handed to a Destination. So what an instruction computes, and what
/// becomes of flags and vectors, is the processor's own; known have to be the places alone.
///
/// Of those that store in part (masks) the copy is executed twice, over bytes and over their
/// complements: what is stored is what comes out the same. Scatters and tiles, which store to many
/// places, are executed on the bank, and are taken from there. Strings are copied and filled piece
/// by piece.
///
/// Stores come in runs, and a fault for each takes long. So what stands between two stores of a
/// loop is executed in the same way (`step`), as far as that needs registers, the thread's stack
/// and memory outside the view; what the program does next is never anything else than what the
/// processor would do.
///
/// Thread safety: functions of their arguments. They allocate nothing and throw nothing, since they
///   run in a signal handler.
/// Trust: the instruction is the program's own. Where it stores is asked of the Destination, before
///   anything is changed.
/// Source: Intel SDM volume 2; decoding is Zydis'.

#include "rmem/stores/slot.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

namespace rmem::stores {

struct Decoded;  // rmem/stores/decodings.hpp

/// Where a program's stores go.
class Destination {
public:
    /// Whether these bytes are of the view.
    [[nodiscard]] virtual bool covers(std::uint64_t address, std::size_t bytes) const noexcept = 0;
    /// One store of the program, there.
    virtual void store(std::uint64_t address, const void* from, std::size_t bytes) noexcept = 0;
    /// Of the whole memory of the program.
    [[nodiscard]] virtual bool can_read(std::uint64_t address,
                                        std::size_t bytes) const noexcept = 0;
    /// Copies bytes that an instruction reads. False: they cannot be read.
    [[nodiscard]] virtual bool read(std::uint64_t address, void* to,
                                    std::size_t bytes) const noexcept = 0;

protected:
    ~Destination() = default;
};

enum class Outcome {
    performed,
    unknown,   ///< nothing was changed: not a store into the view, or not one known here
    overruns,  ///< nothing was changed: the store begins in the view and ends behind it
};

/// The instruction that `code` begins with, before which the program stands. `is_next`: the
/// processor has not begun it yet, and may have to refuse it. `distance`: from the view to where
/// the same memory can be written.
[[nodiscard]] RMEM_API Outcome perform(const Decoded& decoded, bool is_next, Registers& registers,
                                       Destination& destination, Slot& slot,
                                       std::uint64_t distance) noexcept;

/// One that stores nothing into the view, and cannot fail. False: nothing was changed, since it may
/// be another one, or what waits for something in the view.
[[nodiscard]] RMEM_API bool step(const Decoded& decoded, Registers& registers,
                                 const Destination& destination, Slot& slot) noexcept;

}  // namespace rmem::stores
