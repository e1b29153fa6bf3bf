// SPDX-License-Identifier: Apache-2.0
#include "rmem/link/seat.hpp"

#include "rmem/base/at_fork.hpp"

#include <map>
#include <mutex>
#include <string>

namespace rmem {

namespace {

class Seats final : private AtFork {
public:
    using Key = std::pair<std::string, unsigned>;

    std::mutex mutex;
    std::map<Key, std::weak_ptr<void>> all;

private:
    void in_child() noexcept override { all.clear(); }
};

/// Leaked on purpose: a rank that leaves during exit still looks.
Seats& seats() {
    static auto* const made = new Seats;
    return *made;
}

std::atomic<RegionsOf> regions_of{nullptr};

}  // namespace

std::shared_ptr<void> find_seat(const Ring& ring, unsigned rank) {
    const std::lock_guard lock(seats().mutex);
    const auto found = seats().all.find({ring.segment_name(), rank});
    return found == seats().all.end() ? nullptr : found->second.lock();
}

void show_seat(const Ring& ring, unsigned rank, const std::shared_ptr<void>& seat) {
    const std::lock_guard lock(seats().mutex);
    std::erase_if(seats().all, [](const auto& entry) { return entry.second.expired(); });
    seats().all[{ring.segment_name(), rank}] = seat;
}

void refuse_threads() {
    throw Error(
        Errc::invalid_argument,
        "a process with a node on link ring or udp can have no port with a progress thread "
        "(GAMMA, Directed Point), which would write beside it; use link direct, or a process "
        "of its own for the node");
}

void set_system_regions(RegionsOf regions) noexcept {
    // relaxed is enough: it is set while the library is loaded
    regions_of.store(regions, std::memory_order_relaxed);
}

RingConfig config_to_make(const Environment& environment) {
    const RegionsOf regions =
        regions_of.load(std::memory_order_relaxed);  // relaxed is enough: as above
    return regions != nullptr ? regions(environment) : environment.ring_config();
}

}  // namespace rmem
