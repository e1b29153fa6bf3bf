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

void tag(Call& call) {
    call.untagged = true;
}
void tag(Call& call, std::uint64_t tag, std::uint64_t ignore = 0) {
    call.tag = tag;
    call.ignore = ignore;
}
void tag_as(Call& call, const fi_msg&) {
    tag(call);
}
void tag_as(Call& call, const fi_msg_tagged& message) {
    tag(call, message.tag, message.ignore);
}

/// The receiving calls of fi_ops_msg, and with Tag a tag and what of it is ignored, of
/// fi_ops_tagged.
template <class... Tag>
struct Receives {
    static ssize_t one(fid_ep* ep, void* buf, std::size_t len, void*, fi_addr_t from, Tag... tags,
                       void* context) {
        const iovec part = part_of(buf, len);
        return parts(ep, &part, nullptr, 1, from, tags..., context);
    }
    static ssize_t parts(fid_ep* ep, const iovec* iov, void**, std::size_t count, fi_addr_t from,
                         Tag... tags, void* context) {
        Call call = receiving(ep, iov, count, from, context);
        tag(call, tags...);
        return receive(ep, call);
    }
    template <class Message>
    static ssize_t message(fid_ep* ep, const Message* message, std::uint64_t flags) {
        Call call = of_message(*message, flags);
        tag_as(call, *message);
        return receive(ep, call);
    }
};

/// The sending calls, likewise with a tag.
template <class... Tag>
struct Sends {
    static ssize_t one(fid_ep* ep, const void* buf, std::size_t len, void*, fi_addr_t to,
                       Tag... tags, void* context) {
        const iovec part = part_of(buf, len);
        return parts(ep, &part, nullptr, 1, to, tags..., context);
    }
    static ssize_t parts(fid_ep* ep, const iovec* iov, void**, std::size_t count, fi_addr_t to,
                         Tag... tags, void* context) {
        Call call = sending(ep, iov, count, to, context);
        tag(call, tags...);
        return send(ep, call);
    }
    template <class Message>
    static ssize_t message(fid_ep* ep, const Message* message, std::uint64_t flags) {
        Call call = of_message(*message, flags);
        tag_as(call, *message);
        return send(ep, call);
    }
    static ssize_t inject(fid_ep* ep, const void* buf, std::size_t len, fi_addr_t to, Tag... tags) {
        const iovec part = part_of(buf, len);
        Call call = injecting(part, to);
        tag(call, tags...);
        return send(ep, call);
    }
    static ssize_t with_data(fid_ep* ep, const void* buf, std::size_t len, void*,
                             std::uint64_t data, fi_addr_t to, Tag... tags, void* context) {
        const iovec part = part_of(buf, len);
        Call call = sending(ep, &part, 1, to, context);
        call.data = data;
        tag(call, tags...);
        return send(ep, call);
    }
    static ssize_t inject_with_data(fid_ep* ep, const void* buf, std::size_t len,
                                    std::uint64_t data, fi_addr_t to, Tag... tags) {
        const iovec part = part_of(buf, len);
        Call call = injecting(part, to);
        call.data = data;
        tag(call, tags...);
        return send(ep, call);
    }
};

template <class Ops, class Message, class Receive, class Send>
Ops make_calls() {
    auto ops = unsupported<Ops>();
    ops.recv = Receive::one;
    ops.recvv = Receive::parts;
    ops.recvmsg = Receive::template message<Message>;
    ops.send = Send::one;
    ops.sendv = Send::parts;
    ops.sendmsg = Send::template message<Message>;
    ops.inject = Send::inject;
    ops.senddata = Send::with_data;
    ops.injectdata = Send::inject_with_data;
    return ops;
}

}  // namespace

fi_ops_msg& message_calls() {
    static fi_ops_msg ops = make_calls<fi_ops_msg, fi_msg, Receives<>, Sends<>>();
    return ops;
}

fi_ops_tagged& tagged_calls() {
    static fi_ops_tagged ops =
        make_calls<fi_ops_tagged, fi_msg_tagged, Receives<std::uint64_t, std::uint64_t>,
                   Sends<std::uint64_t>>();
    return ops;
}

}  // namespace mpi_channel::provider
