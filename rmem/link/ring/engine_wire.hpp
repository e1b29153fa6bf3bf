// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The wire as a node's engine computes it: the model, what it was told of nodes, the injected
/// faults.
///
/// What a node writes follows, for the model, what it was told of the node.
/// Invariants: the own node stays in the ring, if no fault takes it out.
/// Progress: tick() looks at each fault once, when its time has come.

#include "rmem/link/ring/engine_node.hpp"
#include "rmem/wire/faults.hpp"
#include "rmem/wire/model.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace rmem {

class RMEM_API EngineWire {
public:
    EngineWire(EngineNode& own, const std::vector<WireFault>& faults);

    /// If not, the profile is instant and no fault needs a wire: there is no model.
    bool takes_time() const noexcept { return model_.has_value(); }
    bool has_faults() const noexcept { return !faults_.empty(); }
    WireModel& model() noexcept { return *model_; }
    const WireModel& model() const noexcept { return *model_; }

    /// Begins with nothing on it.
    void restart(const std::vector<bool>& node_alive, std::int64_t start_ns);
    /// A node comes or goes: at that time, or as soon as it can.
    void set_alive(unsigned node, bool alive, std::int64_t time_ns);
    /// Returns how long after its time it could be seen.
    std::int64_t submit(const LogRecord& record, unsigned origin, std::uint64_t tag,
                        std::int64_t published_ns);
    /// Counts what has happened.
    void tick(std::int64_t now);

    /// A write's tag: its rank above, its number below.
    static std::uint64_t tag_of(unsigned rank, std::uint64_t number) noexcept {
        return std::uint64_t{rank} << kTagShift | number;
    }
    static unsigned rank_of(std::uint64_t tag) noexcept {
        return static_cast<unsigned>(tag >> kTagShift);
    }
    static std::uint64_t number_of(std::uint64_t tag) noexcept {
        return tag & ((std::uint64_t{1} << kTagShift) - 1);
    }

private:
    static constexpr unsigned kTagShift = 55;

    std::int64_t time_of(const WireFault& fault) const noexcept;
    void note_faults(std::int64_t now);

    EngineNode& own_;
    const std::vector<WireFault> faults_;
    std::optional<WireModel> model_;
    std::vector<std::int64_t> told_ns_;  // of each node: the time of what it was told last
    std::size_t faults_done_ = 0;
    std::uint64_t breaks_ = 0;
    std::vector<bool> cable_cut_[2];
    std::int64_t next_totals_ns_ = 0;
};

}  // namespace rmem
