// SPDX-License-Identifier: Apache-2.0
#include "tools/conform/run.hpp"

#include "rmem/base/check.hpp"
#include "rmem/error.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace tools::conform {

namespace {

/// What never comes is a break, found before the others give this member up.
constexpr unsigned kWordsShare = 3;

void check_range(const Card& card, const Plan& plan) {
    const std::size_t needed = needed_bytes(card, plan.members);
    if (plan.bytes != 0 && plan.bytes < needed) {
        throw rmem::Error(rmem::Errc::bad_size,
                          fmt::format("{} members need {} bytes, and {} may be used; give more by "
                                      "--bytes",
                                      plan.members, needed, plan.bytes));
    }
    if (plan.at % kLineBytes != 0 || plan.at > card.size() || needed > card.size() - plan.at) {
        throw rmem::Error(
            rmem::Errc::bad_size,
            fmt::format("{} bytes at {} are not in a memory of {} bytes, or not at a multiple of "
                        "{}; give another offset by --at",
                        needed, plan.at, card.size(), kLineBytes));
    }
}

bool is_wanted(const Plan& plan, const Litmus& litmus) {
    return plan.only.empty() ||
           std::find(plan.only.begin(), plan.only.end(), litmus.name) != plan.only.end();
}

Outcome outcome_of(const Result& result, std::int64_t floor_ns) {
    const auto& all = result.findings;
    const auto any = [&](auto holds) { return std::any_of(all.begin(), all.end(), holds); };
    if (any([](const Finding& one) { return one.offered == 0; })) return Outcome::not_offered;
    if (any([](const Finding& one) { return one.breaks != 0; })) return Outcome::broken;
    if (result.observations() < result.litmus->enough) return Outcome::undecided;
    const bool is_timed = any([](const Finding& one) { return one.times.samples != 0; });
    return is_timed && floor_ns == 0 ? Outcome::measured : Outcome::holds;
}

}  // namespace

const char* name_of(Outcome outcome) noexcept {
    switch (outcome) {
        case Outcome::holds: return "holds";
        case Outcome::broken: return "broken";
        case Outcome::not_offered: return "not offered";
        case Outcome::undecided: return "not decided";
        case Outcome::measured: return "measured";
    }
    return "";
}

std::uint64_t Result::observations() const noexcept {
    std::uint64_t sum = 0;
    for (const Finding& one : findings) sum += one.observations;
    return sum;
}

std::size_t bytes_of_litmuses(unsigned members) noexcept {
    return Members::control_bytes(members) + all_litmuses().size() * Trial::place_bytes(members);
}

std::size_t needed_bytes(const Card& card, unsigned members) {
    return bytes_of_litmuses(members) + card.interrupt_bytes(members);
}

std::vector<Result> run_litmuses(Card& card, const Plan& plan, const std::function<void()>& begun) {
    check_range(card, plan);
    card.take_place(plan.at + bytes_of_litmuses(plan.members), plan.member, plan.members);
    Members members(card, plan.member, plan.members, plan.at, plan.patience_ns);
    if (begun) begun();
    members.join();
    std::vector<Result> results;
    std::size_t place = plan.at + Members::control_bytes(plan.members);
    for (const Litmus& litmus : all_litmuses()) {
        if (is_wanted(plan, litmus)) {
            // All go the same way, whatever one of the cards offers.
            Finding offer;
            const bool is_of_bytes = litmus.needs == Feature::single_bytes;
            const bool has = !litmus.needs || card.offers(*litmus.needs);
            offer.offered = has && !(is_of_bytes && plan.whole_words) ? 1 : 0;
            Result result{&litmus, place, members.exchange(offer), Outcome::not_offered};
            const auto& offers = result.findings;
            if (std::all_of(offers.begin(), offers.end(),
                            [](const Finding& one) { return one.offered != 0; })) {
                const unsigned rounds = std::max(1U, plan.rounds / litmus.share);
                const Trial trial{card,   members,       place,
                                  rounds, plan.floor_ns, plan.patience_ns / kWordsShare};
                const Finding own = litmus.run(trial);
                RMEM_CHECK(own.breaks == 0 || (own.first.how < litmus.breaks.size() &&
                                               litmus.breaks[own.first.how] != nullptr));
                result.findings = members.exchange(own);
                result.outcome = outcome_of(result, plan.floor_ns);
            }
            results.push_back(std::move(result));
        }
        place += Trial::place_bytes(plan.members);
    }
    RMEM_CHECK(place == plan.at + bytes_of_litmuses(plan.members));
    return results;
}

}  // namespace tools::conform
