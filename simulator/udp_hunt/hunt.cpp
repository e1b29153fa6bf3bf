// SPDX-License-Identifier: Apache-2.0
#include "simulator/udp_hunt/hunt.hpp"

#include "rmem/base/random.hpp"
#include "simulator/udp_hunt/trials.hpp"
#include "simulator/udp_hunt/world.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

namespace simulator::udp {

namespace {

constexpr unsigned kMaxDatagramsASecond = 200;  // of a node when all is quiet

/// A scenario on its way.
class Run {
public:
    Run(const Scenario& scenario, const HuntOptions& options)
        : scenario_(scenario),
          faults_(scenario.due_faults()),
          world_(scenario, options, findings_),
          random_(scenario.seed * 7919),
          trial_(options.trial.value_or(kTrials[scenario.seed % std::size(kTrials)])) {}

    Findings to_end() {
        start_first();
        for (posted_ = 1; posted_ <= scenario_.messages; ++posted_) {
            inject_due();
            step();
        }
        end_faults();
        settle();
        if (findings_.violations.empty()) {
            Trials(scenario_, world_, findings_, [this](unsigned n) {
                write_something(n);
            }).run(trial_);
        }
        world_.collect_coverage();
        return std::move(findings_);
    }

private:
    // Traffic
    void start_first();
    void step();
    void write_something(unsigned node);
    bool write_part(unsigned node, std::size_t words);
    void flood(unsigned node);

    // Faults
    void inject_due();
    void inject(const Fault& fault);
    void change_weather(const Fault& fault);
    void cut(const Fault& fault);
    void end_node(const Fault& fault);

    // The end
    void end_faults();
    void settle();
    bool run_until_whole();
    void check_aftermath();

    bool is_up(unsigned node) { return world_.host(node).is_up(); }

    const Scenario& scenario_;
    const std::vector<Fault> faults_;
    Findings findings_;
    World world_;
    rmem::Random random_;
    const FaultKind trial_;
    unsigned posted_ = 0;
    std::size_t next_fault_ = 0;
    bool has_stopped_ = false;  ///< a node
};

// ---- Traffic

/// All but those that a fault will start.
void Run::start_first() {
    std::vector<bool> is_late(scenario_.nodes);
    for (const Fault& fault : scenario_.faults) {
        if (fault.kind == FaultKind::late) is_late[fault.target] = true;
    }
    for (unsigned n = 0; n < scenario_.nodes; ++n) {
        if (!is_late[n]) world_.start(n);
    }
    // Most seeds begin with a ring that is there.
    if (scenario_.seed % 4 != 0) world_.run_for(500 * kMillisecond);
}

void Run::step() {
    const auto node = static_cast<unsigned>(random_.below(scenario_.nodes));
    write_something(node);
    if (!random_.one_in(8)) world_.run_for(random_.between(0, scenario_.pause_ns));
}

void Run::write_something(unsigned node) {
    Host& host = world_.host(node);
    if (!host.is_up() || host.is_stalled(world_.now()) || !host.core().is_member()) return;
    const std::size_t words = random_.one_in(16) ? random_.below(500) + 8 : random_.below(8) + 1;
    const std::uint64_t parts = random_.one_in(4) ? 3 : 1;
    const std::uint64_t before = host.core().exchange().out().newest();
    for (std::uint64_t i = 0; i < parts; ++i) {
        if (write_part(node, words)) continue;
        findings_.cover(CoverageMark::back_pressure);
        break;
    }
    host.commit(world_.now());
    const std::uint64_t after = host.core().exchange().out().newest();
    world_.trace().note(world_.now(), node, "wrote", words, after);
    if (after > before + 1) findings_.cover(CoverageMark::in_parts);
    if (after >> 32 != before >> 32) findings_.cover(CoverageMark::wrapped);
}

/// Somewhere in the node's own share of the bank.
bool Run::write_part(unsigned node, std::size_t words) {
    Host& host = world_.host(node);
    if (!host.core().has_room(words)) return false;
    const std::size_t share = kBankWords / scenario_.nodes;
    const std::size_t first = node * share + random_.below(share - std::min(words, share - 1));
    words = std::min(words, share - 1);
    const std::uint64_t incarnation = host.core().incarnation();
    for (std::size_t i = 0; i < words; ++i) {
        host.words()[first + i] = world_.ledger().next_value(node, incarnation, first + i);
    }
    return host.write(first, words, world_.now());
}

void Run::flood(unsigned node) {
    for (unsigned i = 0; i < 2 * scenario_.most_batches; ++i) write_something(node);
}

// ---- Faults

void Run::inject_due() {
    while (next_fault_ < faults_.size() && posted_ >= faults_[next_fault_].at_message) {
        const Fault& fault = faults_[next_fault_++];
        world_.in_trouble = true;
        ++findings_.injected;
        world_.trace().note(world_.now(), fault.target, name_of(fault.kind), fault.other,
                            static_cast<std::uint64_t>(fault.time_ns));
        inject(fault);
    }
}

void Run::inject(const Fault& fault) {
    const unsigned node = fault.target;
    if (fault.kind < FaultKind::part) return change_weather(fault);
    switch (fault.kind) {
        case FaultKind::cut_one_way:
        case FaultKind::cut_off:
        case FaultKind::part: return cut(fault);
        case FaultKind::kill:
        case FaultKind::leave: return end_node(fault);
        default: break;
    }
    findings_.met(fault.kind);
    switch (fault.kind) {
        case FaultKind::clog:
            return world_.network().clog(node, fault.other, world_.now() + fault.time_ns);
        case FaultKind::late: return world_.start(node);
        case FaultKind::slow_reader: return world_.host(node).starve(world_.now() + fault.time_ns);
        case FaultKind::stall: return world_.host(node).stall(world_.now() + fault.time_ns);
        default: return flood(node);
    }
}

/// Of all that a node sends.
void Run::change_weather(const Fault& fault) {
    findings_.met(fault.kind);
    Weather weather = scenario_.weather;
    if (fault.kind == kind_of(Weather::Fault::hold)) {
        weather.jitter_ns = fault.time_ns / 16;
    } else {
        weather.of(static_cast<Weather::Fault>(fault.kind)) = fault.chance;
    }
    const auto set = [this, node = fault.target](const Weather& to) {
        for (unsigned n = 0; n < scenario_.nodes; ++n) world_.network().weather(node, n) = to;
    };
    set(weather);
    world_.at(world_.now() + fault.time_ns, [this, set] { set(scenario_.weather); });
}

void Run::cut(const Fault& fault) {
    std::vector<std::pair<unsigned, unsigned>> links;
    for (unsigned from = 0; from < scenario_.nodes; ++from) {
        for (unsigned to = 0; to < scenario_.nodes; ++to) {
            const bool apart = (fault.other >> from & 1U) != (fault.other >> to & 1U);
            const bool is_hit =
                fault.kind == FaultKind::cut_one_way ? from == fault.target && to == fault.other
                : fault.kind == FaultKind::cut_off ? (from == fault.target) != (to == fault.target)
                                                   : apart;
            if (from != to && is_hit) links.emplace_back(from, to);
        }
    }
    if (!links.empty()) findings_.met(fault.kind);
    for (const auto& [from, to] : links) world_.network().cut(from, to);
    world_.at(world_.now() + fault.time_ns, [this, links] {
        world_.trace().note(world_.now(), 0, "mended");
        for (const auto& [from, to] : links) world_.network().mend(from, to);
    });
}

void Run::end_node(const Fault& fault) {
    if (!is_up(fault.target)) return;
    findings_.met(fault.kind);
    has_stopped_ = true;
    if (fault.kind == FaultKind::leave && !world_.host(fault.target).is_stalled(world_.now())) {
        world_.host(fault.target).leave(world_.now());
    } else {
        world_.host(fault.target).stop(world_.now());
    }
    if (!fault.comes_back) return;
    world_.at(world_.now() + fault.time_ns / 2, [this, node = fault.target] {
        if (is_up(node)) return;
        findings_.met(FaultKind::restart);
        world_.start(node);
    });
}

// ---- The end

void Run::end_faults() {
    world_.hurry();
    world_.in_trouble = false;
    Weather calm;
    calm.delay_ns = scenario_.weather.delay_ns;
    calm.jitter_ns = scenario_.weather.jitter_ns;
    world_.network().calm(calm);
    for (unsigned n = 0; n < scenario_.nodes; ++n) {
        world_.host(n).wake();
        world_.start(n);
    }
    world_.trace().note(world_.now(), 0, "calm");
}

void Run::settle() {
    if (!run_until_whole()) {
        findings_.violate(fmt::format("{} s after the last fault the nodes are not in one ring:{}",
                                      kSettleNs / 1'000'000'000, world_.describe()));
        return;
    }
    world_.check_banks(!has_stopped_);
    check_aftermath();
    if (run_until_whole()) return world_.check_banks(!has_stopped_);
    findings_.violate("after one more message each, not all is acknowledged:" + world_.describe());
}

/// Each member can write; while none does, all are silent but for their heartbeats.
void Run::check_aftermath() {
    world_.run_for(2000 * kMillisecond);  // late duplicates are here
    const std::uint64_t posted = world_.network().counts().posted;
    world_.run_for(1000 * kMillisecond);
    const std::uint64_t most =
        std::uint64_t{kMaxDatagramsASecond} * scenario_.nodes * (scenario_.nodes - 1);
    if (world_.network().counts().posted - posted > most) {
        findings_.violate(fmt::format("{} datagrams in a second in which nothing was written",
                                      world_.network().counts().posted - posted));
    }
    for (unsigned n = 0; n < scenario_.nodes; ++n) {
        if (!world_.host(n).core().has_room(1)) {
            findings_.violate(fmt::format("node {} has no room to write, though all is quiet", n));
        }
        write_something(n);
    }
}

bool Run::run_until_whole() {
    for (const std::int64_t end = world_.now() + kSettleNs;
         world_.now() < end && findings_.violations.empty();) {
        if (world_.is_whole()) return true;
        world_.run_for(kMillisecond);
    }
    return world_.is_whole();
}

}  // namespace

Findings run_scenario(const Scenario& scenario, const HuntOptions& options) {
    Scenario on_link = scenario;
    on_link.is_fabric = options.is_fabric;
    return Run(on_link, options).to_end();
}

Subject subject(const HuntOptions& options) {
    return subject_of<Scenario, CoverageMark>("--link udp", "tests/simulator/udp_seeds.txt",
                                              options);
}

Subject fabric_subject(HuntOptions options) {
    options.is_fabric = true;
    Subject subject = subject_of<Scenario, CoverageMark>("--link fabric",
                                                         "tests/simulator/udp_seeds.txt", options);
    // What a fabric does not do.
    const auto leave_out = [](auto& kinds, auto kind) {
        std::erase_if(kinds,
                      [&](const auto& one) { return one.place == static_cast<std::size_t>(kind); });
    };
    leave_out(subject.kinds.faults, kind_of(Weather::Fault::duplicate));
    leave_out(subject.kinds.faults, kind_of(Weather::Fault::corrupt));
    for (const CoverageMark mark : {CoverageMark::overtaken, CoverageMark::socket_overflow,
                                    CoverageMark::refused, CoverageMark::replayed})
        leave_out(subject.kinds.coverage, mark);
    return subject;
}

}  // namespace simulator::udp
