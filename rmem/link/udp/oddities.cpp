// SPDX-License-Identifier: Apache-2.0
#include "rmem/link/udp/oddities.hpp"

#include "rmem/ring/notice.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace rmem::udp {

namespace {

/// Of "ring 'wk': 2 nodes, …".
std::string_view name_in(std::string_view about) {
    return about.substr(0, about.find(':'));
}

/// The next of the settings after the name, "RMEM_SIZE 1M"; empty after the last.
std::string_view next_setting(std::string_view& about) {
    about.remove_prefix(std::min(about.size(), about.find_first_of(":;")));
    about.remove_prefix(std::min(about.size(), about.find_first_not_of(":; ")));
    return about.substr(0, about.find(';'));
}

/// "RMEM_SIZE is 1M there and 2M here", of all settings that differ.
std::string differences(std::string_view there, std::string_view here) {
    std::string all;
    for (;;) {
        const std::string_view a = next_setting(there), b = next_setting(here);
        if (a.empty() && b.empty()) return all;
        if (a == b) continue;
        const auto value = [](std::string_view text) {
            return text.substr(std::min(text.size(), text.find(' ') + 1));
        };
        all += fmt::format("{}{} is {} there and {} here", all.empty() ? "" : ", ",
                           b.substr(0, b.find(' ')), value(a), value(b));
    }
}

}  // namespace

Oddities::Oddities(std::string ring, unsigned node, std::string about)
    : ring_(std::move(ring)), node_(node), about_(std::move(about)) {}

void Oddities::note(Odd odd, unsigned origin, Ip from, std::string_view text, std::int64_t now) {
    Heard& heard = heard_.at(static_cast<std::size_t>(odd));
    const bool is_first = heard.at_ns < 0 || now - heard.at_ns > kRecentNs;
    // Of another ring most datagrams say nothing more: what one said is not forgotten for them.
    if (is_first || !text.empty()) heard.text = printable(text);
    if (odd == Odd::namesake) ++namesakes_;
    heard.at_ns = newest_ns_ = now;
    heard.origin = origin;
    if (from != 0) heard.from = from;
}

std::string Oddities::sentence(Odd odd, const Heard& heard) const {
    const std::string who = heard.from != 0 ? to_text(heard.from) : "a host";
    switch (odd) {
        case Odd::namesake:
            if (heard.origin != node_) {
                return fmt::format(
                    "node {} at {} says that node {} of ring '{}' is another process already; give "
                    "this one its own number (RMEM_NODE, --node)",
                    heard.origin, who, node_, ring_);
            }
            return fmt::format(
                "node {} of ring '{}' is at {} already; give this one its own number "
                "(RMEM_NODE, --node)",
                node_, ring_, who);
        case Odd::wrong_key:
            return fmt::format(
                "{} speaks with another key as node {}; give all hosts the same "
                "RMEM_KEY_FILE",
                who, heard.origin);
        case Odd::no_tag:
            return fmt::format(
                "{} speaks without a key as node {}, and this node has one; set "
                "RMEM_KEY_FILE there",
                who, heard.origin);
        case Odd::not_expected:
            return fmt::format(
                "{} speaks with a key as node {}, and this node has none; set "
                "RMEM_KEY_FILE here",
                who, heard.origin);
        case Odd::other_version:
            return fmt::format("{} speaks another version of this link; install one on all hosts",
                               who);
        case Odd::other_ring: break;
        case Odd::count_: return "";
    }
    if (heard.text.empty()) {
        return fmt::format("{} speaks in another ring, or in this one with other settings", who);
    }
    if (name_in(heard.text) != name_in(about_)) {
        return fmt::format("{} speaks in another ring ({}), this is {}", who, heard.text, about_);
    }
    return fmt::format("{} has other settings of ring '{}': {}; give all hosts the same", who,
                       ring_, differences(heard.text, about_));
}

std::string Oddities::text(std::int64_t now) const {
    constexpr std::array<Odd, static_cast<std::size_t>(Odd::count_)> kWeightiestFirst = {
        Odd::namesake,     Odd::wrong_key,     Odd::no_tag,
        Odd::not_expected, Odd::other_version, Odd::other_ring};
    std::string all;
    for (const Odd odd : kWeightiestFirst) {
        const Heard& heard = heard_.at(static_cast<std::size_t>(odd));
        if (heard.at_ns < 0 || now - heard.at_ns > kRecentNs) continue;
        all += (all.empty() ? "" : "; ") + sentence(odd, heard);
    }
    return all;
}

}  // namespace rmem::udp
