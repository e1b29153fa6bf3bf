// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The common part of the scenarios of all hunts: everything follows from a seed, and can be made
/// smaller.
///
///     struct Scenario : Seeded<Scenario, Fault, most messages, faults> {
///         static constexpr std::array kFaultKinds = {…};  // that it may have
///         static Scenario of_seed(std::uint64_t seed);
///         …
///     };
///
/// `messages` and `kept` only make it smaller, for a failing seed that is shrunk. Its text form,
/// which replays it, is simulator/hunt/seed_text.hpp's.
///
/// Thread safety: values. Errors: `parse` throws rmem::Error(invalid_argument).

#include "rmem/base/check.hpp"
#include "simulator/hunt/seed_text.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace simulator {

template <class Scenario, class Fault, unsigned Messages, unsigned Faults>
struct Seeded {
    static constexpr unsigned kMessages = Messages;
    static constexpr unsigned kFaults = Faults;

    std::uint64_t seed = 1;
    unsigned messages = kMessages;
    std::vector<Fault> faults;                  ///< in the order in which they are due
    std::optional<std::vector<unsigned>> kept;  ///< of the seed's faults, if not all

    static Scenario parse(std::string_view text) {
        const SeedText part = SeedText::parse(text, kFaults);
        const Scenario whole = Scenario::of_seed(part.seed);
        const Scenario less = whole.with_messages(part.messages.value_or(kMessages));
        return part.faults ? less.with_faults(*part.faults) : less;
    }
    std::string text() const {
        SeedText part{seed, std::nullopt, kept};
        if (messages != kMessages) part.messages = messages;
        return part.text();
    }

    /// The faults as they are due: with fewer messages, as much earlier.
    std::vector<Fault> due_faults() const {
        std::vector<Fault> due = faults;
        for (Fault& fault : due) {
            fault.at_message =
                static_cast<unsigned>(std::uint64_t{fault.at_message} * messages / kMessages);
        }
        RMEM_CHECK(std::is_sorted(due.begin(), due.end(), [](const Fault& a, const Fault& b) {
            return a.at_message < b.at_message;
        }));
        return due;
    }

    /// The same with less.
    Scenario with_messages(unsigned count) const {
        Scenario less = static_cast<const Scenario&>(*this);
        less.messages = count;
        return less;
    }
    /// `places`: in the seed's list, in its order.
    Scenario with_faults(const std::vector<unsigned>& places) const {
        Scenario less = Scenario::of_seed(seed).with_messages(messages);
        const std::vector<Fault> all = std::exchange(less.faults, {});
        for (const unsigned place : places) less.faults.push_back(all.at(place));
        less.kept = places;
        return less;
    }
};

}  // namespace simulator
