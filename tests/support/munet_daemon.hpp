// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A node's MU-Net daemon as a process of its own, and programs of it.
///
///     MunetDaemon daemon;
///     Child other([&] { daemon.enter(); mu_create_endpoint(&ep, 0, 65536); … });
///
/// Its socket and its board are this test's own, and removed at the end. Fork only from one thread.

#include "ports/munet/counter_board.hpp"
#include "ports/munet/daemon.hpp"
#include "ports/munet/driver_protocol.hpp"
#include "ports/munet/munet.h"
#include "tests/support/child.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace rmem::test {

class MunetDaemon {
public:
    explicit MunetDaemon(ports::munet::DriverConfig driver = {}) {
        static unsigned next = 0;
        name_ = "munet-" + std::to_string(::getpid()) + "-" + std::to_string(next++);
        driver.path = "/tmp/" + name_ + ".sock";
        config_ = {.driver = driver, .board = name_};
        start();
    }
    ~MunetDaemon() {
        daemon_.reset();
        ::unlink(path().c_str());
        ::shm_unlink(object().c_str());
    }

    void start() {
        daemon_ = std::make_unique<Child>([this] {
            ports::munet::Daemon daemon(config_, nullptr);
            while (true) daemon.run_for(10'000'000);
        });
        // relaxed is enough: it is asked until it is so
        EXPECT_TRUE(eventually([this] {
            const auto seen = board();
            return seen && seen->pid.load(std::memory_order_relaxed) ==
                               static_cast<std::uint32_t>(daemon_->pid());
        }));
    }
    void kill() { daemon_->kill(); }
    Child& process() { return *daemon_; }
    std::string object() const { return ports::munet::CounterBoard::object_name(name_); }
    const std::string& path() const { return config_.driver.path; }
    const ports::munet::DaemonConfig& config() const { return config_; }

    /// This process's calls go to it from now on.
    void enter() const {
        ::setenv("RMEM_MUNET", path().c_str(), 1);  // NOLINT(concurrency-mt-unsafe): one thread
    }
    /// As a library connects to it, which has said nothing yet.
    Descriptor connect() const {
        sockaddr_un address;
        EXPECT_TRUE(ports::munet::make_address(path(), &address));
        Descriptor fd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
        EXPECT_EQ(::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
        return fd;
    }
    std::shared_ptr<const ports::munet::BoardMemory> board() const {
        return ports::munet::CounterBoard::observe(name_);
    }
    std::uint64_t count(unsigned endpoint, ports::munet::Counter counter) const {
        return board()->endpoints[endpoint].get(counter);
    }
    std::uint64_t count(ports::munet::NodeCounter counter) const {
        return board()->node.get(counter);
    }
    unsigned active() const {
        // relaxed is enough: it is asked until it is so
        return board()->active.load(std::memory_order_relaxed);
    }

private:
    std::string name_;
    ports::munet::DaemonConfig config_;
    std::unique_ptr<Child> daemon_;
};

// ---- What programs do

inline mu_endpoint_t* mu_create(std::size_t send = 65536, std::size_t receive = 65536) {
    mu_endpoint_t* ep = nullptr;
    EXPECT_EQ(mu_create_endpoint(&ep, send, receive), 0) << mu_last_error();
    return ep;
}
inline mu_addr_t mu_own(const mu_endpoint_t* ep) {
    mu_addr_t own{};
    EXPECT_EQ(mu_address(ep, &own), 0);
    return own;
}
/// Receives, waiting at most 30 s; the length, or what failed.
inline int mu_await(mu_endpoint_t* ep, void* buffer, std::size_t room, mu_addr_t* from = nullptr) {
    int result = -EAGAIN;
    while ((result = mu_recv(ep, buffer, room, from)) == -EAGAIN) {
        if (const int waited = mu_wait(ep, 30'000'000'000); waited < 0) return waited;
    }
    return result;
}
inline int mu_send_number(mu_endpoint_t* ep, mu_addr_t to, std::uint32_t number) {
    return mu_send(ep, to, &number, sizeof number);
}
/// The next number; fails where there is none in time.
inline std::uint32_t mu_number(mu_endpoint_t* ep, mu_addr_t* from = nullptr) {
    std::uint32_t number = ~0U;
    EXPECT_EQ(mu_await(ep, &number, sizeof number, from), 4) << mu_last_error();
    return number;
}

/// An endpoint of this process, to its end.
class MuEndpoint {
public:
    explicit MuEndpoint(std::size_t send = 65536, std::size_t receive = 65536)
        : ep_(mu_create(send, receive)) {}
    ~MuEndpoint() { EXPECT_EQ(mu_destroy_endpoint(ep_), 0) << mu_last_error(); }
    MuEndpoint(const MuEndpoint&) = delete;
    MuEndpoint& operator=(const MuEndpoint&) = delete;
    operator mu_endpoint_t*() const { return ep_; }
    mu_addr_t address() const { return mu_own(ep_); }
    /// Its own message comes back.
    void expect_works() const {
        EXPECT_EQ(mu_send_number(ep_, address(), 3), 0) << mu_last_error();
        EXPECT_EQ(mu_number(ep_), 3U);
    }

private:
    mu_endpoint_t* ep_;
};

/// A number that processes of a test tell each other; 0: not yet.
using Word = SharedValue<std::atomic<std::uint32_t>>;
inline std::uint32_t await_word(const Word& word) {
    EXPECT_TRUE(eventually([&] { return *word != 0; }));
    return *word;
}

/// Another program of the daemon's, with an endpoint.
class MuProgram {
public:
    MuProgram(const MunetDaemon& daemon, const std::function<void(mu_endpoint_t*)>& body)
        : process([&, this] {
              daemon.enter();
              const MuEndpoint ep;
              *told_ = 1U + ep.address().ep;
              body(ep);
          }) {}
    mu_addr_t address() const { return {0, static_cast<unsigned char>(await_word(told_) - 1)}; }

private:
    const Word told_;

public:
    Child process;
};

}  // namespace rmem::test
