// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Serves one text over HTTP, to anyone who asks for GET /metrics: from a thread of its own, so
/// that nobody who asks, and nothing that is asked, makes its owner wait.
///
/// Trust: anyone who reaches the port may ask anything. A request has kMaxRequestBytes and
/// kMaxTime, answer included; kMaxConnections are open at once; one more ends the one that has
/// been at its request for the longest time, so that requests that never end keep nobody away. Each
/// gets one answer, and is closed.
/// Thread safety: the text is made by the server's thread.
/// Errors: the constructor throws `rmem::Error`: bad_environment for an invalid address, system for
/// one that cannot be bound. A later failure ends only its connection; a text that cannot be made
/// is answered with 500.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace tools {

class MetricsServer {
public:
    using Text = std::function<std::string()>;
    static constexpr std::size_t kMaxRequestBytes = 8192;
    static constexpr std::size_t kMaxConnections = 16;
    static constexpr std::chrono::seconds kMaxTime{5};

    /// Port 0: the system chooses one. From here on it answers.
    MetricsServer(const std::string& address, std::uint16_t port, Text text,
                  std::chrono::steady_clock::duration most_time = kMaxTime);
    ~MetricsServer();
    MetricsServer(const MetricsServer&) = delete;
    MetricsServer& operator=(const MetricsServer&) = delete;

    std::uint16_t port() const;
    /// "http://127.0.0.1:9464/metrics"
    std::string url() const;

private:
    class Server;
    std::unique_ptr<Server> server_;
};

}  // namespace tools
