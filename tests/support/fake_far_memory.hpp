// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The memory of ranks of one process as if they were far from each other, which tests can close.
///
///     FakeFarMemory::Offers offers;                  one for all ranks
///     FakeFarMemory far(offers);                     one for each
///     far.holds = true;                              reads do not end, until it is false
///
/// Thread safety: ranks may be threads. What a test sets is looked at by the next call.

#include "rmem/link/far_memory.hpp"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

namespace rmem::test {

/// Offers are known to all by their keys. Reads end one at a time, in progress().
class FakeFarMemory final : public FarMemory {
public:
    struct Offers {
        std::mutex mutex;
        std::map<std::uint64_t, std::span<const std::byte>> by_key;
        std::uint64_t last = 0;
    };
    explicit FakeFarMemory(Offers& all) : offers(all) {}

    bool reaches(unsigned rank, std::size_t) override { return !near[rank] && !unread[rank]; }
    std::span<const std::byte> name() override { return own_name; }
    std::optional<Place> offer(std::span<const std::byte> bytes) override {
        const std::lock_guard lock(offers.mutex);
        offers.by_key[++offers.last] = bytes;
        ++offered;
        return Place{kAddress, offers.last};
    }
    void withdraw(const Place& place) noexcept override {
        const std::lock_guard lock(offers.mutex);
        offers.by_key.erase(place.key);
        --offered;
    }
    void found_no_reader(unsigned rank) override { unread[rank] = true; }
    bool meet(unsigned, std::span<const std::byte> name) override {
        return is_open && std::equal(name.begin(), name.end(), own_name.begin(), own_name.end());
    }
    void read(unsigned rank, const Place& place, std::span<std::byte> to,
              std::uint32_t number) override {
        reads.push_back({rank, place, to, number});
        ++asked;
    }
    void drop(unsigned rank) noexcept override {
        std::erase_if(reads, [rank](const Read& read) { return read.rank == rank; });
        ++dropped;
    }
    std::optional<Ended> progress() override {
        if (reads.empty() || holds) return std::nullopt;
        const Read read = reads.front();
        reads.erase(reads.begin());
        const std::lock_guard lock(offers.mutex);
        const auto offer = offers.by_key.find(read.place.key);
        const std::uint64_t from = read.place.address - kAddress;
        if (left == 0 || offer == offers.by_key.end() || from > offer->second.size() ||
            read.to.size() > offer->second.size() - from)
            return Ended{read.number, false};
        if (left != kAll) --left;
        std::memcpy(read.to.data(), offer->second.data() + from, read.to.size());
        bytes_read += read.to.size();
        return Ended{read.number, true};
    }
    bool is_busy() const noexcept override { return !reads.empty() || offered != 0; }

    static constexpr unsigned kAll = ~0U;
    static constexpr std::uint64_t kAddress = 1000;  ///< of each offer's beginning
    struct Read {
        unsigned rank;
        Place place;
        std::span<std::byte> to;
        std::uint32_t number;
    };
    Offers& offers;
    std::vector<Read> reads;          ///< under way
    std::map<unsigned, bool> near;    ///< ranks that are offered nothing
    std::map<unsigned, bool> unread;  ///< ranks that have not read
    std::vector<std::byte> own_name = std::vector<std::byte>(16, std::byte{7});
    std::atomic<bool> is_open = true;   ///< it meets others
    std::atomic<bool> holds = false;    ///< reads do not end
    std::atomic<unsigned> left = kAll;  ///< this many reads before it refuses
    std::atomic<unsigned> offered = 0;  ///< and not withdrawn
    std::atomic<unsigned> asked = 0, dropped = 0;
    std::atomic<std::size_t> bytes_read = 0;
};

}  // namespace rmem::test
