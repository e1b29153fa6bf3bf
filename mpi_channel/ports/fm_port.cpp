// SPDX-License-Identifier: Apache-2.0
//
// MPI over Fast Messages 2.x, as MPI-FM was: a message is written in pieces (Lead and header, then
// the payload) to a handler, which receives them; FM_try_begin_message finds no credit: BBP_EAGAIN.
// Each fits a packet, so that a message needs one credit. Fast Messages have no broadcast.
#include "mpi_channel/ports/ports.hpp"

#include "billboard/bbp.h"
#include "mpi_channel/ports/of_process.hpp"
#include "ports/fm/fm2.h"
#include "rmem/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <vector>

namespace mpi_channel {

namespace {

constexpr ULONG kHandler = 1000;  ///< the same at all ranks, and hardly a program's own

class FmPort final : public Port {
public:
    explicit FmPort(billboard::ProcessEndpoint& process) : process_(process) {
        if (FM_numnodes != 0) {
            throw rmem::Error(rmem::Errc::system,
                              "RMEM_MPI_TRANSPORT=fm: this process uses Fast Messages already, "
                              "and MPI needs them for itself; choose another transport");
        }
        // The device tells of the dead, as requests that have failed.
        FM_set_parameter(FM_QUIET);
        if (FM_register_handler(kHandler, on_message) != kHandler) fail("FM_register_handler");
        OfProcess<FmPort>::set(this);
        FM_initialize();
        if (FM_numnodes == 0) fail("FM_initialize");
        in_.resize(std::min<std::size_t>(FM_packet_bytes(), Lead::kBytes + Lead::kMostSize));
    }
    ~FmPort() override {
        FM_finalize();
        OfProcess<FmPort>::set(nullptr);
    }

    std::size_t most() const noexcept override { return in_.size(); }

    int send(Bytes head, Bytes body, unsigned to) override {
        const std::size_t size = head.size() + body.size();
        FM_stream* const stream = FM_try_begin_message(to, size, kHandler);
        if (stream == nullptr) return errno == EAGAIN || errno == EBUSY ? BBP_EAGAIN : BBP_EPEER;
        errno = 0;
        for (const Bytes piece : {head, body}) {
            if (!piece.empty())
                FM_send_piece(stream, const_cast<std::byte*>(piece.data()), piece.size());
        }
        FM_end_message(stream);
        return errno == EHOSTDOWN ? BBP_EPEER : BBP_OK;
    }
    int broadcast(Bytes, Bytes) override { return BBP_EINVAL; }
    bool can_broadcast() const noexcept override { return false; }

    std::optional<Message> receive() override {
        has_come_ = false;
        FM_extract(~ULONG{0});  // until the handler has taken one
        return has_come_ ? std::optional(come_) : std::nullopt;
    }
    bool has_backlog() const noexcept override { return FM_packets_kept() != 0; }
    int wait_descriptor() override { return process_.guarded().fd(); }
    Tally tally() const override {
        return {"Fast Messages", "handlers_entered",
                static_cast<std::uint64_t>(FM_count(FM_nodeid, FM_HANDLERS_ENTERED))};
    }

private:
    [[noreturn]] static void fail(const char* call) {
        throw rmem::Error(rmem::Errc::system,
                          fmt::format("{} for RMEM_MPI_TRANSPORT=fm, which all ranks must have: {}",
                                      call, bbp_last_error()));
    }
    static int on_message(FM_stream* stream, unsigned sender) {
        if (FmPort* port = OfProcess<FmPort>::get()) port->take(stream, sender);
        return FM_QUIT;
    }
    /// One that is not as its Lead says has no bytes.
    void take(FM_stream* stream, unsigned sender) {
        has_come_ = true;
        come_ = {sender, {}};
        errno = 0;
        FM_receive(in_.data(), stream, Lead::kBytes);
        if (errno != 0) return;
        const std::size_t size = Lead::read(in_.data()).size;
        if (size > in_.size() - Lead::kBytes) return;
        FM_receive(in_.data() + Lead::kBytes, stream, static_cast<unsigned>(size));
        if (errno == 0) come_.bytes = Bytes(in_).first(Lead::kBytes + size);
    }

    billboard::ProcessEndpoint& process_;
    std::vector<std::byte> in_;
    Message come_;
    bool has_come_ = false;
};

}  // namespace

std::unique_ptr<Port> open_fm_port(billboard::ProcessEndpoint& process) {
    return std::make_unique<FmPort>(process);
}

}  // namespace mpi_channel
