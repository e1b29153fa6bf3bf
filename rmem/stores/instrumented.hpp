// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A view into which a program stores by itself, and tells of each store: its compiler has put
/// hooks there (rmem/stores/instrumentation.h, rmem/instrumented/).
///
/// Progress: a pending store is published by its thread's next hook. Where none comes (the thread
///   sleeps in a library that has no hooks) a helper does, kStaleNs after it has been seen.
/// Thread safety: as rmem/stores/stores.hpp.
/// Errors: Error(invalid_argument) where the program has no hooks.

#include "rmem/base/helper_thread.hpp"
#include "rmem/ring/mapping.hpp"
#include "rmem/stores/stores.hpp"

#include <cstddef>
#include <cstdint>

namespace rmem::stores {

class InstrumentedStores final : public Stores {
public:
    static constexpr std::int64_t kStaleNs = 1'000'000;

    InstrumentedStores(const Ring& ring, unsigned node, StoreTaker& taker);
    ~InstrumentedStores() override;

    std::byte* memory() const noexcept override { return mapping_.data(); }
    void publish_own() noexcept override;

    /// For the hooks: these bytes of the view were stored.
    void stored(std::uintptr_t address, std::size_t bytes) noexcept;
    [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }
    [[nodiscard]] bool covers(std::uintptr_t address) const noexcept {
        return address - reinterpret_cast<std::uintptr_t>(memory()) < bytes_;
    }

private:
    const std::size_t bytes_;
    const Mapping mapping_;
    StoreTaker& taker_;
    HelperThread helper_;  // last: it uses all of this
};

/// Whether rmem-cc has linked the program.
[[nodiscard]] bool is_instrumented() noexcept;

}  // namespace rmem::stores
