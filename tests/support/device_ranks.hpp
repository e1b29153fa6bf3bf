// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Devices over pipes (tests/support/pipes.hpp), and memories of peers, near and far, that tests
/// can close.
///
///     DeviceRanks ranks(2);
///     ranks[0].device.send(…);
///     ranks.run();
///
/// All are of one process, so that an address of one rank's is good for all; FakeMemory reads
/// there.

#include "mpi_channel/device/device.hpp"
#include "tests/support/pipes.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace mpi_channel {

class FakeMemory final : public PeerMemory {
public:
    bool reaches(unsigned rank) override { return !far[rank]; }
    bool read(unsigned rank, std::uint64_t address, std::span<std::byte> to) override {
        if (far[rank] || (left != kAll && left < to.size())) return false;
        if (left != kAll) left -= to.size();
        std::memcpy(to.data(), reinterpret_cast<const void*>(address), to.size());
        bytes_read += to.size();
        return true;
    }

    static constexpr std::size_t kAll = ~std::size_t{0};
    std::map<unsigned, bool> far;  ///< ranks out of reach, as is known
    std::size_t left = kAll;       ///< this many bytes can be read before it refuses
    std::size_t bytes_read = 0;
};

/// Offers are known to all by their keys. Reads end one at a time, in progress().
class FakeFarMemory final : public FarMemory {
public:
    using Offers = std::map<std::uint64_t, std::span<const std::byte>>;
    explicit FakeFarMemory(Offers& all) : offers(all) {}

    bool reaches(unsigned rank, std::size_t) override { return !near[rank] && !unread[rank]; }
    std::span<const std::byte> name() override { return own_name; }
    std::optional<Place> offer(std::span<const std::byte> bytes) override {
        const std::uint64_t key = offers.empty() ? 1 : offers.rbegin()->first + 1;
        offers[key] = bytes;
        ++offered;
        return Place{1000, key};
    }
    void withdraw(const Place& place) noexcept override { offers.erase(place.key), --offered; }
    void found_no_reader(unsigned rank) override { unread[rank] = true; }
    bool meet(unsigned, std::span<const std::byte> name) override {
        return is_open && std::equal(name.begin(), name.end(), own_name.begin(), own_name.end());
    }
    void read(unsigned rank, const Place& place, std::span<std::byte> to,
              std::uint32_t number) override {
        reads.push_back({rank, place, to, number});
    }
    void drop(unsigned rank) override {
        std::erase_if(reads, [rank](const Read& read) { return read.rank == rank; });
    }
    std::optional<Ended> progress() override {
        if (reads.empty() || holds) return std::nullopt;
        const Read read = reads.front();
        reads.erase(reads.begin());
        if (left == 0 || !offers.contains(read.place.key)) return Ended{read.number, false};
        if (left != kAll) --left;
        const auto bytes = offers[read.place.key].subspan(read.place.address - 1000);
        std::memcpy(read.to.data(), bytes.data(), read.to.size());
        bytes_read += read.to.size();
        return Ended{read.number, true};
    }
    bool is_busy() const noexcept override { return !reads.empty() || offered != 0; }

    static constexpr unsigned kAll = ~0U;
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
    bool is_open = true;   ///< it meets others
    bool holds = false;    ///< reads do not end
    unsigned left = kAll;  ///< this many reads before it refuses
    unsigned offered = 0;  ///< and not withdrawn
    std::size_t bytes_read = 0;
};

/// A device, and its reports.
class DeviceRank final : public Completions, public RemoteEvents {
public:
    DeviceRank(Pipe& pipe, FakeFarMemory::Offers& offers) : far(offers), device(pipe, *this) {
        device.serve(regions, *this);
    }

    void completed(const Completion& completion) override { told.push_back(completion); }
    void over(const RemoteCompletion& completion) override { ended.push_back(completion); }
    void touched(const RemoteTouch& touch) override { touches.push_back(touch); }

    Regions regions;
    FakeMemory memory;  ///< of the others, as seen from here
    FakeFarMemory far;  ///< used after use_far_memory()
    Device<Pipe> device;
    std::vector<Completion> told;
    std::vector<RemoteCompletion> ended;
    std::vector<RemoteTouch> touches;
};

class DeviceRanks {
public:
    explicit DeviceRanks(unsigned ranks, unsigned seed = 1, std::size_t most = 8)
        : pipes(ranks, seed, most) {
        for (unsigned r = 0; r < ranks; ++r)
            all_.push_back(std::make_unique<DeviceRank>(pipes.of(r), offers_));
    }
    DeviceRank& operator[](unsigned rank) { return *all_[rank]; }
    unsigned size() const { return static_cast<unsigned>(all_.size()); }

    /// Each reads messages of `least` to `most` bytes, and accesses from `least` on, from the
    /// others' memory.
    void use_memory(std::size_t least, std::size_t most = kNoGets) {
        for (auto& rank : all_) rank->device.use(rank->memory, least, most);
    }
    /// Each reads long messages from those that offer them.
    void use_far_memory() {
        for (auto& rank : all_) rank->device.use_far(rank->far);
    }
    /// Until nothing moves any more.
    void run() {
        for (unsigned quiet = 0; quiet < 4000;) {
            bool any = false;
            for (unsigned r = 0; r < all_.size(); ++r)
                any |= !is_dead_[r] && all_[r]->device.progress();
            quiet = any ? 0 : quiet + 1;
        }
    }
    void kill(unsigned rank) {
        pipes.kill(rank);
        is_dead_[rank] = true;
    }

    Pipes pipes;

private:
    FakeFarMemory::Offers offers_;
    std::vector<std::unique_ptr<DeviceRank>> all_;
    std::map<unsigned, bool> is_dead_;
};

inline std::vector<std::byte> bytes_of(std::size_t size, unsigned seed) {
    std::vector<std::byte> bytes(size);
    for (std::size_t i = 0; i < size; ++i)
        bytes[i] = static_cast<std::byte>(seed * 131 + i * 7 + (i >> 8));
    return bytes;
}

/// Cut at some places.
inline Parts parts_of(std::vector<std::byte>& bytes, unsigned pieces = 1) {
    Parts parts;
    for (unsigned i = 0; i < pieces; ++i) {
        const std::size_t from = bytes.size() * i / pieces, to = bytes.size() * (i + 1) / pieces;
        parts.push_back({bytes.data() + from, to - from});
    }
    return parts;
}

}  // namespace mpi_channel
