// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The messages sent between ranks, and those received: checks the promises of the billboard.
///
///   * a message received is one that was sent to this rank, intact, and the next one of its
///     sender: those passed over were not sent after all, or were for a former incarnation of the
///     receiver
///   * a message whose sending failed is not received
///   * at the end, all messages between two incarnations that both lasted have been received, and
///     those of a dead process, too (unless the link had reported a loss, which is then counted as
///     forgiven)
///   * BBP_EPEER comes only for a rank that has died
///
/// A message's bytes follow from (sender, its incarnation, number), so that no header is needed: a
/// message of no bytes is one, too.
/// Thread safety: none; programs of one world.

#include "simulator/bbp_hunt/coverage.hpp"
#include "simulator/bbp_hunt/link_checker.hpp"
#include "simulator/bbp_hunt/scenario.hpp"
#include "simulator/hunt/findings.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace simulator::bbp {

class Ledger {
public:
    Ledger(const Scenario& scenario, Findings& findings, LinkChecker& link);

    // ---- Incarnations
    /// The rank's next incarnation begins.
    void starts(unsigned rank);
    void dies(unsigned rank, bool with_node);
    /// It left in good order; nobody need receive anything of it any more, but may.
    bool is_alive(unsigned rank) const { return ranks_[rank].alive; }
    unsigned incarnation(unsigned rank) const { return ranks_[rank].incarnation; }

    /// A call of `rank` begins.
    void calls(unsigned rank);

    // ---- Sending
    static void fill(std::span<std::byte> bytes, unsigned rank, unsigned incarnation,
                     std::uint64_t number);
    /// The next message of `rank`, about to be posted; `number` makes its bytes.
    std::uint64_t next_number(unsigned rank) { return ++ranks_[rank].numbers; }
    void begins(unsigned rank, std::span<const int> dests, std::uint64_t number, std::size_t bytes);
    /// The call's result for it.
    void ends(unsigned rank, std::span<const int> dests, std::uint64_t number, int code);

    // ---- Receiving
    /// `by_name`: it had asked for messages of that sender only.
    void receives(unsigned rank, unsigned from, bool by_name, std::span<const std::byte> bytes);
    /// A call of `rank` said BBP_EPEER about `peer`.
    void is_told(unsigned rank, unsigned peer);
    /// A multicast of `rank` said so, of one or more of these.
    void is_told_of_some(unsigned rank, std::span<const int> dests);
    /// Something else that no call should say.
    void complain_of(unsigned rank, std::string sentence);
    bool any_losses() const;
    bool any_deaths() const;

    std::uint64_t posted() const { return posted_; }
    /// Nothing is missing that must still come.
    bool is_settled() const;
    /// Says what is.
    void check_settled();

private:
    enum class Status : std::uint8_t {
        open,      ///< the call has not returned
        sent,      ///< must be received
        not_sent,  ///< must not
        perhaps    ///< may
    };
    struct Entry {
        std::uint64_t number;
        std::size_t bytes;
        unsigned incarnation;     ///< of the sender
        unsigned to_incarnation;  ///< of the receiver
        Status status;
        bool received;
    };
    /// From one rank to another.
    struct Pair {
        std::vector<Entry> entries;
        std::size_t next = 0;  ///< all before it are received or passed over
        unsigned told = 0;     ///< deaths of the receiver that the sender knows of
        unsigned met = 0;      ///< the receiver's last incarnation that the sender has heard of
        unsigned deaths_before = 0;  ///< of the receiver, when the sender's call began
        bool unsure = false;         ///< whether it knows of all of them
    };
    struct RankState {
        bool alive = false;
        unsigned incarnation = 0;
        unsigned deaths = 0;
        std::uint64_t numbers = 0;
        std::vector<bool> node_died;  ///< by incarnation: its card failed with it
    };

    Pair& pair(unsigned from, unsigned to) { return pairs_[from * Scenario::kRanks + to]; }
    const Pair& pair(unsigned from, unsigned to) const {
        return pairs_[from * Scenario::kRanks + to];
    }
    bool matches(const Entry& entry, unsigned from, std::span<const std::byte> bytes) const;
    void note_received(std::size_t place, unsigned from, unsigned rank, bool by_name);
    bool may_be_missing(const Entry& entry, unsigned from, unsigned to) const;
    bool has_losses(unsigned from, unsigned to) const;
    void complain(unsigned from, unsigned to, std::string sentence);

    Findings& findings_;
    LinkChecker& link_;
    std::vector<RankState> ranks_;
    std::vector<Pair> pairs_;
    std::uint64_t posted_ = 0;
};

}  // namespace simulator::bbp
