// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A set of a ring's nodes, a bit each: a view. On the wire 32 bytes, node 0 the lowest bit of the
/// first.

#include "rmem/base/limits.hpp"
#include "rmem/base/little_endian.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace rmem::udp {

class NodeSet {
public:
    static constexpr std::size_t kBytes = kMaxNodes / 8;

    /// `node` is below kMaxNodes in all of these.
    bool contains(unsigned node) const noexcept {
        return (parts_[node / 64] >> node % 64 & 1U) != 0;
    }
    void insert(unsigned node) noexcept { parts_[node / 64] |= std::uint64_t{1} << node % 64; }
    void erase(unsigned node) noexcept { parts_[node / 64] &= ~(std::uint64_t{1} << node % 64); }

    unsigned size() const noexcept {
        int count = 0;
        for (const std::uint64_t part : parts_) count += std::popcount(part);
        return static_cast<unsigned>(count);
    }
    bool empty() const noexcept { return *this == NodeSet{}; }
    /// kMaxNodes, after all of them, when it is empty.
    unsigned lowest() const noexcept {
        unsigned first = kMaxNodes;
        for_each([&](unsigned node) { first = std::min(first, node); });
        return first;
    }

    /// Calls visit(node) for each, the lowest first.
    template <class Visit>
    void for_each(Visit visit) const {
        for (unsigned i = 0; i < parts_.size(); ++i) {
            for (std::uint64_t left = parts_[i]; left != 0; left &= left - 1) {
                visit(i * 64 + static_cast<unsigned>(std::countr_zero(left)));
            }
        }
    }

    friend bool operator==(const NodeSet& a, const NodeSet& b) noexcept {  // no call of memcmp
        std::uint64_t differ = 0;
        for (std::size_t i = 0; i < a.parts_.size(); ++i) differ |= a.parts_[i] ^ b.parts_[i];
        return differ == 0;
    }

    static NodeSet read(const std::byte* from) noexcept {
        NodeSet set;
        for (std::size_t i = 0; i < set.parts_.size(); ++i) {
            set.parts_[i] = load<std::uint64_t>(from + 8 * i);
        }
        return set;
    }
    void write(std::byte* to) const noexcept {
        for (std::size_t i = 0; i < parts_.size(); ++i) store(to + 8 * i, parts_[i]);
    }

private:
    std::array<std::uint64_t, kMaxNodes / 64> parts_{};
};

}  // namespace rmem::udp
