// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Notifications of a daemon to the service manager that started it (sd_notify(3)): that it is
/// ready, what it is doing, that it is alive. Without one, nothing happens.
/// Thread safety: one thread.

#include <cstdint>
#include <string>

namespace tools {

class Service {
public:
    Service();
    void ready();
    void stopping();
    /// One line for `systemctl status`; the same again costs nothing.
    void status(const std::string& line);
    /// Sends the keep-alive message when half of the manager's time-out is over (WatchdogSec).
    void tick(std::int64_t now);

private:
    std::int64_t alive_every_ns_ = 0;  ///< 0: nobody wants to know
    std::int64_t alive_next_ns_ = 0;
    std::string status_;
};

}  // namespace tools
