// SPDX-License-Identifier: Apache-2.0
//
// A domain, and its address vectors.
#include "mpi_channel/provider/calls.hpp"
#include "mpi_channel/provider/completion_queue.hpp"
#include "mpi_channel/provider/unsupported.hpp"

#include <fmt/format.h>

#include <cstring>
#include <utility>

namespace mpi_channel::provider {

namespace {

Domain& domain_of(fid_domain* domain) {
    return *static_cast<Domain*>(domain);
}
AddressVector& vector_of(fid_av* vector) {
    return *static_cast<AddressVector*>(vector);
}

// ---- Address vectors

int insert(fid_av* vector, const void* addresses, std::size_t count, fi_addr_t* indices,
           std::uint64_t flags, void* context) {
    return guarded([&] {
        const auto lock = vector_of(vector).domain.lock();
        auto* errors = (flags & FI_SYNC_ERR) != 0 ? static_cast<int*>(context) : nullptr;
        return vector_of(vector).insert(addresses, count, indices, errors);
    });
}

int remove(fid_av* vector, fi_addr_t* indices, std::size_t count, std::uint64_t) {
    const auto lock = vector_of(vector).domain.lock();
    return vector_of(vector).remove(indices, count);
}

int lookup(fid_av* vector, fi_addr_t address, void* to, std::size_t* size) {
    const auto lock = vector_of(vector).domain.lock();
    const RankAddress* found = vector_of(vector).find(address);
    if (found == nullptr) return -FI_EINVAL;
    std::memcpy(to, found, std::min(*size, sizeof *found));
    *size = sizeof *found;
    return 0;
}

const char* describe(fid_av*, const void* address, char* to, std::size_t* size) {
    RankAddress rank;
    std::memcpy(&rank, address, sizeof rank);
    const auto result =
        fmt::format_to_n(to, *size == 0 ? 0 : *size - 1, "bbp://{:016x}/{}", rank.ring, rank.rank);
    if (*size != 0) *result.out = '\0';
    *size = result.size + 1;
    return to;
}

int close_vector(fid* fid) {
    AddressVector& vector = vector_of(reinterpret_cast<fid_av*>(fid));
    if (vector.users != 0) return -FI_EBUSY;
    delete &vector;
    return 0;
}

fi_ops vector_fid_ops = [] {
    auto ops = unsupported<fi_ops>();
    ops.close = close_vector;
    return ops;
}();
fi_ops_av vector_ops = [] {
    auto ops = unsupported<fi_ops_av>();
    ops.insert = insert;
    ops.remove = remove;
    ops.lookup = lookup;
    ops.straddr = describe;
    return ops;
}();

// ---- Domains

/// One that others share by its name is not offered.
int open_vector(fid_domain* domain, fi_av_attr* attributes, fid_av** vector, void* context) {
    if (attributes != nullptr && attributes->name != nullptr) return -FI_ENOSYS;
    return guarded([&] {
        *vector = new AddressVector(domain_of(domain), context);
        return 0;
    });
}

int open_queue(fid_domain* domain, fi_cq_attr* attributes, fid_cq** queue, void* context) {
    const auto wait = attributes->wait_obj;
    if (wait == FI_WAIT_SET || wait == FI_WAIT_MUTEX_COND || wait == FI_WAIT_POLLFD)
        return -FI_ENOSYS;
    return guarded([&] {
        *queue = new CompletionQueue(domain_of(domain), *attributes, context);
        return 0;
    });
}

int open_counter(fid_domain* domain, fi_cntr_attr*, fid_cntr** counter, void* context) {
    return guarded([&] {
        *counter = new Counter(domain_of(domain), context);
        return 0;
    });
}

int open_endpoint(fid_domain* domain, fi_info* info, fid_ep** endpoint, void* context) {
    return guarded([&] {
        *endpoint = new EndpointObject(domain_of(domain), *info, context);
        return 0;
    });
}

int close_domain(fid* fid) {
    Domain& domain = domain_of(reinterpret_cast<fid_domain*>(fid));
    if (domain.users != 0) return -FI_EBUSY;
    delete &domain;
    return 0;
}

fi_ops domain_fid_ops = [] {
    auto ops = unsupported<fi_ops>();
    ops.close = close_domain;
    return ops;
}();
fi_ops_domain domain_ops = [] {
    auto ops = unsupported<fi_ops_domain>();
    ops.av_open = open_vector;
    ops.cq_open = open_queue;
    ops.cntr_open = open_counter;
    ops.endpoint = open_endpoint;
    return ops;
}();

}  // namespace

Domain::Domain(Fabric& fabric, fi_info& info, void* context)
    : fid_domain{{FI_CLASS_DOMAIN, context, &domain_fid_ops}, &domain_ops, &memory_calls()},
      fabric_(fabric),
      is_shared_(info.domain_attr == nullptr || info.domain_attr->threading != FI_THREAD_DOMAIN ||
                 calls_may_meet()),
      mode_(info.domain_attr == nullptr ? 0 : info.domain_attr->mr_mode) {
    ++fabric_.users;
}

AddressVector::AddressVector(Domain& its_domain, void* context)
    : fid_av{{FI_CLASS_AV, context, &vector_fid_ops}, &vector_ops},
      domain(its_domain),
      transport_(mpi_channel::Settings::read().transport) {
    ++domain.users;
}

/// No MPI tells which ranks do not fit together: so it is said here, once, also where libfabric's
/// log is off.
bool AddressVector::is_good(const RankAddress& address) {
    if (address.rank >= rmem::kMaxRanks) return false;
    if (address.transport == static_cast<std::uint32_t>(transport_)) return true;
    if (std::exchange(has_complained_, true)) return false;
    const std::string text = fmt::format(
        "rank {} sends by transport {}, this one by {}: give all ranks the same RMEM_MPI",
        address.rank, name_of(static_cast<TransportKind>(address.transport)), name_of(transport_));
    say(text.c_str());
    FI_WARN(&provider, FI_LOG_AV, "%s\n", text.c_str());
    return false;
}

int AddressVector::insert(const void* addresses, std::size_t count, fi_addr_t* indices,
                          int* errors) {
    int inserted = 0;
    for (std::size_t i = 0; i < count; ++i) {
        RankAddress address;
        std::memcpy(&address, static_cast<const std::byte*>(addresses) + i * sizeof address,
                    sizeof address);
        const bool can_reach = is_good(address);
        const fi_addr_t index = ranks_.size();
        if (can_reach) {
            ranks_.emplace_back(address);
            if (address.rank >= addresses_.size())
                addresses_.resize(address.rank + 1, FI_ADDR_NOTAVAIL);
            addresses_[address.rank] = index;
            ++inserted;
        }
        if (indices != nullptr) indices[i] = can_reach ? index : FI_ADDR_NOTAVAIL;
        if (errors != nullptr) errors[i] = can_reach ? 0 : FI_EINVAL;
    }
    return inserted;
}

int AddressVector::remove(const fi_addr_t* indices, std::size_t count) {
    int result = 0;
    for (std::size_t i = 0; i < count; ++i) {
        const auto rank = rank_of(indices[i]);
        if (!rank) {
            result = -FI_EINVAL;
            continue;
        }
        ranks_[indices[i]].reset();
        if (addresses_[*rank] == indices[i]) addresses_[*rank] = FI_ADDR_NOTAVAIL;
    }
    return result;
}

}  // namespace mpi_channel::provider
