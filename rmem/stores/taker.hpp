// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "rmem/base/word_block.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

namespace rmem::stores {

/// Words that a program has stored into its bank.
struct StoredWords {
    std::size_t offset = 0;
    std::span<const std::byte> data;
    WordPart part = kWholeWord;  ///< of the one word of which it has stored some bytes
};

/// Takes what a program stores into a view of its bank, one store after the other.
class StoreTaker {
public:
    /// From begin() to end() no other thread's store is taken. Called by the thread that stores,
    /// between two of its instructions; from several threads at once.
    virtual void begin() noexcept = 0;
    /// One store.
    virtual void put(std::size_t offset, const void* from, std::size_t bytes) noexcept = 0;
    /// When this returns, what was stored is in the own bank.
    virtual void settle() noexcept {}
    /// When this returns, it is on its way, too.
    virtual void end() noexcept = 0;
    /// One alone.
    void take(std::size_t offset, const void* from, std::size_t bytes) noexcept {
        begin();
        put(offset, from, bytes);
        end();
    }

    /// Stores that are in the bank already: when this returns, those before the number that it
    /// returns are on their way, in their order. There is no room for more now.
    [[nodiscard]] virtual std::size_t forward(std::span<const StoredWords> stored) noexcept = 0;

    /// The twin has what forward() has sent.
    virtual void note_in_twin() noexcept {}

    /// A look for stores, while there may be any, has begun that long after the last.
    virtual void note_look(std::int64_t after_ns, bool is_late) noexcept = 0;

protected:
    ~StoreTaker() = default;
};

}  // namespace rmem::stores
