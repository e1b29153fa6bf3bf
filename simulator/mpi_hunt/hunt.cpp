// SPDX-License-Identifier: Apache-2.0
#include "simulator/mpi_hunt/hunt.hpp"

#include "simulator/mpi_hunt/traffic.hpp"

#include <fmt/format.h>

namespace simulator::mpi {

using rmem::sim::EventKind;

namespace {

/// Counts what the link's faults have done.
class Counting final : public rmem::sim::Observer {
public:
    explicit Counting(Findings& findings) : findings_(findings) {}
    void on_event(const rmem::sim::Event& event) override {
        ++findings_.events;
        if (event.kind == EventKind::repeated) findings_.met(FaultKind::duplicate);
        if (event.kind == EventKind::delayed) findings_.met(FaultKind::delay);
    }

private:
    Findings& findings_;
};

class Run final : public RingRun {
public:
    Run(const Scenario& scenario, const HuntOptions& options)
        : RingRun(fmt::format("mpi-hunt-{}", scenario.seed), scenario, scenario.due_faults()),
          counting_(findings()),
          model_(findings()),
          traffic_(scenario, model_, findings(), options.mischief) {
        observe(counting_, options);
        traffic_.on_sent = [this] { inject_due(model_.sent()); };
        traffic_.more_to_come = [this] { return more_to_come(); };
    }

private:
    void run(rmem::sim::Process& process) override { traffic_.run(process); }
    bool is_alive(unsigned rank) const override { return model_.is_alive(rank); }
    void dies(unsigned rank, bool) override {
        model_.dies(rank);
        traffic_.dies(rank);
    }
    void distract(FaultKind, unsigned rank, std::int64_t until_ns) override {
        traffic_.deafen(rank, until_ns);
    }
    void complain(unsigned rank, const std::string& sentence) override {
        model_.complain(rank, sentence);
    }
    void check_end(bool) override { model_.check_end(); }

    Counting counting_;
    Model model_;
    Traffic traffic_;
};

}  // namespace

Findings run_scenario(const Scenario& scenario, const HuntOptions& options) {
    return Run(scenario, options).to_end();
}

Subject subject(const HuntOptions& options) {
    return subject_of<Scenario, CoverageMark>("--mpi", "tests/simulator/mpi_seeds.txt", options);
}

}  // namespace simulator::mpi
