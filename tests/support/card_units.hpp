// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A ring whose nodes are the cards of this host: unit 0 is node 0, unit 1 node 1, …

#include "cards/common/unit.hpp"
#include "rmem/ring/config.hpp"
#include "tests/support/child.hpp"
#include "tests/support/own_network.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace rmem::test {

inline constexpr unsigned kPatienceMs = 30'000;

/// Until what another node does shows here. It yields in between, and does not sleep: tests wait
/// so for each word.
template <class Condition>
bool comes(Condition&& condition) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(kPatienceMs);
    while (!condition()) {
        if (std::chrono::steady_clock::now() > until) return false;
        std::this_thread::yield();
    }
    return true;
}

class CardUnits {
public:
    static constexpr unsigned kBytes = 16384;

    /// What `further` says comes before what is here.
    explicit CardUnits(LinkKind link, unsigned nodes = 2, const cards::Settings& further = {}) {
        std::filesystem::create_directory(folder_);
        ::setenv("XDG_RUNTIME_DIR", folder_.c_str(), 1);
        for (unsigned unit = 0; unit < nodes; ++unit) {
            cards::Settings settings = further;
            settings.insert(settings.end(), {{"RMEM_RING", name_.get()},
                                             {"RMEM_LINK", name_of(link)},
                                             {"RMEM_NODE", std::to_string(unit)},
                                             {"RMEM_NODES", std::to_string(nodes)},
                                             {"RMEM_SIZE", std::to_string(kBytes)},
                                             {"RMEM_GROUP", own_group(name_.get())},
                                             {"RMEM_INTERFACE", "lo"}});
            units_.push_back(std::make_unique<cards::PublishedUnit>(unit, settings));
            settings_.push_back(std::move(settings));
        }
    }
    ~CardUnits() {
        ::unsetenv("XDG_RUNTIME_DIR");
        units_.clear();
        std::filesystem::remove_all(folder_);
    }
    CardUnits(const CardUnits&) = delete;
    CardUnits& operator=(const CardUnits&) = delete;

    const std::filesystem::path& folder() const { return folder_; }
    /// For the environment of a program that joins the node without a unit.
    const cards::Settings& settings(unsigned unit) const { return settings_[unit]; }

private:
    const RingName name_;
    const std::filesystem::path folder_ =
        std::filesystem::temp_directory_path() / ("cards-" + name_.get());
    std::vector<std::unique_ptr<cards::PublishedUnit>> units_;
    std::vector<cards::Settings> settings_;
};

/// A fixture of cards, on each link that a host has.
template <class Cards>
class OnLinks : public Cards, public ::testing::WithParamInterface<LinkKind> {
protected:
    OnLinks() : Cards(OnLinks::GetParam()) {}
};
#define CARDS_ON_ALL_LINKS(Suite)                                                                \
    INSTANTIATE_TEST_SUITE_P(Links, Suite,                                                       \
                             ::testing::Values(LinkKind::direct, LinkKind::ring, LinkKind::udp), \
                             [](const auto& link) { return name_of(link.param); })

}  // namespace rmem::test
