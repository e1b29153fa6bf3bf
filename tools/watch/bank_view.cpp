// SPDX-License-Identifier: Apache-2.0
#include "tools/watch/bank_view.hpp"

#include "rmem/base/clock.hpp"
#include "rmem/ring/applied.hpp"
#include "rmem/ring/segment.hpp"
#include "tools/output.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <thread>

namespace tools {

namespace {

[[noreturn]] void refuse_other_host(const std::string& ring, unsigned node,
                                    const std::string& here) {
    throw rmem::Error(
        rmem::Errc::bad_rank,
        fmt::format("node {} of ring '{}' has its bank on another host; here is {}: look "
                    "there, or at this one",
                    node, ring, here));
}

}  // namespace

std::string named_segment(const std::string& ring, std::optional<unsigned> node) {
    if (!node) return ring;
    const std::string wanted = fmt::format("{}@{}", ring, *node);
    std::vector<std::string> here;
    for (const std::string& found : rmem::Segment::list()) {
        if (found == ring) return ring;
        if (found == wanted) return wanted;
        if (found.substr(0, found.rfind('@')) == ring) here.push_back(found);
    }
    if (!here.empty()) refuse_other_host(ring, *node, fmt::format("{}", fmt::join(here, ", ")));
    return ring;
}

unsigned chosen_node(const rmem::Ring& ring, std::optional<unsigned> node) {
    const bool is_remote = ring.config().is_remote();
    if (!node) return is_remote ? ring.own_node() : 0;
    check_node(ring.config(), *node);
    if (is_remote && *node != ring.own_node()) {
        refuse_other_host(ring.config().name, *node, ring.segment_name());
    }
    return *node;
}

BankView::BankView(const std::string& ring, std::optional<unsigned> node)
    : ring_(rmem::Ring::observe(named_segment(ring, node))), node_(chosen_node(*ring_, node)) {}

void BankView::check(std::uint64_t offset, std::uint64_t bytes, bool system) const {
    const std::uint64_t whole = bank_bytes();
    const bool is_within = offset <= whole && bytes <= whole - offset;
    if (is_within && system) return;
    check_user_range(ring_->config(), offset, bytes,
                     is_within ? "; the memory above belongs to its protocols: look there with "
                                 "--system"
                               : "");
}

bool BankView::lacks_writes() const {
    const rmem::RingConfig& config = ring_->config();
    if (config.is_remote()) return !ring_->has_engine();
    if (config.link != rmem::LinkKind::ring) return false;
    std::vector<std::uint64_t> ends;
    for (unsigned r = 0; r < ring_->seats(); ++r) {
        // (2) - this acquire-load synchronizes-with the release-store rmem/ring/write_log.hpp (2)
        ends.push_back(ring_->log(r).header().head.load(std::memory_order_acquire));
    }
    const auto lacks = [&] {
        unsigned writer = 0;
        return std::any_of(ends.begin(), ends.end(), [&](std::uint64_t end) {
            return rmem::applied_of(*ring_, node_, writer++) < end;
        });
    };
    const auto given_up = rmem::Deadline::in(kLackNs);
    while (lacks()) {
        if (!ring_->has_members() || given_up.passed(rmem::now_ns())) return true;
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return false;
}

void BankView::warn_if_old() const {
    if (!lacks_writes()) return;
    fmt::print(stderr, "rmem: node {} of ring '{}' lacks what was written last: {}\n", node_,
               ring_->config().name,
               ring_->is_present(node_) && (!ring_->config().is_remote() || ring_->has_engine())
                   ? "its programs are stopped, perhaps"
                   : "nobody keeps it, and this is what it had when the last left; "
                     "`rmem node` keeps one, and a program that comes has all");
}

std::vector<std::byte> BankView::read(std::uint64_t offset, std::uint64_t bytes) const {
    check(offset, bytes, true);
    std::vector<std::byte> result(bytes);
    std::byte* bank = ring_->bank(node_);
    std::uint64_t done = 0;
    while (done < bytes) {
        const std::uint64_t at = offset + done;
        const std::uint64_t word_at = at / rmem::kWordBytes * rmem::kWordBytes;
        // A word is the unit of atomicity, so no value of a live program shows half.
        auto& word = *reinterpret_cast<std::uint32_t*>(bank + word_at);
        // (1) - this acquire-load synchronizes-with the release-store rmem/base/word_block.hpp (1)
        const std::uint32_t value = std::atomic_ref(word).load(std::memory_order_acquire);
        const std::uint64_t skip = at - word_at;
        const std::uint64_t part = std::min(rmem::kWordBytes - skip, bytes - done);
        std::memcpy(result.data() + done, reinterpret_cast<const std::byte*>(&value) + skip, part);
        done += part;
    }
    return result;
}

void check_user_range(const rmem::RingConfig& config, std::uint64_t offset, std::uint64_t bytes,
                      const std::string& more) {
    if (offset <= config.user_bytes && bytes <= config.user_bytes - offset) return;
    throw rmem::Error(rmem::Errc::invalid_argument,
                      fmt::format("{}{} outside the user's memory of ring '{}', which ends at {}{}",
                                  bytes == 0 ? "" : fmt::format("{} bytes at ", bytes),
                                  offset_text(offset) + (bytes == 0 ? " is" : " are"), config.name,
                                  offset_text(config.user_bytes), more));
}

bool may_change(const rmem::Ring& ring) {
    return ring.has_members() || (ring.stays() && ring.is_linked());
}

void check_node(const rmem::RingConfig& config, unsigned node) {
    if (node < config.nodes) return;
    throw rmem::Error(rmem::Errc::bad_rank,
                      fmt::format("ring '{}' has no node {} (--node): its nodes are 0 to {}",
                                  config.name, node, config.nodes - 1));
}

}  // namespace tools
