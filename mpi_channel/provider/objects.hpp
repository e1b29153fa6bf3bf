// SPDX-License-Identifier: Apache-2.0
#pragma once

/// libfabric's objects as the provider has them. Each derives from libfabric's own structure,
/// through which it is called.
///
///     Fabric ← Domain ← Endpoint, AddressVector, CompletionQueue, Counter, MemoryRegion
///
/// An object that another still uses is not closed (-FI_EBUSY): an endpoint's queues, counters and
/// addresses, a domain's objects, a fabric's domains.
///
/// An endpoint is one rank of a ring: it joins when it is enabled, as the ring's environment says
/// (docs/man/rmem.7), and waits there for the others.
/// Thread safety: each call holds its domain's lock, unless that was asked for FI_THREAD_DOMAIN:
/// then its caller sees to it.
/// Progress: in calls that read a queue or a counter, in FI_PEEK, and before a caller sleeps
/// (fi_trywait).
/// Errors: libfabric's numbers; the sentence goes to its log (FI_LOG_LEVEL=warn).

#include "billboard/endpoint.hpp"
#include "mpi_channel/channel.hpp"
#include "mpi_channel/collectives.hpp"
#include "mpi_channel/device/device.hpp"
#include "mpi_channel/device/peer_memory.hpp"
#include "mpi_channel/device/regions.hpp"
#include "mpi_channel/fm/fm_device.hpp"
#include "mpi_channel/settings.hpp"

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>
#include <rdma/providers/fi_log.h>
#include <rdma/providers/fi_prov.h>

#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

namespace mpi_channel::provider {

extern fi_provider provider;

inline constexpr std::size_t kInjectMost = 4096;
/// Number of sends that may wait for room before the caller is to make progress first.
inline constexpr std::size_t kBacklogMost = 1024;

/// What fi_getname gives: a rank that has it can send to this one.
struct RankAddress {
    std::uint64_t ring = 0;  ///< a hash of its name
    std::uint32_t rank = 0;
    std::uint32_t transport = 0;  ///< a TransportKind: what reaches it
    friend bool operator==(const RankAddress&, const RankAddress&) = default;
};

class CompletionQueue;
class Counter;
class EndpointObject;

/// fi_getinfo; fabric, for fi_provider.
[[nodiscard]] int get_info(std::uint32_t version, const char* node, const char* service,
                           std::uint64_t flags, const fi_info* hints, fi_info** info);
[[nodiscard]] int open_fabric(fi_fabric_attr* attributes, fid_fabric** fabric, void* context);

/// Calls `body`; what it throws is logged and becomes an error number.
[[nodiscard]] int report_exception() noexcept;
template <class Body>
auto guarded(Body&& body) noexcept -> decltype(body()) {
    try {
        return body();
    } catch (...) {
        return static_cast<decltype(body())>(report_exception());
    }
}

/// Tells once, even where libfabric's log is off, why this rank cannot take part: no MPI tells it.
void say(const char* sentence) noexcept;
template <class Body>
auto guarded_aloud(Body&& body) noexcept -> decltype(body()) {
    return guarded([&] {
        try {
            return body();
        } catch (const std::exception& error) {
            say(error.what());
            throw;
        }
    });
}

/// The endpoint whose ranks bbp_get_collectives() is about; and not any more.
void offer_collectives(EndpointObject* endpoint) noexcept;
void withdraw_collectives(EndpointObject* endpoint) noexcept;

/// The bits of fi_mr_mode that make a difference here, and the former names of all and of none.
inline constexpr int kRegistrationModes =
    FI_MR_BASIC | FI_MR_SCALABLE | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;

struct Fabric final : fid_fabric {
    unsigned users = 0;  ///< domains and event queues that are open
};

class Domain final : public fid_domain {
public:
    Domain(Fabric& fabric, fi_info& info, void* context);
    ~Domain() { --fabric_.users; }

    /// Held by every call, if anybody asked for it.
    std::unique_lock<std::mutex> lock() {
        return is_shared_ ? std::unique_lock(mutex_) : std::unique_lock<std::mutex>();
    }
    /// Whether calls of several threads may meet.
    [[nodiscard]] bool is_shared() const noexcept { return is_shared_; }
    unsigned users = 0;  ///< objects of the domain that are open

    /// Whether keys are the provider's, and addresses the bytes' own.
    [[nodiscard]] bool chooses_keys() const noexcept {
        return (mode_ & (FI_MR_BASIC | FI_MR_PROV_KEY)) != 0;
    }
    [[nodiscard]] bool by_address() const noexcept {
        return (mode_ & (FI_MR_BASIC | FI_MR_VIRT_ADDR)) != 0;
    }
    Regions regions;
    std::uint64_t next_key = 1;

private:
    Fabric& fabric_;
    bool is_shared_;
    int mode_ = 0;
    std::mutex mutex_;
};

class AddressVector final : public fid_av {
public:
    AddressVector(Domain& domain, void* context);
    ~AddressVector() { --domain.users; }

    /// `errors`, if asked for: a number for each. A rank whose transport is another is refused,
    /// with a sentence.
    int insert(const void* addresses, std::size_t count, fi_addr_t* indices, int* errors);
    /// Their indices are not used again.
    int remove(const fi_addr_t* indices, std::size_t count);
    [[nodiscard]] std::optional<unsigned> rank_of(fi_addr_t address) const noexcept {
        const RankAddress* found = find(address);
        return found == nullptr ? std::nullopt : std::optional(found->rank);
    }
    [[nodiscard]] fi_addr_t address_of(Source rank) const noexcept {
        return rank < addresses_.size() ? addresses_[rank] : FI_ADDR_NOTAVAIL;
    }
    [[nodiscard]] const RankAddress* find(fi_addr_t address) const noexcept {
        return address < ranks_.size() && ranks_[address] ? &*ranks_[address] : nullptr;
    }

    Domain& domain;
    unsigned users = 0;  ///< endpoints

private:
    [[nodiscard]] bool is_good(const RankAddress& address);

    const TransportKind transport_;
    bool has_complained_ = false;
    std::vector<std::optional<RankAddress>> ranks_;
    std::vector<fi_addr_t> addresses_;  ///< by rank
};

/// Memory that others may access.
class MemoryRegion final : public fid_mr {
public:
    MemoryRegion(Domain& domain, const fi_mr_attr& attributes);
    ~MemoryRegion();

    int bind(struct fid* other, std::uint64_t flags);
    void count(bool writes);

    Domain& domain;

private:
    Counter* reads_ = nullptr;   ///< of others
    Counter* writes_ = nullptr;  ///< of others
};

/// Where completions of one kind go.
struct Told {
    CompletionQueue* queue = nullptr;
    Counter* counter = nullptr;
    bool selective = false;   ///< only what asks for it
    std::uint64_t flags = 0;  ///< of calls that have none of their own
};

class EndpointObject final : public fid_ep, private Completions, private RemoteEvents {
public:
    EndpointObject(Domain& domain, const fi_info& info, void* context);
    ~EndpointObject();

    int bind(struct fid* other, std::uint64_t flags);
    int enable();
    [[nodiscard]] int name(void* address, std::size_t* size) const;
    [[nodiscard]] int set_option(int name, const void* value, std::size_t size);
    [[nodiscard]] int option(int name, void* value, std::size_t* size) const;
    [[nodiscard]] ssize_t cancel(void* context);

    /// A send or receive, tagged or not, as all the calls put it. The messages' parts are `iov`.
    struct Call {
        const iovec* iov = nullptr;
        std::size_t count = 0;
        fi_addr_t address = FI_ADDR_UNSPEC;
        std::uint64_t tag = 0;
        std::uint64_t ignore = 0;
        bool untagged = false;
        std::optional<std::uint64_t> data;
        void* context = nullptr;
        std::uint64_t flags = 0;
    };
    [[nodiscard]] ssize_t send(const Call& call);
    [[nodiscard]] ssize_t receive(const Call& call);

    /// A read or write of another rank's memory, as all the calls put it.
    struct AccessCall {
        bool writes = false;
        const iovec* iov = nullptr;
        std::size_t count = 0;
        const fi_rma_iov* places = nullptr;
        std::size_t place_count = 0;
        fi_addr_t address = FI_ADDR_UNSPEC;
        std::optional<std::uint64_t> data;
        void* context = nullptr;
        std::uint64_t flags = 0;
    };
    [[nodiscard]] ssize_t access(const AccessCall& call);

    [[nodiscard]] std::uint64_t sending_flags() const noexcept { return sends_.flags; }
    [[nodiscard]] std::uint64_t receiving_flags() const noexcept { return receives_.flags; }
    bool progress() { return device_ != nullptr && device_->progress(); }
    /// For a wait for one completion: a packet at a time, since a look at what comes next would
    /// take longer.
    [[nodiscard]] bool progress_once() { return device_ != nullptr && device_->progress(1); }
    [[nodiscard]] unsigned rank() const noexcept { return endpoint_->rank(); }
    [[nodiscard]] unsigned ranks() const noexcept { return endpoint_->ranks(); }
    [[nodiscard]] std::uint64_t ring() const noexcept { return ring_; }  ///< as in RankAddress
    [[nodiscard]] Collectives& collectives() noexcept { return *collectives_; }
    [[nodiscard]] std::uint64_t multicasts() const noexcept {
        return device_->transport_counters().multicasts;
    }
    /// Whether ranks share processors, as it was found a while ago.
    [[nodiscard]] bool is_crowded() {
        if (endpoint_ != nullptr && crowd_asked_++ % kAsksPerLook == 0)
            is_crowded_ = endpoint_->is_crowded();
        return is_crowded_;
    }
    [[nodiscard]] int wait_descriptor() {
        if (fm_ != nullptr) return fm_->wait_descriptor();
        return endpoint_ == nullptr ? -1 : endpoint_->fd();
    }
    [[nodiscard]] bool has_backlog() const noexcept {
        return device_ != nullptr && device_->has_backlog();
    }

    Domain& domain;

private:
    void completed(const Completion& completion) override;
    void over(const RemoteCompletion& completion) override;
    void touched(const RemoteTouch& touch) override;
    [[nodiscard]] int bind_queue(CompletionQueue& queue, std::uint64_t flags);
    [[nodiscard]] int bind_counter(Counter& counter, std::uint64_t flags);
    void open_transport(const mpi_channel::Settings& settings, const billboard::Settings& board);
    void forget_former_incarnations();
    void use_peers_memory(const rmem::RingConfig& config, const rmem::Environment& environment,
                          const mpi_channel::Settings& settings);
    void use_fabric(const rmem::RingConfig& config, const rmem::Environment& environment);
    [[nodiscard]] std::uint32_t mark_of(std::uint64_t flags) const noexcept;
    void fail(const Completion& completion, CompletionQueue& queue, std::uint64_t flags);
    [[nodiscard]] ssize_t peek(const Call& call, Source from);
    [[nodiscard]] ssize_t receive_claimed(const Call& call);
    void tell_discarded(const Call& call, const Unexpected& message);
    [[nodiscard]] ssize_t answer_peek(const Call& call, const Unexpected* message);
    ReceiveOrder order_of(const Call& call, Source from) const;
    void drain();
    void show_counters() const;

    static constexpr unsigned kAsksPerLook = 128;

    const bool is_directed_;  ///< a receive names its sender
    AddressVector* addresses_ = nullptr;
    Told sends_, receives_;
    Counter* reads_ = nullptr;
    Counter* writes_ = nullptr;
    Counter* others_reads_ = nullptr;
    Counter* others_writes_ = nullptr;
    std::uint64_t ring_ = 0;
    std::size_t least_ = 1;  ///< FI_OPT_MIN_MULTI_RECV
    std::shared_ptr<billboard::Endpoint> endpoint_;
    std::unique_ptr<Channel> channel_;  ///< this or `fm_`
    std::unique_ptr<FmTransport> fm_;
    std::unique_ptr<HostMemory> peers_;
    std::unique_ptr<rmem::FarMemory> far_;
    std::unique_ptr<DeviceInterface> device_;
    std::unique_ptr<Collectives> collectives_;
    unsigned crowd_asked_ = 0;
    bool is_crowded_ = false;
    std::unordered_map<void*, Unexpected*> claimed_;  ///< by their contexts
};

}  // namespace mpi_channel::provider
