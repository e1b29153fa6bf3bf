// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A seed of a hunt on the simulated ring, on its way: four ranks run the hunt's program, and the
/// seed's faults meet them when a given number of messages have been posted.
///
///     class Run final : public RingRun { … };
///     Findings findings = Run(scenario, options).to_end();
///
/// A fault that would meet a dead rank meets the next one that is alive. Of the last two none dies,
/// so that there is traffic: they only lose the processor for a while.
///
/// Thread safety: uses the thread's one simulated world at a time.

#include "rmem/sim/world.hpp"
#include "simulator/hunt/findings.hpp"
#include "simulator/hunt/ring_scenario.hpp"

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <vector>

namespace simulator {

struct RingOptions {
    bool hash = false;                     ///< of the trace, into the findings
    rmem::sim::Observer* trace = nullptr;  ///< gets every event, too
};

class RingRun {
public:
    RingRun(const RingRun&) = delete;
    RingRun& operator=(const RingRun&) = delete;
    virtual ~RingRun() = default;

    Findings to_end();

protected:
    static constexpr unsigned kRanks = RingScenario::kRanks;

    /// `faults`: as they are due (simulator/hunt/seeded.hpp: due_faults).
    RingRun(const std::string& ring_name, const RingScenario& scenario, std::vector<Fault> faults);

    /// `own` checks every event, before the others see it.
    void observe(rmem::sim::Observer& own, const RingOptions& options);
    /// The faults that are due once `posted` messages have been posted.
    void inject_due(std::uint64_t posted);
    /// Some faults are still to come, so traffic goes on.
    bool more_to_come() const { return findings_.injected < faults_.size() || absent_ != 0; }
    rmem::sim::World& world() { return world_; }
    Findings& findings() { return findings_; }

private:
    // The part that differs by hunt.
    virtual void run(rmem::sim::Process& process) = 0;
    virtual bool is_alive(unsigned rank) const = 0;
    /// It is about to be ended.
    virtual void dies(unsigned rank, bool with_node) = 0;
    /// slow_reader or deaf.
    virtual void distract(FaultKind kind, unsigned rank, std::int64_t until_ns) = 0;
    virtual void complain(unsigned rank, const std::string& sentence) = 0;
    /// `all_ended`: every program has come to its end.
    virtual void check_end(bool all_ended) = 0;

    void start(unsigned rank);
    void inject(Fault fault);
    void await_access(const Fault& fault);
    void take_effect(const Fault& fault);
    void end_process(const Fault& fault);
    void pass_on(unsigned dead);
    void bring_back(unsigned rank, bool with_node);
    void cut(const Fault& fault, bool both);
    void finish(rmem::sim::RunEnd end);

    const std::vector<Fault> faults_;
    Findings findings_;
    rmem::sim::World world_;
    std::unique_ptr<rmem::sim::TraceHash> hash_;
    std::unique_ptr<rmem::sim::Observers> observers_;
    std::size_t next_fault_ = 0;
    std::list<Fault> waiting_;  ///< for an access of their targets
    unsigned absent_ = 0;       ///< ranks that will be started again
};

}  // namespace simulator
