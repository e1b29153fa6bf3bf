// SPDX-License-Identifier: Apache-2.0
#include "cards/rfm2g/host.hpp"

#include "rmem/base/clock.hpp"
#include "rmem/base/descriptor.hpp"

#include <poll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <utility>

namespace cards::rfm2g {

namespace {

using rmem::kNsPerSecond;

/// By poll(2), which ends when a signal handler has run, as a wait in the driver does.
class PolledBell final : public Bell {
public:
    explicit PolledBell(rmem::Descriptor fd) : fd_(std::move(fd)) {}

    void ring() override { fd_.raise(); }
    RFM2G_STATUS sleep(std::int64_t until_ns, int source) override {
        const std::int64_t left_ns = std::max<std::int64_t>(0, until_ns - rmem::now_ns());
        const timespec left{left_ns / kNsPerSecond, left_ns % kNsPerSecond};
        std::array<pollfd, 2> ready = {pollfd{fd_.get(), POLLIN, 0}, pollfd{source, POLLIN, 0}};
        const int count = ::ppoll(ready.data(), ready.size(), &left, nullptr);
        if (count < 0) return RFM2G_SIGNALED;
        eventfd_t rung = 0;
        if (ready[0].revents != 0) static_cast<void>(::eventfd_read(fd_.get(), &rung));
        return count == 0 ? RFM2G_TIMED_OUT : RFM2G_SUCCESS;
    }

private:
    const rmem::Descriptor fd_;
};

}  // namespace

int stores_of(rmem_node* node, std::size_t, std::size_t, void** memory) {
    return rmem_stores(node, RMEM_STORES_DEFAULT, memory);
}

std::unique_ptr<Bell> Bell::make() {
    rmem::Descriptor fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (fd.get() < 0) return nullptr;
    return std::make_unique<PolledBell>(std::move(fd));
}

}  // namespace cards::rfm2g
