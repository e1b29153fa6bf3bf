// SPDX-License-Identifier: Apache-2.0
#pragma once

/// `rmem bench sizes`: messages of every size in every rhythm as a table, as JSON, or as a page.
/// Errors: `rmem::Error`; UsageError for sizes and rhythms that are none. Thread safety: forks;
/// before there are threads.

#include "tools/measure/sizes.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace tools {

struct SizesOptions {
    std::vector<std::string> sizes;    ///< empty: the usual ones
    std::vector<std::string> rhythms;  ///< empty: those of that many ranks
    std::size_t rounds = 0;
    bool page = false;  ///< as Markdown
};

void bench_sizes(const bench::GroupOptions& group, const SizesOptions& options, bool json);

}  // namespace tools
