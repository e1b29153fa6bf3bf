// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The cards of a host, as programs number them: unit 0, 1, … Each is a node of a ring.
///
/// `rmem node --unit N` says which: it keeps a file for as long as it runs, with the settings by
/// which a program joins its node. Unit 0 is the node that the program's own environment names
/// (RMEM_RING, and RMEM_NODE or RMEM_RANK; rmem(7)), as for all programs of rmem and under
/// `rmem run`; without a file RMEM_RING alone will do.
///
/// Handles share a unit, whichever threads and programs have them: each takes a rank of the node,
/// the first that is free, and where all are taken is its guest (RMEM_GUEST).
///
/// Thread safety: functions. Errors: `rmem::Error`: no_such_ring where there is no such unit, and
///   what opening a node throws.
/// Trust: a file is read that this user, or root, has made.

#include "rmem/base/descriptor.hpp"
#include "rmem/rmem.h"

#include <atomic>
#include <climits>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace cards {

using Settings = std::vector<std::pair<std::string, std::string>>;

/// Where the file of a unit is.
[[nodiscard]] std::string unit_file(unsigned unit);

/// The unit's file, while its node runs; removed at the end.
class PublishedUnit {
public:
    /// Throws rank_taken where a live process has published it.
    PublishedUnit(unsigned unit, const Settings& settings);
    ~PublishedUnit();
    PublishedUnit(const PublishedUnit&) = delete;
    PublishedUnit& operator=(const PublishedUnit&) = delete;

private:
    std::string file_;
    rmem::Descriptor fd_;
};

struct CloseNode {
    void operator()(rmem_node* node) const noexcept { rmem_close(node); }
};
using OwnNode = std::unique_ptr<rmem_node, CloseNode>;

/// The unit's node, opened. Null, with the code of rmem_open_with and its sentence
/// in rmem_last_error(), on failure; RMEM_ESYS where there is no such unit.
[[nodiscard]] OwnNode open_unit(unsigned unit, int& code) noexcept;

/// A setting that is a list: the program's own, and those of the nodes that are units.
[[nodiscard]] std::string setting_of_units(const char* name);

/// How many units there are from 0 on; what cannot be looked up is none.
[[nodiscard]] unsigned count_units() noexcept;

/// Says on stderr what rmem_last_error() says, since programs tell a code alone, and that does not
/// say what to start. Of units that are not there one alone: a tool may look for all.
inline void tell_why_not_opened(const char* library, unsigned unit, int code) noexcept {
    static std::atomic<unsigned> absent{UINT_MAX};
    unsigned first = UINT_MAX;
    // relaxed is enough: told twice is told
    if (code == RMEM_ESYS &&
        !absent.compare_exchange_strong(first, unit, std::memory_order_relaxed) && first != unit)
        return;
    static_cast<void>(std::fprintf(stderr, "%s: %s\n", library, rmem_last_error()));
}

}  // namespace cards
