// SPDX-License-Identifier: Apache-2.0
#include "rmem/sim/event.hpp"

#include <fmt/format.h>

#include <array>

namespace rmem::sim {

namespace {

constexpr std::array<const char*, 18> kNames = {
    "stored",  "sent",  "arrived", "returned", "lost",      "stray",  "repeated", "late", "delayed",
    "started", "ended", "killed",  "stopped",  "continued", "failed", "joined",   "cut",  "mended"};

bool is_of_a_write(EventKind kind) {
    return kind <= EventKind::delayed;
}

std::uint64_t mixed(std::uint64_t hash, std::uint64_t value) {
    hash = golden_mix(hash, value);
    return hash ^ (hash >> 29);
}

}  // namespace

const char* name_of(EventKind kind) noexcept {
    return kNames.at(static_cast<std::size_t>(kind));
}

void TraceHash::on_event(const Event& e) {
    hash_ = mixed(hash_, static_cast<std::uint64_t>(e.time_ns));
    hash_ = mixed(hash_, std::uint64_t{e.node} << 48 | std::uint64_t{e.origin} << 32 |
                             static_cast<std::uint64_t>(e.kind));
    hash_ = mixed(hash_, std::uint64_t{e.rank} << 32 | e.bytes);
    hash_ = mixed(hash_, e.offset << 32 ^ e.value);
    hash_ = mixed(hash_, e.number);
}

std::string trace_header() {
    return "#    time_us event      node rank origin       write    offset  bytes    value\n";
}

std::string trace_line(const Event& e) {
    const std::string who = e.rank == kNoRank ? "-" : fmt::format("{}", e.rank);
    std::string line = fmt::format("{:8}.{:03} {:9} {:5} {:>4}", e.time_ns / 1000, e.time_ns % 1000,
                                   name_of(e.kind), e.node, who);
    if (is_of_a_write(e.kind)) {
        line += fmt::format(" {:6} {:11} {:#09x} {:6} {:#010x}", e.origin, e.number, e.offset,
                            e.bytes, e.value);
    } else {
        line += fmt::format(" {:6} {:>11} {:>9} {:>6} {:10}", "-", "-", "-", "-", e.value);
    }
    return line + "\n";
}

}  // namespace rmem::sim
