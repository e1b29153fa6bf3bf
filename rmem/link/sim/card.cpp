// SPDX-License-Identifier: Apache-2.0
#include "rmem/link/sim/card.hpp"

#include "rmem/base/word_block.hpp"
#include "rmem/link/changed_runs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace rmem::sim {

SimCard::SimCard(Process& process)
    : world_(process.world()),
      process_(process),
      member_(std::make_shared<Ring>(world_), member()),
      memory_(process) {
    forget_the_dead();
}

SimCard::~SimCard() {
    process_.on_interrupt_ = nullptr;
    process_.on_violation_ = nullptr;
}

std::uint64_t SimCard::counter(LinkCounter id) const {
    return world_.ranks_[process_.rank()].link->get(id) +
           world_.nodes_[process_.node()].link->get(id);
}

const Histogram& SimCard::propagation() const {
    return world_.propagation(process_.node());
}

void SimCard::on_bound_violation(std::function<void(const BoundViolation&)> callback) {
    process_.on_violation_ = std::move(callback);
    world_.violations_awaited_ = true;
}

// ---- Memory

bool SimCard::room(std::size_t bytes) {
    if (memory_.room(bytes)) return true;
    memory_.progress();
    return false;
}

void SimCard::write(std::size_t offset, const void* from, std::size_t bytes) {
    const auto* data = static_cast<const std::byte*>(from);
    filter_ ? store_changed(offset, data, bytes) : store(offset, data, bytes);
}

void SimCard::store(std::size_t offset, const std::byte* from, std::size_t bytes) {
    world_.store(process_, offset, from, bytes, me_last_ ? OwnBank::at_return : OwnBank::at_once);
}

void SimCard::write_part(std::size_t offset, std::uint32_t value, WordPart part) {
    std::uint32_t before = 0;
    std::memcpy(&before, bank() + offset, sizeof before);
    const auto& interrupts = world_.nodes_[process_.node()].interrupts;
    if (filter_ && with_part(before, value, part) == before &&
        !(interrupts && interrupts->is_marked(offset, kWordBytes)))
        return world_.ranks_[process_.rank()].link->add(LinkCounter::writes_filtered);
    world_.store_part(process_, offset, value, part,
                      me_last_ ? OwnBank::at_return : OwnBank::at_once);
}

void SimCard::store_changed(std::size_t offset, const std::byte* from, std::size_t bytes) {
    const World::Node& node = world_.nodes_[process_.node()];
    const auto is_sent = [&](std::size_t i) {
        const std::size_t at = offset + i * kWordBytes;
        return std::memcmp(bank() + at, from + i * kWordBytes, kWordBytes) != 0 ||
               (node.interrupts && node.interrupts->is_marked(at, kWordBytes));
    };
    const std::size_t filtered =
        send_runs(bytes / kWordBytes, is_sent, [&](std::size_t first, std::size_t words) {
            store(offset + first * kWordBytes, from + first * kWordBytes, words * kWordBytes);
        });
    world_.ranks_[process_.rank()].link->add(LinkCounter::writes_filtered, filtered);
}

void SimCard::poll() {
    if (is_running()) memory_.progress();
}

void SimCard::before_load(std::size_t words) {
    if (is_running()) memory_.data(0, words * kWordBytes);
}

// ---- Waiting

void SimCard::begin_wait(std::optional<std::size_t> offset) {
    awaited_ = offset;
    memory_.begin_wait();
}

Step SimCard::wait(Deadline deadline) {
    process_.awaits_interrupt_ = !awaited_;
    const Step step = memory_.wait(deadline);
    process_.awaits_interrupt_ = false;
    if (awaited_) memory_.load(*awaited_);  // it is this word that a poll looks at
    return step;
}

// ---- Interrupts

/// The marks of ranks that died go when a rank joins and no rank that made some is alive; what they
/// accepted goes at once.
void SimCard::forget_the_dead() {
    auto& interrupts = world_.nodes_[process_.node()].interrupts;
    if (!interrupts) return;
    bool is_any_alive = false;
    for (const unsigned rank : interrupts->users()) {
        if (rank != process_.rank() && world_.ranks_[rank].held) {
            is_any_alive = true;
        } else {
            interrupts->end(rank);
        }
    }
    if (!is_any_alive) interrupts->forget_all();
    interrupts->begin(process_.rank());
}

NodeInterrupts& SimCard::marks() {
    auto& interrupts = world_.nodes_[process_.node()].interrupts;
    if (!interrupts) interrupts = std::make_unique<NodeInterrupts>(config(), process_.node());
    return *interrupts;
}

void SimCard::watch(std::size_t offset, std::size_t bytes, Trigger trigger) {
    check_watchable(config(), offset, bytes);
    marks().watch(process_.rank(), offset, bytes, trigger);
}

void SimCard::unwatch(std::size_t offset, std::size_t bytes) {
    check_watchable(config(), offset, bytes);
    marks().unwatch(offset, bytes);
}

void SimCard::mark(std::size_t offset, std::size_t bytes) {
    check_watchable(config(), offset, bytes);
    marks().mark(process_.rank(), offset, bytes);
}

void SimCard::unmark(std::size_t offset, std::size_t bytes) {
    check_watchable(config(), offset, bytes);
    marks().unmark(offset, bytes);
}

void SimCard::accept(std::uint64_t numbers) {
    check_acceptable(numbers);
    marks().accept(process_.rank(), numbers);
}

std::optional<Interrupt> SimCard::take() {
    if (process_.on_interrupt_) return std::nullopt;
    return world_.take_interrupt(process_);
}

int SimCard::fd() {
    throw Error(Errc::unknown_link,
                fmt::format("rank {} is simulated (link sim) and has no descriptors; use "
                            "Node::next_interrupt or Node::on_interrupt",
                            process_.rank()));
}

void SimCard::on_interrupt(std::function<void(const Interrupt&)> callback) {
    process_.on_interrupt_ = std::move(callback);
    if (process_.on_interrupt_) world_.call_on_interrupt(process_);
}

}  // namespace rmem::sim
