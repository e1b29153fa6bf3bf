// SPDX-License-Identifier: Apache-2.0
#include "simulator/udp_hunt/network.hpp"

#include <algorithm>
#include <utility>

namespace simulator {

Network::Network(unsigned nodes, std::uint64_t seed, const Weather& weather, Kind kind)
    : nodes_(nodes), kind_(kind), random_(seed), links_(std::size_t{nodes} * nodes) {
    set_weather(weather);
}

void Network::set_weather(const Weather& weather) {
    for (Link& link : links_) link.weather = weather;
}

void Network::calm(const Weather& weather) {
    for (Link& link : links_) {
        link.weather = weather;
        link.cuts = 0;
        link.clogged_until_ns = 0;
    }
}

void Network::post(unsigned from, std::span<const std::byte> datagram, std::int64_t now) {
    ++number_;
    for (unsigned to = 0; to < nodes_; ++to) {
        if (to == from) continue;
        ++counts_.posted;
        Link& on = link(from, to);
        if (on.cuts > 0) {
            ++counts_.cut;
            continue;
        }
        if (now < on.broken_until_ns || meets(on, Weather::Fault::drop)) {
            ++counts_.lost;
            if (kind_ == Kind::fabric && now >= on.broken_until_ns) break_off(from, to, now);
            continue;
        }
        Arrival copy{from, to, number_, {datagram.begin(), datagram.end()}, false};
        if (kind_ == Kind::datagrams && meets(on, Weather::Fault::duplicate)) {
            ++counts_.doubled;
            const std::int64_t late = random_.between(0, on.weather.late_ns);
            send_copy(on, copy, now + late);
        }
        send_copy(on, std::move(copy), now);
    }
}

void Network::send_copy(Link& on, Arrival copy, std::int64_t at) {
    const bool is_fabric = kind_ == Kind::fabric;
    if (!is_fabric && meets(on, Weather::Fault::corrupt)) damage(copy);
    std::int64_t due = at + on.weather.delay_ns + random_.between(0, on.weather.jitter_ns);
    if (due < on.clogged_until_ns) {
        ++counts_.clogged;
        due = on.clogged_until_ns;
    }
    if (is_fabric) due = std::max(due, on.last_due_ns);
    on.last_due_ns = due;
    under_way_.emplace(due, std::move(copy));
}

void Network::break_off(unsigned from, unsigned to, std::int64_t now) {
    link(from, to).broken_until_ns = now + kBrokenNs;
    counts_.lost += std::erase_if(under_way_, [&](const auto& entry) {
        return entry.second.from == from && entry.second.to == to;
    });
}

void Network::damage(Arrival& copy) {
    ++counts_.corrupted;
    copy.corrupted = true;
    const std::size_t at = random_.below(copy.bytes.size());
    if (random_.one_in(4)) {
        copy.bytes.resize(at);
    } else {
        copy.bytes[at] ^= std::byte{1} << random_.below(8);
    }
}

std::optional<Network::Arrival> Network::take(std::int64_t now) {
    if (due_ns() > now) return std::nullopt;
    Arrival arrival = std::move(under_way_.begin()->second);
    under_way_.erase(under_way_.begin());
    Link& on = link(arrival.from, arrival.to);
    RMEM_CHECK(kind_ == Kind::datagrams || arrival.number > on.newest);
    if (arrival.number < on.newest) ++counts_.overtaken;
    on.newest = std::max(on.newest, arrival.number);
    return arrival;
}

}  // namespace simulator
