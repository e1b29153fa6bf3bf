// SPDX-License-Identifier: Apache-2.0
//
// An endpoint: a rank's device below, completion queues and counters above.
#include "mpi_channel/provider/calls.hpp"
#include "mpi_channel/provider/completion_queue.hpp"
#include "mpi_channel/provider/unsupported.hpp"
#include "mpi_channel/settings.hpp"
#include "rmem/base/clock.hpp"
#include "rmem/base/environment_variable.hpp"
#include "rmem/base/hash.hpp"
#include "rmem/link/udp/far_memory.hpp"
#include "rmem/ring/config.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <tuple>

namespace mpi_channel::provider {

namespace {

/// The time that messages have to leave when the endpoint is closed.
constexpr std::int64_t kDrainNs = 10'000'000'000;

EndpointObject& object_of(struct fid* fid) {
    return *static_cast<EndpointObject*>(reinterpret_cast<fid_ep*>(fid));
}

int close_endpoint(struct fid* fid) {
    delete &object_of(fid);
    return 0;
}

int bind_endpoint(struct fid* fid, struct fid* other, std::uint64_t flags) {
    return object_of(fid).bind(other, flags);
}

int control_endpoint(struct fid* fid, int command, void*) {
    if (command != FI_ENABLE) return -FI_ENOSYS;
    return guarded_aloud([&] { return object_of(fid).enable(); });
}

ssize_t cancel_call(struct fid* fid, void* context) {
    return guarded([&] {
        const auto lock = object_of(fid).domain.lock();
        return object_of(fid).cancel(context);
    });
}

int get_option(struct fid* fid, int level, int name, void* value, std::size_t* size) {
    return level == FI_OPT_ENDPOINT ? object_of(fid).option(name, value, size) : -FI_ENOPROTOOPT;
}

int set_option(struct fid* fid, int level, int name, const void* value, std::size_t size) {
    return level == FI_OPT_ENDPOINT ? object_of(fid).set_option(name, value, size)
                                    : -FI_ENOPROTOOPT;
}

int get_name(struct fid* fid, void* address, std::size_t* size) {
    return guarded([&] { return object_of(fid).name(address, size); });
}

fi_ops endpoint_fid_ops = [] {
    auto ops = unsupported<fi_ops>();
    ops.close = close_endpoint;
    ops.bind = bind_endpoint;
    ops.control = control_endpoint;
    return ops;
}();
fi_ops_ep endpoint_ops = [] {
    auto ops = unsupported<fi_ops_ep>();
    ops.cancel = cancel_call;
    ops.getopt = get_option;
    ops.setopt = set_option;
    return ops;
}();
fi_ops_cm name_ops = [] {
    auto ops = unsupported<fi_ops_cm>();
    ops.getname = get_name;
    return ops;
}();

}  // namespace

EndpointObject::EndpointObject(Domain& its_domain, const fi_info& info, void* context)
    : fid_ep{{FI_CLASS_EP, context, &endpoint_fid_ops},
             &endpoint_ops,
             &name_ops,
             &message_calls(),
             &access_calls(),
             &tagged_calls(),
             nullptr,
             nullptr},
      domain(its_domain),
      is_directed_((info.caps & FI_DIRECTED_RECV) != 0) {
    if (info.tx_attr != nullptr) sends_.flags = info.tx_attr->op_flags;
    if (info.rx_attr != nullptr) receives_.flags = info.rx_attr->op_flags;
    ++domain.users;
}

EndpointObject::~EndpointObject() {
    const auto lock = domain.lock();
    withdraw_collectives(this);
    drain();
    show_counters();
    for (Told* told : {&sends_, &receives_}) {
        if (told->queue != nullptr) told->queue->detach(*this);
        if (told->counter != nullptr) told->counter->detach(*this);
    }
    for (Counter* counter : {reads_, writes_, others_reads_, others_writes_}) {
        if (counter != nullptr) counter->detach(*this);
    }
    if (addresses_ != nullptr) --addresses_->users;
    --domain.users;
}

/// Else what was sent last would be lost.
void EndpointObject::drain() {
    const std::int64_t end = rmem::now_ns() + kDrainNs;
    while (device_ != nullptr && device_->has_backlog() && rmem::now_ns() < end)
        device_->progress();
}

/// That traffic has gone over the ring: FI_LOG_LEVEL=info.
void EndpointObject::show_counters() const {
    if (device_ == nullptr) return;
    const TransportCounters sent = device_->transport_counters();
    const DeviceCounters device = device_->counters();
    const std::string text = fmt::format(
        "rank {}: {} packets sent, {} received, {} and {} pieces of bulk, {} multicasts; {} short, "
        "{} eager, {} "
        "rendezvous messages sent, {} of them read by their receiver, {} of these through the "
        "fabric, {} unexpected; {} accesses "
        "to others' memory, {} pieces of theirs served",
        endpoint_->rank(), sent.packets_sent, sent.packets_received, sent.bulk_sent,
        sent.bulk_received, sent.multicasts, device.short_sent, device.eager_sent,
        device.rendezvous_sent, device.gets_sent, device.far_sent, device.unexpected,
        device.accesses, device.served);
    FI_INFO(&provider, FI_LOG_EP_DATA, "%s\n", text.c_str());
    if (fm_ == nullptr) return;
    FI_INFO(&provider, FI_LOG_EP_DATA,
            "rank %u: by Fast Messages, which has counted %llu handlers_entered\n",
            endpoint_->rank(), static_cast<unsigned long long>(FmPort::handlers_entered()));
}

int EndpointObject::bind(struct fid* other, std::uint64_t flags) {
    if (other->fclass == FI_CLASS_AV) {
        if (addresses_ != nullptr) return -FI_EINVAL;
        addresses_ = static_cast<AddressVector*>(reinterpret_cast<fid_av*>(other));
        ++addresses_->users;
        return 0;
    }
    if (other->fclass == FI_CLASS_CQ)
        return bind_queue(*static_cast<CompletionQueue*>(reinterpret_cast<fid_cq*>(other)), flags);
    if (other->fclass == FI_CLASS_CNTR)
        return bind_counter(*static_cast<Counter*>(reinterpret_cast<fid_cntr*>(other)), flags);
    return other->fclass == FI_CLASS_EQ ? 0 : -FI_EINVAL;
}

int EndpointObject::bind_queue(CompletionQueue& queue, std::uint64_t flags) {
    const std::pair<std::uint64_t, Told*> kinds[] = {{FI_TRANSMIT, &sends_}, {FI_RECV, &receives_}};
    for (const auto& [kind, told] : kinds) {
        if ((flags & kind) != 0 && told->queue != nullptr) return -FI_EINVAL;
    }
    for (const auto& [kind, told] : kinds) {
        if ((flags & kind) == 0) continue;
        told->queue = &queue;
        told->selective = (flags & FI_SELECTIVE_COMPLETION) != 0;
        queue.attach(*this);
    }
    return 0;
}

int EndpointObject::bind_counter(Counter& counter, std::uint64_t flags) {
    const std::pair<std::uint64_t, Counter**> kinds[] = {
        {FI_SEND, &sends_.counter},
        {FI_RECV, &receives_.counter},
        {FI_READ, &reads_},
        {FI_WRITE, &writes_},
        {FI_REMOTE_READ, &others_reads_},
        {FI_REMOTE_WRITE, &others_writes_},
    };
    for (const auto& [kind, place] : kinds) {
        if ((flags & kind) != 0 && *place != nullptr) return -FI_EINVAL;
    }
    for (const auto& [kind, place] : kinds) {
        if ((flags & kind) == 0) continue;
        *place = &counter;
        counter.attach(*this);
    }
    return 0;
}

/// Whether all ranks are to be there before this one is enabled. Some programs want its name before
/// the others start, but a launcher starts all ranks at once. There it matters on link udp: nodes
/// that begin together may each begin a ring before they hear of each other; then one incarnation
/// ends, and only a rank that still waits for others begins a new one.
static bool is_for_all_at_once(const rmem::Environment& environment) {
    return rmem::environment_setting("RMEM_RANK") == nullptr &&
           environment.ring_config().is_remote();
}

int EndpointObject::enable() {
    if (device_ != nullptr) return 0;
    if (addresses_ == nullptr) return -FI_ENOAV;
    const auto environment = rmem::Environment::read();
    auto settings = billboard::Settings::read();
    settings.awaits_others = is_for_all_at_once(environment);
    // The paper's barrier waits for messages in its middle, and no call here waits.
    settings.barrier = billboard::BarrierKind::arrival;
    const auto own_settings = mpi_channel::Settings::read();
    open_transport(own_settings, settings);
    if (settings.awaits_others) forget_former_incarnations();
    // Not the environment's: what that leaves open, the ring that was there has said.
    const rmem::RingConfig& config = endpoint_->ring()->config();
    ring_ = rmem::Fnv1a().add(config.name).value();
    RemoteEvents& events = *this;
    collectives_ = std::make_unique<Collectives>(*device_);
    offer_collectives(this);
    device_->serve(domain.regions, events);
    use_peers_memory(config, environment, own_settings);
    use_fabric(config, environment);
    for (Told* told : {&sends_, &receives_}) {
        if (told->queue != nullptr) told->queue->watch(*this);
    }
    return 0;
}

void EndpointObject::open_transport(const mpi_channel::Settings& settings,
                                    const billboard::Settings& board) {
    Completions& own = *this;
    if (settings.transport == TransportKind::channel) {
        endpoint_ = billboard::Endpoint::open(board);
        channel_ = std::make_unique<Channel>(*endpoint_);
        device_ = std::make_unique<Device<Channel>>(*channel_, own);
    } else {
        fm_ = std::make_unique<FmTransport>(board);
        endpoint_ = fm_->endpoint();
        device_ = make_device(*fm_, own);
    }
}

/// Another rank may have a new incarnation since this one met it. Nobody has sent anything yet, so
/// nothing is lost; the end of the former incarnation is told once, and ends no peer of the device.
void EndpointObject::forget_former_incarnations() {
    for (unsigned rank = 0; fm_ == nullptr && rank < endpoint_->ranks(); ++rank) {
        if (rank != endpoint_->rank())
            std::ignore = endpoint_->probe(static_cast<int>(rank), nullptr, billboard::Class::mpi);
    }
}

/// Of ranks whose processes the own segment names: on link udp those of the own node.
void EndpointObject::use_peers_memory(const rmem::RingConfig& config,
                                      const rmem::Environment& environment,
                                      const mpi_channel::Settings& settings) {
    if (settings.get_least == kNoGets) return;
    const std::string segment = config.segment_name(environment.member(config).node);
    peers_ =
        std::make_unique<HostMemory>(rmem::Ring::observe(segment), [](unsigned rank, int error) {
            FI_WARN(&provider, FI_LOG_EP_DATA,
                    "the memory of rank %u cannot be read (%s): its long messages come over the "
                    "ring\n",
                    rank, ::strerror(error));
        });
    device_->use(*peers_, settings.get_least, settings.get_most);
}

/// Messages between nodes. The ports' are the port's.
void EndpointObject::use_fabric(const rmem::RingConfig& config,
                                const rmem::Environment& environment) {
    if (!config.is_remote() || channel_ == nullptr) return;
    far_ = rmem::far_memory_of(*endpoint_->ring(), environment.member(config).node,
                               [](const std::string& sentence) {
                                   FI_WARN(&provider, FI_LOG_EP_DATA, "%s\n", sentence.c_str());
                               });
    if (far_ != nullptr) device_->use_far(*far_);
}

int EndpointObject::name(void* address, std::size_t* size) const {
    if (endpoint_ == nullptr) return -FI_EOPBADSTATE;
    const RankAddress own{ring_, endpoint_->rank(),
                          static_cast<std::uint32_t>(mpi_channel::Settings::read().transport)};
    const std::size_t room = std::exchange(*size, sizeof own);
    if (room < sizeof own) return -FI_ETOOSMALL;
    std::memcpy(address, &own, sizeof own);
    return 0;
}

int EndpointObject::set_option(int option_name, const void* value, std::size_t size) {
    if (option_name != FI_OPT_MIN_MULTI_RECV) return -FI_ENOPROTOOPT;
    if (size != sizeof least_) return -FI_EINVAL;
    std::memcpy(&least_, value, sizeof least_);
    least_ = std::max<std::size_t>(least_, 1);
    return 0;
}

int EndpointObject::option(int option_name, void* value, std::size_t* size) const {
    if (option_name != FI_OPT_MIN_MULTI_RECV) return -FI_ENOPROTOOPT;
    if (*size < sizeof least_) return -FI_ETOOSMALL;
    std::memcpy(value, &least_, sizeof least_);
    *size = sizeof least_;
    return 0;
}

// ---- Calls

ssize_t EndpointObject::send(const Call& call) {
    if (device_ == nullptr) return -FI_EOPBADSTATE;
    const auto to = addresses_->rank_of(call.address);
    if (!to || *to >= endpoint_->ranks() || call.count > kPartsMost) return -FI_EINVAL;
    if (device_->has_backlog() && device_->backlog(*to) >= kBacklogMost) {
        device_->progress();
        return -FI_EAGAIN;
    }
    const bool is_inject = (call.flags & FI_INJECT) != 0;
    SendOrder order;
    order.to = *to;
    order.tag = call.tag;
    order.untagged = call.untagged;
    if (call.data) order.data = static_cast<std::uint32_t>(*call.data);
    order.parts = Parts(call.iov, call.count);
    if (is_inject && size_of(order.parts) > kInjectMost) return -FI_EMSGSIZE;
    order.copy = is_inject;
    order.after_match = (call.flags & FI_MATCH_COMPLETE) != 0;
    order.context = call.context;
    order.mark = mark_of(call.flags);
    const bool is_never_told = (call.flags & kNeverTold) != 0;
    if (sends_.counter != nullptr) order.mark |= is_never_told ? kCounted | kInjected : kCounted;
    order.silent = order.mark == 0;
    order.untold = is_never_told && sends_.counter == nullptr;
    device_->send(order);
    if (receives_.queue != nullptr) receives_.queue->has_sent();
    return 0;
}

std::uint32_t EndpointObject::mark_of(std::uint64_t flags) const noexcept {
    if ((flags & kNeverTold) != 0) return 0;
    return !sends_.selective || (flags & FI_COMPLETION) != 0 ? kTold : 0;
}

ReceiveOrder EndpointObject::order_of(const Call& call, Source from) const {
    ReceiveOrder order;
    order.from = from;
    order.tag = call.tag;
    order.ignore = call.ignore;
    order.untagged = call.untagged;
    order.parts = Parts(call.iov, call.count);
    if ((call.flags & FI_MULTI_RECV) != 0) order.least = least_;
    order.context = call.context;
    order.mark = kCounted;
    if (!receives_.selective || (call.flags & FI_COMPLETION) != 0) order.mark |= kTold;
    return order;
}

ssize_t EndpointObject::receive(const Call& call) {
    if (device_ == nullptr) return -FI_EOPBADSTATE;
    if (call.count > kPartsMost) return -FI_EINVAL;
    Source from = kAnySource;
    if (is_directed_ && call.address != FI_ADDR_UNSPEC) {
        const auto rank = addresses_->rank_of(call.address);
        if (!rank || *rank >= endpoint_->ranks()) return -FI_EINVAL;
        from = *rank;
    }
    if ((call.flags & FI_PEEK) != 0) return peek(call, from);
    if ((call.flags & FI_CLAIM) != 0) return receive_claimed(call);
    device_->receive(order_of(call, from));
    return 0;
}

ssize_t EndpointObject::peek(const Call& call, Source from) {
    if (receives_.queue == nullptr) return -FI_ENOCQ;
    device_->progress();
    const Wanted wanted{from, call.tag, call.ignore};
    Unexpected* message = device_->peek(wanted, call.untagged);
    const ssize_t result = answer_peek(call, message);
    if (message == nullptr) return result;
    if ((call.flags & FI_DISCARD) != 0) {
        device_->discard(*device_->claim(wanted, call.untagged));
    } else if ((call.flags & FI_CLAIM) != 0) {
        claimed_[call.context] = device_->claim(wanted, call.untagged);
    }
    return result;
}

ssize_t EndpointObject::answer_peek(const Call& call, const Unexpected* message) {
    CompletionQueue& queue = *receives_.queue;
    const std::uint64_t flags = FI_RECV | (call.untagged ? FI_MSG : FI_TAGGED);
    if (message == nullptr) {
        fi_cq_err_entry error{};
        error.op_context = call.context;
        error.flags = flags;
        error.tag = call.tag;
        error.err = FI_ENOMSG;
        queue.add_error(error);
        return 0;
    }
    CompletionQueue::Entry entry;
    entry.entry.op_context = call.context;
    entry.entry.flags = flags | (message->data ? FI_REMOTE_CQ_DATA : 0);
    entry.entry.len = message->envelope.size;
    entry.entry.buf = nullptr;
    entry.entry.data = message->data.value_or(0);
    entry.entry.tag = message->envelope.tag;
    entry.source = addresses_->address_of(message->envelope.source);
    queue.add(entry);
    return 0;
}

ssize_t EndpointObject::receive_claimed(const Call& call) {
    const auto it = claimed_.find(call.context);
    if (it == claimed_.end()) return -FI_EINVAL;
    Unexpected& message = *it->second;
    claimed_.erase(it);
    if ((call.flags & FI_DISCARD) != 0) {
        tell_discarded(call, message);
        device_->discard(message);
    } else {
        device_->receive_claimed(message, order_of(call, message.envelope.source));
    }
    return 0;
}

/// It ends as other receives do, with nothing received.
void EndpointObject::tell_discarded(const Call& call, const Unexpected& message) {
    Completion completion;
    completion.of = Completion::Of::receive;
    completion.untagged = call.untagged;
    completion.mark = order_of(call, message.envelope.source).mark;
    completion.context = call.context;
    completion.envelope = message.envelope;
    completion.data = message.data;
    completed(completion);
}

ssize_t EndpointObject::cancel(void* context) {
    if (device_ == nullptr) return -FI_EOPBADSTATE;
    return device_->cancel(context) ? 0 : -FI_ENOENT;
}

// ---- Completions

void EndpointObject::completed(const Completion& completion) {
    const bool is_send = completion.of == Completion::Of::send;
    Told& told = is_send ? sends_ : receives_;
    const std::uint64_t flags =
        (is_send ? FI_SEND : FI_RECV) | (completion.untagged ? FI_MSG : FI_TAGGED);
    if (completion.status != Status::ok) {
        if (told.counter != nullptr) ++told.counter->errors;
        if (told.queue != nullptr && (completion.mark & kInjected) == 0)
            fail(completion, *told.queue, flags);
        return;
    }
    if (told.counter != nullptr) ++told.counter->value;
    const bool releases = completion.of_several && completion.last;
    if (told.queue == nullptr || ((completion.mark & kTold) == 0 && !releases)) return;
    CompletionQueue::Entry entry;
    entry.entry.op_context = completion.context;
    entry.entry.flags =
        flags | (completion.data ? FI_REMOTE_CQ_DATA : 0) | (releases ? FI_MULTI_RECV : 0);
    entry.entry.len = completion.bytes;
    entry.entry.buf = completion.of_several ? completion.buffer + completion.at : completion.buffer;
    entry.entry.data = completion.data.value_or(0);
    entry.entry.tag = completion.envelope.tag;
    if (!is_send) entry.source = addresses_->address_of(completion.envelope.source);
    told.queue->add(entry);
}

void EndpointObject::fail(const Completion& completion, CompletionQueue& queue,
                          std::uint64_t flags) {
    fi_cq_err_entry error{};
    error.op_context = completion.context;
    error.flags = flags | (completion.data ? FI_REMOTE_CQ_DATA : 0) |
                  (completion.of_several && completion.last ? FI_MULTI_RECV : 0);
    error.tag = completion.envelope.tag;
    error.data = completion.data.value_or(0);
    error.buf = completion.of_several ? completion.buffer + completion.at : completion.buffer;
    switch (completion.status) {
        case Status::cut:
            error.err = FI_ETRUNC;
            error.len = completion.bytes;
            error.olen = completion.envelope.size - completion.bytes;
            break;
        case Status::cancelled: error.err = FI_ECANCELED; break;
        case Status::gone:
        case Status::ok: error.err = FI_ECONNABORTED; break;
    }
    error.prov_errno = error.err;
    queue.add_error(error);
}

}  // namespace mpi_channel::provider
