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

Call sending(fid_ep* endpoint, const iovec* iov, std::size_t count, fi_addr_t to, void* context) {
    Call call;
    call.iov = iov;
    call.count = count;
    call.address = to;
    call.context = context;
    call.flags = endpoint_of(endpoint).sending_flags();
    return call;
}

Call injecting(const iovec& part, fi_addr_t to) {
    Call call;
    call.iov = &part;
    call.count = 1;
    call.address = to;
    call.flags = FI_INJECT | kNeverTold;
    return call;
}

Call receiving(fid_ep* endpoint, const iovec* iov, std::size_t count, fi_addr_t from,
               void* context) {
    Call call = sending(endpoint, iov, count, from, context);
    call.flags = endpoint_of(endpoint).receiving_flags();
    return call;
}

Call untagged(Call call) {
    call.untagged = true;
    return call;
}
Call tagged(Call call, std::uint64_t tag, std::uint64_t ignore = 0) {
    call.tag = tag;
    call.ignore = ignore;
    return call;
}
Call with(Call call, std::uint64_t data) {
    call.data = data;
    return call;
}

/// Of fi_msg and fi_msg_tagged.
template <class Message>
Call of_message(const Message& message, std::uint64_t flags) {
    Call call;
    call.iov = message.msg_iov;
    call.count = message.iov_count;
    call.address = message.addr;
    call.context = message.context;
    call.flags = flags;
    if ((flags & FI_REMOTE_CQ_DATA) != 0) call.data = message.data;
    return call;
}

fi_ops_msg make_message_calls() {
    auto ops = unsupported<fi_ops_msg>();
    ops.recv = [](fid_ep* ep, void* buf, std::size_t len, void*, fi_addr_t from, void* context) {
        const iovec part = part_of(buf, len);
        return receive(ep, untagged(receiving(ep, &part, 1, from, context)));
    };
    ops.recvv = [](fid_ep* ep, const iovec* iov, void**, std::size_t count, fi_addr_t from,
                   void* context) {
        return receive(ep, untagged(receiving(ep, iov, count, from, context)));
    };
    ops.recvmsg = [](fid_ep* ep, const fi_msg* message, std::uint64_t flags) {
        return receive(ep, untagged(of_message(*message, flags)));
    };
    ops.send = [](fid_ep* ep, const void* buf, std::size_t len, void*, fi_addr_t to,
                  void* context) {
        const iovec part = part_of(buf, len);
        return send(ep, untagged(sending(ep, &part, 1, to, context)));
    };
    ops.sendv = [](fid_ep* ep, const iovec* iov, void**, std::size_t count, fi_addr_t to,
                   void* context) {
        return send(ep, untagged(sending(ep, iov, count, to, context)));
    };
    ops.sendmsg = [](fid_ep* ep, const fi_msg* message, std::uint64_t flags) {
        return send(ep, untagged(of_message(*message, flags)));
    };
    ops.inject = [](fid_ep* ep, const void* buf, std::size_t len, fi_addr_t to) {
        const iovec part = part_of(buf, len);
        return send(ep, untagged(injecting(part, to)));
    };
    ops.senddata = [](fid_ep* ep, const void* buf, std::size_t len, void*, std::uint64_t data,
                      fi_addr_t to, void* context) {
        const iovec part = part_of(buf, len);
        return send(ep, with(untagged(sending(ep, &part, 1, to, context)), data));
    };
    ops.injectdata = [](fid_ep* ep, const void* buf, std::size_t len, std::uint64_t data,
                        fi_addr_t to) {
        const iovec part = part_of(buf, len);
        return send(ep, with(untagged(injecting(part, to)), data));
    };
    return ops;
}

fi_ops_tagged make_tagged_calls() {
    auto ops = unsupported<fi_ops_tagged>();
    ops.recv = [](fid_ep* ep, void* buf, std::size_t len, void*, fi_addr_t from, std::uint64_t tag,
                  std::uint64_t ignore, void* context) {
        const iovec part = part_of(buf, len);
        return receive(ep, tagged(receiving(ep, &part, 1, from, context), tag, ignore));
    };
    ops.recvv = [](fid_ep* ep, const iovec* iov, void**, std::size_t count, fi_addr_t from,
                   std::uint64_t tag, std::uint64_t ignore, void* context) {
        return receive(ep, tagged(receiving(ep, iov, count, from, context), tag, ignore));
    };
    ops.recvmsg = [](fid_ep* ep, const fi_msg_tagged* message, std::uint64_t flags) {
        return receive(ep, tagged(of_message(*message, flags), message->tag, message->ignore));
    };
    ops.send = [](fid_ep* ep, const void* buf, std::size_t len, void*, fi_addr_t to,
                  std::uint64_t tag, void* context) {
        const iovec part = part_of(buf, len);
        return send(ep, tagged(sending(ep, &part, 1, to, context), tag));
    };
    ops.sendv = [](fid_ep* ep, const iovec* iov, void**, std::size_t count, fi_addr_t to,
                   std::uint64_t tag, void* context) {
        return send(ep, tagged(sending(ep, iov, count, to, context), tag));
    };
    ops.sendmsg = [](fid_ep* ep, const fi_msg_tagged* message, std::uint64_t flags) {
        return send(ep, tagged(of_message(*message, flags), message->tag));
    };
    ops.inject = [](fid_ep* ep, const void* buf, std::size_t len, fi_addr_t to, std::uint64_t tag) {
        const iovec part = part_of(buf, len);
        return send(ep, tagged(injecting(part, to), tag));
    };
    ops.senddata = [](fid_ep* ep, const void* buf, std::size_t len, void*, std::uint64_t data,
                      fi_addr_t to, std::uint64_t tag, void* context) {
        const iovec part = part_of(buf, len);
        return send(ep, with(tagged(sending(ep, &part, 1, to, context), tag), data));
    };
    ops.injectdata = [](fid_ep* ep, const void* buf, std::size_t len, std::uint64_t data,
                        fi_addr_t to, std::uint64_t tag) {
        const iovec part = part_of(buf, len);
        return send(ep, with(tagged(injecting(part, to), tag), data));
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
