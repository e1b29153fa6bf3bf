// SPDX-License-Identifier: Apache-2.0

/// A libfabric provider that does next to nothing: the time of a ping-pong over it is the MPI's own
/// share, and the floor of any provider under that MPI. For measurements alone.
///
/// Two ranks, tagged messages of up to 8 bytes, one on its way in each direction. A message is half
/// a cache line in memory that both map, so an exchange moves one line to and fro. No unexpected
/// messages: one that nobody has posted a receive for stays where it is, and its sender waits
/// (-FI_EAGAIN) before it sends another. There is no probe, no peek and no cancelling of sends.
///
/// Environment: NULL_FI_MAILBOX, a file of 64 bytes, zero at the start of a run, made and removed
/// by the script that starts the ranks; the rank is the launcher's (OMPI_COMM_WORLD_RANK,
/// PMIX_RANK, PMI_RANK).
/// Thread safety: none. Progress: in fi_cq_read. Errors: libfabric's numbers; -FI_EMSGSIZE for a
/// longer message.

#include "mpi_channel/provider/unsupported.hpp"

#include <fcntl.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>
#include <rdma/providers/fi_log.h>
#include <rdma/providers/fi_prov.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace {

using mpi_channel::provider::unsupported;

constexpr const char* kName = "null";
constexpr std::size_t kMessageMost = 8;
constexpr std::size_t kQueued = 256;
constexpr std::uint64_t kCapabilities = FI_MSG | FI_TAGGED | FI_SEND | FI_RECV | FI_DIRECTED_RECV |
                                        FI_MULTI_RECV | FI_SOURCE | FI_LOCAL_COMM | FI_REMOTE_COMM;
constexpr unsigned kRanks = 2;

// ---- The mailbox

/// The words that one rank writes: its message, and how many of the other's it has taken.
struct Half {
    std::atomic<std::uint32_t> sent;
    std::atomic<std::uint32_t> taken;
    std::uint32_t length;
    std::uint32_t data;
    std::uint64_t tag;
    std::array<std::byte, kMessageMost> bytes;
};
struct alignas(64) Line {
    std::array<Half, kRanks> half;
};
static_assert(sizeof(Line) == 64);

/// A conversation with one rank, maybe oneself.
struct Peer {
    Half* out = nullptr;
    Half* in = nullptr;
    std::uint32_t sent = 0;
    std::uint32_t taken = 0;
    std::uint32_t told = 0;  ///< of `taken`, in `out`
};

unsigned rank_of_launcher() {
    for (const char* name : {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"}) {
        if (const char* value = std::getenv(name))
            return static_cast<unsigned>(std::atoi(value)) % kRanks;
    }
    return 0;
}

Line* map_mailbox() {
    const char* path = std::getenv("NULL_FI_MAILBOX");
    const int file = path == nullptr ? -1 : ::open(path, O_RDWR | O_CLOEXEC);
    if (file < 0) return nullptr;
    void* place = ::mmap(nullptr, sizeof(Line), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    ::close(file);
    return place == MAP_FAILED ? nullptr : static_cast<Line*>(place);
}

// ---- Objects; each begins with libfabric's own

struct Queue : fid_cq {
    std::array<fi_cq_tagged_entry, kQueued> entries;
    std::uint32_t begin = 0, end = 0;
    struct Endpoint* endpoint = nullptr;

    bool is_full() const { return end - begin == kQueued; }
    void add(const fi_cq_tagged_entry& entry) { entries[end++ % kQueued] = entry; }
};

struct Posted {
    void* buffer;
    std::size_t room;
    std::uint64_t tag, ignore;
    fi_addr_t from;
    void* context;
};

struct Endpoint : fid_ep {
    unsigned rank = 0;
    Line own{};  ///< for messages to oneself
    Line* shared = nullptr;
    std::array<Peer, kRanks> peers;
    std::vector<Posted> posted;
    Queue* queue = nullptr;
    bool is_selective = false;
    std::uint64_t flags = 0;

    bool open() {
        shared = map_mailbox();
        rank = rank_of_launcher();
        if (shared == nullptr) return false;
        peers[rank].out = peers[rank].in = own.half.data();
        peers[1 - rank].out = &shared->half[rank];
        peers[1 - rank].in = &shared->half[1 - rank];
        return true;
    }
    ssize_t send(const void* bytes, std::size_t size, std::uint32_t data, fi_addr_t to,
                 std::uint64_t tag, void* context, bool is_told);
    void progress();
    bool take(unsigned from);
};

ssize_t Endpoint::send(const void* bytes, std::size_t size, std::uint32_t data, fi_addr_t to,
                       std::uint64_t tag, void* context, bool is_told) {
    if (size > kMessageMost) return -FI_EMSGSIZE;
    Peer& peer = peers[to % kRanks];
    // (1) pairs with (4): the other has read what was there before it is written again
    if (peer.in->taken.load(std::memory_order_acquire) != peer.sent ||
        (is_told && queue->is_full()))
        return -FI_EAGAIN;
    Half& half = *peer.out;
    half.length = static_cast<std::uint32_t>(size);
    half.data = data;
    half.tag = tag;
    std::memcpy(half.bytes.data(), bytes, size);
    // relaxed is enough: (2) releases it
    half.taken.store(peer.told = peer.taken, std::memory_order_relaxed);
    // (2) releases the message to (3)
    half.sent.store(++peer.sent, std::memory_order_release);
    if (is_told) queue->add({context, FI_SEND | FI_TAGGED, 0, nullptr, 0, 0});
    return 0;
}

/// The message of this rank, if it is there and a receive waits for it.
bool Endpoint::take(unsigned from) {
    Peer& peer = peers[from];
    // (3) pairs with (2)
    if (peer.in->sent.load(std::memory_order_acquire) == peer.taken) return false;
    const Half& half = *peer.in;
    const auto fit = std::find_if(posted.begin(), posted.end(), [&](const Posted& receive) {
        return (receive.from == FI_ADDR_UNSPEC || receive.from == from) &&
               ((receive.tag ^ half.tag) & ~receive.ignore) == 0;
    });
    if (fit == posted.end()) return false;
    const std::size_t size =
        std::min({std::size_t{half.length}, fit->room, std::size_t{kMessageMost}});
    std::memcpy(fit->buffer, half.bytes.data(), size);
    queue->add({fit->context, FI_RECV | FI_TAGGED | FI_REMOTE_CQ_DATA, size, fit->buffer, half.data,
                half.tag});
    posted.erase(fit);
    ++peer.taken;
    return true;
}

/// That a message was taken rides on the answer; a rank that has none to give says so by itself.
void Endpoint::progress() {
    for (unsigned from : {1 - rank, rank}) {
        if (queue->is_full() || take(from)) return;
        Peer& peer = peers[from];
        if (peer.told == peer.taken) continue;
        // (4) pairs with (1)
        peer.out->taken.store(peer.told = peer.taken, std::memory_order_release);
    }
}

struct Domain : fid_domain {};
struct Fabric : fid_fabric {};
struct Counter : fid_cntr {};
struct Vector : fid_av {
    std::size_t count = 0;
};

Endpoint& endpoint_of(fid_ep* endpoint) {
    return *static_cast<Endpoint*>(endpoint);
}
Queue& queue_of(fid_cq* queue) {
    return *static_cast<Queue*>(queue);
}

/// A new one, with the calls that all have.
template <class Object, class Base>
Object* made(std::size_t of_class, void* context) {
    static fi_ops ops = [] {
        auto calls = unsupported<fi_ops>();
        calls.close = [](fid* object) {
            delete static_cast<Object*>(reinterpret_cast<Base*>(object));
            return 0;
        };
        calls.bind = [](fid*, fid*, std::uint64_t) { return 0; };
        calls.control = [](fid*, int, void*) { return 0; };
        return calls;
    }();
    auto* const object = new Object();
    object->fid = {of_class, context, &ops};
    return object;
}

// ---- Calls of an endpoint

ssize_t post(fid_ep* endpoint, const Posted& receive) {
    endpoint_of(endpoint).posted.push_back(receive);
    return 0;
}

/// A send that libfabric's `flags` or the endpoint's own ask to be told of.
bool is_told(const Endpoint& endpoint, std::uint64_t flags) {
    return !endpoint.is_selective || (flags & FI_COMPLETION) != 0;
}

ssize_t send(fid_ep* ep, const void* bytes, std::size_t size, std::uint64_t data, fi_addr_t to,
             std::uint64_t tag, void* context, std::uint64_t flags) {
    Endpoint& own = endpoint_of(ep);
    return own.send(bytes, size, static_cast<std::uint32_t>(data), to, tag, context,
                    is_told(own, flags));
}

fi_ops_tagged tagged_calls = [] {
    auto ops = unsupported<fi_ops_tagged>();
    ops.recv = [](fid_ep* ep, void* buffer, std::size_t size, void*, fi_addr_t from,
                  std::uint64_t tag, std::uint64_t ignore, void* context) {
        return post(ep, {buffer, size, tag, ignore, from, context});
    };
    ops.recvmsg = [](fid_ep* ep, const fi_msg_tagged* m, std::uint64_t flags) -> ssize_t {
        if ((flags & (FI_PEEK | FI_CLAIM)) != 0 || m->iov_count != 1) return -FI_ENOSYS;
        return post(ep, {m->msg_iov->iov_base, m->msg_iov->iov_len, m->tag, m->ignore, m->addr,
                         m->context});
    };
    ops.send = [](fid_ep* ep, const void* bytes, std::size_t size, void*, fi_addr_t to,
                  std::uint64_t tag, void* context) {
        return send(ep, bytes, size, 0, to, tag, context, endpoint_of(ep).flags);
    };
    ops.senddata = [](fid_ep* ep, const void* bytes, std::size_t size, void*, std::uint64_t data,
                      fi_addr_t to, std::uint64_t tag, void* context) {
        return send(ep, bytes, size, data, to, tag, context, endpoint_of(ep).flags);
    };
    ops.sendmsg = [](fid_ep* ep, const fi_msg_tagged* m, std::uint64_t flags) -> ssize_t {
        if (m->iov_count != 1) return -FI_ENOSYS;
        return send(ep, m->msg_iov->iov_base, m->msg_iov->iov_len, m->data, m->addr, m->tag,
                    m->context, flags);
    };
    ops.inject = [](fid_ep* ep, const void* bytes, std::size_t size, fi_addr_t to,
                    std::uint64_t tag) {
        return endpoint_of(ep).send(bytes, size, 0, to, tag, nullptr, false);
    };
    ops.injectdata = [](fid_ep* ep, const void* bytes, std::size_t size, std::uint64_t data,
                        fi_addr_t to, std::uint64_t tag) {
        return endpoint_of(ep).send(bytes, size, static_cast<std::uint32_t>(data), to, tag, nullptr,
                                    false);
    };
    return ops;
}();

/// MPICH posts buffers for active messages; none ever comes.
fi_ops_msg message_calls = [] {
    auto ops = unsupported<fi_ops_msg>();
    ops.recvmsg = [](fid_ep*, const fi_msg*, std::uint64_t) -> ssize_t { return 0; };
    return ops;
}();

fi_ops endpoint_fid_calls = [] {
    auto ops = unsupported<fi_ops>();
    ops.close = [](fid* object) {
        Endpoint& endpoint = endpoint_of(reinterpret_cast<fid_ep*>(object));
        if (endpoint.queue != nullptr) endpoint.queue->endpoint = nullptr;
        if (endpoint.shared != nullptr) ::munmap(endpoint.shared, sizeof(Line));
        delete &endpoint;
        return 0;
    };
    ops.bind = [](fid* object, fid* other, std::uint64_t flags) {
        if (other->fclass != FI_CLASS_CQ) return 0;
        Endpoint& endpoint = endpoint_of(reinterpret_cast<fid_ep*>(object));
        endpoint.queue = &queue_of(reinterpret_cast<fid_cq*>(other));
        endpoint.queue->endpoint = &endpoint;
        if ((flags & FI_TRANSMIT) != 0)
            endpoint.is_selective = (flags & FI_SELECTIVE_COMPLETION) != 0;
        return 0;
    };
    ops.control = [](fid*, int command, void*) { return command == FI_ENABLE ? 0 : -FI_ENOSYS; };
    return ops;
}();

fi_ops_ep endpoint_calls = [] {
    auto ops = unsupported<fi_ops_ep>();
    ops.cancel = [](fid*, void*) -> ssize_t { return -FI_ENOENT; };
    ops.setopt = [](fid*, int, int, const void*, std::size_t) { return 0; };
    return ops;
}();

/// A rank's address is its number.
fi_ops_cm name_calls = [] {
    auto ops = unsupported<fi_ops_cm>();
    ops.getname = [](fid* object, void* address, std::size_t* size) -> int {
        const std::uint64_t rank = endpoint_of(reinterpret_cast<fid_ep*>(object)).rank;
        const std::size_t room = std::exchange(*size, sizeof rank);
        if (room < sizeof rank) return -FI_ETOOSMALL;
        std::memcpy(address, &rank, sizeof rank);
        return 0;
    };
    return ops;
}();

// ---- Queues

fi_ops_cq queue_calls = [] {
    auto ops = unsupported<fi_ops_cq>();
    ops.read = [](fid_cq* object, void* to, std::size_t count) -> ssize_t {
        Queue& queue = queue_of(object);
        if (queue.begin == queue.end && queue.endpoint != nullptr) queue.endpoint->progress();
        const std::size_t taken = std::min<std::size_t>(count, queue.end - queue.begin);
        if (taken == 0) return -FI_EAGAIN;
        for (std::size_t i = 0; i < taken; ++i)
            static_cast<fi_cq_tagged_entry*>(to)[i] = queue.entries[queue.begin++ % kQueued];
        return static_cast<ssize_t>(taken);
    };
    ops.readerr = [](fid_cq*, fi_cq_err_entry*, std::uint64_t) -> ssize_t { return -FI_EAGAIN; };
    return ops;
}();

fi_ops_cntr counter_calls = [] {
    auto ops = unsupported<fi_ops_cntr>();
    ops.read = [](fid_cntr*) -> std::uint64_t { return 0; };
    return ops;
}();

/// The first rank inserted is 0, as MPI does it, so an index is a rank.
fi_ops_av vector_calls = [] {
    auto ops = unsupported<fi_ops_av>();
    ops.insert = [](fid_av* object, const void* addresses, std::size_t count, fi_addr_t* indices,
                    std::uint64_t, void*) -> int {
        auto& vector = *static_cast<Vector*>(object);
        for (std::size_t i = 0; i < count; ++i, ++vector.count) {
            std::uint64_t rank = 0;
            std::memcpy(&rank, static_cast<const std::byte*>(addresses) + i * sizeof rank,
                        sizeof rank);
            if (rank >= kRanks) return -FI_EINVAL;
            if (indices != nullptr) indices[i] = rank;
        }
        return static_cast<int>(count);
    };
    ops.remove = [](fid_av*, fi_addr_t*, std::size_t, std::uint64_t) { return 0; };
    return ops;
}();

// ---- Domain and fabric

fi_ops_domain domain_calls = [] {
    auto ops = unsupported<fi_ops_domain>();
    ops.av_open = [](fid_domain*, fi_av_attr* attributes, fid_av** vector, void* context) -> int {
        if (attributes != nullptr && attributes->name != nullptr) return -FI_ENOSYS;
        *vector = made<Vector, fid_av>(FI_CLASS_AV, context);
        (*vector)->ops = &vector_calls;
        return 0;
    };
    ops.cq_open = [](fid_domain*, fi_cq_attr* attributes, fid_cq** queue, void* context) -> int {
        if (attributes->format != FI_CQ_FORMAT_TAGGED) return -FI_ENOSYS;
        *queue = made<Queue, fid_cq>(FI_CLASS_CQ, context);
        (*queue)->ops = &queue_calls;
        return 0;
    };
    ops.cntr_open = [](fid_domain*, fi_cntr_attr*, fid_cntr** counter, void* context) {
        *counter = made<Counter, fid_cntr>(FI_CLASS_CNTR, context);
        (*counter)->ops = &counter_calls;
        return 0;
    };
    ops.endpoint = [](fid_domain*, fi_info* info, fid_ep** endpoint, void* context) -> int {
        auto* own = new Endpoint();
        own->fid = {FI_CLASS_EP, context, &endpoint_fid_calls};
        own->ops = &endpoint_calls;
        own->cm = &name_calls;
        own->msg = &message_calls;
        own->tagged = &tagged_calls;
        own->flags = info->tx_attr == nullptr ? 0 : info->tx_attr->op_flags;
        *endpoint = own;
        if (own->open()) return 0;
        delete own;
        return -FI_ENODEV;
    };
    return ops;
}();

fi_ops_fabric fabric_calls = [] {
    auto ops = unsupported<fi_ops_fabric>();
    ops.domain = [](fid_fabric*, fi_info*, fid_domain** domain, void* context) {
        static fi_ops_mr none = unsupported<fi_ops_mr>();
        *domain = made<Domain, fid_domain>(FI_CLASS_DOMAIN, context);
        (*domain)->ops = &domain_calls;
        (*domain)->mr = &none;
        return 0;
    };
    return ops;
}();

int open_fabric(fi_fabric_attr*, fid_fabric** fabric, void* context) {
    *fabric = made<Fabric, fid_fabric>(FI_CLASS_FABRIC, context);
    (*fabric)->ops = &fabric_calls;
    return 0;
}

/// The requested attributes, as far as they matter to an MPI of two ranks.
int get_info(std::uint32_t, const char*, const char*, std::uint64_t, const fi_info* hints,
             fi_info** info) {
    if (hints != nullptr) {
        const fi_ep_type type = hints->ep_attr == nullptr ? FI_EP_UNSPEC : hints->ep_attr->type;
        if ((hints->caps & ~kCapabilities) != 0 || (type != FI_EP_UNSPEC && type != FI_EP_RDM))
            return -FI_ENODATA;
    }
    fi_info* made = hints == nullptr ? ::fi_allocinfo() : ::fi_dupinfo(hints);
    if (made == nullptr) return -FI_ENOMEM;
    if (made->caps == 0) made->caps = kCapabilities;
    std::free(made->fabric_attr->prov_name);  // libfabric fills it in
    std::free(made->fabric_attr->name);
    std::free(made->domain_attr->name);
    made->fabric_attr->prov_name = nullptr;
    made->fabric_attr->name = ::strdup(kName);
    made->domain_attr->name = ::strdup(kName);
    made->mode &= FI_CONTEXT | FI_CONTEXT2;
    made->ep_attr->type = FI_EP_RDM;
    made->ep_attr->max_msg_size = kMessageMost;
    made->ep_attr->mem_tag_format = ~std::uint64_t{0} >> 1;
    made->ep_attr->tx_ctx_cnt = made->ep_attr->rx_ctx_cnt = 1;
    made->tx_attr->caps = made->rx_attr->caps = made->caps;
    made->tx_attr->inject_size = kMessageMost;
    made->tx_attr->size = made->rx_attr->size = kQueued;
    made->tx_attr->iov_limit = made->rx_attr->iov_limit = 1;
    made->tx_attr->msg_order |= FI_ORDER_SAS;
    made->rx_attr->msg_order |= FI_ORDER_SAS;
    made->domain_attr->control_progress = made->domain_attr->data_progress = FI_PROGRESS_MANUAL;
    made->domain_attr->resource_mgmt = FI_RM_ENABLED;
    if (made->domain_attr->av_type == FI_AV_UNSPEC) made->domain_attr->av_type = FI_AV_TABLE;
    made->domain_attr->cq_data_size = sizeof(std::uint32_t);
    made->domain_attr->cq_cnt = made->domain_attr->ep_cnt = made->domain_attr->cntr_cnt = kQueued;
    made->domain_attr->tx_ctx_cnt = made->domain_attr->rx_ctx_cnt = 1;
    made->domain_attr->max_ep_tx_ctx = made->domain_attr->max_ep_rx_ctx = 1;
    *info = made;
    return 0;
}

fi_provider provider = {.version = FI_VERSION(0, 1),
                        .fi_version = FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION),
                        .context = {},
                        .name = kName,
                        .getinfo = get_info,
                        .fabric = open_fabric,
                        .cleanup = [] {}};

}  // namespace

extern "C" __attribute__((visibility("default"))) fi_provider* fi_prov_ini(void) {
    return &provider;
}
