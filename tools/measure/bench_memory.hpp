// SPDX-License-Identifier: Apache-2.0
#pragma once

/// `rmem bench memory`: what stores, words, blocks, interrupts and frames cost, as a table for each
/// link, as JSON, or as a page.
/// Errors: `rmem::Error`. Thread safety: forks; before there are threads.

#include "tools/measure/memory.hpp"

namespace tools {

struct MemoryOptions {
    bench::MemoryPlan plan;
    bool all_links = false;  ///< each link, and `ring` with several timing profiles
    bool page = false;       ///< as Markdown
};

void bench_memory(const bench::GroupOptions& group, const MemoryOptions& options, bool json);

}  // namespace tools
