// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What a node answers another that joins: that it takes its stream (an admit) or does not, and as
/// the donor who the members are (a welcome), and parts of the bank.
///
/// Where many join at a time the answers are held, and leave together.
/// Invariant: a node is owed no more than an admit and a welcome.
/// Threads, progress, trust, units: the core's (rmem/link/udp/protocol/core.hpp).

#include "rmem/link/udp/protocol/core_own.hpp"

#include <cstdint>
#include <vector>

namespace rmem::udp {

inline constexpr std::int64_t kAdmitNs = 1'000'000;  ///< between two datagrams with admits

class RMEM_API Answers {
public:
    explicit Answers(CoreOwn& own) : own_(own) {}

    /// The lowest member's bank is the one that stands where members differ.
    bool is_donor() const noexcept { return own_.is_member && own_.view.lowest() == own_.me(); }
    void owe_admit(unsigned node, std::uint64_t cookie, std::int64_t now);
    void owe_welcome(unsigned node, std::uint64_t cookie, std::int64_t now);
    /// That incarnation of the node is over here.
    void refuse(unsigned node, std::uint64_t cookie, std::int64_t now);
    void give_parts(const Header& header, const SnapshotRequest& request, std::int64_t now);

    /// While it is on, all that is owed waits for send().
    void hold(bool on) noexcept { holds_ = on; }
    bool holds() const noexcept { return holds_; }
    std::int64_t due_ns() const noexcept {
        if (!owed_welcomes_.empty()) return 0;
        return owed_admits_.empty() ? kNever : admit_next_ns_;
    }
    void send(std::int64_t now);
    /// Parts of the bank that were given to all may be given again.
    void end_turn() noexcept { given_.clear(); }
    /// The node is owed nothing any more; nor is any.
    void forget(unsigned node) {
        const auto is_its = [node](const Owed& owed) { return owed.node == node; };
        std::erase_if(owed_admits_, is_its);
        std::erase_if(owed_welcomes_, is_its);
    }
    void forget_all() noexcept {
        owed_admits_.clear();
        owed_welcomes_.clear();
    }

private:
    friend struct PlantedBug;  ///< a test's, which a check finds
    struct Owed {
        unsigned node = 0;
        std::uint64_t cookie = 0;
    };

    DatagramWriter& begin_greeting(std::int64_t now);
    void send_welcome(const Owed& owed, std::int64_t now);

    CoreOwn& own_;
    std::vector<Owed> owed_admits_, owed_welcomes_;
    std::vector<bool> given_;  ///< parts of the bank, to all, while answers are held
    bool holds_ = false;
    std::int64_t admit_next_ns_ = CoreOwn::kLongAgo;
};

}  // namespace rmem::udp
