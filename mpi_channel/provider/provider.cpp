// SPDX-License-Identifier: Apache-2.0
//
// The provider that libfabric finds when it loads the library: what it offers, fabrics and
// domains.
#include "mpi_channel/provider/completion_queue.hpp"

#include "mpi_channel/provider/unsupported.hpp"
#include "rmem/base/descriptor.hpp"
#include "rmem/ring/config.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <new>

namespace mpi_channel::provider {

namespace {

constexpr std::uint64_t kCapabilities = FI_MSG | FI_TAGGED | FI_SEND | FI_RECV | FI_DIRECTED_RECV |
                                        FI_MULTI_RECV | FI_SOURCE | FI_LOCAL_COMM | FI_REMOTE_COMM |
                                        FI_RMA | FI_READ | FI_WRITE | FI_REMOTE_READ |
                                        FI_REMOTE_WRITE | FI_RMA_EVENT;
constexpr std::uint64_t kAccess = FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;
/// Capabilities that only a receiver or a target has; and those that only an initiator has.
constexpr std::uint64_t kOfReceiver = FI_RECV | FI_DIRECTED_RECV | FI_MULTI_RECV | FI_SOURCE |
                                      FI_REMOTE_READ | FI_REMOTE_WRITE | FI_RMA_EVENT;
constexpr std::uint64_t kOfSender = FI_SEND | FI_READ | FI_WRITE;
/// A target serves one rank in the order asked, up to kRemotePiece bytes, which are copied. A
/// message may overtake a read or write before it: SAR and SAW are not kept.
constexpr std::uint64_t kAccessOrder = FI_ORDER_RAR | FI_ORDER_RAW | FI_ORDER_RAS | FI_ORDER_WAR |
                                       FI_ORDER_WAW | FI_ORDER_WAS | FI_ORDER_RMA_RAR |
                                       FI_ORDER_RMA_RAW | FI_ORDER_RMA_WAR | FI_ORDER_RMA_WAW;
/// Asked for by programs whatever the provider can: there are no atomic operations here.
constexpr std::uint64_t kOrderOfNothing =
    FI_ORDER_ATOMIC_RAR | FI_ORDER_ATOMIC_RAW | FI_ORDER_ATOMIC_WAR | FI_ORDER_ATOMIC_WAW;
constexpr std::uint64_t kOrder = FI_ORDER_SAS | kAccessOrder;
constexpr std::size_t kLongest = std::size_t{1} << 40;
constexpr std::size_t kQueued = 1024;
constexpr std::size_t kRegionsMost = 65536;
constexpr const char* kName = "bbp";

bool is_wanted(const char* asked, const char* name) {
    return asked == nullptr || std::strcmp(asked, name) == 0;
}

bool is_kept(std::uint64_t order) {
    return (order & ~(kOrder | kOrderOfNothing)) == 0;
}

/// Whether it can be what the hints ask for.
bool suits(const fi_info& hints) {
    if ((hints.caps & ~kCapabilities) != 0) return false;
    if (hints.addr_format != FI_FORMAT_UNSPEC) return false;
    if (const auto* fabric = hints.fabric_attr) {
        if (!is_wanted(fabric->name, kName) || !is_wanted(fabric->prov_name, kName)) return false;
    }
    if (const auto* domain = hints.domain_attr) {
        if (!is_wanted(domain->name, kName) || domain->cq_data_size > sizeof(std::uint32_t) ||
            domain->data_progress == FI_PROGRESS_AUTO ||
            domain->control_progress == FI_PROGRESS_AUTO)
            return false;
    }
    if (const auto* endpoint = hints.ep_attr) {
        if (endpoint->type != FI_EP_UNSPEC && endpoint->type != FI_EP_RDM) return false;
        if (endpoint->protocol != FI_PROTO_UNSPEC || endpoint->max_msg_size > kLongest ||
            endpoint->tx_ctx_cnt > 1 || endpoint->rx_ctx_cnt > 1)
            return false;
    }
    if (const auto* tx = hints.tx_attr) {
        if (tx->inject_size > kInjectMost || tx->iov_limit > kPartsMost ||
            tx->rma_iov_limit > kPartsMost || (tx->caps & ~kCapabilities) != 0 ||
            !is_kept(tx->msg_order))
            return false;
    }
    if (const auto* rx = hints.rx_attr) {
        if (rx->iov_limit > kPartsMost || (rx->caps & ~kCapabilities) != 0 ||
            !is_kept(rx->msg_order))
            return false;
    }
    return true;
}

void describe_endpoint(fi_info& info) {
    info.ep_attr->type = FI_EP_RDM;
    info.ep_attr->protocol = FI_PROTO_UNSPEC;
    info.ep_attr->protocol_version = 1;
    info.ep_attr->max_msg_size = kLongest;
    info.ep_attr->mem_tag_format = ~std::uint64_t{0} >> 1;
    info.ep_attr->tx_ctx_cnt = info.ep_attr->rx_ctx_cnt = 1;
    info.ep_attr->max_order_raw_size = info.ep_attr->max_order_war_size =
        info.ep_attr->max_order_waw_size = kRemotePiece;
    info.tx_attr->rma_iov_limit = kPartsMost;
    info.tx_attr->inject_size = kInjectMost;
    info.tx_attr->size = kQueued;
    info.tx_attr->iov_limit = kPartsMost;
    info.tx_attr->msg_order = kOrder;
    info.rx_attr->size = kQueued;
    info.rx_attr->iov_limit = kPartsMost;
    info.rx_attr->msg_order = kOrder;
}

void describe_domain(fi_info& info) {
    info.fabric_attr->name = ::strdup(kName);
    info.fabric_attr->prov_version = provider.version;
    info.domain_attr->name = ::strdup(kName);
    info.domain_attr->threading = FI_THREAD_SAFE;
    info.domain_attr->control_progress = FI_PROGRESS_MANUAL;
    info.domain_attr->data_progress = FI_PROGRESS_MANUAL;
    info.domain_attr->resource_mgmt = FI_RM_ENABLED;
    info.domain_attr->av_type = FI_AV_TABLE;
    info.domain_attr->cq_data_size = sizeof(std::uint32_t);
    info.domain_attr->cq_cnt = info.domain_attr->ep_cnt = kQueued;
    info.domain_attr->tx_ctx_cnt = info.domain_attr->rx_ctx_cnt = 1;
    info.domain_attr->max_ep_tx_ctx = info.domain_attr->max_ep_rx_ctx = 1;
    info.domain_attr->cntr_cnt = kQueued;
    info.domain_attr->max_err_data = 0;
    info.domain_attr->mr_key_size = sizeof(std::uint64_t);
    info.domain_attr->mr_iov_limit = 1;
    info.domain_attr->mr_cnt = kRegionsMost;
    info.domain_attr->caps = FI_LOCAL_COMM | FI_REMOTE_COMM;
}

/// A caller that says nothing of directions means all of them.
std::uint64_t whole(std::uint64_t caps) {
    if ((caps & (FI_MSG | FI_TAGGED)) != 0 && (caps & (FI_SEND | FI_RECV)) == 0)
        caps |= FI_SEND | FI_RECV;
    if ((caps & FI_RMA) != 0 && (caps & kAccess) == 0) caps |= kAccess;
    return caps;
}

/// As the program can: before version 1.5 there were two ways, since then there is a bit for each
/// difference.
int registration_mode(std::uint32_t version, const fi_domain_attr* domain) {
    const int asked = domain == nullptr ? 0 : domain->mr_mode;
    if ((asked & FI_MR_BASIC) != 0) return FI_MR_BASIC;
    if ((asked & FI_MR_SCALABLE) != 0 || FI_VERSION_LT(version, FI_VERSION(1, 5)))
        return FI_MR_SCALABLE;
    return asked & kRegistrationModes;
}

/// Hints that make no difference here come back as they were.
void follow_hints(fi_info& info, const fi_info& hints) {
    if (hints.caps != 0) info.caps = whole(hints.caps);
    info.mode = hints.mode & (FI_CONTEXT | FI_CONTEXT2);
    if (const auto* domain = hints.domain_attr) {
        if (domain->threading != FI_THREAD_UNSPEC) info.domain_attr->threading = domain->threading;
        if (domain->av_type != FI_AV_UNSPEC) info.domain_attr->av_type = domain->av_type;
    }
    if (const auto* endpoint = hints.ep_attr; endpoint && endpoint->mem_tag_format != 0) {
        info.ep_attr->mem_tag_format = endpoint->mem_tag_format;
    }
    if (const auto* tx = hints.tx_attr) {
        info.tx_attr->op_flags = tx->op_flags;
        info.tx_attr->msg_order |= tx->msg_order;
    }
    if (const auto* rx = hints.rx_attr) {
        info.rx_attr->op_flags = rx->op_flags;
        info.rx_attr->msg_order |= rx->msg_order;
    }
}

// ---- Event queues

/// Programs ask for one before they know the endpoint's type; one that has no connections has no
/// events.
struct EventQueue final : fid_eq {
    Fabric* fabric = nullptr;
};

Fabric& fabric_of(fid_fabric* fabric) {
    return *static_cast<Fabric*>(fabric);
}

int close_events(fid* fid) {
    auto* queue = static_cast<EventQueue*>(reinterpret_cast<fid_eq*>(fid));
    --queue->fabric->users;
    delete queue;
    return 0;
}

fi_ops event_fid_ops = [] {
    auto ops = unsupported<fi_ops>();
    ops.close = close_events;
    return ops;
}();
fi_ops_eq event_ops = [] {
    auto ops = unsupported<fi_ops_eq>();
    ops.read = [](fid_eq*, std::uint32_t*, void*, std::size_t, std::uint64_t) -> ssize_t {
        return -FI_EAGAIN;
    };
    ops.readerr = [](fid_eq*, fi_eq_err_entry*, std::uint64_t) -> ssize_t { return -FI_EAGAIN; };
    return ops;
}();

int open_events(fid_fabric* fabric, fi_eq_attr*, fid_eq** queue, void* context) {
    return guarded([&] {
        *queue = new EventQueue{{{FI_CLASS_EQ, context, &event_fid_ops}, &event_ops},
                                &fabric_of(fabric)};
        ++fabric_of(fabric).users;
        return 0;
    });
}

// ---- Fabric

int close_fabric(fid* fid) {
    Fabric& fabric = fabric_of(reinterpret_cast<fid_fabric*>(fid));
    if (fabric.users != 0) return -FI_EBUSY;
    delete &fabric;
    return 0;
}

int open_domain(fid_fabric* fabric, fi_info* info, fid_domain** domain, void* context) {
    return guarded_aloud([&] {
        mpi_channel::Settings::read();  // here what is wrong there is said
        *domain = new Domain(fabric_of(fabric), *info, context);
        return 0;
    });
}

/// Before a program sleeps on a queue's descriptor: whether there is nothing to read yet.
int try_wait(fid_fabric*, fid** objects, int count) {
    return guarded([&] {
        for (int i = 0; i < count; ++i) {
            if (objects[i]->fclass != FI_CLASS_CQ) continue;
            auto& queue = *static_cast<CompletionQueue*>(reinterpret_cast<fid_cq*>(objects[i]));
            const auto lock = queue.domain.lock();
            if (!queue.may_sleep()) return -FI_EAGAIN;
        }
        return 0;
    });
}

fi_ops fabric_fid_ops = [] {
    auto ops = unsupported<fi_ops>();
    ops.close = close_fabric;
    return ops;
}();
fi_ops_fabric fabric_ops = [] {
    auto ops = unsupported<fi_ops_fabric>();
    ops.domain = open_domain;
    ops.eq_open = open_events;
    ops.trywait = try_wait;
    return ops;
}();

}  // namespace

fi_provider provider = {.version = FI_VERSION(0, 1),
                        .fi_version = FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION),
                        .context = {},
                        .name = kName,
                        .getinfo = get_info,
                        .fabric = open_fabric,
                        .cleanup = [] {}};

int get_info(std::uint32_t version, const char*, const char*, std::uint64_t, const fi_info* hints,
             fi_info** info) {
    if (hints != nullptr && !suits(*hints)) return -FI_ENODATA;
    fi_info* made = ::fi_allocinfo();
    if (made == nullptr) return -FI_ENOMEM;
    made->caps = kCapabilities;
    made->addr_format = FI_FORMAT_UNSPEC;
    describe_endpoint(*made);
    describe_domain(*made);
    if (hints != nullptr) follow_hints(*made, *hints);
    made->domain_attr->mr_mode =
        registration_mode(version, hints == nullptr ? nullptr : hints->domain_attr);
    made->tx_attr->caps = made->caps & ~kOfReceiver;
    made->rx_attr->caps = made->caps & ~kOfSender;
    *info = made;
    return 0;
}

int open_fabric(fi_fabric_attr* attributes, fid_fabric** fabric, void* context) {
    if (!is_wanted(attributes->name, kName)) return -FI_ENODATA;
    return guarded([&] {
        auto* made = new Fabric();
        made->fid = {FI_CLASS_FABRIC, context, &fabric_fid_ops};
        made->ops = &fabric_ops;
        *fabric = made;
        return 0;
    });
}

void say(const char* sentence) noexcept {
    if (fi_log_enabled(&provider, FI_LOG_WARN, FI_LOG_CORE) == 0)
        std::fprintf(stderr, "bbp: %s\n", sentence);
    // The launcher's file: it says so again when the MPI has said all that it has to say.
    const char* const path = std::getenv("RMEM_LAST_WORDS");
    const int file = path == nullptr
                         ? -1
                         : rmem::above_standard_streams(::open(
                               path, O_WRONLY | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    if (file < 0) return;
    ::dprintf(file, "bbp: %s\n", sentence);
    ::close(file);
}

int report_exception() noexcept {
    try {
        throw;
    } catch (const std::bad_alloc&) {
        return -FI_ENOMEM;
    } catch (const std::exception& error) {
        FI_WARN(&provider, FI_LOG_CORE, "%s\n", error.what());
        return -FI_EOTHER;
    } catch (...) {
        return -FI_EOTHER;
    }
}

}  // namespace mpi_channel::provider

extern "C" __attribute__((visibility("default"))) fi_provider* fi_prov_ini(void) {
    return &mpi_channel::provider::provider;
}
