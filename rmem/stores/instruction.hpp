// SPDX-License-Identifier: Apache-2.0
#pragma once

/// An instruction that stores into the memory of a ring, performed in the processor's place.
///
/// A program's view of its bank cannot be written, so a store there stops the program before the
/// instruction. `perform` finds out what the instruction would store, hands that to a Destination,
/// and does what else it does: registers, flags, the pointer to the next instruction. What it does
/// not know by itself it says how to single-step: with an address register moved to where the
/// memory can be written.
///
/// Known are moves of general registers and constants, arithmetic on memory with and without lock,
/// exchanges, string instructions, conditions (setcc), and stores of whole vectors, of scattered
/// and of masked ones, up to AVX-512. The rest, such as shifts in memory and x87, is stepped.
///
/// Thread safety: functions of their arguments. They allocate nothing and throw nothing, since they
///   run in a signal handler.
/// Trust: the instruction is the program's own. Where it stores is asked of the Destination, before
///   anything is changed.
/// Source: Intel SDM volume 2; decoding is Zydis'.

#include "rmem/stores/registers.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

namespace rmem::stores {

/// Where a program's stores go.
class Destination {
public:
    /// Whether these bytes are of the view.
    [[nodiscard]] virtual bool covers(std::uint64_t address, std::size_t bytes) const noexcept = 0;
    /// One store of the program, there.
    virtual void store(std::uint64_t address, const void* from, std::size_t bytes) noexcept = 0;
    /// Copies bytes that a string instruction reads. False: they cannot be read.
    [[nodiscard]] virtual bool read(std::uint64_t address, void* to,
                                    std::size_t bytes) const noexcept = 0;

protected:
    ~Destination() = default;
};

/// How an instruction is to be stepped: with `addend` added to a register meanwhile.
struct Step {
    unsigned general = 0;       ///< which register
    std::uint64_t addend = 0;   ///< to be taken off again, also of what the instruction made of it
    std::uint64_t address = 0;  ///< what it stores, at most
    std::size_t bytes = 0;
    bool is_partial = false;  ///< of these bytes only those that change are stores
};

enum class Outcome {
    performed,
    to_step,  ///< nothing was changed, and `Step` says how
    unknown,  ///< nothing was changed: no store into the view, or none that can be told
};

/// The instruction that `code` begins with, before which the program stands. `distance`: from the
/// view to where the same memory can be written.
[[nodiscard]] Outcome perform(std::span<const std::byte> code, Registers& registers,
                              Destination& destination, std::uint64_t distance,
                              Step& step) noexcept;

}  // namespace rmem::stores
