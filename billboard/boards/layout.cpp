// SPDX-License-Identifier: Apache-2.0
#include "billboard/boards/layout.hpp"

#include "rmem/base/hash.hpp"
#include "rmem/base/limits.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

namespace billboard {

using rmem::Errc;
using rmem::Error;
using rmem::kLineBytes;
using rmem::kPageBytes;
using rmem::round_up;

namespace {

constexpr std::uint32_t kLayoutVersion = 7;

std::size_t default_data_bytes(const rmem::RingConfig& config) {
    const auto share = [&config](std::size_t most, std::size_t total) {
        return std::min(most, total / config.ranks / kLineBytes * kLineBytes);
    };
    switch (config.link) {
        case rmem::LinkKind::direct: return share(kDefaultDataBytes, kDefaultDataTotal);
        case rmem::LinkKind::ring:
            return share(kDefaultDataBytesReplicated, kDefaultDataTotalOfBank);
        default: return kDefaultDataBytesReplicated;
    }
}

/// As few that those of all pairs together do not grow with the square of the ranks, if possible.
std::uint32_t lines_for(rmem::LinkKind link, unsigned ranks) {
    const std::uint32_t most = link == rmem::LinkKind::ring ? kMaxLinesOfRing : kMaxLines;
    return std::clamp(std::bit_floor(kLinesInAll / (ranks * ranks)), kFewestLines, most);
}

std::size_t checked_data_bytes(const rmem::RingConfig& config, std::size_t asked) {
    const std::size_t bytes = asked == 0 ? default_data_bytes(config) : asked;
    if (bytes % rmem::kWordBytes != 0 || bytes < kMinDataBytes || bytes > kMaxDataBytes) {
        throw Error(Errc::bad_size,
                    fmt::format("RMEM_PARTITION: a data partition of {} bytes is not valid; give a "
                                "multiple of {} from {} to {}",
                                bytes, rmem::kWordBytes, kMinDataBytes, kMaxDataBytes));
    }
    return bytes;
}

}  // namespace

const char* name_of(Layout layout) noexcept {
    switch (layout) {
        case Layout::paper: return "paper";
        case Layout::pieces: return "pieces";
        default: return "inline";
    }
}

Layout parse_layout(const std::string& text) {
    if (text == "inline") return Layout::lines;
    if (text == "paper") return Layout::paper;
    if (text == "pieces") return Layout::pieces;
    throw Error(Errc::bad_environment,
                fmt::format("RMEM_LAYOUT: there is no layout '{}'; give inline or paper", text));
}

Geometry::Geometry(const rmem::RingConfig& config, BoardConfig board)
    : layout_(board.layout),
      ranks_(config.ranks),
      base_(round_up(config.user_bytes, kPageBytes)),
      data_bytes_(checked_data_bytes(config, board.data_bytes)) {
    const bool paper = layout_ == Layout::paper;
    std::size_t next = 4 * kLine + kBarrierIds * 4;
    const auto take = [&next](std::size_t bytes) {
        const std::size_t at = next;
        next = round_up(next + bytes, kLine);
        return at;
    };
    descriptors_ = take(kBuffers * Descriptor::kStride);
    // As printed, flags are dense words; inline gives each answering rank a line of its own.
    ack_stride_ = paper ? 4 : kLine;
    ack_step_ = paper ? round_up(ranks_ * 4, kLine) : 4;
    acks_ = take(paper ? 3 * ack_step_ : ranks_ * kLine);
    if (paper) {
        messages_ = take(ranks_ * 4);
    } else {
        slots_ = take((ranks_ / 2 + 1) * kLine);
        lines_ = lines_for(config.link, ranks_);
        lines_at_ = take(std::size_t{ranks_} * lines_ * kLine);
        bells_ = take(ranks_ * 4);
        filled_ = take(kBuffers * kLine);
    }
    data_ = take(data_bytes_);
    partition_bytes_ = next;
    region_bytes_ = base_ - config.user_bytes + ranks_ * partition_bytes_;
}

std::optional<BoardConfig> board_of(const rmem::RingConfig& config) {
    for (const Layout layout : {Layout::lines, Layout::paper, Layout::pieces}) {
        // The part of the region above one with the smallest partitions is for their data.
        BoardConfig board{layout, kMinDataBytes};
        const std::size_t least = Geometry(config, board).region_bytes();
        if (config.system_bytes < least) continue;
        board.data_bytes += (config.system_bytes - least) / config.ranks;
        // A partition is rounded up to whole lines.
        for (std::size_t less = 0; less < kLineBytes; less += rmem::kWordBytes) {
            const BoardConfig tried{layout, board.data_bytes - less};
            if (tried.data_bytes < kMinDataBytes || tried.data_bytes > kMaxDataBytes) continue;
            const Geometry geometry(config, tried);
            if (geometry.hash() == config.system_hash &&
                geometry.region_bytes() == config.system_bytes) {
                return tried;
            }
        }
    }
    return std::nullopt;
}

std::uint64_t Geometry::hash() const noexcept {
    return rmem::Fnv1a()
        .add_word(kLayoutVersion)
        .add_word(static_cast<std::uint64_t>(layout_))
        .add_word(ranks_)
        .add_word(base_)
        .add_word(data_bytes_)
        .add_word(partition_bytes_)
        .add_word(lines_)
        .value();
}

}  // namespace billboard
