// SPDX-License-Identifier: Apache-2.0
#include "rmem/link/fabric/endpoint.hpp"

#include "rmem/base/check.hpp"
#include "rmem/base/clock.hpp"
#include "rmem/base/little_endian.hpp"
#include "rmem/link/fabric/kept_signals.hpp"
#include "rmem/link/udp/protocol/datagram.hpp"

#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace rmem::fabric {

namespace {

constexpr std::uint32_t kMark = 0x46454d52;  // "RMEF"
constexpr std::size_t kCompletions = 4096;
static_assert(kEagerBytes + kMarkBytes <= 16'384, "FI_OFI_RXM_EAGER_LIMIT");

[[noreturn]] void fail(const char* doing, int error, const std::string& advice = "") {
    const int code = error < 0 ? -error : error;
    throw Error(code == FI_EADDRINUSE ? Errc::bad_environment : Errc::system,
                fmt::format("{}: {}{}{}", doing, library().strerror(code),
                            advice.empty() ? "" : "; ", advice));
}

void need(int result, const char* doing) {
    if (result != 0) fail(doing, result);
}

/// In front of a piece that a head passes on.
void write_mark(std::byte* at, unsigned racks) noexcept {
    store(at, kMark);
    store(at + sizeof kMark, static_cast<std::uint32_t>(racks));
}

/// Of what the provider can have under way, for each peer: one that takes nothing must leave room
/// for the others.
unsigned share_of(const fi_info& info, unsigned nodes) {
    return static_cast<unsigned>(std::max<std::size_t>(info.tx_attr->size / nodes, 1));
}

}  // namespace

Endpoint::Endpoint(const EndpointSettings& settings)
    : node_(settings.node),
      nodes_(settings.nodes),
      topology_(settings.fabric.topology.value_or(Topology(settings.nodes))),
      info_(choose_provider(settings.fabric, settings.node)),
      most_at_once_(provider().ends_with("ofi_rxm") ? kEagerBytes : kMaxPieceBytes),
      pieces_([this](std::byte* memory, std::size_t bytes) {
          return registered(memory, bytes, FI_SEND, nullptr);
      }),
      outbound_(settings.nodes, share_of(*info_, settings.nodes), pieces_, *this) {
    open(settings);
    make_handle();
    fresh_.reserve(kMaxEntries);
    marked_.reserve(kMaxEntries);
    for (Arena& arena : arenas_) {
        arena.bytes = std::make_unique_for_overwrite<std::byte[]>(kArenaBytes);
        registered(arena.bytes.get(), kArenaBytes, FI_RECV, &arena.registration);
        post(arena);
    }
    peers_.emplace(settings, *info_, *addresses_, *endpoint_, outbound_);
}

Endpoint::~Endpoint() {
    peers_->withdraw();
    // What has just been sent tells the others that this node goes.
    const std::int64_t begin = now_ns();
    while (outbound_.under_way() != 0 && now_ns() - begin < kCloseNs) progress(now_ns());
}

void Endpoint::open(const EndpointSettings& settings) {
    const KeptSignals kept;
    fid_fabric* fabric = nullptr;
    need(library().fabric(info_->fabric_attr, &fabric, nullptr), "opening the fabric");
    fabric_.reset(fabric);
    fid_domain* domain = nullptr;
    need(::fi_domain(fabric_.get(), info_.get(), &domain, nullptr), "opening the domain");
    domain_.reset(domain);

    fi_av_attr vector{};
    vector.type = FI_AV_TABLE;
    vector.count = nodes_;
    fid_av* addresses = nullptr;
    need(::fi_av_open(domain_.get(), &vector, &addresses, nullptr), "making the address vector");
    addresses_.reset(addresses);

    make_queue();
    fid_ep* endpoint = nullptr;
    const auto start = [&](int error) {
        if (error == 0) return;
        fail(
            fmt::format("starting node {}'s endpoint of {}", node_, provider()).c_str(), error,
            settings.fabric.nodes.empty()
                ? ""
                : fmt::format("is the node running already? Otherwise give it another address than "
                              "{} in RMEM_GROUP",
                              udp::to_text(settings.fabric.nodes.at(node_))));
    };
    start(::fi_endpoint(domain_.get(), info_.get(), &endpoint, nullptr));
    endpoint_.reset(endpoint);
    need(::fi_ep_bind(endpoint, &addresses_->fid, 0), "giving the endpoint addresses");
    need(::fi_ep_bind(endpoint, &queue_->fid, FI_TRANSMIT | FI_RECV),
         "giving the endpoint a queue");
    start(::fi_enable(endpoint));
    // Not before: shm has no place for it until then.
    std::size_t least = kMaxPieceBytes + kMarkBytes;
    need(::fi_setopt(&endpoint->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &least, sizeof least),
         "saying how long a piece may be");
}

/// With a descriptor where the provider has such, and where that costs nothing.
void Endpoint::make_queue() {
    fi_cq_attr attributes{};
    attributes.size = kCompletions;
    attributes.format = FI_CQ_FORMAT_DATA;
    has_descriptor_ = !is_over_tcp(provider());
    attributes.wait_obj = has_descriptor_ ? FI_WAIT_FD : FI_WAIT_NONE;
    fid_cq* queue = nullptr;
    int error = ::fi_cq_open(domain_.get(), &attributes, &queue, nullptr);
    if (error != 0 && has_descriptor_) {
        has_descriptor_ = false;
        attributes.wait_obj = FI_WAIT_NONE;
        error = ::fi_cq_open(domain_.get(), &attributes, &queue, nullptr);
    }
    need(error, "making the completion queue");
    queue_.reset(queue);
}

/// One for what the completion queue tells, and for what it cannot.
void Endpoint::make_handle() {
    handle_ = Descriptor(::epoll_create1(EPOLL_CLOEXEC));
    timer_ = Descriptor(::timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC));
    if (handle_.get() < 0 || timer_.get() < 0) fail("making a descriptor to wait for", errno);
    const auto add = [this](int descriptor) {
        epoll_event event{};
        event.events = EPOLLIN;
        if (::epoll_ctl(handle_.get(), EPOLL_CTL_ADD, descriptor, &event) != 0)
            fail("waiting for the completion queue", errno);
    };
    add(timer_.get());
    if (is_over_tcp(provider())) connections_.emplace(handle_.get());
    int descriptor = -1;
    has_descriptor_ = has_descriptor_ && ::fi_control(&queue_->fid, FI_GETWAIT, &descriptor) == 0;
    if (has_descriptor_) add(descriptor);
}

/// As the provider names it; null: it does not want to know.
void* Endpoint::registered(std::byte* memory, std::size_t bytes, std::uint64_t access,
                           Fid<fid_mr>* keep) {
    if ((info_->domain_attr->mr_mode & FI_MR_LOCAL) == 0) return nullptr;
    fid_mr* registration = nullptr;
    need(::fi_mr_reg(domain_.get(), memory, bytes, access, 0, 0, 0, &registration, nullptr),
         "registering memory");
    if (keep == nullptr) keep = &registrations_.emplace_back();
    keep->reset(registration);
    return ::fi_mr_desc(registration);
}

void Endpoint::post(Arena& arena) noexcept {
    iovec part{arena.bytes.get(), kArenaBytes};
    void* descriptor = arena.registration ? ::fi_mr_desc(arena.registration.get()) : nullptr;
    fi_msg message{};
    message.msg_iov = &part;
    message.desc = &descriptor;
    message.iov_count = 1;
    message.addr = FI_ADDR_UNSPEC;
    message.context = &arena.context;
    const auto error = ::fi_recvmsg(endpoint_.get(), &message, FI_MULTI_RECV);
    arena.is_full = error != 0;  // tried again with the next look
    if (error != 0 && error != -FI_EAGAIN) {
        ++counters_.receive_errors;
        note_error(static_cast<int>(-error));
    }
}

// ---- Sending

Endpoint::Sending* Endpoint::sending_for(Piece& piece, unsigned peer) {
    if (spare_.empty()) {
        sendings_.push_back(std::make_unique<Sending>());
        spare_.reserve(sendings_.size());
        spare_.push_back(sendings_.back().get());
    }
    Sending* const sending = spare_.back();
    spare_.pop_back();
    sending->piece = &piece;
    sending->peer = peer;
    sending->address = outbound_.address_of(peer);
    return sending;
}

Wire::Given Endpoint::give(unsigned peer, const Piece& piece, unsigned racks) noexcept {
    const fi_addr_t to = (*peers_)[peer];
    if (to == FI_ADDR_NOTAVAIL) return Given::failed;
    const std::size_t before = racks == 0 ? 0 : kMarkBytes;
    std::byte* const from = piece.datagram_bytes() - before;
    if (racks != 0) write_mark(from, racks);
    const std::size_t bytes = piece.length + before;
    Sending* const sending = sending_for(const_cast<Piece&>(piece), peer);
    // Not injected: of what a broken connection takes along that would tell nothing.
    const ssize_t result =
        ::fi_send(endpoint_.get(), from, bytes, piece.registration, to, &sending->context);
    if (result == 0) return Given::taken;
    spare_.push_back(sending);
    if (result == -FI_EAGAIN) return Given::full;
    note_error(static_cast<int>(-result));
    return Given::failed;
}

bool Endpoint::send(std::span<const std::byte> datagram) noexcept {
    queue(datagram);
    return flush() == 0;
}

void Endpoint::queue(std::span<const std::byte> datagram) noexcept {
    if (open_ != nullptr && std::min(open_->room, most_at_once_) < open_->length + datagram.size())
        flush();
    if (open_ == nullptr) open_ = pieces_.take(datagram.size());
    if (open_ == nullptr) {
        lacked_memory_ += nodes_ - 1;
        return;
    }
    std::memcpy(open_->datagram_bytes() + open_->length, datagram.data(), datagram.size());
    open_->length += datagram.size();
    if (++open_->datagrams == kMaxInBatch) flush();
}

std::size_t Endpoint::flush() noexcept {
    if (open_ == nullptr) return 0;
    const NotSent before = outbound_.not_sent();
    Piece& piece = *std::exchange(open_, nullptr);
    send_piece(piece, now_ns());
    pieces_.leave(piece);
    const NotSent& after = outbound_.not_sent();
    count();
    return static_cast<std::size_t>(after.no_room - before.no_room + after.refused -
                                    before.refused);
}

void Endpoint::send_piece(Piece& piece, std::int64_t now) noexcept {
    if (planned_at_ != outbound_.changes()) {
        planned_at_ = outbound_.changes();
        plan_ = topology_.plan(node_, [this](unsigned n) { return outbound_.is_met(n); });
    }
    for (const Topology::Stop& stop : plan_) outbound_.send(stop.node, piece, stop.racks, now);
}

void Endpoint::count() noexcept {
    counters_.sent = outbound_.sent();
    counters_.refused = outbound_.not_sent().refused;
    counters_.no_room = lacked_memory_ + outbound_.not_sent().no_room;
}

// ---- Receiving

Endpoint::Datagrams Endpoint::receive() noexcept {
    const std::int64_t now = now_ns();
    given_.clear();
    marked_.clear();
    if (fresh_.empty()) {
        for (Arena& arena : arenas_) {
            if (arena.is_full) post(arena);
        }
        if (is_armed_) arm(0);
        // What is left in the queue makes no descriptor readable.
        if (progress(now) == kMaxEntries) arm(1);
        outbound_.retry(now);
    }
    for (const std::span<std::byte> piece : fresh_) take_piece(piece);
    fresh_.clear();
    peers_->find(now);  // before they are answered
    counters_.received += given_.size();
    count();
    return given_;
}

/// What the provider has done since; what came is in fresh_ then. Returns how many entries it told.
std::size_t Endpoint::progress(std::int64_t now) noexcept {
    std::array<fi_cq_data_entry, kMaxEntries> entries;
    const ssize_t count = ::fi_cq_read(queue_.get(), entries.data(), entries.size());
    if (count == -FI_EAVAIL) {
        take_error(now);
        return 1;
    }
    if (count <= 0) return 0;
    for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) take_entry(entries[i]);
    return static_cast<std::size_t>(count);
}

void Endpoint::take_entry(const fi_cq_data_entry& entry) noexcept {
    for (Arena& arena : arenas_) {
        if (entry.op_context != &arena.context) continue;
        if ((entry.flags & FI_MULTI_RECV) != 0) arena.is_full = true;
        if ((entry.flags & FI_RECV) != 0 && entry.len != 0)
            fresh_.emplace_back(static_cast<std::byte*>(entry.buf), entry.len);
        return;
    }
    auto* const sending = static_cast<Sending*>(entry.op_context);
    outbound_.has_reached(sending->peer, sending->address, *sending->piece);
    spare_.push_back(sending);
}

void Endpoint::take_error(std::int64_t now) noexcept {
    fi_cq_err_entry entry{};
    if (::fi_cq_readerr(queue_.get(), &entry, 0) != 1) return;
    note_error(entry.err);
    for (Arena& arena : arenas_) {
        if (entry.op_context != &arena.context) continue;
        ++counters_.receive_errors;
        arena.is_full = true;
        return;
    }
    auto* const sending = static_cast<Sending*>(entry.op_context);
    if (sending == nullptr) return;
    outbound_.has_failed(sending->peer, sending->address, *sending->piece, now);
    spare_.push_back(sending);
}

void Endpoint::take_piece(std::span<std::byte> bytes) noexcept {
    if (bytes.size() > kMarkBytes && load<std::uint32_t>(bytes.data()) == kMark) {
        const auto racks = load<std::uint32_t>(bytes.data() + sizeof kMark);
        bytes = bytes.subspan(kMarkBytes);
        if (topology_.racks() > 1) marked_.push_back({bytes, racks});
    }
    while (!bytes.empty()) {
        const std::size_t length = udp::length_of_first(bytes);
        if (length > udp::kMaxPayload) ++counters_.oversized;
        note_origin(bytes.first(length));
        given_.push_back(bytes.first(length));
        bytes = bytes.subspan(length);
    }
}

/// A node that speaks can be reached again, perhaps at another address. Both numbers are
/// what it says itself, and no more than hints.
void Endpoint::note_origin(std::span<const std::byte> datagram) noexcept {
    if (datagram.size() < udp::kHeaderBytes) return;
    const auto origin = load<std::uint16_t>(datagram.data() + udp::kOriginAt);
    if (origin >= nodes_ || origin == node_) return;
    if (outbound_.is_out(origin)) outbound_.may_be_back(origin);
    peers_->note_heard(origin, load<std::uint64_t>(datagram.data() + udp::kIncarnationAt));
}

void Endpoint::has_taken(std::span<const std::byte> datagram) noexcept {
    const auto is_in = [&](const Marked& marked) {
        return datagram.data() >= marked.bytes.data() &&
               datagram.data() < marked.bytes.data() + marked.bytes.size();
    };
    const auto found = std::find_if(marked_.begin(), marked_.end(), is_in);
    if (found == marked_.end()) return;
    const Marked marked = *found;
    marked_.erase(found);
    RMEM_CHECK(topology_.racks() > 1);
    pass_on(marked.bytes, marked.racks, now_ns());
}

/// To the other nodes of this rack, and in a chain to the next one.
void Endpoint::pass_on(std::span<const std::byte> bytes, unsigned racks,
                       std::int64_t now) noexcept {
    Piece* const piece = bytes.size() <= kMaxPieceBytes ? pieces_.take(bytes.size()) : nullptr;
    if (piece == nullptr) return;
    std::memcpy(piece->datagram_bytes(), bytes.data(), bytes.size());
    piece->length = bytes.size();
    piece->datagrams = 1;
    const auto reaches = [this](unsigned n) { return outbound_.is_met(n); };
    for (const Topology::Stop& stop : topology_.pass_on(node_, racks, reaches))
        outbound_.send(stop.node, *piece, stop.racks, now);
    pieces_.leave(*piece);
}

// ---- Waiting

/// 0: not any more, and what it has told is forgotten.
void Endpoint::arm(std::int64_t ns) noexcept {
    const itimerspec once{{0, 0}, {0, ns}};
    ::timerfd_settime(timer_.get(), 0, &once, nullptr);
    is_armed_ = ns != 0;
}

/// Whether what comes from now on makes the handle readable.
bool Endpoint::wakes(std::int64_t now) noexcept {
    if (!connections_) return has_descriptor_;
    // Nothing tells when a connection has room again for what is being sent.
    if (outbound_.given() != 0) return false;
    return connections_->are_watched(outbound_.changes() + peers_->moves(), peers_->own_address(),
                                     peers_->addresses(), now);
}

bool Endpoint::may_sleep() noexcept {
    if (!fresh_.empty()) return false;
    const std::int64_t now = now_ns();
    fid* waited = &queue_->fid;
    if (has_descriptor_ && ::fi_trywait(fabric_.get(), &waited, 1) != 0) return false;
    // What the provider has taken in already, and nothing tells of any more. It goes on by a step
    // at a time, and not each one has an entry.
    unsigned empty = 0;
    for (unsigned looks = 0; looks < kMaxLooks && empty < kLastLooks && fresh_.empty(); ++looks)
        empty = progress(now) == 0 ? empty + 1 : 0;
    if (!wakes(now) && !is_armed_) arm(kPolledNs);
    return empty == kLastLooks;
}

std::int64_t Endpoint::due_ns() const noexcept {
    return std::min(outbound_.due_ns(), peers_->due_ns());
}

std::unique_ptr<udp::Carrier> make_endpoint(const EndpointSettings& settings) {
    return std::make_unique<Endpoint>(settings);
}

}  // namespace rmem::fabric
