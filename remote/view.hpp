// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The memory of a node elsewhere, for the plain loads and stores of a program here.
///
/// Beside it lies a twin: each word as the node is known to have it, or to get it. What differs
/// from its twin, the program has stored: collect() finds that, and the caller sends it. What the
/// node tells goes into both, unless the program has stored there meanwhile: its store is the later
/// one. A change that the node told before it knew of an own write to the word is left out, since
/// the write overtakes it there.
///
/// Invariants, executed: own writes are numbered in the order in which they are told; what is told
///   of lies within the memory, and the node tells of whole words.
/// Guarantee: the program's bytes are written where the node's change came, and nowhere else.
/// Thread safety: one call at a time; the program loads and stores at any time.
/// Units: bytes; offsets are those of the memory.

#include "rmem/base/word_block.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <span>
#include <vector>

namespace remote {

class View {
public:
    /// Sends a store of words, or of a part of one; returns how many own writes there were, with
    /// it; 0: it could not be sent.
    using Send = std::function<std::uint64_t(std::uint64_t offset, std::span<const std::byte> words,
                                             rmem::WordPart part)>;

    /// Throws std::bad_alloc.
    explicit View(std::size_t memory_bytes);

    [[nodiscard]] std::byte* memory() { return memory_.first; }
    /// These pages are looked at from now on.
    void map(std::uint64_t offset, std::uint64_t bytes);

    /// The program's stores to what is mapped of this range.
    void collect(std::uint64_t offset, std::uint64_t bytes, const Send& send);
    /// A call of the program's has written, as its own write number `number`.
    /// `part`: of the word that the data is.
    void wrote(std::uint64_t offset, std::span<const std::byte> data, std::uint64_t number,
               rmem::WordPart part = rmem::kWholeWord);
    /// The node tells of whole words, and had then made `known` of the own writes.
    void changed(std::uint64_t offset, std::span<const std::byte> words, std::uint64_t known);

private:
    struct Free {
        void operator()(void* memory) const noexcept { std::free(memory); }
    };
    /// Zeros, which take no room until they are changed.
    struct Zeros {
        std::unique_ptr<void, Free> owned;
        std::byte* first;  ///< at a multiple of the page
    };
    [[nodiscard]] static Zeros zeros(std::size_t bytes);

    [[nodiscard]] bool is_within(std::uint64_t offset, std::uint64_t bytes) const;
    [[nodiscard]] bool is_mapped(std::uint64_t page) const;
    void collect_page(std::uint64_t page, const Send& send);
    /// Of an own write, which is the latest.
    void note(std::uint64_t number);
    [[nodiscard]] std::uint32_t* word_at(std::uint64_t offset);
    [[nodiscard]] std::uint32_t* twin_at(std::uint64_t offset);
    [[nodiscard]] std::uint64_t& number_at(std::uint64_t offset);

    const std::size_t bytes_;
    const Zeros memory_;
    const Zeros twin_;
    const Zeros numbers_;  ///< of the own write that each word had last, 64 bits each
    std::uint64_t last_number_ = 0;
    std::vector<bool> is_mapped_;  ///< by page
};

}  // namespace remote
