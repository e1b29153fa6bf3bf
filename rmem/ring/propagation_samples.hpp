// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Propagation on `direct`, by samples: the writer stamps a word, a reader that waited for it
/// records the age.
///
/// What is a sample and what is not: rmem/ring/write_stamps.hpp. Recorded in the histogram of the
/// reader's node. A violation of the bound is by the host, since the link itself takes no time.
/// Thread safety: one rank's thread; two ranks of one node may lose each other's samples.
/// Units: nanoseconds.

#include "rmem/ring/bound_violation.hpp"
#include "rmem/ring/ring.hpp"
#include "rmem/ring/write_stamps.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>

namespace rmem {

class RMEM_API PropagationSamples {
public:
    explicit PropagationSamples(Membership& member);

    /// Before the word is stored (with release).
    void stamp(std::size_t offset, std::uint32_t value) noexcept;
    /// The same of a message, which is counted: others are not, since that would cost as much as
    /// they do.
    void stamp_message(std::size_t offset, std::uint32_t value) noexcept;
    /// After the word was loaded (with acquire) by a rank that awaited it since then. A broken
    /// bound is counted, and returned.
    std::optional<BoundViolation> seen(std::size_t offset, std::uint32_t value,
                                       std::int64_t waited_since_ns) noexcept {
        if (!stamps_.may_have(offset, value)) [[likely]]
            return std::nullopt;
        return look(offset, value, waited_since_ns);
    }

    std::int64_t bound_ns() const noexcept { return bound_ns_; }

private:
    std::optional<BoundViolation> look(std::size_t offset, std::uint32_t value,
                                       std::int64_t waited_since_ns) noexcept;

    unsigned node_;
    Counters& sent_;
    NodeSlot& slot_;
    WriteStamps stamps_;
    std::int64_t bound_ns_;
};

}  // namespace rmem
