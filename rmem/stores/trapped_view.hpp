// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A view of a bank that cannot be written: each store stops the program, and is performed for it.
///
/// The fault's handler performs the instruction in the processor's place
/// (rmem/stores/instruction.hpp), hands what it stores to the taker, and lets the program go on
/// behind it: behind a run of stores, with the few instructions between them, where the program
/// stands in one. So every store is taken in the program's order, whatever the instruction; one
/// that cannot be performed is an error of the program's, by its own handler or its end, with a
/// line on stderr.
///
/// Order       each thread's own; between threads the taker's. No other store comes between what an
///             instruction reads and what it stores, so atomic operations are atomic.
/// Signals     the program's handlers of SIGSEGV get all that is not ours
///             (rmem/stores/signal_chain.hpp). A handler may store into the view, too.
/// Stacks      the work is done on a stack of this object's: those of the program, for signals and
///             else, need room for what the kernel puts there.
/// A debugger  may have replaced the instruction by a breakpoint since the processor has read it:
///             then it is read from the program's file.
/// The kernel  does not store through the view: read(2) into it is EFAULT. write(2) from it works.
/// Fork        a child's store ends the child, with a line on stderr: the memory is its parent's.
/// Invariants  what the taker is given lies in the view, whole.
/// Source      x86-64 alone; elsewhere the constructor throws Error(invalid_argument).
/// Thread safety: any thread stores; the object is one thread's.

#include "rmem/base/at_fork.hpp"
#include "rmem/stores/decodings.hpp"
#include "rmem/stores/instruction.hpp"
#include "rmem/stores/taker.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace rmem::stores {

class RMEM_API TrappedView final : public Destination, private AtFork {
public:
    static constexpr std::size_t kMax = 64;  ///< in a process

    /// `view` is mapped for reading alone; `bank` is the same memory, for writing. They outlive
    /// this.
    TrappedView(std::span<const std::byte> view, std::byte* bank, StoreTaker& taker);
    ~TrappedView();

    // ---- Destination, for the handler
    [[nodiscard]] bool covers(std::uint64_t address, std::size_t bytes) const noexcept override;
    void store(std::uint64_t address, const void* from, std::size_t bytes) noexcept override;
    [[nodiscard]] bool can_read(std::uint64_t address, std::size_t bytes) const noexcept override;
    [[nodiscard]] bool read(std::uint64_t address, void* to,
                            std::size_t bytes) const noexcept override;

    /// Runs `body` while no other thread's store is taken, on a stack of its own.
    void run_alone(void (*body)(void*) noexcept, void* with) noexcept;
    [[nodiscard]] Slot& slot() noexcept { return slot_; }
    [[nodiscard]] Decodings& decodings() noexcept { return decodings_; }
    [[nodiscard]] bool is_parents() const noexcept { return is_parents_; }
    /// From the view to the bank.
    [[nodiscard]] std::uint64_t distance() const noexcept;

private:
    static constexpr std::size_t kStackBytes = std::size_t{128} << 10;
    static constexpr std::uint64_t kNoPage = ~std::uint64_t{0};

    void in_child() noexcept override { is_parents_ = true; }

    const std::uint64_t begin_;
    const std::size_t bytes_;
    std::byte* const bank_;
    StoreTaker& taker_;
    Slot slot_;
    Decodings decodings_;
    mutable std::uint64_t readable_page_ = kNoPage;  ///< as it was found for this fault
    const std::unique_ptr<std::byte[]> stack_ =
        std::make_unique_for_overwrite<std::byte[]>(kStackBytes);
    bool is_parents_ = false;
};

}  // namespace rmem::stores
