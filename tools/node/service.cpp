// SPDX-License-Identifier: Apache-2.0
#include "tools/node/service.hpp"

#include <systemd/sd-daemon.h>

namespace tools {

namespace {

// If the manager does not listen, the node goes on without it.
void tell(const std::string& what) {
    static_cast<void>(::sd_notify(0, what.c_str()));
}

}  // namespace

Service::Service() {
    std::uint64_t microseconds = 0;
    if (::sd_watchdog_enabled(0, &microseconds) > 0) {
        alive_every_ns_ = static_cast<std::int64_t>(microseconds) * 1000 / 2;
    }
}

void Service::ready() {
    tell("READY=1");
}

void Service::stopping() {
    tell("STOPPING=1");
}

void Service::status(const std::string& line) {
    if (line == status_) return;
    status_ = line;
    tell("STATUS=" + line);
}

void Service::tick(std::int64_t now) {
    if (alive_every_ns_ == 0 || now < alive_next_ns_) return;
    alive_next_ns_ = now + alive_every_ns_;
    tell("WATCHDOG=1");
}

}  // namespace tools
