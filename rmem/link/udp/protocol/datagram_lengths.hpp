// SPDX-License-Identifier: Apache-2.0
#pragma once

/// How long datagrams are: as long as reach all receivers (docs/design/udp-link.md: Length), and
/// of which their hosts have room for some.
///
///     lengths.hear(header, bytes.size());  // of a datagram that counts
///     lengths.find();                      // receivers or the window have changed
///
/// Invariant: longest() lies between kLeastPayload and what reaches this node.
/// Threads: one user at a time. Progress: no call waits. Trust: what others name is bounded.

#include "rmem/base/check.hpp"
#include "rmem/link/udp/protocol/exchange_own.hpp"
#include "rmem/link/udp/protocol/out_stream.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace rmem::udp {

/// Of the longest datagrams the window has at least as many: what is begun, what comes, and what is
/// under way meanwhile.
inline constexpr std::size_t kLeastWindow = 8;

class DatagramLengths {
public:
    /// The own stream, which outlives it, tells receivers and window.
    DatagramLengths(const ExchangeConfig& config, const OutStream& out)
        : own_(config.payload),
          sure_(std::min(config.payload, config.sure)),
          out_(out),
          reach_(config.nodes, kDefaultPayload),
          reached_by_(sure_),
          longest_(config.payload) {}

    /// Of the longest datagram that is sent now.
    std::size_t longest() const noexcept { return longest_; }
    /// Of the longest that reaches this node.
    std::size_t own() const noexcept { return own_; }
    /// The longest datagram that has come, or is believed to.
    std::size_t reached_by() const noexcept { return reached_by_; }
    /// Of the longest datagram that reaches the node.
    std::size_t reaches(unsigned node) const noexcept { return reach_[node]; }
    /// A receiver may not know yet that as long ones reach it as this node.
    bool is_unsure() const noexcept {
        bool all_know = !out_.receivers().empty();
        out_.receivers().for_each(
            [&](unsigned node) { all_know = all_know && reach_[node] >= own_; });
        return !all_know && sure_ < own_;
    }

    /// The origin says what has reached it, and shows what reaches this node.
    void hear(const Header& header, std::size_t bytes) noexcept {
        reached_by_ = std::max(reached_by_, std::min(bytes, own_));
        const auto reaches = std::clamp<std::size_t>(header.payload, kLeastPayload, kMaxPayload);
        if (std::exchange(reach_[header.origin], reaches) != reaches) find();
    }
    /// What reaches all receivers, and of which the window has some.
    void find() noexcept {
        longest_ = own_;
        out_.receivers().for_each(
            [&](unsigned node) { longest_ = std::min(longest_, reach_[node]); });
        while (kLeastWindow * bytes_charged(longest_) > out_.window() && longest_ > kLeastPayload) {
            longest_ = std::max(longest_ / 2 / kWordBytes * kWordBytes, kLeastPayload);
        }
        RMEM_CHECK(kLeastPayload <= longest_ && longest_ <= own_);
    }

private:
    const std::size_t own_, sure_;
    const OutStream& out_;
    std::vector<std::size_t> reach_;
    std::size_t reached_by_;
    std::size_t longest_;
};

}  // namespace rmem::udp
