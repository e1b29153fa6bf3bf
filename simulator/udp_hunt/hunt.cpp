// SPDX-License-Identifier: Apache-2.0
#include "simulator/udp_hunt/hunt.hpp"

#include "simulator/udp_hunt/host.hpp"
#include "simulator/udp_hunt/ledger.hpp"
#include "simulator/udp_hunt/trace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

namespace simulator::udp {

namespace {

constexpr std::int64_t kMillisecond = 1'000'000;
constexpr std::uint64_t kMostActsAtOnce =
    100'000;                                     // without time going on: it goes round and round
constexpr unsigned kMostDatagramsASecond = 200;  // of a node when all is quiet

rmem::udp::Authenticator authenticator_for(const Scenario& scenario) {
    if (!scenario.has_key) return {};
    std::array<std::byte, rmem::udp::MasterKey::kBytes> key{};
    key.fill(std::byte{7});
    return rmem::udp::Authenticator(rmem::udp::MasterKey(key));
}

/// A scenario on its way.
class Run {
public:
    Run(const Scenario& scenario, const HuntOptions& options)
        : scenario_(scenario),
          options_(options),
          trace_(options.trace, scenario.payload),
          ledger_(scenario.nodes, kBankWords, findings_),
          network_(scenario.nodes, scenario.seed * 2 + 1, scenario.weather),
          random_(scenario.seed * 7919),
          authenticator_(authenticator_for(scenario)) {
        events_.sent = [this](unsigned node, std::span<const std::byte> d) { on_sent(node, d); };
        events_.applied = [this](unsigned node, unsigned origin, const rmem::udp::Batch& batch) {
            return on_applied(node, origin, batch);
        };
        events_.changed = [this](unsigned node, const char* what, unsigned other) {
            on_changed(node, what, other);
        };
        for (unsigned n = 0; n < scenario.nodes; ++n) {
            hosts_.push_back(std::make_unique<Host>(n, scenario, authenticator_, events_));
        }
    }

    Findings to_end() {
        start_first();
        for (posted_ = 1; posted_ <= scenario_.messages; ++posted_) {
            inject_due();
            step();
        }
        end_faults();
        settle();
        collect_sights();
        return std::move(findings_);
    }

private:
    // What the hosts say
    void on_sent(unsigned node, std::span<const std::byte> datagram);
    bool on_applied(unsigned node, unsigned origin, const rmem::udp::Batch& batch);
    void on_changed(unsigned node, const char* what, unsigned other);

    // Time
    void run_for(std::int64_t span_ns);
    void deliver();
    bool act();
    bool run_until_whole(std::int64_t within_ns);

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
    void start(unsigned node);
    void at(std::int64_t time_ns, std::function<void()> what) {
        timers_.emplace(time_ns, std::move(what));
    }

    // The end
    void end_faults();
    void settle();
    void check_aftermath();
    bool is_whole() const;
    std::string describe() const;
    void check_windows();
    void collect_sights();

    bool is_up(unsigned node) const { return hosts_[node]->is_up(); }

    const Scenario& scenario_;
    const HuntOptions& options_;
    Findings findings_;
    Trace trace_;
    Ledger ledger_;
    Network network_;
    Random random_;
    rmem::udp::Authenticator authenticator_;
    HostEvents events_;
    std::vector<std::unique_ptr<Host>> hosts_;
    std::multimap<std::int64_t, std::function<void()>> timers_;
    std::int64_t now_ = 1;
    std::uint64_t acts_ = 0;  ///< since time last went on
    unsigned posted_ = 0;
    std::size_t next_fault_ = 0;
    std::uint64_t members_left_ = 0, dropped_ = 0, stopped_ = 0;
    bool is_calm_ = false;
    std::vector<std::byte> altered_;
};

// ---- What the hosts say -------------------------------------------------------------------------

void Run::on_sent(unsigned node, std::span<const std::byte> datagram) {
    if (options_.alter) {
        altered_.assign(datagram.begin(), datagram.end());
        options_.alter(node, altered_);
        datagram = altered_;
    }
    trace_.note(now_, node, "sent", node, datagram);
    network_.post(node, datagram, now_);
}

bool Run::on_applied(unsigned node, unsigned origin, const rmem::udp::Batch& batch) {
    trace_.note(now_, node, "applied", origin, batch.sequence());
    if (options_.may_store && !options_.may_store(node, origin, batch)) return false;
    ledger_.applies(node, hosts_[node]->core().incarnation(), origin, batch);
    return true;
}

void Run::on_changed(unsigned node, const char* what, unsigned other) {
    const std::string_view event = what;
    trace_.note(now_, node, what, other);
    if (event == "left") ++members_left_;
    if (event == "dropped") ++dropped_;
    if (event != "joined") return;
    if (!is_calm_ && next_fault_ > 0) findings_.saw(Sight::joined_in_traffic);
    for (const auto& host : hosts_) {
        if (!host->is_up() || !host->core().is_member()) continue;
        if (host->core().ring_life() == hosts_[node]->core().ring_life()) continue;
        findings_.saw(Sight::two_rings);
    }
}

// ---- Time ---------------------------------------------------------------------------------------

void Run::run_for(std::int64_t span_ns) {
    const std::int64_t until = now_ + span_ns;
    while (acts_ < kMostActsAtOnce) {
        std::int64_t next = network_.due_ns();
        if (!timers_.empty()) next = std::min(next, timers_.begin()->first);
        for (const auto& host : hosts_) next = std::min(next, host->due_ns());
        if (next > until) break;
        if (next > now_) acts_ = 0;
        now_ = std::max(now_, next);
        while (!timers_.empty() && timers_.begin()->first <= now_) {
            const auto what = std::move(timers_.begin()->second);
            timers_.erase(timers_.begin());
            what();
        }
        deliver();
        for (const auto& host : hosts_) {
            if (host->due_ns() > now_) continue;
            host->act(now_);
            ++acts_;
        }
        check_windows();
    }
    if (acts_ >= kMostActsAtOnce)
        findings_.violate("a core is due again and again, at one instant");
    now_ = std::max(now_, until);
}

void Run::deliver() {
    while (auto arrival = network_.take(now_)) {
        Host& to = *hosts_[arrival->to];
        if (!to.is_up()) continue;
        // Without a key, the sum that every datagram has is all there is.
        if (arrival->corrupted && !scenario_.has_key) {
            findings_.saw(Sight::refused);
            continue;
        }
        const bool fits = to.receive(std::move(arrival->bytes));
        trace_.note(now_, arrival->to, fits ? "arrived" : "overflowed", arrival->from,
                    arrival->number);
        if (!fits) findings_.saw(Sight::socket_overflow);
    }
}

/// Nobody's stream is ahead of what its slowest receiver has by more than its history.
void Run::check_windows() {
    for (const auto& host : hosts_) {
        if (!host->is_up()) continue;
        const auto& out = host->core().exchange().out();
        if (out.newest() - out.acknowledged() <= scenario_.most_batches) continue;
        findings_.violate(fmt::format("a writer is {} batches ahead, with a history of {}",
                                      out.newest() - out.acknowledged(), scenario_.most_batches));
    }
}

// ---- Traffic ------------------------------------------------------------------------------------

void Run::start(unsigned node) {
    if (!is_up(node)) hosts_[node]->start(now_);
}

/// All but those that a fault will start.
void Run::start_first() {
    std::vector<bool> is_late(scenario_.nodes);
    for (const Fault& fault : scenario_.faults) {
        if (fault.kind == FaultKind::late) is_late[fault.target] = true;
    }
    for (unsigned n = 0; n < scenario_.nodes; ++n) {
        if (!is_late[n]) start(n);
    }
    // Most seeds begin with a ring that is there.
    if (scenario_.seed % 4 != 0) run_for(500 * kMillisecond);
}

void Run::step() {
    const auto node = static_cast<unsigned>(random_.below(scenario_.nodes));
    write_something(node);
    if (!random_.one_in(8)) run_for(random_.between(0, scenario_.pause_ns));
}

void Run::write_something(unsigned node) {
    if (!is_up(node) || hosts_[node]->is_stalled(now_) || !hosts_[node]->core().is_member()) return;
    const std::size_t words = random_.one_in(16) ? random_.below(500) + 8 : random_.below(8) + 1;
    const std::uint64_t parts = random_.one_in(4) ? 3 : 1;
    const std::uint64_t before = hosts_[node]->core().exchange().out().newest();
    for (std::uint64_t i = 0; i < parts; ++i) {
        if (write_part(node, words)) continue;
        findings_.saw(Sight::back_pressure);
        break;
    }
    hosts_[node]->commit(now_);
    const std::uint64_t after = hosts_[node]->core().exchange().out().newest();
    trace_.note(now_, node, "wrote", words, after);
    if (after > before + 1) findings_.saw(Sight::in_parts);
    if (after >> 32 != before >> 32) findings_.saw(Sight::wrapped);
}

/// Somewhere in the node's own share of the bank.
bool Run::write_part(unsigned node, std::size_t words) {
    if (!hosts_[node]->core().has_room(words)) return false;
    const std::size_t share = kBankWords / scenario_.nodes;
    const std::size_t first = node * share + random_.below(share - std::min(words, share - 1));
    words = std::min(words, share - 1);
    const std::uint64_t life = hosts_[node]->core().incarnation();
    for (std::size_t i = 0; i < words; ++i) {
        hosts_[node]->words()[first + i] = ledger_.next_value(node, life, first + i);
    }
    return hosts_[node]->write(first, words, now_);
}

void Run::flood(unsigned node) {
    for (unsigned i = 0; i < 2 * scenario_.most_batches; ++i) write_something(node);
}

// ---- Faults -------------------------------------------------------------------------------------

void Run::inject_due() {
    while (next_fault_ < scenario_.faults.size()) {
        const Fault& fault = scenario_.faults[next_fault_];
        // With fewer messages, as much earlier.
        const std::uint64_t due =
            std::uint64_t{fault.at_message} * scenario_.messages / Scenario::kMessages;
        if (posted_ < due) return;
        ++next_fault_;
        ++findings_.injected;
        trace_.note(now_, fault.target, name_of(fault.kind), fault.other,
                    static_cast<std::uint64_t>(fault.time_ns));
        inject(fault);
    }
}

void Run::inject(const Fault& fault) {
    const unsigned node = fault.target;
    switch (fault.kind) {
        case FaultKind::lose:
        case FaultKind::duplicate:
        case FaultKind::delay:
        case FaultKind::corrupt: return change_weather(fault);
        case FaultKind::cut_one_way:
        case FaultKind::cut_off:
        case FaultKind::partition: return cut(fault);
        case FaultKind::kill:
        case FaultKind::leave: return end_node(fault);
        default: break;
    }
    findings_.met(fault.kind);
    switch (fault.kind) {
        case FaultKind::clog: return network_.clog(node, fault.other, now_ + fault.time_ns);
        case FaultKind::late: return start(node);
        case FaultKind::slow_reader: return hosts_[node]->starve(now_ + fault.time_ns);
        case FaultKind::stall: return hosts_[node]->stall(now_ + fault.time_ns);
        default: return flood(node);
    }
}

/// Of all that a node sends.
void Run::change_weather(const Fault& fault) {
    findings_.met(fault.kind);
    Weather weather = scenario_.weather;
    if (fault.kind == FaultKind::lose) weather.lost = fault.chance;
    if (fault.kind == FaultKind::duplicate) weather.doubled = fault.chance;
    if (fault.kind == FaultKind::corrupt) weather.corrupted = fault.chance;
    if (fault.kind == FaultKind::delay) weather.jitter_ns = fault.time_ns / 16;
    const auto set = [this, node = fault.target](const Weather& to) {
        for (unsigned n = 0; n < scenario_.nodes; ++n) network_.weather(node, n) = to;
    };
    set(weather);
    at(now_ + fault.time_ns, [this, set] { set(scenario_.weather); });
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
    for (const auto& [from, to] : links) network_.cut(from, to);
    at(now_ + fault.time_ns, [this, links] {
        trace_.note(now_, 0, "mended");
        for (const auto& [from, to] : links) network_.mend(from, to);
    });
}

void Run::end_node(const Fault& fault) {
    if (!is_up(fault.target)) return;
    findings_.met(fault.kind);
    ++stopped_;
    if (fault.kind == FaultKind::leave && !hosts_[fault.target]->is_stalled(now_)) {
        hosts_[fault.target]->leave(now_);
    } else {
        hosts_[fault.target]->stop(now_);
    }
    if (!fault.comes_back) return;
    at(now_ + fault.time_ns / 2, [this, node = fault.target] {
        if (is_up(node)) return;
        findings_.met(FaultKind::restart);
        start(node);
    });
}

// ---- The end ------------------------------------------------------------------------------------

void Run::end_faults() {
    for (auto timers = std::exchange(timers_, {}); auto& [time, what] : timers) what();
    is_calm_ = true;
    Weather calm;
    calm.delay_ns = scenario_.weather.delay_ns;
    calm.jitter_ns = scenario_.weather.jitter_ns;
    network_.calm(calm);
    for (unsigned n = 0; n < scenario_.nodes; ++n) {
        hosts_[n]->wake();
        start(n);
    }
    trace_.note(now_, 0, "calm");
}

void Run::settle() {
    if (!run_until_whole(kSettleNs)) {
        findings_.violate(fmt::format("{} s after the last fault the nodes are not in one ring:{}",
                                      kSettleNs / 1'000'000'000, describe()));
        return;
    }
    std::vector<std::span<const std::uint32_t>> banks;
    for (const auto& host : hosts_) banks.emplace_back(host->words());
    const bool nothing_ended = members_left_ + dropped_ + stopped_ == 0;
    ledger_.check_quiet(banks, nothing_ended);
    check_aftermath();
    if (run_until_whole(kSettleNs)) return ledger_.check_quiet(banks, nothing_ended);
    findings_.violate("after one more message each, not all is acknowledged:" + describe());
}

/// Whoever is a member can write, and when nobody does, nobody speaks but to say that he is there.
void Run::check_aftermath() {
    run_for(2000 * kMillisecond);  // what was doubled late is here
    const std::uint64_t posted = network_.counts().posted;
    run_for(1000 * kMillisecond);
    const std::uint64_t most =
        std::uint64_t{kMostDatagramsASecond} * scenario_.nodes * (scenario_.nodes - 1);
    if (network_.counts().posted - posted > most) {
        findings_.violate(fmt::format("{} datagrams in a second in which nothing was written",
                                      network_.counts().posted - posted));
    }
    for (unsigned n = 0; n < scenario_.nodes; ++n) {
        if (!hosts_[n]->core().has_room(1)) {
            findings_.violate(fmt::format("node {} has no room to write, though all is quiet", n));
        }
        write_something(n);
    }
}

bool Run::run_until_whole(std::int64_t within_ns) {
    for (const std::int64_t end = now_ + within_ns; now_ < end && findings_.violations.empty();) {
        if (is_whole()) return true;
        run_for(kMillisecond);
    }
    return is_whole();
}

/// All are members of one ring, with the same view, and have all of each other.
bool Run::is_whole() const {
    rmem::udp::NodeSet all;
    for (unsigned n = 0; n < scenario_.nodes; ++n) all.insert(n);
    const std::uint64_t ring = hosts_.front()->core().ring_life();
    return std::all_of(hosts_.begin(), hosts_.end(), [&](const auto& host) {
        const rmem::udp::Core& core = host->core();
        return core.is_member() && core.view() == all && core.ring_life() == ring && core.is_idle();
    });
}

std::string Run::describe() const {
    std::string text;
    for (unsigned n = 0; n < scenario_.nodes; ++n) {
        const rmem::udp::Core& core = hosts_[n]->core();
        text += fmt::format(" node {} {} ring {}, has", n, core.is_member() ? "in" : "joins, no",
                            core.ring_life() % 1'000'000'000'000);
        for (unsigned other = 0; other < scenario_.nodes; ++other) {
            if (core.view().contains(other)) text += fmt::format(" {}", other);
            if (core.exchange().takes(other)) {
                text += fmt::format("@{}", core.exchange().applied(other));
            }
        }
        text += fmt::format(", sent {} acked {};", core.exchange().out().newest(),
                            core.exchange().out().acknowledged());
    }
    return text;
}

void Run::collect_sights() {
    const Network::Counts& counts = network_.counts();
    findings_.saw(Sight::overtaken, counts.overtaken);
    findings_.saw(scenario_.has_key ? Sight::signed_run : Sight::unsigned_run);
    findings_.saw(Sight::died, members_left_);
    findings_.saw(Sight::dropped, dropped_);
    for (const auto& host : hosts_) {
        const rmem::udp::ExchangeCounters sum =
            host->is_up() ? host->former() + host->core().exchange_counters() : host->former();
        findings_.saw(Sight::asked, sum.asked);
        findings_.saw(Sight::repaired, sum.repairs_sent);
        findings_.saw(Sight::probed, sum.probes_sent);
        findings_.saw(Sight::given, sum.given);
        findings_.saw(Sight::replayed, sum.replayed);
        findings_.saw(Sight::refused, sum.wrong_tag);
    }
    findings_.events = trace_.events();
    if (options_.hash) findings_.hash = trace_.hash();
}

}  // namespace

Findings run_scenario(const Scenario& scenario, const HuntOptions& options) {
    return Run(scenario, options).to_end();
}

Subject subject(const HuntOptions& options) {
    return subject_of<Scenario>("udp", Kinds::of<FaultKind, Sight>(),
                                "tests/simulator/udp_seeds.txt", options);
}

}  // namespace simulator::udp
