// SPDX-License-Identifier: Apache-2.0
#include "rmem/ring/join_notice.hpp"

#include "rmem/base/program_host.hpp"
#include "rmem/base/time.hpp"

#include <fmt/format.h>
#include <unistd.h>

namespace rmem {

JoinNotice::JoinNotice(std::int64_t now_ns, int descriptor)
    : descriptor_(descriptor), due_ns_(now_ns + kAfterNs) {
    const bool is_read = program_host() == nullptr && ::isatty(descriptor_) == 1;
    if (!is_read) due_ns_ = kNever;
}

bool JoinNotice::is_due(std::int64_t now_ns) noexcept {
    if (now_ns < due_ns_) return false;
    due_ns_ = kNever;
    return true;
}

void JoinNotice::tell(unsigned rank, const std::string& ring,
                      const std::string& missing) const noexcept {
    try {
        const std::string line =
            fmt::format("rmem: rank {} of ring '{}' is waiting for {}\n", rank, ring, missing);
        // Without a reader nothing is written.
        [[maybe_unused]] const auto written = ::write(descriptor_, line.data(), line.size());
    } catch (...) {  // no memory for a line is no reason to fail
        return;
    }
}

}  // namespace rmem
