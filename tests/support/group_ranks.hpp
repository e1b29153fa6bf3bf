// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Ranks of one thread with devices over pipes (tests/support/device_ranks.hpp), and groups of
/// them.
///
///     GroupRanks ranks(3, seed);
///     auto group = ranks.open(7, {0, 1, 2});
///     for (auto& member : group) member->broadcast(…, 0);
///     EXPECT_EQ(ranks.finish(group), everywhere(3, BBP_OK));
///
/// A test goes on with the ranks it names; the others are busy elsewhere meanwhile.

#include "mpi_channel/collectives.hpp"
#include "tests/support/device_ranks.hpp"

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

namespace mpi_channel {

/// A group's members, in the order of the group; null: it has not opened it.
using Opened = std::vector<std::unique_ptr<Group>>;

inline std::vector<int> everywhere(std::size_t members, int result) {
    return std::vector<int>(members, result);
}

/// The contents of a buffer that nothing was received into.
inline constexpr std::byte kUntouched{0xa5};

inline std::vector<std::byte> untouched(std::size_t size) {
    return std::vector<std::byte>(size, kUntouched);
}

class GroupRanks {
public:
    /// `most` packets of one rank wait at another.
    explicit GroupRanks(unsigned count, unsigned seed = 1, std::size_t most = 8)
        : ranks(count, seed, most), dead_(count) {
        for (unsigned r = 0; r < count; ++r)
            collectives_.push_back(std::make_unique<Collectives>(ranks[r].device));
    }

    Collectives& at(unsigned rank) { return *collectives_[rank]; }
    Opened open(std::uint32_t id, const std::vector<int>& members,
                std::optional<unsigned> barrier = std::nullopt) {
        Opened opened;
        for (const int rank : members)
            opened.push_back(at(static_cast<unsigned>(rank)).open(id, members, barrier));
        return opened;
    }
    void kill(unsigned rank) {
        ranks.kill(rank);
        dead_[rank] = true;
    }

    /// Until all of these are over, or nothing has moved for long: their results, BBP_EAGAIN: not
    /// over.
    std::vector<int> finish_some(const std::vector<Group*>& groups) {
        std::vector<int> results(groups.size(), BBP_EAGAIN);
        for (unsigned quiet = 0; quiet < kQuiet; ++quiet) {
            for (unsigned r = 0; r < ranks.size(); ++r)
                if (!dead_[r] && ranks[r].device.progress()) quiet = 0;
            bool is_over = true;
            for (std::size_t i = 0; i < groups.size(); ++i) {
                if (results[i] == BBP_EAGAIN) results[i] = groups[i]->go_on();
                is_over &= results[i] != BBP_EAGAIN;
            }
            if (is_over) break;
        }
        return results;
    }
    std::vector<int> finish(const Opened& opened) {
        std::vector<Group*> groups;
        for (const auto& group : opened) groups.push_back(group.get());
        return finish_some(groups);
    }
    int finish(const std::unique_ptr<Group>& member) { return finish_some({member.get()})[0]; }
    std::uint64_t multicasts(unsigned rank) {
        return ranks[rank].device.transport_counters().multicasts;
    }

    DeviceRanks ranks;

private:
    /// More than the device's empty polls until it has looked for each rank.
    static constexpr unsigned kQuiet = 20'000;
    std::vector<std::unique_ptr<Collectives>> collectives_;
    std::vector<bool> dead_;
};

}  // namespace mpi_channel
