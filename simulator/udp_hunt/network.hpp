// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A simulated datagram network: each node's datagrams go to every other node, each copy over a
/// link of its own with its own weather.
///
///     network.post(from, datagram, now);
///     while (auto arrival = network.take(now)) deliver(arrival->to, arrival->bytes);
///
/// The fates of a copy are those of rmem::DatagramFault, at random: dropped, held (and so overtaken
/// by later ones), duplicated, corrupted, which its end that is missing counts as, too. A link is
/// cut as often as cut() was called and not mend(); one that is clogged lets nothing through until
/// a time, and then all at once, in order.
///
/// A fabric neither doubles nor damages nor overtakes: where a datagram network loses one, a
/// connection of it breaks, with all that is under way on it, and nothing gets through for
/// kBrokenNs.
///
/// Thread safety: none. Equal seeds and calls give equal arrivals. Units: nanoseconds of virtual
/// time; chances in thousandths.

#include "rmem/base/check.hpp"
#include "rmem/base/random.hpp"
#include "rmem/base/time.hpp"
#include "rmem/wire/faults.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

namespace simulator {

struct Weather {
    using Fault = rmem::DatagramFault::Kind;

    /// Per thousand datagrams. All are held, by a random time up to jitter_ns.
    std::array<unsigned, rmem::kDatagramFaultKinds> chances{};
    std::int64_t delay_ns = 5'000;
    std::int64_t jitter_ns = 0;
    std::int64_t late_ns = 0;  ///< of what comes twice, until the second time, at most

    unsigned& of(Fault fault) { return chances[static_cast<std::size_t>(fault)]; }
};

class Network {
public:
    enum class Kind : std::uint8_t { datagrams, fabric };
    static constexpr std::int64_t kBrokenNs = 2'000'000;

    struct Counts {
        std::uint64_t posted = 0;  ///< copies, one for each other node
        std::uint64_t lost = 0, doubled = 0, corrupted = 0, cut = 0, clogged = 0;
        std::uint64_t overtaken = 0;  ///< came after one that was sent later
    };
    struct Arrival {
        unsigned from = 0, to = 0;
        std::uint64_t number = 0;  ///< of the datagram, in the order of posting
        std::vector<std::byte> bytes;
        bool corrupted = false;
    };

    Network(unsigned nodes, std::uint64_t seed, const Weather& weather,
            Kind kind = Kind::datagrams);

    unsigned nodes() const noexcept { return nodes_; }
    /// Of the link between two nodes, in that direction.
    Weather& weather(unsigned from, unsigned to) { return link(from, to).weather; }
    void set_weather(const Weather& weather);

    void cut(unsigned from, unsigned to) { ++link(from, to).cuts; }
    void mend(unsigned from, unsigned to) {
        RMEM_CHECK(is_cut(from, to));
        --link(from, to).cuts;
    }
    bool is_cut(unsigned from, unsigned to) const { return links_[from * nodes_ + to].cuts > 0; }
    /// Nothing that is posted on this link comes before then.
    void clog(unsigned from, unsigned to, std::int64_t until_ns) {
        link(from, to).clogged_until_ns = until_ns;
    }
    /// All links are whole and have this weather; copies under way stay so.
    void calm(const Weather& weather);

    void post(unsigned from, std::span<const std::byte> datagram, std::int64_t now);
    /// When take() has something.
    std::int64_t due_ns() const noexcept {
        return under_way_.empty() ? rmem::kNever : under_way_.begin()->first;
    }
    std::optional<Arrival> take(std::int64_t now);

    const Counts& counts() const noexcept { return counts_; }

private:
    friend struct PlantedBug;  ///< a test's, which a check finds

    struct Link {
        Weather weather;
        int cuts = 0;
        std::int64_t clogged_until_ns = 0;
        std::int64_t broken_until_ns = 0;
        std::int64_t last_due_ns = 0;  ///< of what was sent on it
        std::uint64_t newest = 0;      ///< number of the latest that has come
    };

    Link& link(unsigned from, unsigned to) { return links_[from * nodes_ + to]; }
    bool meets(Link& on, Weather::Fault fault) {
        return random_.below(1000) < on.weather.of(fault);
    }
    void break_off(unsigned from, unsigned to, std::int64_t now);
    void send_copy(Link& on, Arrival copy, std::int64_t at);
    void damage(Arrival& copy);

    const unsigned nodes_;
    const Kind kind_;
    rmem::Random random_;
    std::vector<Link> links_;
    std::multimap<std::int64_t, Arrival> under_way_;  ///< equal times: in the order of posting
    std::uint64_t number_ = 0;
    Counts counts_;
};

}  // namespace simulator
