// SPDX-License-Identifier: Apache-2.0
//
// MPI over Directed Point: one endpoint is the sink of all others' edges and is read in place; for
// each rank an endpoint with an edge to that rank's sink, under the Go-Back-N layer, since MPI
// loses nothing. A header names no source, so the Lead does. A broadcast of that layer is a message
// on each edge anyway, in an order of its own: so packets to several ranks go by their edges.
#include "mpi_channel/ports/ports.hpp"

#include "billboard/bbp.h"
#include "ports/dp/dp.h"
#include "rmem/base/copy.hpp"
#include "rmem/error.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

namespace mpi_channel {

namespace {

/// Below the last ones, so hardly a program's own; that of an edge is its rank behind it.
constexpr int kSinkDpid = 65000;
constexpr std::int64_t kDrainSliceNs = 1'000'000;

class DpPort final : public Port {
public:
    explicit DpPort(billboard::ProcessEndpoint& process)
        : process_(process), sink_(open(kSinkDpid)) {
        const auto container = static_cast<std::size_t>(dp_container());
        out_.resize(std::min(container, Lead::kBytes + Lead::kMostSize));
        for (unsigned rank = 0; rank < process.endpoint().ranks(); ++rank)
            edges_.push_back(open_edge(static_cast<int>(rank)));
    }
    ~DpPort() override {
        receive();  // the last answers are due
        const std::int64_t end = rmem::program_now_ns() + kSettleNs;
        for (unsigned rank = 0; rank < edges_.size(); ++rank) drain(rank, end);
    }

    std::size_t most() const noexcept override { return out_.size(); }

    int send(Bytes head, Bytes body, unsigned to) override {
        rmem::copy_bytes(out_.data(), head.data(), head.size());
        if (!body.empty()) rmem::copy_bytes(out_.data() + head.size(), body.data(), body.size());
        const auto size = static_cast<int>(head.size() + body.size());
        if (dp_write(edges_[to].fd, out_.data(), size) == size) return BBP_OK;
        return errno == EAGAIN || errno == ENOBUFS ? BBP_EAGAIN : BBP_EPEER;
    }
    int broadcast(Bytes, Bytes) override { return BBP_EINVAL; }
    bool can_broadcast() const noexcept override { return false; }

    std::optional<Message> receive() override {
        if (is_reading_) dp_fsync(sink_.fd, 1);
        char* at = nullptr;
        for (;;) {
            const int length = dp_try_read(sink_.fd, &at);
            is_reading_ = length >= 0 && at != nullptr;
            if (!is_reading_) return std::nullopt;
            const Bytes bytes(reinterpret_cast<const std::byte*>(at),
                              static_cast<std::size_t>(length));
            if (bytes.size() >= Lead::kBytes && Lead::read(bytes.data()).from < edges_.size())
                return Message{Lead::read(bytes.data()).from, bytes};
            dp_fsync(sink_.fd, 1);  // nobody's
        }
    }
    /// The library's thread retransmits what is not acknowledged.
    bool has_backlog() const noexcept override { return false; }
    int wait_descriptor() override { return sink_.fd; }
    Tally tally() const override {
        dp_stat_t counts{};
        dp_stat(sink_.fd, &counts);
        return {"Directed Point", "arrived", counts.arrived};
    }

private:
    struct Endpoint {
        explicit Endpoint(int its_fd) : fd(its_fd) {}
        ~Endpoint() {
            if (fd >= 0) dp_close(fd);
        }
        Endpoint(Endpoint&& other) noexcept : fd(std::exchange(other.fd, -1)) {}
        Endpoint(const Endpoint&) = delete;
        Endpoint& operator=(const Endpoint&) = delete;
        int fd;
    };

    [[noreturn]] static void fail(const char* call, const char* why) {
        throw rmem::Error(
            rmem::Errc::system,
            fmt::format("{} for RMEM_MPI_TRANSPORT=dp, which all ranks must have: {}", call, why));
    }
    static Endpoint open(int dpid) {
        const int fd = dp_open(dpid);
        if (fd < 0) fail("dp_open", dp_last_error());
        return Endpoint(fd);
    }
    static Endpoint open_edge(int rank) {
        Endpoint endpoint = open(kSinkDpid + 1 + rank);
        if (::fcntl(endpoint.fd, F_SETFL, O_NONBLOCK) != 0) fail("fcntl", std::strerror(errno));
        if (dp_reliable(endpoint.fd, 1) != 0) fail("dp_reliable", std::strerror(errno));
        dp_target(endpoint.fd, rank, kSinkDpid);
        return endpoint;
    }
    /// Until all has been acknowledged, or the rank is no more.
    void drain(unsigned rank, std::int64_t end) {
        while (dp_drain(edges_[rank].fd, kDrainSliceNs) != 0 && errno == ETIMEDOUT &&
               rmem::program_now_ns() < end &&
               process_.guarded().probe(static_cast<int>(rank), nullptr, billboard::Class::mpi) !=
                   BBP_EPEER) {
        }
    }

    billboard::ProcessEndpoint& process_;
    Endpoint sink_;
    std::vector<Endpoint> edges_;  ///< to each rank
    std::vector<std::byte> out_;
    bool is_reading_ = false;  ///< the oldest message of the pool
};

}  // namespace

std::unique_ptr<Port> open_dp_port(billboard::ProcessEndpoint& process) {
    return std::make_unique<DpPort>(process);
}

}  // namespace mpi_channel
