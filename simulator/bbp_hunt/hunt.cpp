// SPDX-License-Identifier: Apache-2.0
#include "simulator/bbp_hunt/hunt.hpp"

#include "billboard/core/counters.hpp"
#include "simulator/bbp_hunt/link_checker.hpp"

#include <fmt/format.h>

namespace simulator::bbp {

namespace {

class Run final : public RingRun {
public:
    Run(const Scenario& scenario, const HuntOptions& options)
        : RingRun(fmt::format("hunt-{}", scenario.seed), scenario, scenario.due_faults()),
          scenario_(scenario),
          link_(world(), findings()),
          ledger_(scenario, findings(), link_),
          traffic_(
              scenario, ledger_, findings(),
              options.open ? options.open : [] { return billboard::Endpoint::open(); }) {
        observe(link_, options);
        traffic_.on_posted = [this] { inject_due(ledger_.posted()); };
        traffic_.more_to_come = [this] { return more_to_come(); };
    }

private:
    void run(rmem::sim::Process& process) override { traffic_.run(process); }
    bool is_alive(unsigned rank) const override { return ledger_.is_alive(rank); }
    void dies(unsigned rank, bool with_node) override { ledger_.dies(rank, with_node); }
    void distract(FaultKind, unsigned rank, std::int64_t until_ns) override {
        traffic_.starve(rank, until_ns);
    }
    void complain(unsigned rank, const std::string& sentence) override {
        ledger_.complain_of(rank, sentence);
    }
    void check_end(bool all_ended) override {
        ledger_.check_settled();
        if (all_ended) link_.check_quiet();
        collect_sights();
    }
    void collect_sights();

    const Scenario& scenario_;
    LinkChecker link_;
    Ledger ledger_;
    Traffic traffic_;
};

void Run::collect_sights() {
    using billboard::Counter;
    for (unsigned r = 0; r < kRanks; ++r) {
        const auto& counters = world().protocol_counters(r);
        findings().saw(Sight::collected, counters.get(Counter::collections));
        findings().saw(Sight::fifo_full, world().counter(r, rmem::LinkCounter::back_pressure));
        findings().saw(Sight::barrier_passed, counters.get(Counter::barriers));
        // They start 32 below zero.
        if (counters.get(Counter::buffers_posted) > 32) findings().saw(Sight::numbers_wrapped);
        const std::uint32_t life = scenario_.lives_before + ledger_.life(r);
        if (life / 256 != (scenario_.lives_before + 1) / 256) findings().saw(Sight::epochs_wrapped);
    }
}

}  // namespace

Findings run_scenario(const Scenario& scenario, const HuntOptions& options) {
    return Run(scenario, options).to_end();
}

Subject subject(const HuntOptions& options) {
    return subject_of<Scenario, Sight>("--link ring", "tests/simulator/seeds.txt", options);
}

}  // namespace simulator::bbp
