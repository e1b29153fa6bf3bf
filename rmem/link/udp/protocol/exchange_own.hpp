// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What all parts of an exchange use: what it is, what happened, and its edge.
///
/// The configuration and the edge stay as they were given; each count only grows.
/// Thread safety: one thread at a time, that of the exchange (rmem/link/udp/protocol/exchange.hpp).

#include "rmem/link/udp/protocol/datagram.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace rmem::udp {

inline constexpr std::uint32_t kMaxWindow = 1024;  ///< batches; a power of two

struct ExchangeConfig {
    std::uint16_t node = 0;
    unsigned nodes = 1;
    std::uint64_t ring = 0;               ///< hash of name and configuration
    std::uint64_t incarnation = 1;        ///< its number
    std::uint64_t first_incarnation = 1;  ///< of this process: its incarnation
    std::uint64_t salt = 0;               ///< random, of this incarnation
    std::uint64_t seed = 1;               ///< random, of this incarnation
    std::uint64_t bank_bytes = 0;
    std::size_t payload = kDefaultPayload;    ///< of the longest datagram that reaches this node
    std::size_t sure = kDefaultPayload;       ///< the same before one as long has come
    std::uint32_t most_batches = kMaxWindow;  ///< the largest window; a power of two
    bool is_reliable = false;                 ///< what carries datagrams retransmits by itself
    /// Of each incarnation's stream, the same at all nodes: tests begin where the 32 bits that
    /// datagrams carry wrap.
    std::uint64_t first_sequence = 1;
    /// By then a survivor has said what it has of a node that is dead here; in twice that what they
    /// have is left as it is.
    std::int64_t hear_ns = 200'000'000;
};

/// What happened, each a count.
struct ExchangeCounters {
    std::uint64_t datagrams_sent = 0, datagrams_taken = 0;
    std::uint64_t batches_sent = 0, batches_applied = 0;
    std::uint64_t retransmissions_sent = 0;  ///< because of a NAK
    std::uint64_t probes_sent = 0;           ///< because no node answered
    std::uint64_t naks_sent = 0;             ///< ranges that this node lacked
    std::uint64_t repeated = 0;              ///< batches that came again
    std::uint64_t acks_alone = 0;            ///< datagrams with nothing but acknowledgements
    std::array<std::uint64_t, kRefusals> refused{};  ///< as datagram.hpp says why
    std::uint64_t unsigned_ = 0, signed_ = 0, wrong_tag = 0, replayed = 0;
    std::uint64_t forwarded = 0;  ///< batches of dead nodes, to nodes that lacked them
    std::uint64_t no_member = 0;  ///< of a node or an incarnation that is no member here
    std::uint64_t strangers = 0;  ///< datagrams of incarnations that are not believed
    std::uint64_t greetings_sent = 0;
    std::uint64_t outside = 0;  ///< batches beyond the bank, the window or the size

    friend ExchangeCounters operator+(ExchangeCounters sum, const ExchangeCounters& b) noexcept {
        using C = ExchangeCounters;
        for (std::uint64_t C::*count :
             {&C::datagrams_sent, &C::datagrams_taken, &C::batches_sent, &C::batches_applied,
              &C::retransmissions_sent, &C::probes_sent, &C::naks_sent, &C::repeated,
              &C::acks_alone, &C::unsigned_, &C::signed_, &C::wrong_tag, &C::replayed,
              &C::forwarded, &C::no_member, &C::strangers, &C::greetings_sent, &C::outside}) {
            sum.*count += b.*count;
        }
        for (std::size_t i = 0; i < kRefusals; ++i) sum.refused[i] += b.refused[i];
        return sum;
    }
};

/// What is refused, and is worth telling people.
enum class Odd : std::uint8_t {
    wrong_key,      ///< a tag by another key
    no_tag,         ///< no tag, and a key is set here
    not_expected,   ///< a tag, and no key is set here
    other_version,  ///< of this link
    /// Another ring's, or one with other settings; with its text about them, if it has one.
    other_ring,
    namesake,  ///< another process speaks as this node, and is of now
    count_
};

class ExchangeEdge {
public:
    ExchangeEdge() = default;
    virtual ~ExchangeEdge() = default;
    ExchangeEdge(const ExchangeEdge&) = delete;
    ExchangeEdge& operator=(const ExchangeEdge&) = delete;

    /// The next batch of a member; all of it lies inside the bank.
    virtual void apply(unsigned origin, const Batch& batch, std::int64_t now) = 0;
    /// Number of batches of the node that the bank is behind what apply() was given. None when its
    /// incarnation is over.
    virtual std::uint64_t behind(unsigned) const { return 0; }
    /// A section that is not the exchange's, of a node whose datagram is authentic, member or not.
    virtual void on_section(const Header& header, const Section& section, std::int64_t now) = 0;
    /// A member that is believed says: another incarnation has this node's number. 0: the
    /// datagram's origin itself has it.
    virtual void on_taken(const Header&, const Greeting&, std::int64_t) {}
    /// The datagram that is read now is odd. `text` is a stranger's.
    virtual void on_odd(Odd, const Header&, std::string_view) {}
};

/// A part has a reference to it.
struct ExchangeOwn {
    bool is_me(const NodeIncarnation& named) const noexcept {
        return named == NodeIncarnation::of(config.node, config.incarnation);
    }

    const ExchangeConfig config;
    ExchangeEdge& edge;
    ExchangeCounters counters;
};

}  // namespace rmem::udp
