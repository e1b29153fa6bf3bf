// SPDX-License-Identifier: Apache-2.0
#include "tools/measure/memory.hpp"

#include "tools/measure/memory_case.hpp"

#include <algorithm>

namespace bench {

namespace {

struct Quantity {
    const char* name;
    void (*measure)(const GroupOptions&, const MemoryPlan&, Results&);
};

constexpr Quantity kQuantities[] = {
    {"store", measure_store},     {"hop", measure_hop},       {"interrupt", measure_interrupt},
    {"message", measure_message}, {"rhythm", measure_rhythm}, {"words", measure_words},
    {"blocks", measure_blocks},   {"reads", measure_reads},   {"flush", measure_flush},
    {"frame", measure_frame},     {"idle", measure_idle},
};

}  // namespace

void measure_memory(const GroupOptions& options, const MemoryPlan& plan, Results& results) {
    const auto& wanted = plan.quantities;
    for (const Quantity& quantity : kQuantities) {
        if (wanted.empty() ||
            std::find(wanted.begin(), wanted.end(), quantity.name) != wanted.end())
            quantity.measure(options, plan, results);
    }
}

}  // namespace bench
