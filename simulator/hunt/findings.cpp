// SPDX-License-Identifier: Apache-2.0
#include "simulator/hunt/findings.hpp"

#include "rmem/base/hash.hpp"

#include <utility>

namespace simulator {

void Findings::violate(std::string sentence) {
    if (violations.size() < kMaxSentences) violations.push_back(std::move(sentence));
}

Findings& Findings::operator+=(const Findings& other) {
    for (const std::string& sentence : other.violations) violate(sentence);
    for (std::size_t i = 0; i < kMaxKinds; ++i) {
        faults[i] += other.faults[i];
        coverage[i] += other.coverage[i];
    }
    messages += other.messages;
    injected += other.injected;
    events += other.events;
    hash = rmem::golden_mix(hash, other.hash);
    return *this;
}

}  // namespace simulator
