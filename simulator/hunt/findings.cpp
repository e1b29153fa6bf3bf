// SPDX-License-Identifier: Apache-2.0
#include "simulator/hunt/findings.hpp"

namespace simulator {

namespace {

constexpr std::array<const char*, kSights> kNames = {
    "overtaken writes",      "FIFO full",           "sends that waited", "garbage collections",
    "messages in parts",     "multicasts",          "bound broken",      "BBP_EPEER",
    "drained from the dead", "forgiven for a loss", "barriers",          "numbers wrapped",
    "epochs wrapped"};

}  // namespace

const char* name_of(Sight sight) noexcept {
    return kNames.at(static_cast<std::size_t>(sight));
}

Findings& Findings::operator+=(const Findings& other) {
    for (const std::string& sentence : other.violations) violate(sentence);
    for (std::size_t i = 0; i < kFaultKinds; ++i) faults[i] += other.faults[i];
    for (std::size_t i = 0; i < kSights; ++i) sights[i] += other.sights[i];
    messages += other.messages;
    injected += other.injected;
    events += other.events;
    hash = (hash ^ other.hash) * 0x9e3779b97f4a7c15;
    return *this;
}

}  // namespace simulator
