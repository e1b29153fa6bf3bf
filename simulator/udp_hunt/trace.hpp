// SPDX-License-Identifier: Apache-2.0
#pragma once

/// All that happens in a run of the hunt on the udp link, as lines and as a hash.
///
/// Thread safety: none. Cost: none of the lines when nobody takes them.

#include "rmem/base/hash.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>

namespace simulator::udp {

/// The columns of a line.
std::string trace_header();
/// A datagram's contents, in short.
std::string describe(std::span<const std::byte> datagram);

class Trace {
public:
    explicit Trace(std::function<void(const std::string&)> line) : line_(std::move(line)) {}

    /// `what` happened at the node; `other` and `detail` are numbers that go with it.
    void note(std::int64_t now, unsigned node, const char* what, std::uint64_t other = 0,
              std::uint64_t detail = 0);
    void note(std::int64_t now, unsigned node, const char* what, unsigned other,
              std::span<const std::byte> datagram);
    std::uint64_t hash() const noexcept { return hash_.value(); }
    std::uint64_t events() const noexcept { return events_; }

private:
    std::function<void(const std::string&)> line_;
    rmem::Fnv1a hash_;
    std::uint64_t events_ = 0;
};

}  // namespace simulator::udp
