// SPDX-License-Identifier: Apache-2.0
#pragma once

/// MPI's promises, kept the plain way: all messages and all receives of all ranks in lists.
///
/// The ranks tell it each call to their devices before it is made, and its result; their transports
/// tell it which packets come (simulator/mpi_hunt/tap.hpp). So the model knows which receive each
/// message belongs to before the device does, and complains
///   * of a packet that is not its sender's next message,
///   * of a completion that is not the expected one: another message, place, length, word or byte,
///   * of a request that completes twice, after its end, or with an error although nobody has died,
///   * of bytes that changed outside of the received ones, or after the end,
///   * at the end, of requests of the living that never completed, and of messages to the living
///     that nobody received.
///
/// A message's bytes follow from its sender and number. Requests stay where they are: their
/// addresses are the devices' contexts.
/// Thread safety: none; programs of one world.

#include "mpi_channel/device/device.hpp"
#include "simulator/hunt/findings.hpp"
#include "simulator/mpi_hunt/coverage.hpp"
#include "simulator/mpi_hunt/scenario.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <list>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace simulator::mpi {

using mpi_channel::Completion;
using mpi_channel::Placement;
using mpi_channel::Source;
using mpi_channel::Wanted;

struct Sent {
    unsigned from = 0, to = 0;
    std::uint32_t number = 0;  ///< among those of `from`
    bool untagged = false;
    std::uint64_t tag = 0;
    std::optional<std::uint32_t> data;
    std::size_t size = 0;
    bool silent = false;
    bool after_match = false;
    bool copy = false;
    std::vector<std::byte> bytes;

    bool is_rendezvous = false;  ///< it asked
    bool arrived = false;        ///< its packet has
    bool is_whole = false;       ///< and all of it, if its bytes followed at once
    bool taken = false;          ///< by a receive, or discarded
    unsigned ended = 0;
};

/// A message on its way into a receive.
struct Take {
    Sent* sent = nullptr;
    Placement placement;
    bool told = false;
};

struct Waiting {
    unsigned at = 0;
    Wanted wanted;
    bool untagged = false;
    std::size_t least = 0;
    std::vector<std::byte> buffer;

    std::size_t used = 0;
    std::vector<Take> takes;
    bool posted = false;
    bool cancelled = false;  ///< or its sources are gone: it takes no more
    bool hopeless = false;   ///< this is why
    unsigned ended = 0;
    std::uint64_t sum = 0;  ///< of its bytes, when it ended
};

class Model {
public:
    static constexpr unsigned kRanks = Scenario::kRanks;

    explicit Model(Findings& findings) : findings_(findings) {}

    // ---- Deaths
    void dies(unsigned rank) { alive_.at(rank) = false; }
    bool is_alive(unsigned rank) const { return alive_.at(rank); }
    unsigned alive() const;
    /// The device at `at` has given up `from`.
    void loses(unsigned at, unsigned from);
    bool has_lost(unsigned at, unsigned from) const { return lost_.at(at).at(from); }

    // ---- Requests, before the device is told
    /// The rest of the order is the caller's to set; its bytes are made here.
    Sent& sends(unsigned from, unsigned to, std::size_t size);
    /// Not posted, yet: posts() or claims().
    Waiting& receives(unsigned at, std::size_t capacity);
    void posts(Waiting& waiting);
    /// False: it is over, or is not posted.
    bool cancels(Waiting& waiting);
    /// The message that a receive would get.
    Sent* peeks(unsigned at, const Wanted& wanted, bool untagged);
    void claims(Sent& sent);
    void receives_claimed(Sent& sent, Waiting& waiting);
    void discards(Sent& sent);

    // ---- What comes
    void arrives(unsigned at, unsigned from, const mpi_channel::Packet& packet);
    /// The number of bytes that a packet announced.
    void comes(unsigned at, unsigned from, std::size_t bytes);
    void completed(unsigned at, const Completion& completion);

    // ---- The end
    std::uint64_t sent() const { return count_; }
    const std::list<Sent*>& unexpected(unsigned at) const { return unexpected_.at(at); }
    const std::list<Waiting*>& posted(unsigned at) const { return posted_.at(at); }
    /// All that must come has come, and has been told.
    bool is_settled() const;
    /// Complains of requests that are missing, or have changed since their end.
    void check_end();

    void complain(unsigned rank, const std::string& sentence);

private:
    /// The consequences of a packet of one rank to another.
    struct Bulk {
        Sent* of = nullptr;
        std::size_t left = 0;
    };

    template <class T>
    using OfPair = std::array<std::array<T, kRanks>, kRanks>;

    static bool fits(const Waiting& waiting, const Sent& sent);
    void take(Waiting& waiting, Sent& sent);
    void check_memory(unsigned at, unsigned from);
    void sent_completed(unsigned at, const Completion& completion);
    void received(unsigned at, const Completion& completion);
    void note_last(Waiting& waiting, const Completion& completion);
    void check_content(Waiting& waiting, const Take& take, const Completion& completion);
    std::string missing_of(const Sent& sent) const;
    std::string missing_of(const Waiting& waiting) const;

    Findings& findings_;
    std::array<bool, kRanks> alive_{true, true, true, true};
    OfPair<bool> lost_{};
    std::deque<Sent> all_sent_;
    std::deque<Waiting> all_waiting_;
    std::array<std::uint32_t, kRanks> numbers_{};
    OfPair<std::deque<Sent*>> to_come_;  ///< by sender, then receiver
    OfPair<Bulk> bulk_;                  ///< by receiver, then sender
    std::array<std::list<Sent*>, kRanks> unexpected_;
    std::array<std::list<Waiting*>, kRanks> posted_;
    std::uint64_t count_ = 0;
};

}  // namespace simulator::mpi
