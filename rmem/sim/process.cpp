// SPDX-License-Identifier: Apache-2.0
#include "rmem/sim/process.hpp"

#include "rmem/sim/world.hpp"

#include <fmt/format.h>

namespace rmem::sim {

Process::Process(World& world, unsigned rank, unsigned node, unsigned incarnation,
                 std::size_t stack_bytes, Program program)
    : world_(world),
      rank_(rank),
      node_(node),
      incarnation_(incarnation),
      program_(std::move(program)),
      states_(make_process_states()),
      fiber_([this] { run(); }, stack_bytes) {
    variables_ = {{"RMEM_RING", world.ring().name},
                  {"RMEM_LINK", "sim"},
                  {"RMEM_RANK", fmt::format("{}", rank)},
                  {"RMEM_RANKS", fmt::format("{}", world.ranks())}};
    if (world.nodes() > kMaxNodes) return;  // more than these variables can say
    variables_["RMEM_NODE"] = fmt::format("{}", node);
    variables_["RMEM_NODES"] = fmt::format("{}", world.nodes());
}

Process::~Process() {
    release_kept();  // of one that was killed
}

/// An object may use those that were kept before it.
void Process::release_kept() noexcept {
    while (!kept_.empty()) {
        const auto last = std::move(kept_.back());
        kept_.pop_back();
    }
}

void Process::exchange_states() noexcept {
    for (const auto& state : states_) state->exchange();
}

void Process::run() {
    program_(*this);
    release_kept();
    // As when a process ends: the libraries' own variables are destroyed, while it still runs.
    exchange_states();
    const auto states = std::move(states_);
    states_.clear();
}

const char* Process::variable(const char* name) const noexcept {
    return world_.variable(*this, name);
}

void Process::set_variable(const std::string& name, std::optional<std::string> value) {
    variables_[name] = std::move(value);
}

void Process::sleep(std::int64_t ns) {
    clock_ns_ += std::max<std::int64_t>(ns, 1);
    world_.settle(*this);
}

}  // namespace rmem::sim
