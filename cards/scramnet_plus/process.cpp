// SPDX-License-Identifier: Apache-2.0
#include "cards/scramnet_plus/process.hpp"

#include "cards/common/unit.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <utility>

int sp_plus_flag = 1;
int scr_registers_mapped = 0;
int scr_memory_mapped = 0;
int scr_csr_fd = -1;

namespace cards::scramnet_plus {

namespace {

constexpr int kMemoryNotMapped = -3;
constexpr int kNotOpened = -4;

}  // namespace

// ---- Refusals

int no_card() {
    return refuse("no card is mapped; call sp_scram_init, or scr_reg_mm(MAP) and scr_mem_mm(MAP)");
}

int no_argument(const char* call, int argument, const char* known) {
    return refuse(fmt::format("{} knows no {}; give {}", call, argument, known));
}

int no_place(const char* what) {
    return refuse(fmt::format("the place for {} is a null pointer; give an address", what));
}

// ---- The card of the process

Process& Process::get() {
    static Process* const process = new Process;
    static const Ending ending{*process};
    return *process;
}

Process::Ending::~Ending() {
    if (const auto card = process.card()) (*card).await_arrival();
}

HandleTable<Card>::Call Process::card() {
    const Lock lock(mutex_);
    return HandleTable<Card>::of_process().call(card_);
}

void* Process::memory() {
    const Lock lock(mutex_);
    return memory_;
}

int Process::choose(int unit) {
    const Lock lock(mutex_);
    if (const int result = check(unit); result != kDone) return result;
    unit_ = static_cast<unsigned>(unit);
    return kDone;
}

int Process::map_all(int unit) {
    const Lock lock(mutex_);
    if (const int result = check(unit); result != kDone) return result;
    unit_ = static_cast<unsigned>(unit);
    if (open() != kDone) return kNotOpened;
    if (map() != kDone) return kMemoryNotMapped;
    scr_registers_mapped = 1;
    return kDone;
}

int Process::map_memory() {
    const Lock lock(mutex_);
    if (open() != kDone) return kRefused;
    return map();
}

int Process::map_registers() {
    const Lock lock(mutex_);
    if (open() != kDone) return kRefused;
    scr_registers_mapped = 1;
    return kDone;
}

int Process::unmap(int& mapped) {
    const Lock lock(mutex_);
    if (mapped == 0) return refuse("it is not mapped; map it first");
    mapped = 0;
    close_unused();
    return kDone;
}

int Process::check(int unit) const {
    if (unit < 0) return refuse(fmt::format("there is no unit {}; they are 0, 1, …", unit));
    if (card_ != 0 && unit_ != static_cast<unsigned>(unit)) {
        return refuse(
            fmt::format("unit {} is mapped, and a process has one at a time; unmap "
                        "its memory and its registers first",
                        unit_));
    }
    return kDone;
}

int Process::open() {
    if (card_ != 0) return kDone;
    int code = RMEM_OK;
    card_ = HandleTable<Card>::of_process().open(unit_, [&](std::shared_ptr<Card>) {
        OwnNode node = open_unit(unit_, code);
        return node ? std::make_shared<Card>(unit_, std::move(node)) : nullptr;
    });
    if (card_ != 0) return kDone;
    tell_why_not_opened("scramnet_plus", unit_, code);
    return kRefused;
}

int Process::map() {
    const int result = (*HandleTable<Card>::of_process().call(card_)).map(memory_);
    if (result == kDone) {
        scr_memory_mapped = 1;
    } else {
        memory_ = nullptr;
        close_unused();
    }
    return result;
}

void Process::close_unused() {
    if (scr_memory_mapped == 0) memory_ = nullptr;
    if (scr_memory_mapped != 0 || scr_registers_mapped != 0) return;
    HandleTable<Card>& table = HandleTable<Card>::of_process();
    static_cast<void>(table.close(std::exchange(card_, 0), [](Card&, const Calls&) {}));
    scr_csr_fd = -1;
}

/// A lock that another thread holds at the fork is one that nobody lets go.
void Process::in_child() noexcept {
    std::construct_at(&mutex_);
    card_ = 0;
    memory_ = nullptr;
    scr_memory_mapped = scr_registers_mapped = 0;
    scr_csr_fd = -1;
}

}  // namespace cards::scramnet_plus
