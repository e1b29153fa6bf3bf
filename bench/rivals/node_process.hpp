// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The daemon `rmem node` beside one rank of a measured pair: from its start until the rank's end.
///
/// RIVALS_NODE names the program `rmem`; unset, there is no daemon and the rank runs its node
/// itself. RIVALS_NODE_CPUS gives each node's daemon a processor of its own, on which it never
/// sleeps; unset, it runs on its rank's.

#include "method.hpp"

#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <string>
#include <string_view>

namespace rivals {

class NodeProcess {
public:
    NodeProcess(const std::string& ring, int node) {
        const char* const tool = std::getenv("RIVALS_NODE");
        if (tool == nullptr) return;
        const int notices = listen_for_notices(ring, node);
        pid_ = fork_child(SIGTERM);
        if (pid_ == 0) become_node(tool, ring, node);
        await_ready(notices);
        close(notices);
    }
    ~NodeProcess() {
        if (pid_ <= 0) return;
        kill(pid_, SIGTERM);
        waitpid(pid_, nullptr, 0);
    }
    NodeProcess(const NodeProcess&) = delete;
    NodeProcess& operator=(const NodeProcess&) = delete;

private:
    /// Where the daemon says that it is ready, as to systemd.
    int listen_for_notices(const std::string& ring, int node) {
        const std::string name = ring + "-node-" + std::to_string(node);
        sockaddr_un address{};
        address.sun_family = AF_UNIX;  // the name begins with a zero: it is in no directory
        std::memcpy(address.sun_path + 1, name.data(), name.size());
        const int notices = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        const auto size = socklen_t(offsetof(sockaddr_un, sun_path) + 1 + name.size());
        require(notices >= 0 && bind(notices, reinterpret_cast<sockaddr*>(&address), size) == 0,
                "no socket for the notices of `rmem node`");
        const timeval patience{20, 0};
        setsockopt(notices, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
        notify_ = "@" + name;
        return notices;
    }

    [[noreturn]] void become_node(const char* tool, const std::string& ring, int node) {
        setenv("NOTIFY_SOCKET", notify_.c_str(), 1);
        const std::string number = std::to_string(node);
        const char* spin = nullptr;
        if (const char* const cpus = std::getenv("RIVALS_NODE_CPUS")) {
            pin_to(cpu_of(cpus, node));
            spin = "--spin";
        }
        execl(tool, tool, "node", "--ring", ring.c_str(), "--node", number.c_str(), "--nodes", "2",
              "--quiet", spin, nullptr);
        _exit(127);
    }

    static int cpu_of(const char* list, int node) {
        std::istringstream cpus(list);
        std::string one;
        for (int i = 0; i <= node; ++i)
            require(bool(std::getline(cpus, one, ',')), "RIVALS_NODE_CPUS is too short");
        return std::stoi(one);
    }

    static void await_ready(int notices) {
        char text[512];
        for (;;) {
            const ssize_t size = recv(notices, text, sizeof text, 0);
            require(size >= 0, "`rmem node` is not ready after 20 s");
            if (std::string_view(text, std::size_t(size)).find("READY=1") != std::string_view::npos)
                return;
        }
    }

    std::string notify_;
    pid_t pid_ = 0;
};

}  // namespace rivals
