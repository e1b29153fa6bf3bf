// SPDX-License-Identifier: Apache-2.0
#include "rmem/base/check.hpp"

#include <cstdio>
#include <cstdlib>

namespace rmem {

namespace checks {
std::atomic<bool> are_on{false};
}

void check_from_now_on() noexcept {
    checks::are_on.store(true, std::memory_order_relaxed);  // enough: as in is_checking()
}

void invariant_is_broken(const char* condition, const char* file, int line) noexcept {
    std::fprintf(stderr,
                 "rmem: broken invariant: %s (%s:%d); this is a fault of rmem, please report it\n",
                 condition, file, line);
    std::abort();
}

}  // namespace rmem
