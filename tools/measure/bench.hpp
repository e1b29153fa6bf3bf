// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The figures of `rmem bench` that are many: as tables, as JSON, or as a page of Markdown.
/// Errors: `rmem::Error`; UsageError for sizes that are none. Thread safety: forks; before there
/// are threads.

#include "tools/json.hpp"
#include "tools/measure/memory.hpp"
#include "tools/measure/sizes.hpp"

#include <string>
#include <vector>

namespace tools {

/// "samples", "p50_ns", …
nlohmann::json percentiles_json(const std::vector<double>& values);

struct MemoryOptions {
    MemoryPlan plan;
    bool all_links = false;  ///< each link, and `ring` with several timing profiles
    bool page = false;       ///< as Markdown
};

/// What stores, words, blocks, interrupts and frames cost, a table for each link.
void bench_memory(const GroupOptions& group, const MemoryOptions& options, bool json);

struct SizesOptions {
    std::vector<std::string> sizes;    ///< empty: the usual ones
    std::vector<std::string> rhythms;  ///< empty: those of that many ranks
    std::size_t rounds = 0;
    bool page = false;  ///< as Markdown
};

/// Messages of every size in every rhythm.
void bench_sizes(const GroupOptions& group, const SizesOptions& options, bool json);

}  // namespace tools
