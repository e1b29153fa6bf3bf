// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Receiving without copying: messages in view, and who takes all that comes. Part of EndpointCore
/// (billboard/core/endpoint_core.hpp).
///
/// A view is a buffer of its sender's until it is released; what has no buffer of its own (in a
/// slot, or in private memory) is kept by the view.

#include "billboard/core/receiving.hpp"

namespace billboard {

template <class M, template <class> class BoardOf>
int EndpointCore<M, BoardOf>::view(int src, const void** data, std::size_t* len, Deadline deadline,
                                   Class cls) {
    if (const int bad = check_source(src); bad != BBP_OK) return bad;
    if (data == nullptr || len == nullptr) {
        return fail(BBP_EINVAL, "no place to put the message's address or length: a null pointer");
    }
    look_for(src, cls);
    awaited_ = src;
    const int result = wait_for(deadline, [&] { return try_view(src, data, len, cls, deadline); });
    return result == BBP_ETIMEDOUT ? receive_timed_out(src) : result;
}

template <class M, template <class> class BoardOf>
int EndpointCore<M, BoardOf>::try_view(int src, const void** data, std::size_t* len, Class cls,
                                       Deadline deadline, std::byte* small) {
    Found found = Found::nothing;
    unsigned s = 0;
    Arrival a;
    // A caller that takes all that comes takes the sender that is ready first.
    const Wanted wanted = small == nullptr ? Wanted::coming : Wanted::ready;
    if (const int result = find(src, cls, wanted, found, s, a); result != BBP_OK) {
        return result == BBP_EAGAIN ? nothing_from(src, deadline) : result;
    }
    if (found == Found::in_parts) {
        return fail(BBP_ESIZE, fmt::format("the message of rank {} is larger than a partition and "
                                           "cannot be viewed; receive it with bbp_recv",
                                           s));
    }
    if (src == BBP_ANY) next_any_ = s + 1 == ranks_ ? 0 : s + 1;
    if (small != nullptr && found == Found::board && a.is_inline) {
        std::memcpy(small, a.payload, a.length);
        *data = small;
        *len = a.length;
        board_.take(s, a);
        return static_cast<int>(s);
    }
    View view{nullptr, s, kPrivate, {}};
    if (found == Found::private_memory) {
        view.copy = aside_.pop(aside_.find(cls, src)).bytes;
        *len = view.copy.size();
    } else if (a.is_inline) {
        view.copy.assign(a.payload, a.payload + a.length);
        *len = a.length;
        board_.take(s, a);
    } else {
        if (!is_filled(s, a)) {
            if (!peers_[s].gone) return BBP_EAGAIN;
            const int end = copy_filling(s, src == BBP_ANY, a, nullptr, {});
            return end == BBP_OK ? BBP_EAGAIN : end;
        }
        view.data = bytes_of(s, a);
        view.buffer = a.buffer;
        *len = a.length;
        board_.take(s, a);
        ++peers_[s].views;
    }
    if (view.buffer == kPrivate) {
        view.copy.reserve(1);  // a message of no bytes needs an address of its own, too
        view.data = view.copy.data();
    }
    *data = view.data;
    views_.push_back(std::move(view));
    return static_cast<int>(s);
}

template <class M, template <class> class BoardOf>
int EndpointCore<M, BoardOf>::take_slowly(std::byte* small, const void** data, std::size_t* len,
                                          Deadline deadline, Class cls) {
    const int from = recv_inline(await_briefly(BBP_ANY), true, small, kInlineBytes, len, cls);
    if (from >= 0) {
        if constexpr (Board::kInlineBytes != 0) board_.expect_answer(static_cast<unsigned>(from));
        *data = small;
        return from;
    }
    look_for(BBP_ANY, cls);
    awaited_ = BBP_ANY;
    const int result = wait_for(
        deadline, [&] { return try_view(BBP_ANY, data, len, cls, deadline, small); },
        [&] { return board_.find(next_any_) >= 0; });
    return result == BBP_ETIMEDOUT ? receive_timed_out(BBP_ANY) : result;
}

template <class M, template <class> class BoardOf>
int EndpointCore<M, BoardOf>::release(const void* data) {
    const auto it =
        std::find_if(views_.begin(), views_.end(), [&](const View& v) { return v.data == data; });
    if (it == views_.end()) {
        return fail(BBP_EINVAL,
                    "the address is not that of a message in view, or was released before");
    }
    if (it->buffer != kPrivate) {
        --peers_[it->source].views;
        board_.acknowledge(it->source, it->buffer);
        commit_taken();
    }
    *it = std::move(views_.back());
    views_.pop_back();
    return BBP_OK;
}

}  // namespace billboard
