// SPDX-License-Identifier: Apache-2.0
#include "cards/scgt/device.hpp"

#include "cards/scgt/results.hpp"

#include <fmt/format.h>

#include <cstring>
#include <iterator>
#include <string>
#include <vector>

namespace cards::scgt {

namespace {

/// The vendor's names, of those that are counted here; the node's own counters come behind them.
constexpr const char* kOwnNames[] = {"nStats",  "namesLen", "intr",        "tc0Intr",
                                     "tc1Intr", "netIntr",  "linkErrIntr", "getIntrWaitCount"};

const std::vector<std::string>& names() {
    static const auto all = [] {
        std::vector<std::string> list(std::begin(kOwnNames), std::end(kOwnNames));
        for (unsigned i = 0; rmem_counter_name(i) != nullptr; ++i)
            list.emplace_back(rmem_counter_name(i));
        return list;
    }();
    return all;
}

std::string joined(uint32 first, uint32 count) {
    const auto begin = names().begin() + first;
    return fmt::format("{}", fmt::join(begin, begin + count, ","));
}

}  // namespace

uint32 Device::statistic(uint32 index) const {
    // relaxed is enough, here and below: numbers, which nothing else hangs on
    const uint32 from_ring = interrupts_from_ring_.load(std::memory_order_relaxed);
    const uint32 of_errors = interrupts_of_errors_.load(std::memory_order_relaxed);
    switch (index) {
        case 0: return static_cast<uint32>(names().size());
        case 1: return static_cast<uint32>(joined(0, statistic(0)).size() + 1);
        case 2: return from_ring + of_errors;
        case 3: return dma_writes_.load(std::memory_order_relaxed);
        case 4: return dma_reads_.load(std::memory_order_relaxed);
        case 5: return from_ring;
        case 6: return link_errors_.load(std::memory_order_relaxed);
        case 7: return interrupts_.waiting();
        default: return static_cast<uint32>(node_.count_of(names()[index].c_str()));
    }
}

uint32 Device::get_statistics(uint32* values, char* text, uint32 first, uint32 count) {
    const auto all = static_cast<uint32>(names().size());
    if (first > all || count > all - first) {
        return refuse(SCGT_BAD_PARAMETER,
                      fmt::format("{} statistics from {} on are more than the {} that there are",
                                  count, first, all));
    }
    const auto lock = node_.lock();
    for (uint32 i = 0; values != nullptr && i < count; ++i) values[i] = statistic(first + i);
    if (text == nullptr) return SCGT_SUCCESS;
    const std::string list = joined(first, count);
    std::memcpy(text, list.c_str(), list.size() + 1);
    return SCGT_SUCCESS;
}

}  // namespace cards::scgt
