// SPDX-License-Identifier: Apache-2.0
#include "mpi_channel/fm/fm_port.hpp"

#include "billboard/bbp.h"
#include "ports/fm/fm2.h"
#include "rmem/base/check.hpp"
#include "rmem/base/process_state.hpp"
#include "rmem/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>

namespace mpi_channel {

namespace {

constexpr ULONG kHandler = 1000;  ///< the same at all ranks, and hardly a program's own

/// The handler's: it has no argument for it. Each process of the simulator has one of its own.
FmPort* of_process = nullptr;
const bool registered = rmem::sim::exchanges<of_process>();

[[noreturn]] void fail(const char* call) {
    throw rmem::Error(rmem::Errc::system,
                      fmt::format("{} for RMEM_MPI=transport=fm, which all ranks must have: {}",
                                  call, bbp_last_error()));
}

}  // namespace

FmPort::FmPort() {
    if (FM_numnodes != 0) {
        throw rmem::Error(rmem::Errc::system,
                          "RMEM_MPI=transport=fm: this process uses Fast Messages already, and MPI "
                          "needs them for itself; choose another transport");
    }
    // The device tells of the dead, as requests that have failed.
    FM_set_parameter(FM_QUIET);
    const auto on_message = [](FM_stream* stream, unsigned sender) -> int {
        if (of_process != nullptr) of_process->take(stream, sender);
        return FM_QUIT;
    };
    if (FM_register_handler(kHandler, on_message) != kHandler) fail("FM_register_handler");
    RMEM_CHECK(of_process == nullptr);
    of_process = this;
    FM_initialize();
    if (FM_numnodes == 0) {
        of_process = nullptr;
        fail("FM_initialize");
    }
    in_.resize(std::min<std::size_t>(FM_packet_bytes(), Lead::kBytes + Lead::kMaxSize));
}

FmPort::~FmPort() {
    FM_finalize();
    of_process = nullptr;
}

int FmPort::send(Bytes head, Bytes body, unsigned to) {
    FM_stream* const stream = FM_try_begin_message(to, head.size() + body.size(), kHandler);
    if (stream == nullptr) return errno == EAGAIN || errno == EBUSY ? BBP_EAGAIN : BBP_EPEER;
    errno = 0;
    for (const Bytes piece : {head, body}) {
        if (!piece.empty())
            FM_send_piece(stream, const_cast<std::byte*>(piece.data()), piece.size());
    }
    FM_end_message(stream);
    return errno == EHOSTDOWN ? BBP_EPEER : BBP_OK;
}

std::optional<FmPort::Message> FmPort::receive() {
    has_come_ = false;
    FM_extract(~ULONG{0});  // until the handler has taken one
    RMEM_CHECK(!has_come_ || come_.bytes.empty() ||
               come_.bytes.size() == Lead::kBytes + Lead::read(come_.bytes.data()).size);
    return has_come_ ? std::optional(come_) : std::nullopt;
}

/// One that is not as its Lead says has no bytes.
void FmPort::take(void* of, unsigned sender) {
    auto* const stream = static_cast<FM_stream*>(of);
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

bool FmPort::has_backlog() noexcept {
    return FM_packets_kept() != 0;
}

std::uint64_t FmPort::handlers_entered() noexcept {
    return static_cast<std::uint64_t>(FM_count(FM_nodeid, FM_HANDLERS_ENTERED));
}

}  // namespace mpi_channel
