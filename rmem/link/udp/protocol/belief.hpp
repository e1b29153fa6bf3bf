// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Whose datagrams count: tags, replays, greetings (docs/design/udp-link.md: Greeting), who has
/// this node's number, and since when each node is silent.
///
///     Belief::Fresh fresh;
///     Standing standing = belief.standing_of(datagram, fresh);           // its tag and number
///     if (standing == Standing::stranger) belief.meet(header, sections, fresh, now);
///     if (belief.owes_greetings(now)) belief.add_greetings(writer, flags, now);
///
/// Invariants
///   An incarnation becomes believed only by an answer of now to what this node has asked it, and
///   not while another process's is believed and speaks. Of one that is believed no datagram counts
///   twice, nor one that it sent before the answer. A node believes no incarnation of itself.
/// Threads, progress, trust, units: those of rmem/link/udp/protocol/exchange.hpp.

#include "rmem/link/udp/protocol/authenticator.hpp"
#include "rmem/link/udp/protocol/exchange_own.hpp"
#include "rmem/link/udp/protocol/greeter.hpp"
#include "rmem/link/udp/protocol/replay_window.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace rmem::udp {

/// Time that the believed incarnation of a node has to be silent before another process's can take
/// its place.
inline constexpr std::int64_t kNamesakeNs = 150'000'000;

class RMEM_API Belief {
public:
    enum class Standing : std::uint8_t { refused, stranger, believed };
    using Fresh = std::optional<IncarnationKey>;  ///< of an incarnation whose key is not kept

    /// Both outlive it.
    Belief(ExchangeOwn& own, const Authenticator& authenticator);

    // ---- What comes
    /// Tag, then replays: a number from a sender without the key must not move the window.
    [[nodiscard]] Standing standing_of(const Datagram& datagram, Fresh& fresh);
    /// A stranger's. True if it is believed from now on.
    [[nodiscard]] bool meet(const Header& header, const Sections& sections, const Fresh& fresh,
                            std::int64_t now);
    /// Of an incarnation that is believed.
    void take_greeting(const Header& header, const Greeting& greeting, std::int64_t now) {
        take_greeting(header, greeting, nullptr, now);
    }
    /// A datagram of this node: its own, which came back where groups are shared, or another
    /// process's.
    void meet_namesake(const Datagram& datagram, std::int64_t now);
    void note_refusal(Refusal refusal, std::span<const std::byte> bytes);

    // ---- Greetings
    /// It is asked to prove itself, if it is there.
    void greet(unsigned node, std::int64_t now) { greeter_.owe(node, 0, now); }
    /// Asks the process that has this node's number, if there is one.
    void greet_namesakes(std::int64_t now) { namesakes_.owe(own_.config.node, 0, now); }
    std::int64_t due_ns() const noexcept {
        return std::min(greeter_.due_ns(), namesakes_.due_ns());
    }
    bool owes_greetings(std::int64_t now) const noexcept { return now >= greeter_.due_ns(); }
    bool owes_namesakes(std::int64_t now) const noexcept { return now >= namesakes_.due_ns(); }
    /// Adds the greetings that are owed. `flags`: Greeting's.
    void add_greetings(DatagramWriter& writer, std::uint16_t flags, std::int64_t now) {
        greeter_.add_to(
            writer, flags, [this](unsigned node) { return believed(node); }, now);
    }
    void add_to_namesakes(DatagramWriter& writer, std::uint16_t flags, std::int64_t now) {
        namesakes_.add_to(
            writer, flags, [](unsigned) { return 0; }, now);
    }

    // ---- Belief
    /// The incarnation of the node that is believed; 0: none.
    std::uint64_t believed(unsigned node) const noexcept {
        return nodes_[node].is_believed ? nodes_[node].id->incarnation : 0;
    }
    /// That incarnation has to prove itself again.
    void doubt(unsigned node, std::uint64_t incarnation) noexcept;
    /// The same for nodes that were silent since then.
    void doubt_silent_since(std::int64_t then) noexcept;

    // ---- Silence
    /// When the member was heard last.
    std::int64_t heard_ns(unsigned node) const noexcept { return nodes_[node].heard_ns; }
    void note_heard(unsigned node, bool is_member, std::int64_t now) noexcept {
        (is_member ? nodes_[node].heard_ns : nodes_[node].spoke_ns) = now;
    }
    /// This node did not run for `away_ns`, and heard nobody: that is not held against the others.
    void excuse(std::int64_t away_ns, std::int64_t now) noexcept;

private:
    friend struct PlantedBug;  ///< a test's, which a check finds

    struct Node {
        std::int64_t silent_since() const noexcept { return std::max(heard_ns, spoke_ns); }

        bool is_believed = false;         ///< `id` is
        std::optional<IncarnationId> id;  ///< that was believed last; the key is that incarnation's
        std::optional<IncarnationKey> key;
        ReplayWindow replays;
        std::int64_t heard_ns = 0;
        std::int64_t spoke_ns = 0;  ///< of an incarnation that is believed and no member: when last
    };

    [[nodiscard]] bool is_tagged(const Datagram& datagram, const IncarnationKey& key);
    /// By its incarnation's key, which is not kept.
    [[nodiscard]] bool has_key(const Datagram& datagram);
    bool take_greeting(const Header& header, const Greeting& greeting, const IncarnationKey* key,
                       std::int64_t now);
    void believe(const Header& header, const IncarnationKey& key, std::int64_t now);

    ExchangeOwn& own_;
    const Authenticator& authenticator_;
    std::vector<Node> nodes_;
    Greeter greeter_, namesakes_;
};

}  // namespace rmem::udp
