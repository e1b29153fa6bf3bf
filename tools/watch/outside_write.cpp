// SPDX-License-Identifier: Apache-2.0
#include "tools/watch/outside_write.hpp"

#include "rmem/base/check.hpp"
#include "rmem/base/limits.hpp"
#include "rmem/base/word_block.hpp"
#include "rmem/link/write_bytes.hpp"
#include "rmem/node.hpp"
#include "tools/output.hpp"

#include <fmt/format.h>

#include <atomic>
#include <cstring>

namespace tools {

namespace {

constexpr std::int64_t kTravelNs = 10'000'000'000;  // the slowest profile needs microseconds

using Bytes = std::vector<std::byte>;

/// Stores as the card would.
void store(std::byte* bank, std::uint64_t offset, const Bytes& bytes) {
    struct {
        std::byte* bank;
        void write(std::size_t at, const void* from, std::size_t count) const {
            rmem::store_block(bank + at, from, count);
        }
        void write_part(std::size_t at, std::uint32_t value, rmem::WordPart part) const {
            rmem::store_part(bank + at, value, part);
        }
    } card{bank};
    rmem::write_bytes(card, offset, bytes.data(), bytes.size());
}

bool is_users(const rmem::RingConfig& config, std::uint64_t offset, std::size_t bytes) {
    return offset <= config.user_bytes && bytes <= config.user_bytes - offset;
}

std::optional<unsigned> live_node(const rmem::Ring& ring) {
    for (unsigned rank = 0; rank < ring.seats(); ++rank) {
        // relaxed is enough: a node that has just changed is as good
        if (ring.is_alive(rank)) return ring.rank(rank).node.load(std::memory_order_relaxed);
    }
    return std::nullopt;
}

/// Returns when every live node has it.
void write_as_guest(const std::shared_ptr<rmem::Ring>& ring, unsigned node, std::uint64_t offset,
                    const Bytes& bytes) {
    rmem::Node guest(ring, {rmem::Member::kGuest, node});
    const rmem::Deadline deadline = rmem::Deadline::in(kTravelNs);
    write_with_patience(guest, offset, bytes);
    if (guest.flush(deadline)) return;
    throw rmem::Error(
        rmem::Errc::timed_out,
        fmt::format("not every live node of ring '{}' applied the write within {}; "
                    "`rmem info {}` shows who is stopped",
                    ring->config().name, duration_text(kTravelNs), ring->config().name));
}

}  // namespace

void write_with_patience(rmem::Node& node, std::uint64_t offset, std::span<const std::byte> bytes,
                         rmem::WordPart part) {
    std::uint32_t value = 0;
    if (part != rmem::kWholeWord) std::memcpy(&value, bytes.data(), sizeof value);
    const rmem::Deadline deadline = rmem::Deadline::in(kTravelNs);
    for (;;) {
        switch (part == rmem::kWholeWord ? node.write(offset, bytes.data(), bytes.size())
                                         : node.write_part(offset, value, part)) {
            case rmem::WriteResult::ok: return;
            case rmem::WriteResult::again: break;
            case rmem::WriteResult::dropped:
                throw rmem::Error(rmem::Errc::timed_out,
                                  fmt::format("node {} was dropped by the others of ring '{}', so "
                                              "the write went nowhere; join it again",
                                              node.id(), node.config().name));
        }
        if (deadline.passed(rmem::now_ns())) {
            throw rmem::Error(
                rmem::Errc::timed_out,
                fmt::format("ring '{}' took no write for {}: the outbound queue of rank {} stays "
                            "full; is a member stopped?",
                            node.config().name, duration_text(kTravelNs), node.rank()));
        }
        node.poll();
    }
}

void store_in_all_banks(const rmem::Ring& ring, std::uint64_t offset, const Bytes& bytes) {
    RMEM_CHECK(is_users(ring.config(), offset, bytes.size()));
    for (unsigned bank = 0; bank < ring.config().banks(); ++bank) {
        store(ring.bank(bank), offset, bytes);
    }
}

unsigned write_from_outside(const std::shared_ptr<rmem::Ring>& ring, std::optional<unsigned> node,
                            std::uint64_t offset, const Bytes& bytes) {
    const rmem::RingConfig& config = ring->config();
    RMEM_CHECK(is_users(config, offset, bytes.size()));
    if (config.is_remote()) {
        write_as_guest(ring, ring->own_node(), offset, bytes);
        return ring->own_node();
    }
    const auto live = live_node(*ring);
    const unsigned writer = node.value_or(live.value_or(0));
    if (config.link == rmem::LinkKind::direct || live) {
        write_as_guest(ring, writer, offset, bytes);
    } else {
        store_in_all_banks(*ring, offset, bytes);
    }
    return writer;
}

}  // namespace tools
