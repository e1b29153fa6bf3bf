// SPDX-License-Identifier: Apache-2.0

/// A card whose node `rmem serve` keeps: on another host, or for another system.

#include "cards/rfm2g/host.hpp"

#include "cards/common/unit.hpp"
#include "remote/rmem_calls.hpp"
#include "rmem/base/clock.hpp"
#include "rmem/base/environment_variable.hpp"
#include "rmem/base/failures.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <limits>
#include <mutex>

namespace cards {

namespace {

constexpr const char* kServer = "RFM2G_SERVER";

/// The first unit's.
remote::Address server_address() {
    const char* const text = std::getenv(kServer);  // NOLINT(concurrency-mt-unsafe)
    if (text == nullptr || *text == '\0') return {"127.0.0.1", remote::kFirstPort};
    return remote::parse_address(kServer, text);
}

}  // namespace

std::string setting_of_units(const char* name) {
    return rmem::environment_text(name);
}

OwnNode open_unit(unsigned unit, int& code) noexcept {
    rmem_node* node = nullptr;
    code = rmem::guarded([&]() -> int {
        // As the vendor's driver of Windows counts its boards.
        if (unit == 0) {
            return rmem::fail(RMEM_ESYS,
                              "units count from 1 here; give a path such as \\\\.\\rfm2g1");
        }
        remote::Address address = server_address();
        const unsigned port = address.port + unit - 1;
        if (port > std::numeric_limits<std::uint16_t>::max()) {
            return rmem::fail(RMEM_ESYS, fmt::format("there is no port {}, which would be that of "
                                                     "unit {} (RFM2G_SERVER)",
                                                     port, unit));
        }
        address.port = static_cast<std::uint16_t>(port);
        return remote::open_node(&node, address);
    });
    return OwnNode(node);
}

}  // namespace cards

namespace cards::rfm2g {

namespace {

/// Between looks whether the connection is there.
constexpr std::int64_t kLongestSleepNs = 100'000'000;

class WaitedBell final : public Bell {
public:
    void ring() override {
        {
            const std::lock_guard lock(mutex_);
            is_rung_ = true;
        }
        rung_.notify_one();
    }
    RFM2G_STATUS sleep(std::int64_t until_ns, int) override {
        const std::int64_t left_ns = until_ns - rmem::now_ns();
        if (left_ns <= 0) return RFM2G_TIMED_OUT;
        std::unique_lock lock(mutex_);
        rung_.wait_for(lock, std::chrono::nanoseconds(std::min(left_ns, kLongestSleepNs)),
                       [this] { return is_rung_; });
        is_rung_ = false;
        return RFM2G_SUCCESS;
    }

private:
    std::mutex mutex_;
    std::condition_variable rung_;
    bool is_rung_ = false;
};

}  // namespace

int stores_of(rmem_node* node, std::size_t place, std::size_t bytes, void** memory) {
    return remote::map_node(node, place, bytes, memory);
}

std::unique_ptr<Bell> Bell::make() {
    return std::make_unique<WaitedBell>();
}

}  // namespace cards::rfm2g
