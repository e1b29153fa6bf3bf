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
#include "tests/support/fake_far_memory.hpp"
#include "tests/support/patterns.hpp"
#include "tests/support/pipes.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace mpi_channel {

using rmem::test::pattern;

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

/// A device, and its reports.
class DeviceRank final : public Completions, public RemoteEvents {
public:
    DeviceRank(Pipe& pipe, rmem::test::FakeFarMemory::Offers& offers)
        : far(offers), device(pipe, *this) {
        device.serve(regions, *this);
    }

    void completed(const Completion& completion) override { told.push_back(completion); }
    void over(const RemoteCompletion& completion) override { ended.push_back(completion); }
    void touched(const RemoteTouch& touch) override { touches.push_back(touch); }

    Regions regions;
    FakeMemory memory;              ///< of the others, as seen from here
    rmem::test::FakeFarMemory far;  ///< used after use_far_memory()
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
        silence(rank);
    }
    /// Its device makes no progress any more; what is sent in its name is the test's.
    void silence(unsigned rank) { is_dead_[rank] = true; }

    Pipes pipes;

private:
    rmem::test::FakeFarMemory::Offers offers_;
    std::vector<std::unique_ptr<DeviceRank>> all_;
    std::map<unsigned, bool> is_dead_;
};

/// Cut at some places.
inline Parts parts_of(std::vector<std::byte>& bytes, unsigned pieces = 1) {
    Parts parts;
    for (unsigned i = 0; i < pieces; ++i) {
        const std::size_t from = bytes.size() * i / pieces, to = bytes.size() * (i + 1) / pieces;
        parts.push_back({bytes.data() + from, to - from});
    }
    return parts;
}

inline std::vector<std::byte> written(const Packet& packet) {
    std::vector<std::byte> bytes(kMaxPacketBytes);
    bytes.resize(write(packet, bytes.data()));
    return bytes;
}

}  // namespace mpi_channel
