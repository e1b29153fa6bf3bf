// SPDX-License-Identifier: Apache-2.0
//
// MPI over GAMMA: a port for each other process, bound to its node. A message arrives in the
// buffer that its port is bound to, and the handler binds a fresh one, so nothing is copied;
// BROADCAST is a port of its own. Handlers run in the device's calls alone.
#include "mpi_channel/ports/ports.hpp"

#include "billboard/bbp.h"
#include "mpi_channel/ports/of_process.hpp"
#include "ports/gamma/libgamma.h"
#include "rmem/error.hpp"

#include <fmt/format.h>

#include <deque>
#include <memory>
#include <vector>

namespace mpi_channel {

namespace {

constexpr unsigned kBroadcastPort = 254;  ///< the last; those below are named after their nodes
constexpr unsigned short kSemaphore = 0;

void check(int result, const char* call) {
    if (result >= 0) return;
    throw rmem::Error(rmem::Errc::system,
                      fmt::format("{} for RMEM_MPI_TRANSPORT=gamma, which all ranks must have: {}",
                                  call, gamma_last_error()));
}

class GammaPort final : public Port {
public:
    explicit GammaPort(billboard::ProcessEndpoint& process)
        : process_(process), ranks_(process.endpoint().ranks()) {
        if (ranks_ > kBroadcastPort) {
            throw rmem::Error(rmem::Errc::bad_environment,
                              fmt::format("{} ranks are too many for RMEM_MPI_TRANSPORT=gamma; "
                                          "give at most {}, or another transport",
                                          ranks_, kBroadcastPort));
        }
        check(gamma_init(static_cast<unsigned char>(ranks_), 0, nullptr), "gamma_init");
        try {
            join();
        } catch (...) {
            gamma_exit();
            throw;
        }
    }
    ~GammaPort() override {
        gamma_exit();
        OfProcess<GammaPort>::set(nullptr);
    }

    std::size_t most() const noexcept override { return most_; }

    int send(Bytes head, Bytes body, unsigned to) override { return send_by(to, head, body); }
    int broadcast(Bytes head, Bytes body) override { return send_by(kBroadcastPort, head, body); }
    bool can_broadcast() const noexcept override { return true; }

    std::optional<Message> receive() override {
        if (in_use_) free_.push_back(std::move(in_use_));
        if (come_.empty()) gamma_test(kSemaphore, 1);
        if (come_.empty()) return std::nullopt;
        in_use_ = std::move(come_.front().buffer);
        const Message message{come_.front().from, {in_use_.get(), come_.front().size}};
        come_.pop_front();
        return message;
    }
    bool has_backlog() const noexcept override { return false; }
    int wait_descriptor() override { return process_.guarded().fd(); }
    Tally tally() const override {
        const auto pid = static_cast<unsigned char>(gamma_my_par_pid());
        const auto node = static_cast<unsigned short>(gamma_my_node());
        constexpr const char* kCounter = "messages_received";
        return {"GAMMA", kCounter, static_cast<std::uint64_t>(gamma_counter(pid, node, kCounter))};
    }

private:
    using Buffer = std::unique_ptr<std::byte[]>;
    struct Come {
        unsigned from;
        std::size_t size;
        Buffer buffer;
    };

    void join() {
        if (gamma_how_many_nodes() != static_cast<int>(ranks_) ||
            gamma_my_node() != static_cast<int>(process_.endpoint().rank())) {
            throw rmem::Error(rmem::Errc::bad_environment,
                              "RMEM_MPI_TRANSPORT=gamma needs all ranks in one group of GAMMA: "
                              "unset RMEM_GAMMA_PID");
        }
        check(gamma_set_progress(0), "gamma_set_progress");
        most_ = static_cast<std::size_t>(gamma_frame_bytes());
        bound_.resize(ranks_);
        OfProcess<GammaPort>::set(this);
        for (unsigned node = 0; node < ranks_; ++node) {
            bound_[node] = fresh();
            bind(node, static_cast<unsigned short>(node), bound_[node].get(), most_);
        }
        bind(kBroadcastPort, BROADCAST, nullptr, 0);
        check(gamma_sync(), "gamma_sync");  // from here on nobody's messages meet an unbound port
    }
    void bind(unsigned port, unsigned short node, void* buffer, std::size_t size) {
        const auto own = static_cast<unsigned short>(gamma_my_node());
        const auto pid = static_cast<unsigned char>(gamma_my_par_pid());
        check(gamma_set_active_port(static_cast<unsigned short>(port), node, pid, own, on_message,
                                    kSemaphore, GO_BACK, buffer, size),
              "gamma_set_active_port");
    }
    int send_by(unsigned port, Bytes head, Bytes body) {
        const int result = gamma_try_send_2p(static_cast<unsigned short>(port),
                                             const_cast<std::byte*>(head.data()), head.size(),
                                             const_cast<std::byte*>(body.data()), body.size());
        if (result == GAMMA_EAGAIN) return BBP_EAGAIN;
        return result == 0 ? BBP_OK : BBP_EPEER;
    }

    static void on_message() {
        GammaPort& port = *OfProcess<GammaPort>::get();
        const unsigned node = gamma_active_port;
        if (node >= port.ranks_) return;
        Buffer next = port.fresh();
        gamma_post_recv(gamma_active_port, next.get(), port.most_);
        std::swap(port.bound_[node], next);
        port.come_.push_back({node, static_cast<std::size_t>(gamma_msglen), std::move(next)});
    }
    Buffer fresh() {
        if (free_.empty()) return std::make_unique_for_overwrite<std::byte[]>(most_);
        Buffer buffer = std::move(free_.back());
        free_.pop_back();
        return buffer;
    }

    billboard::ProcessEndpoint& process_;
    unsigned ranks_;
    std::size_t most_ = 0;
    std::vector<Buffer> bound_;  ///< to the port of each node
    std::vector<Buffer> free_;
    std::deque<Come> come_;  ///< as many as one gamma_test takes in
    Buffer in_use_;          ///< by the caller: the last message
};

}  // namespace

std::unique_ptr<Port> open_gamma_port(billboard::ProcessEndpoint& process) {
    return std::make_unique<GammaPort>(process);
}

}  // namespace mpi_channel
