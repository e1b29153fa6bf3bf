// SPDX-License-Identifier: Apache-2.0
//
// Memory regions: what others may read and write here, by key.
#include "mpi_channel/provider/calls.hpp"
#include "mpi_channel/provider/completion_queue.hpp"
#include "mpi_channel/provider/unsupported.hpp"

namespace mpi_channel::provider {

namespace {

constexpr std::uint64_t kAccessFlags =
    FI_SEND | FI_RECV | FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;

MemoryRegion& region_of(struct fid* fid) {
    return *static_cast<MemoryRegion*>(reinterpret_cast<fid_mr*>(fid));
}

int close_region(struct fid* fid) {
    MemoryRegion& region = region_of(fid);
    const auto lock = region.domain.lock();
    delete &region;
    return 0;
}

int bind_region(struct fid* fid, struct fid* other, std::uint64_t flags) {
    const auto lock = region_of(fid).domain.lock();
    return region_of(fid).bind(other, flags);
}

/// Some programs enable regions that need no such thing.
int control_region(struct fid*, int command, void*) {
    return command == FI_ENABLE ? 0 : -FI_ENOSYS;
}

fi_ops region_fid_ops = [] {
    auto ops = unsupported<fi_ops>();
    ops.close = close_region;
    ops.bind = bind_region;
    ops.control = control_region;
    return ops;
}();

int register_memory(struct fid* fid, const fi_mr_attr& attributes, fid_mr** region) {
    if (fid->fclass != FI_CLASS_DOMAIN || attributes.iov_count > 1 || attributes.offset != 0 ||
        (attributes.access & ~kAccessFlags) != 0)
        return -FI_EINVAL;
    return guarded([&] {
        Domain& domain = *static_cast<Domain*>(reinterpret_cast<fid_domain*>(fid));
        const auto lock = domain.lock();
        auto made = std::make_unique<MemoryRegion>(domain, attributes);
        if (made->key == FI_KEY_NOTAVAIL) return -FI_ENOKEY;
        *region = made.release();
        return 0;
    });
}

fi_ops_mr make_memory_calls() {
    auto ops = unsupported<fi_ops_mr>();
    ops.reg = [](struct fid* fid, const void* buf, std::size_t size, std::uint64_t access,
                 std::uint64_t offset, std::uint64_t key, std::uint64_t, fid_mr** region,
                 void* context) {
        const iovec part{const_cast<void*>(buf), size};
        fi_mr_attr attributes{};
        attributes.mr_iov = &part;
        attributes.iov_count = 1;
        attributes.access = access;
        attributes.offset = offset;
        attributes.requested_key = key;
        attributes.context = context;
        return register_memory(fid, attributes, region);
    };
    ops.regv = [](struct fid* fid, const iovec* iov, std::size_t count, std::uint64_t access,
                  std::uint64_t offset, std::uint64_t key, std::uint64_t, fid_mr** region,
                  void* context) {
        fi_mr_attr attributes{};
        attributes.mr_iov = iov;
        attributes.iov_count = count;
        attributes.access = access;
        attributes.offset = offset;
        attributes.requested_key = key;
        attributes.context = context;
        return register_memory(fid, attributes, region);
    };
    ops.regattr = [](struct fid* fid, const fi_mr_attr* attributes, std::uint64_t,
                     fid_mr** region) { return register_memory(fid, *attributes, region); };
    return ops;
}

}  // namespace

fi_ops_mr& memory_calls() {
    static fi_ops_mr calls = make_memory_calls();
    return calls;
}

/// Its key is FI_KEY_NOTAVAIL when another region has the one asked for.
MemoryRegion::MemoryRegion(Domain& its_domain, const fi_mr_attr& attributes)
    : fid_mr{{FI_CLASS_MR, attributes.context, &region_fid_ops}, nullptr, FI_KEY_NOTAVAIL},
      domain(its_domain) {
    Region region;
    if (attributes.iov_count == 1) {
        region.base = static_cast<std::byte*>(attributes.mr_iov[0].iov_base);
        region.size = attributes.mr_iov[0].iov_len;
    }
    region.by_offset = !domain.by_address();
    region.may_read = (attributes.access & FI_REMOTE_READ) != 0;
    region.may_write = (attributes.access & FI_REMOTE_WRITE) != 0;
    region.owner = this;
    const std::uint64_t wanted =
        domain.chooses_keys() ? domain.next_key++ : attributes.requested_key;
    if (wanted != FI_KEY_NOTAVAIL && domain.regions.add(wanted, region)) key = wanted;
    mem_desc = this;
    ++domain.users;
}

void MemoryRegion::count(bool writes) {
    if (Counter* counter = writes ? writes_ : reads_) ++counter->value;
}

MemoryRegion::~MemoryRegion() {
    if (key != FI_KEY_NOTAVAIL) domain.regions.remove(key);
    for (Counter* counter : {reads_, writes_}) {
        if (counter != nullptr) --counter->regions;
    }
    --domain.users;
}

int MemoryRegion::bind(struct fid* other, std::uint64_t flags) {
    if (other->fclass == FI_CLASS_EP) return 0;
    if (other->fclass != FI_CLASS_CNTR) return -FI_EINVAL;
    auto& counter = *static_cast<Counter*>(reinterpret_cast<fid_cntr*>(other));
    for (const auto& [kind, place] :
         {std::pair{FI_REMOTE_READ, &reads_}, std::pair{FI_REMOTE_WRITE, &writes_}}) {
        if ((flags & kind) == 0) continue;
        if (*place != nullptr) return -FI_EINVAL;
        *place = &counter;
        ++counter.regions;
    }
    return 0;
}

}  // namespace mpi_channel::provider
