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
        collect_coverage();
    }
    void collect_coverage();

    const Scenario& scenario_;
    LinkChecker link_;
    Ledger ledger_;
    Traffic traffic_;
};

void Run::collect_coverage() {
    using billboard::Counter;
    for (unsigned r = 0; r < kRanks; ++r) {
        const auto& counters = world().protocol_counters(r);
        findings().cover(CoverageMark::collected, counters.get(Counter::collections));
        findings().cover(CoverageMark::fifo_full,
                         world().counter(r, rmem::LinkCounter::back_pressure));
        findings().cover(CoverageMark::barrier_passed, counters.get(Counter::barriers));
        // They start 32 below zero.
        if (counters.get(Counter::buffers_posted) > 32)
            findings().cover(CoverageMark::numbers_wrapped);
        const std::uint32_t incarnation = scenario_.incarnations_before + ledger_.incarnation(r);
        if (incarnation / 256 != (scenario_.incarnations_before + 1) / 256)
            findings().cover(CoverageMark::epochs_wrapped);
    }
}

}  // namespace

Findings run_scenario(const Scenario& scenario, const HuntOptions& options) {
    return Run(scenario, options).to_end();
}

Subject subject(const HuntOptions& options) {
    return subject_of<Scenario, CoverageMark>("--link ring", "tests/simulator/seeds.txt", options);
}

}  // namespace simulator::bbp
