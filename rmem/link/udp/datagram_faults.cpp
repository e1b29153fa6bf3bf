// SPDX-License-Identifier: Apache-2.0
#include "rmem/link/udp/datagram_faults.hpp"

#include "rmem/base/check.hpp"
#include "rmem/base/random.hpp"
#include "rmem/link/udp/protocol/format.hpp"

#include <algorithm>
#include <numeric>

namespace rmem::udp {

namespace {

constexpr std::uint32_t kNobody = UINT32_MAX;
/// Keeps their draws apart from those that decide on the writes of the rank of the node's number.
constexpr std::uint64_t kOfDatagrams = 0x736d'6172'6761'7461;

/// The sender that its header names; kNobody if it has no header of this link, or names no node.
std::uint32_t origin_of(std::span<const std::byte> datagram) noexcept {
    if (datagram.size() < kHeaderBytes || load<std::uint32_t>(datagram.data()) != kMagic) {
        return kNobody;
    }
    const std::uint32_t origin = Header::read(datagram.data()).origin;
    return origin < kMaxNodes ? origin : kNobody;
}

/// A later time, also when the sum would be beyond the last one.
constexpr std::int64_t later(std::int64_t time, std::int64_t by) noexcept {
    return by > kNever - time ? kNever : time + by;
}

}  // namespace

std::uint64_t DatagramFaults::Counts::injected() const noexcept {
    return std::accumulate(hits.begin(), hits.end(), std::uint64_t{0});
}

DatagramFaults::DatagramFaults(const FaultPlan& plan, std::uint32_t node, std::int64_t start_ns)
    : node_(node),
      start_ns_(start_ns),
      random_((plan.seed ^ kOfDatagrams) + (std::uint64_t{node} << 32U)) {
    for (const DatagramFault& fault : plan.datagrams) {
        if (fault.to.contains(node)) {
            faults_.push_back({fault, FaultChooser(fault)});
        }
    }
}

bool DatagramFaults::pass(std::span<std::byte> datagram, std::int64_t now) {
    if (faults_.empty() || datagram.empty() || origin_of(datagram) == node_) return true;
    const Verdict verdict = judge(datagram, now);
    if (verdict.lost) return false;
    if (verdict.corrupt) {
        const std::uint64_t bit = next_random(random_) % (datagram.size() * 8);
        datagram[bit / 8] ^= static_cast<std::byte>(1U << bit % 8);
    }
    const std::int64_t due = later(now, verdict.held_ns);
    if (verdict.held_ns != 0) hold(datagram, due);
    for (const std::int64_t after : copies_) hold(datagram, later(due, after));
    return verdict.held_ns == 0;
}

bool DatagramFaults::concerns(const DatagramFault& fault, std::uint32_t origin,
                              std::int64_t now) const noexcept {
    const std::int64_t age = now - start_ns_;
    if (age < fault.at_ns || age >= fault.until_ns) return false;
    return origin == kNobody ? fault.from.size() == kMaxNodes : fault.from.contains(origin);
}

DatagramFaults::Verdict DatagramFaults::judge(std::span<const std::byte> datagram,
                                              std::int64_t now) {
    Verdict verdict;
    copies_.clear();
    const std::uint32_t origin = origin_of(datagram);
    for (Active& active : faults_) {
        const DatagramFault& fault = active.fault;
        if (!concerns(fault, origin, now) || !active.chooser.hits(random_)) continue;
        ++counts_.hits[static_cast<std::size_t>(fault.kind)];
        switch (fault.kind) {
            case DatagramFault::Kind::drop:
            case DatagramFault::Kind::part: verdict.lost = true; break;
            case DatagramFault::Kind::corrupt: verdict.corrupt = true; break;
            case DatagramFault::Kind::hold:
                verdict.held_ns = later(verdict.held_ns, fault.by_ns);
                break;
            case DatagramFault::Kind::duplicate: copies_.push_back(fault.by_ns); break;
            case DatagramFault::Kind::kCount: break;
        }
    }
    return verdict;
}

void DatagramFaults::hold(std::span<const std::byte> datagram, std::int64_t due) {
    if (held_.size() == kMaxHeld) {
        ++counts_.overflowed;
        return;
    }
    held_.try_emplace({due, arrivals_++}, datagram.begin(), datagram.end());
    RMEM_CHECK(held_.size() <= kMaxHeld);
}

std::span<const std::byte> DatagramFaults::next(std::int64_t now) {
    if (due_ns() > now) return {};
    given_ = std::move(held_.extract(held_.begin()).mapped());
    return given_;
}

std::int64_t DatagramFaults::due_ns() const noexcept {
    return held_.empty() ? kNever : held_.begin()->first.first;
}

}  // namespace rmem::udp
