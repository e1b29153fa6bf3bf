// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The messages that are in view: received without copying, until they are released.
///
/// A view is a buffer of its sender's, which is acknowledged when it is released; what has no
/// buffer of its own (it came in a slot, or was set aside) is kept here.
///
/// Invariant: the views of a rank are counted. While there are any, its next incarnation is not
/// confirmed (Peers), so that it does not write where they are read.
/// Thread safety: one thread. Look-ups scan: few messages are in view at a time.

#include "billboard/core/own_rank.hpp"
#include "rmem/base/check.hpp"

#include <algorithm>
#include <cstddef>
#include <vector>

namespace billboard {

template <class Own>
class Views {
public:
    explicit Views(Own& own) : own_(own), buffers_of_(own.ranks, 0) {}

    /// Whether data of s is in view.
    [[nodiscard]] bool has(unsigned s) const { return buffers_of_[s] != 0; }
    /// From now on s's buffer is in view, or these bytes: where they are.
    [[nodiscard]] const std::byte* add(unsigned s, unsigned buffer, const std::byte* data) {
        views_.push_back({data, s, buffer, {}});
        ++buffers_of_[s];
        return data;
    }
    [[nodiscard]] const std::byte* add(unsigned s, std::vector<std::byte> bytes) {
        if (bytes.empty()) bytes.resize(1);  // it needs an address of its own, too
        return views_.emplace_back(View{bytes.data(), s, kNone, std::move(bytes)}).data;
    }
    [[nodiscard]] int release(const void* data);

private:
    friend struct PlantedBug;  ///< a test's, which a check finds

    static constexpr unsigned kNone = kBuffers;
    struct View {
        const std::byte* data;
        unsigned source;
        unsigned buffer;  ///< kNone: `bytes` has them
        std::vector<std::byte> bytes;
    };

    Own& own_;
    std::vector<unsigned> buffers_of_;
    std::vector<View> views_;
};

template <class Own>
int Views<Own>::release(const void* data) {
    const auto it =
        std::find_if(views_.begin(), views_.end(), [&](const View& v) { return v.data == data; });
    if (it == views_.end()) {
        return fail(BBP_EINVAL,
                    "the address is not that of a message in view, or was released before; release "
                    "each view once");
    }
    const unsigned source = it->source, buffer = it->buffer;
    *it = std::move(views_.back());
    views_.pop_back();
    if (buffer == kNone) return BBP_OK;
    RMEM_CHECK_IF(Own::kIsSimulated, buffers_of_[source] != 0);
    --buffers_of_[source];
    // Last: a simulated process may be killed here, and its objects release what they have.
    own_.board.acknowledge(source, buffer);
    own_.commit_taken();
    return BBP_OK;
}

}  // namespace billboard
