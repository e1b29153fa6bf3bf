// SPDX-License-Identifier: Apache-2.0
//
// Reads and writes of other ranks' memory: libfabric's calls of FI_RMA, and how they end.
#include "mpi_channel/provider/calls.hpp"
#include "mpi_channel/provider/completion_queue.hpp"
#include "mpi_channel/provider/unsupported.hpp"

namespace mpi_channel::provider {

namespace {

using Call = EndpointObject::AccessCall;

EndpointObject& accessed(fid_ep* endpoint) {
    return *static_cast<EndpointObject*>(endpoint);
}

ssize_t access(fid_ep* endpoint, const Call& call) {
    return guarded([&] {
        const auto lock = accessed(endpoint).domain.lock();
        return accessed(endpoint).access(call);
    });
}

/// One place of as many bytes as the parts have.
ssize_t access_one(fid_ep* endpoint, Call call, std::uint64_t address, std::uint64_t key) {
    fi_rma_iov place{address, 0, key};
    for (std::size_t i = 0; i < call.count; ++i) place.len += call.iov[i].iov_len;
    call.places = &place;
    call.place_count = 1;
    return access(endpoint, call);
}

Call call_of(fid_ep* endpoint, bool writes, const iovec* iov, std::size_t count, fi_addr_t to,
             void* context) {
    Call call;
    call.writes = writes;
    call.iov = iov;
    call.count = count;
    call.address = to;
    call.context = context;
    call.flags = accessed(endpoint).sending_flags();
    return call;
}

Call injected_write(const iovec& part, fi_addr_t to) {
    Call call;
    call.writes = true;
    call.iov = &part;
    call.count = 1;
    call.address = to;
    call.flags = FI_INJECT | kNeverTold;
    return call;
}

Call with_data(Call call, std::uint64_t data) {
    call.data = data;
    return call;
}

iovec one_part(const void* bytes, std::size_t size) {
    return {const_cast<void*>(bytes), size};
}

ssize_t access_message(fid_ep* endpoint, bool writes, const fi_msg_rma& message,
                       std::uint64_t flags) {
    Call call = call_of(endpoint, writes, message.msg_iov, message.iov_count, message.addr,
                        message.context);
    call.places = message.rma_iov;
    call.place_count = message.rma_iov_count;
    call.flags = flags;
    if ((flags & FI_REMOTE_CQ_DATA) != 0) call.data = message.data;
    return access(endpoint, call);
}

fi_ops_rma make_access_calls() {
    auto ops = unsupported<fi_ops_rma>();
    ops.read = [](fid_ep* ep, void* buf, std::size_t len, void*, fi_addr_t from,
                  std::uint64_t address, std::uint64_t key, void* context) {
        const iovec part = one_part(buf, len);
        return access_one(ep, call_of(ep, false, &part, 1, from, context), address, key);
    };
    ops.readv = [](fid_ep* ep, const iovec* iov, void**, std::size_t count, fi_addr_t from,
                   std::uint64_t address, std::uint64_t key, void* context) {
        return access_one(ep, call_of(ep, false, iov, count, from, context), address, key);
    };
    ops.readmsg = [](fid_ep* ep, const fi_msg_rma* message, std::uint64_t flags) {
        return access_message(ep, false, *message, flags);
    };
    ops.write = [](fid_ep* ep, const void* buf, std::size_t len, void*, fi_addr_t to,
                   std::uint64_t address, std::uint64_t key, void* context) {
        const iovec part = one_part(buf, len);
        return access_one(ep, call_of(ep, true, &part, 1, to, context), address, key);
    };
    ops.writev = [](fid_ep* ep, const iovec* iov, void**, std::size_t count, fi_addr_t to,
                    std::uint64_t address, std::uint64_t key, void* context) {
        return access_one(ep, call_of(ep, true, iov, count, to, context), address, key);
    };
    ops.writemsg = [](fid_ep* ep, const fi_msg_rma* message, std::uint64_t flags) {
        return access_message(ep, true, *message, flags);
    };
    ops.inject = [](fid_ep* ep, const void* buf, std::size_t len, fi_addr_t to,
                    std::uint64_t address, std::uint64_t key) {
        const iovec part = one_part(buf, len);
        return access_one(ep, injected_write(part, to), address, key);
    };
    ops.writedata = [](fid_ep* ep, const void* buf, std::size_t len, void*, std::uint64_t data,
                       fi_addr_t to, std::uint64_t address, std::uint64_t key, void* context) {
        const iovec part = one_part(buf, len);
        return access_one(ep, with_data(call_of(ep, true, &part, 1, to, context), data), address,
                          key);
    };
    ops.injectdata = [](fid_ep* ep, const void* buf, std::size_t len, std::uint64_t data,
                        fi_addr_t to, std::uint64_t address, std::uint64_t key) {
        const iovec part = one_part(buf, len);
        return access_one(ep, with_data(injected_write(part, to), data), address, key);
    };
    return ops;
}

int error_of(RemoteStatus status) {
    switch (status) {
        case RemoteStatus::no_key: return FI_EKEYREJECTED;
        case RemoteStatus::denied: return FI_EACCES;
        default: return FI_ECONNABORTED;
    }
}

}  // namespace

fi_ops_rma& access_calls() {
    static fi_ops_rma calls = make_access_calls();
    return calls;
}

ssize_t EndpointObject::access(const AccessCall& call) {
    if (device_ == nullptr) return -FI_EOPBADSTATE;
    const auto to = addresses_->rank_of(call.address);
    if (!to || *to >= endpoint_->ranks() || call.count > kPartsMost || call.place_count == 0 ||
        call.place_count > kPartsMost)
        return -FI_EINVAL;
    RemoteOrder order;
    order.writes = call.writes;
    order.to = *to;
    order.parts = Parts(call.iov, call.count);
    std::size_t size = 0;
    for (std::size_t i = 0; i < call.place_count; ++i) {
        const fi_rma_iov& place = call.places[i];
        order.places.push_back({place.key, place.addr, place.len});
        size += place.len;
    }
    if (size != size_of(order.parts)) return -FI_EINVAL;
    order.copy = call.writes && (call.flags & FI_INJECT) != 0;
    if (order.copy && size > kInjectMost) return -FI_EMSGSIZE;
    if (device_->backlog(*to) >= kBacklogMost) {
        device_->progress();
        return -FI_EAGAIN;
    }
    if (call.data) order.data = static_cast<std::uint32_t>(*call.data);
    order.mark = mark_of(call.flags);
    order.context = call.context;
    device_->access(order);
    return 0;
}

void EndpointObject::over(const RemoteCompletion& completion) {
    Counter* const counter = completion.writes ? writes_ : reads_;
    const std::uint64_t flags = FI_RMA | (completion.writes ? FI_WRITE : FI_READ);
    if (completion.status == RemoteStatus::ok) {
        if (counter != nullptr) ++counter->value;
        if (sends_.queue == nullptr || (completion.mark & kTold) == 0) return;
        CompletionQueue::Entry entry{};
        entry.entry.op_context = completion.context;
        entry.entry.flags = flags;
        sends_.queue->add(entry);
        return;
    }
    if (counter != nullptr) ++counter->errors;
    if (sends_.queue == nullptr) return;
    fi_cq_err_entry error{};
    error.op_context = completion.context;
    error.flags = flags;
    error.err = error.prov_errno = error_of(completion.status);
    sends_.queue->add_error(error);
}

/// By another rank, here.
void EndpointObject::touched(const RemoteTouch& touch) {
    if (Counter* counter = touch.writes ? others_writes_ : others_reads_) ++counter->value;
    static_cast<MemoryRegion*>(touch.owner)->count(touch.writes);
    if (!touch.data || receives_.queue == nullptr) return;
    CompletionQueue::Entry entry{};
    entry.entry.flags = FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA;
    entry.entry.len = touch.size;
    entry.entry.data = *touch.data;
    entry.source = addresses_->address_of(touch.from);
    receives_.queue->add(entry);
}

}  // namespace mpi_channel::provider
