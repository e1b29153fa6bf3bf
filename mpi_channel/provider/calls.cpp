// SPDX-License-Identifier: Apache-2.0
#include "mpi_channel/provider/calls.hpp"

#include "mpi_channel/provider/objects.hpp"
#include "mpi_channel/provider/unsupported.hpp"

namespace mpi_channel::provider {

namespace {

using Call = EndpointObject::Call;

EndpointObject& endpoint_of(fid_ep* endpoint) {
    return *static_cast<EndpointObject*>(endpoint);
}

ssize_t send(fid_ep* endpoint, const Call& call) {
    return guarded([&] {
        const auto lock = endpoint_of(endpoint).domain.lock();
        return endpoint_of(endpoint).send(call);
    });
}

ssize_t receive(fid_ep* endpoint, const Call& call) {
    return guarded([&] {
        const auto lock = endpoint_of(endpoint).domain.lock();
        return endpoint_of(endpoint).receive(call);
    });
}

iovec part_of(const void* bytes, std::size_t size) {
    return {const_cast<void*>(bytes), size};
}

/// The fields of every call; the others are filled in where the call is, since a copy would cost
/// more than all of it.
Call call_of(const iovec* iov, std::size_t count, fi_addr_t address, void* context,
             std::uint64_t flags) {
    Call call;
    call.iov = iov;
    call.count = count;
    call.address = address;
    call.context = context;
    call.flags = flags;
    return call;
}
Call sending(fid_ep* endpoint, const iovec* iov, std::size_t count, fi_addr_t to, void* context) {
    return call_of(iov, count, to, context, endpoint_of(endpoint).sending_flags());
}
Call receiving(fid_ep* endpoint, const iovec* iov, std::size_t count, fi_addr_t from,
               void* context) {
    return call_of(iov, count, from, context, endpoint_of(endpoint).receiving_flags());
}
Call injecting(const iovec& part, fi_addr_t to) {
    return call_of(&part, 1, to, nullptr, FI_INJECT | kNeverTold);
}

/// Of fi_msg and fi_msg_tagged.
template <class Message>
Call of_message(const Message& message, std::uint64_t flags) {
    Call call = call_of(message.msg_iov, message.iov_count, message.addr, message.context, flags);
    if ((flags & FI_REMOTE_CQ_DATA) != 0) call.data = message.data;
    return call;
}

fi_ops_msg make_message_calls() {
    auto ops = unsupported<fi_ops_msg>();
    ops.recv = [](fid_ep* ep, void* buf, std::size_t len, void*, fi_addr_t from, void* context) {
        const iovec part = part_of(buf, len);
        Call call = receiving(ep, &part, 1, from, context);
        call.untagged = true;
        return receive(ep, call);
    };
    ops.recvv = [](fid_ep* ep, const iovec* iov, void**, std::size_t count, fi_addr_t from,
                   void* context) {
        Call call = receiving(ep, iov, count, from, context);
        call.untagged = true;
        return receive(ep, call);
    };
    ops.recvmsg = [](fid_ep* ep, const fi_msg* message, std::uint64_t flags) {
        Call call = of_message(*message, flags);
        call.untagged = true;
        return receive(ep, call);
    };
    ops.send = [](fid_ep* ep, const void* buf, std::size_t len, void*, fi_addr_t to,
                  void* context) {
        const iovec part = part_of(buf, len);
        Call call = sending(ep, &part, 1, to, context);
        call.untagged = true;
        return send(ep, call);
    };
    ops.sendv = [](fid_ep* ep, const iovec* iov, void**, std::size_t count, fi_addr_t to,
                   void* context) {
        Call call = sending(ep, iov, count, to, context);
        call.untagged = true;
        return send(ep, call);
    };
    ops.sendmsg = [](fid_ep* ep, const fi_msg* message, std::uint64_t flags) {
        Call call = of_message(*message, flags);
        call.untagged = true;
        return send(ep, call);
    };
    ops.inject = [](fid_ep* ep, const void* buf, std::size_t len, fi_addr_t to) {
        const iovec part = part_of(buf, len);
        Call call = injecting(part, to);
        call.untagged = true;
        return send(ep, call);
    };
    ops.senddata = [](fid_ep* ep, const void* buf, std::size_t len, void*, std::uint64_t data,
                      fi_addr_t to, void* context) {
        const iovec part = part_of(buf, len);
        Call call = sending(ep, &part, 1, to, context);
        call.data = data;
        call.untagged = true;
        return send(ep, call);
    };
    ops.injectdata = [](fid_ep* ep, const void* buf, std::size_t len, std::uint64_t data,
                        fi_addr_t to) {
        const iovec part = part_of(buf, len);
        Call call = injecting(part, to);
        call.data = data;
        call.untagged = true;
        return send(ep, call);
    };
    return ops;
}

fi_ops_tagged make_tagged_calls() {
    auto ops = unsupported<fi_ops_tagged>();
    ops.recv = [](fid_ep* ep, void* buf, std::size_t len, void*, fi_addr_t from, std::uint64_t tag,
                  std::uint64_t ignore, void* context) {
        const iovec part = part_of(buf, len);
        Call call = receiving(ep, &part, 1, from, context);
        call.tag = tag;
        call.ignore = ignore;
        return receive(ep, call);
    };
    ops.recvv = [](fid_ep* ep, const iovec* iov, void**, std::size_t count, fi_addr_t from,
                   std::uint64_t tag, std::uint64_t ignore, void* context) {
        Call call = receiving(ep, iov, count, from, context);
        call.tag = tag;
        call.ignore = ignore;
        return receive(ep, call);
    };
    ops.recvmsg = [](fid_ep* ep, const fi_msg_tagged* message, std::uint64_t flags) {
        Call call = of_message(*message, flags);
        call.tag = message->tag;
        call.ignore = message->ignore;
        return receive(ep, call);
    };
    ops.send = [](fid_ep* ep, const void* buf, std::size_t len, void*, fi_addr_t to,
                  std::uint64_t tag, void* context) {
        const iovec part = part_of(buf, len);
        Call call = sending(ep, &part, 1, to, context);
        call.tag = tag;
        return send(ep, call);
    };
    ops.sendv = [](fid_ep* ep, const iovec* iov, void**, std::size_t count, fi_addr_t to,
                   std::uint64_t tag, void* context) {
        Call call = sending(ep, iov, count, to, context);
        call.tag = tag;
        return send(ep, call);
    };
    ops.sendmsg = [](fid_ep* ep, const fi_msg_tagged* message, std::uint64_t flags) {
        Call call = of_message(*message, flags);
        call.tag = message->tag;
        return send(ep, call);
    };
    ops.inject = [](fid_ep* ep, const void* buf, std::size_t len, fi_addr_t to, std::uint64_t tag) {
        const iovec part = part_of(buf, len);
        Call call = injecting(part, to);
        call.tag = tag;
        return send(ep, call);
    };
    ops.senddata = [](fid_ep* ep, const void* buf, std::size_t len, void*, std::uint64_t data,
                      fi_addr_t to, std::uint64_t tag, void* context) {
        const iovec part = part_of(buf, len);
        Call call = sending(ep, &part, 1, to, context);
        call.data = data;
        call.tag = tag;
        return send(ep, call);
    };
    ops.injectdata = [](fid_ep* ep, const void* buf, std::size_t len, std::uint64_t data,
                        fi_addr_t to, std::uint64_t tag) {
        const iovec part = part_of(buf, len);
        Call call = injecting(part, to);
        call.data = data;
        call.tag = tag;
        return send(ep, call);
    };
    return ops;
}

}  // namespace

fi_ops_msg& message_calls() {
    static fi_ops_msg ops = make_message_calls();
    return ops;
}

fi_ops_tagged& tagged_calls() {
    static fi_ops_tagged ops = make_tagged_calls();
    return ops;
}

}  // namespace mpi_channel::provider
