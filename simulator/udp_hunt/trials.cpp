// SPDX-License-Identifier: Apache-2.0
#include "simulator/udp_hunt/trials.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <utility>

namespace simulator::udp {

namespace {

constexpr std::int64_t kAwayNs = 4 * Host::kSilenceNs;
constexpr std::int64_t kWholeNs = 3'000 * kMillisecond;
/// A node joins within that, whatever the others play: it may have to wait until a former
/// incarnation was silent for long enough.
constexpr std::int64_t kJoinedNs = 1'000 * kMillisecond;

}  // namespace

Trials::Trials(const Scenario& scenario, World& world, Findings& findings,
               std::function<void(unsigned node)> write)
    : scenario_(scenario),
      world_(world),
      findings_(findings),
      write_(std::move(write)),
      random_(scenario.seed * 104'729) {}

void Trials::run(FaultKind kind) {
    findings_.met(kind);
    world_.trace().note(world_.now(), 0, name_of(kind));
    switch (kind) {
        case FaultKind::pause: return pause();
        case FaultKind::apart: return apart();
        default: return replay();
    }
}

/// Each of the nodes writes now and then.
void Trials::write_for(std::int64_t span_ns, Nodes nodes) {
    for (const std::int64_t end = world_.now() + span_ns; world_.now() < end;) {
        const auto node = static_cast<unsigned>(random_.below(scenario_.nodes));
        if (has(nodes, node)) write_(node);
        world_.run_for(random_.between(kMillisecond, 5 * kMillisecond));
    }
}

bool Trials::run_until_whole(std::int64_t within_ns, const char* what) {
    for (const std::int64_t end = world_.now() + within_ns; world_.now() < end;) {
        if (world_.is_whole()) return true;
        world_.run_for(kMillisecond);
    }
    findings_.violate(fmt::format("{}: after {} ms the nodes are not in one ring:{}", what,
                                  within_ns / kMillisecond, world_.describe()));
    return false;
}

/// The one of all of them.
std::vector<std::uint32_t> Trials::bank_of(Nodes nodes) const {
    const auto words = world_.host(static_cast<unsigned>(std::countr_zero(nodes))).words();
    return {words.begin(), words.end()};
}

/// Whole again, none of these has been dropped, and all banks are what theirs was.
void Trials::expect_to_stand(Nodes nodes, const std::vector<std::uint32_t>& bank,
                             const char* what) {
    if (!run_until_whole(kWholeNs, what)) return;
    for (unsigned n = 0; n < scenario_.nodes; ++n) {
        if (has(nodes, n) && world_.drops(n) != drops_before_[n]) {
            findings_.violate(
                fmt::format("{}: node {} was dropped, but should have stayed", what, n));
        }
        if (!std::equal(bank.begin(), bank.end(), world_.host(n).words().begin())) {
            findings_.violate(fmt::format(
                "{}: node {} has another bank than those that should have stayed", what, n));
        }
    }
}

// ---- Away

void Trials::pause() {
    const auto node = static_cast<unsigned>(random_.below(scenario_.nodes));
    const Nodes others = all() & ~(1U << node);
    drops_before_ = world_.all_drops();
    world_.host(node).pause(world_.now(), kAwayNs, random_.one_in(2));
    write_for(kAwayNs - 100 * kMillisecond, others);
    world_.run_for(50 * kMillisecond);
    const auto bank = bank_of(others);
    world_.run_for(100 * kMillisecond);
    expect_to_stand(others, bank, "a node stopped");
}

// ---- Apart

void Trials::cut(Nodes some) {
    for (unsigned from = 0; from < scenario_.nodes; ++from) {
        for (unsigned to = 0; to < scenario_.nodes; ++to) {
            if (has(some, from) != has(some, to)) world_.network().cut(from, to);
        }
    }
}

/// One by one, in any order.
void Trials::mend(Nodes some) {
    std::vector<std::pair<unsigned, unsigned>> links;
    for (unsigned from = 0; from < scenario_.nodes; ++from) {
        for (unsigned to = 0; to < scenario_.nodes; ++to) {
            if (has(some, from) != has(some, to)) links.emplace_back(from, to);
        }
    }
    const bool at_once = random_.one_in(3);
    while (!links.empty()) {
        const auto at = static_cast<std::ptrdiff_t>(random_.below(links.size()));
        world_.network().mend(links[static_cast<std::size_t>(at)].first,
                              links[static_cast<std::size_t>(at)].second);
        links.erase(links.begin() + at);
        if (!at_once) world_.run_for(random_.between(0, 8 * kMillisecond));
    }
}

/// These nodes are started again, and hear no others.
void Trials::form_apart(Nodes nodes) {
    for (unsigned n = 0; n < scenario_.nodes; ++n) {
        if (has(nodes, n)) world_.host(n).stop(world_.now());
    }
    for (unsigned n = 0; n < scenario_.nodes; ++n) {
        if (has(nodes, n)) world_.start(n);
    }
    for (int i = 0; i < 500 && !world_.is_whole(nodes); ++i) world_.run_for(kMillisecond);
}

/// Of the two parts.
Trials::Nodes Trials::standing_of(Nodes some) const {
    const Nodes others = all() & ~some;
    const auto ring_of = [this](Nodes nodes) {
        return world_.host(static_cast<unsigned>(std::countr_zero(nodes)))
            .core()
            .ring_incarnation();
    };
    if (ring_of(some) != ring_of(others)) return ring_of(some) < ring_of(others) ? some : others;
    if (std::popcount(some) != std::popcount(others)) {
        return std::popcount(some) > std::popcount(others) ? some : others;
    }
    return std::countr_zero(some) < std::countr_zero(others) ? some : others;
}

void Trials::apart() {
    const auto some = static_cast<Nodes>(random_.below(all() - 1) + 1);
    drops_before_ = world_.all_drops();
    cut(some);
    if (random_.one_in(2)) form_apart(some);
    write_for(kAwayNs, all());
    world_.run_for(50 * kMillisecond);
    if (!world_.is_whole(some) || !world_.is_whole(all() & ~some)) {
        return findings_.violate("two parts of a ring are not whole:" + world_.describe());
    }
    drops_before_ = world_.all_drops();
    const Nodes standing = standing_of(some);
    const auto bank = bank_of(standing);
    mend(some);
    expect_to_stand(standing, bank, "of two rings");
}

// ---- Played again

/// All end, and these begin again.
void Trials::begin_session(Nodes nodes) {
    for (unsigned n = 0; n < scenario_.nodes; ++n) world_.host(n).stop(world_.now());
    world_.run_for(10 * kMillisecond);
    for (unsigned n = 0; n < scenario_.nodes; ++n) {
        if (has(nodes, n)) world_.start(n);
    }
    run_until_whole(kWholeNs, "a new session");
}

/// What was recorded in incarnations that are over comes again: some of it, in any order, or the
/// same few many times.
void Trials::play(std::int64_t span_ns) {
    const std::vector<Recorded>& all = world_.recorded();
    std::vector<const Recorded*> old;
    for (const Recorded& one : all) {
        if (!world_.is_of_now(one)) old.push_back(&one);
    }
    if (old.empty()) return;
    std::vector<const Recorded*> few;
    for (int i = 0; i < 3; ++i) few.push_back(old[random_.below(old.size())]);
    for (const std::int64_t end = world_.now() + span_ns; world_.now() < end;) {
        const auto& from = random_.one_in(2) ? old : few;
        for (std::uint64_t i = random_.below(4) + 1; i > 0; --i) {
            world_.play(*from[random_.below(from.size())]);
        }
        world_.run_for(random_.between(0, 3 * kMillisecond));
    }
}

void Trials::replay() {
    const auto absent = static_cast<unsigned>(random_.below(scenario_.nodes));
    const Nodes others = all() & ~(1U << absent);
    world_.is_recorded = false;
    begin_session(others);
    if (!findings_.violations.empty()) return;
    drops_before_ = world_.all_drops();
    const std::uint64_t left_before = world_.left();
    for (int i = 0; i < 20; ++i) {
        for (unsigned n = 0; n < scenario_.nodes; ++n) {
            if (has(others, n)) write_(n);
        }
        play(20 * kMillisecond);
    }
    for (unsigned n = 0; n < scenario_.nodes; ++n) {
        if (has(others, n) && world_.host(n).core().exchange().out().receivers().contains(absent)) {
            findings_.violate(
                fmt::format("node {} waits for node {}, which is not there", n, absent));
        }
    }
    if (world_.left() != left_before) findings_.violate("recorded datagrams changed a view");
    world_.start(absent);
    const std::int64_t end = world_.now() + kJoinedNs;
    while (!world_.host(absent).core().is_member() && world_.now() < end) play(5 * kMillisecond);
    if (!world_.host(absent).core().is_member()) {
        findings_.violate("recorded datagrams kept a node from joining:" + world_.describe());
    }
    play(100 * kMillisecond);
    expect_to_stand(others, bank_of(others), "recorded datagrams were played again");
}

}  // namespace simulator::udp
