// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What was decoded last, by its place: a loop's instructions come again.
///
/// Thread safety: one thread at a time. at() allocates nothing and throws nothing.
/// Invariant: what at() gives is what `code` begins with; until the next call.

#include "rmem/stores/slot.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace rmem::stores {

struct Decoded;  // rmem/stores/decoded.hpp

class RMEM_API Decodings {
public:
    Decodings();
    ~Decodings();
    Decodings(const Decodings&) = delete;
    Decodings& operator=(const Decodings&) = delete;

    /// Null: it is no instruction, or one that does not end in `code`.
    [[nodiscard]] const Decoded* at(std::uint64_t place, std::span<const std::byte> code) noexcept;

private:
    static constexpr std::size_t kKept = Slot::kCopies;
    struct Kept;
    std::unique_ptr<std::array<Kept, kKept>> kept_;
};

}  // namespace rmem::stores
