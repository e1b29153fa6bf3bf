// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What differs between a card whose node is of this host (cards/rfm2g/host.cpp), and one whose
/// node `rmem serve` keeps elsewhere (cards/rfm2g/remote/host.cpp, which also opens units).
///
/// All else of the library is the same for both, and knows the node by rmem.h.
/// Thread safety: any; one thread at a time sleeps by a bell.

#include "cards/rfm2g/rfm2g_api.h"
#include "rmem/rmem.h"

#include <cstddef>
#include <cstdint>
#include <memory>

namespace cards::rfm2g {

/// Then a load is a question that may fail, and there is no descriptor to wait by.
#ifdef RFM2G_REMOTE
inline constexpr bool kIsRemote = true;
#else
inline constexpr bool kIsRemote = false;
#endif

/// As rmem_stores; these whole pages at least are the node's.
[[nodiscard]] int stores_of(rmem_node* node, std::size_t place, std::size_t bytes, void** memory);

/// What one thread sleeps by, and others wake it.
class Bell {
public:
    /// Null: the system has none left (errno).
    [[nodiscard]] static std::unique_ptr<Bell> make();
    virtual ~Bell() = default;

    virtual void ring() = 0;
    /// Until it was rung, or `source`, a descriptor or -1, is readable; or earlier.
    /// RFM2G_TIMED_OUT, RFM2G_SIGNALED.
    [[nodiscard]] virtual RFM2G_STATUS sleep(std::int64_t until_ns, int source) = 0;
};

}  // namespace cards::rfm2g
