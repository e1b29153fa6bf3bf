// SPDX-License-Identifier: Apache-2.0
#include "mpi_channel/fm/fm_transport.hpp"

#include "rmem/base/copy.hpp"

#include <algorithm>
#include <utility>

namespace mpi_channel {

namespace {

constexpr std::size_t piece_of(std::size_t most) {
    return std::min(most - Lead::kBytes, Lead::kMaxSize);
}

}  // namespace

FmTransport::FmTransport(const billboard::Settings& settings)
    : process_(billboard::ProcessEndpoint::open(settings)),
      rank_(process_->endpoint().rank()),
      packet_most_(std::min(piece_of(port_.most()), packet_most_in(process_->endpoint()))),
      piece_most_(piece_of(port_.most())),
      due_(process_->endpoint().ranks()),
      head_(port_.most()) {}

std::shared_ptr<billboard::Endpoint> FmTransport::endpoint() const {
    return {process_, &process_->guarded()};
}

/// No message has class mpi here: that class tells of deaths alone.
int FmTransport::ask_for(unsigned from) {
    if (!has_next_) {
        const int result =
            process_->guarded().probe(static_cast<int>(from), nullptr, billboard::Class::mpi);
        // Its earlier messages come first.
        if (result == BBP_EPEER && !has_next()) return BBP_EPEER;
    }
    return has_next_ && next_from_ == from ? BBP_OK : BBP_EAGAIN;
}

// ---- Sending

void FmTransport::put_head(Lead::Kind kind, Bytes header, std::size_t body_bytes) {
    head_.resize(Lead::kBytes + header.size());
    Lead{kind, static_cast<std::uint8_t>(rank_),
         static_cast<std::uint16_t>(header.size() + body_bytes)}
        .write(head_.data());
    if (!header.empty())
        rmem::copy_bytes(head_.data() + Lead::kBytes, header.data(), header.size());
}

int FmTransport::send(Lead::Kind kind, Bytes header, Bytes body, unsigned to) {
    if (!kept_for_.empty()) [[unlikely]] {
        send_kept();
        if (is_kept_for(to)) return BBP_EAGAIN;
    }
    put_head(kind, header, body.size());
    return FmPort::send(head_, body, to);
}

int FmTransport::send_control_block(Bytes header, Bytes message, unsigned to) {
    const int result = send(Lead::Kind::packet, header, message, to);
    if (result == BBP_OK) ++counters_.packets_sent;
    return result;
}

int FmTransport::send_channel(Bytes bulk, unsigned to, std::size_t* sent) {
    *sent = 0;
    while (!bulk.empty()) {
        const Bytes piece = bulk.first(std::min(bulk.size(), piece_most_));
        const int result = send(Lead::Kind::bulk, {}, piece, to);
        if (result == BBP_EAGAIN && *sent != 0) return BBP_OK;
        if (result != BBP_OK) return result;
        ++counters_.bulk_sent;
        *sent += piece.size();
        bulk = bulk.subspan(piece.size());
    }
    return BBP_OK;
}

int FmTransport::mcast_control(Bytes header, Bytes message, std::span<const int> to) {
    if (!kept_for_.empty()) {
        send_kept();
        if (!kept_for_.empty()) return BBP_EAGAIN;
    }
    put_head(Lead::Kind::packet, header, message.size());
    const int result = send_to_each(message, to);
    if (result == BBP_OK) ++counters_.multicasts;
    return result;
}

int FmTransport::send_to_each(Bytes body, std::span<const int> to) {
    int result = BBP_OK;
    for (const int rank : to) {
        const int sent = FmPort::send(head_, body, static_cast<unsigned>(rank));
        if (sent == BBP_EAGAIN) kept_for_.push_back(rank);
        if (sent != BBP_EAGAIN && sent != BBP_OK) result = sent;
    }
    if (kept_for_.size() == to.size()) {
        kept_for_.clear();
        return BBP_EAGAIN;
    }
    if (!kept_for_.empty()) {
        kept_ = head_;
        kept_.insert(kept_.end(), body.begin(), body.end());
    }
    return result;
}

bool FmTransport::is_kept_for(unsigned rank) const noexcept {
    return std::find(kept_for_.begin(), kept_for_.end(), static_cast<int>(rank)) != kept_for_.end();
}

void FmTransport::send_kept() {
    std::erase_if(kept_for_, [&](int rank) {
        return FmPort::send(kept_, {}, static_cast<unsigned>(rank)) != BBP_EAGAIN;
    });
}

// ---- Receiving

/// Whether something has come that is not all taken.
bool FmTransport::has_next() {
    if (has_next_) return true;
    const auto message = port_.receive();
    if (!message) return false;
    has_next_ = true;
    next_from_ = message->from;
    next_is_good_ = message->bytes.size() >= Lead::kBytes;
    if (!next_is_good_) return true;
    const Lead lead = Lead::read(message->bytes.data());
    next_ = message->bytes.subspan(Lead::kBytes);
    next_kind_ = lead.kind;
    next_is_good_ = lead.from == message->from && lead.size == next_.size() &&
                    (lead.kind == Lead::Kind::packet || lead.kind == Lead::Kind::bulk);
    return true;
}

bool FmTransport::control_msg_avail() {
    return has_next();
}

int FmTransport::recv_any_control(Bytes* packet, unsigned* from) {
    if (!kept_for_.empty()) [[unlikely]]
        send_kept();
    if (!has_next()) return BBP_EAGAIN;
    *from = next_from_;
    if (next_is_good_ && next_kind_ == Lead::Kind::bulk && due_[next_from_] != 0) return kBulk;
    has_next_ = false;
    if (!next_is_good_ || next_kind_ == Lead::Kind::bulk || next_.size() > packet_most_)
        return BBP_ESIZE;
    *packet = next_;
    ++counters_.packets_received;
    return BBP_OK;
}

int FmTransport::recv_from_channel(std::span<std::byte> room, unsigned from, std::size_t* size) {
    if (!has_next() || next_from_ != from || !next_is_good_ || next_kind_ != Lead::Kind::bulk)
        return BBP_EAGAIN;
    *size = std::min({room.size(), next_.size(), due_[from]});
    if (*size != 0) rmem::copy_bytes(room.data(), next_.data(), *size);
    next_ = next_.subspan(*size);
    due_[from] -= *size;
    // More bytes than were announced go nowhere.
    if (!next_.empty() && due_[from] != 0) return BBP_OK;
    has_next_ = false;
    ++counters_.bulk_received;
    return BBP_OK;
}

}  // namespace mpi_channel
