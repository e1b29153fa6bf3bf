// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The bodies of bbp.h's calls, for an endpoint: the process's own (bbp_send), or one that a
/// program has opened (bbp_send_on).
/// Contract, thread safety and errors: billboard/bbp.h.

#include "billboard/bbp.h"
#include "billboard/core/endpoint_core.hpp"
#include "billboard/errors.hpp"
#include "rmem/link/direct/memory.hpp"

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <span>

namespace billboard::calls {

/// An endpoint: `any` always, `fastest` too when it is of the type whose calls are worth compiling
/// in here and no other thread uses it. One predicted branch in each call tells them apart.
struct Calls {
    Endpoint* any = nullptr;
    Fastest* fastest = nullptr;

    void begin(Endpoint& endpoint) {
        any = &endpoint;
        fastest = billboard::fastest(any);
    }
};

/// Says why there is none, and gives the code.
[[gnu::cold]] int not_joined(const Calls& calls);

[[gnu::cold]] inline int no_list(int length) {
    return fail(
        BBP_EINVAL,
        fmt::format("the list of ranks is a null pointer, or its length ({}) is negative", length));
}

/// Calls `body` with the endpoint.
template <class Body>
inline int on(const Calls& calls, Body&& body) noexcept {
    return guarded([&]() -> int {
        if (calls.fastest != nullptr) [[likely]]
            return body(*calls.fastest);
        if (calls.any == nullptr) [[unlikely]]
            return not_joined(calls);
        return body(*calls.any);
    });
}

// What the expected ways of sending and receiving leave. Not part of them, so that these save no
// registers; the endpoint comes last, so that the other arguments stay where they are.
[[gnu::noinline]] inline int send_later(int dest, const void* buf, size_t len, const Calls& calls) {
    return on(calls, [&](auto& e) { return e.send(dest, buf, len); });
}
[[gnu::noinline]] inline int send_in_lines(int dest, const void* buf, size_t len,
                                           const Calls& calls) {
    if (calls.fastest->send_in_lines(dest, buf, len)) return BBP_OK;
    return send_later(dest, buf, len, calls);
}
[[gnu::noinline]] inline int send_in_line(int dest, const void* buf, size_t len,
                                          const Calls& calls) {
    if (calls.fastest->send_in_line(dest, buf, len)) return BBP_OK;
    return send_in_lines(dest, buf, len, calls);
}
[[gnu::noinline]] inline int recv_later(int src, void* buf, size_t cap, size_t* len,
                                        const Calls& calls) {
    return on(calls, [&](auto& e) { return e.recv(src, buf, cap, len); });
}
[[gnu::noinline]] inline int recv_lines(int src, void* buf, size_t cap, size_t* len,
                                        const Calls& calls) {
    return guarded([&] {
        const int from = calls.fastest->recv_lines(src, buf, cap, len);
        return from >= 0 ? from : calls.fastest->recv(src, buf, cap, len);
    });
}
[[gnu::noinline]] inline int recv_after_look(int src, void* buf, size_t cap, size_t* len,
                                             const Calls& calls) {
    return guarded([&] { return calls.fastest->recv_after_look(src, buf, cap, len); });
}

/// A call whose time-out had passed already tried once, and did not get there in time.
inline int received_in_time(int result, int src) {
    return result == BBP_EAGAIN ? receive_timed_out(src) : result;
}
inline int sent_in_time(int result, std::span<const int> dests) {
    return result == BBP_EAGAIN ? send_timed_out(dests) : result;
}
inline int passed_in_time(int result) {
    return result == BBP_EAGAIN ? barrier_timed_out({}) : result;
}

inline bool is_list(const int* ranks, int n) {
    return n >= 0 && (ranks != nullptr || n == 0);
}
inline std::span<const int> list(const int* ranks, int n) {
    return {ranks, static_cast<size_t>(n)};
}

// ---- The calls

[[gnu::always_inline]] inline int send(const Calls& calls, int dest, const void* buf, size_t len) {
    if (calls.fastest == nullptr) return send_later(dest, buf, len, calls);
    if (calls.fastest->send_in_slot(dest, buf, len)) [[likely]]
        return BBP_OK;
    return send_in_line(dest, buf, len, calls);
}

inline int trysend(const Calls& calls, int dest, const void* buf, size_t len) {
    return on(calls, [&](auto& e) { return e.send(dest, buf, len, Deadline::now()); });
}

inline int send_for(const Calls& calls, int dest, const void* buf, size_t len, int64_t timeout_ns) {
    return sent_in_time(
        on(calls, [&](auto& e) { return e.send(dest, buf, len, e.deadline_in(timeout_ns)); }),
        {&dest, 1});
}

[[gnu::always_inline]] inline int recv(const Calls& calls, int src, void* buf, size_t cap,
                                       size_t* len) {
    if (calls.fastest != nullptr) [[likely]] {
        const int from = calls.fastest->recv_at_once(src, buf, cap, len);
        if (from >= 0) [[likely]]
            return from;
        if (from == Fastest::kInLines) return recv_lines(src, buf, cap, len, calls);
        if (from == BBP_EAGAIN) return recv_after_look(src, buf, cap, len, calls);
    }
    return recv_later(src, buf, cap, len, calls);
}

inline int tryrecv(const Calls& calls, int src, void* buf, size_t cap, size_t* len) {
    return on(calls, [&](auto& e) { return e.recv(src, buf, cap, len, Deadline::now()); });
}

inline int recv_for(const Calls& calls, int src, void* buf, size_t cap, size_t* len,
                    int64_t timeout_ns) {
    return received_in_time(
        on(calls, [&](auto& e) { return e.recv(src, buf, cap, len, e.deadline_in(timeout_ns)); }),
        src);
}

inline int msgavail(const Calls& calls, int src) {
    return on(calls, [&](auto& e) { return e.available(src); });
}

inline int probe(const Calls& calls, int src, size_t* len) {
    return on(calls, [&](auto& e) { return e.probe(src, len); });
}

inline int mcast(const Calls& calls, const int* dests, int ndests, const void* buf, size_t len) {
    if (!is_list(dests, ndests)) return no_list(ndests);
    return on(calls, [&](auto& e) { return e.mcast(list(dests, ndests), buf, len); });
}

inline int trymcast(const Calls& calls, const int* dests, int ndests, const void* buf, size_t len) {
    if (!is_list(dests, ndests)) return no_list(ndests);
    return on(calls,
              [&](auto& e) { return e.mcast(list(dests, ndests), buf, len, Deadline::now()); });
}

inline int mcast_for(const Calls& calls, const int* dests, int ndests, const void* buf, size_t len,
                     int64_t timeout_ns) {
    if (!is_list(dests, ndests)) return no_list(ndests);
    const auto send = [&](auto& e) {
        return e.mcast(list(dests, ndests), buf, len, e.deadline_in(timeout_ns));
    };
    return sent_in_time(on(calls, send), list(dests, ndests));
}

inline int compose(const Calls& calls, size_t len, void** buf) {
    return on(calls, [&](auto& e) { return e.compose(len, buf); });
}

inline int post(const Calls& calls, int dest, void* buf, size_t len) {
    return on(calls, [&](auto& e) { return e.post({&dest, 1}, buf, len); });
}

inline int trypost(const Calls& calls, int dest, void* buf, size_t len) {
    return on(calls, [&](auto& e) { return e.post({&dest, 1}, buf, len, Deadline::now()); });
}

inline int post_for(const Calls& calls, int dest, void* buf, size_t len, int64_t timeout_ns) {
    const auto post = [&](auto& e) {
        return e.post({&dest, 1}, buf, len, e.deadline_in(timeout_ns));
    };
    return sent_in_time(on(calls, post), {&dest, 1});
}

inline int post_mcast(const Calls& calls, const int* dests, int ndests, void* buf, size_t len) {
    if (!is_list(dests, ndests)) return no_list(ndests);
    return on(calls, [&](auto& e) { return e.post(list(dests, ndests), buf, len); });
}

inline int trypost_mcast(const Calls& calls, const int* dests, int ndests, void* buf, size_t len) {
    if (!is_list(dests, ndests)) return no_list(ndests);
    return on(calls,
              [&](auto& e) { return e.post(list(dests, ndests), buf, len, Deadline::now()); });
}

inline int post_mcast_for(const Calls& calls, const int* dests, int ndests, void* buf, size_t len,
                          int64_t timeout_ns) {
    if (!is_list(dests, ndests)) return no_list(ndests);
    const auto post = [&](auto& e) {
        return e.post(list(dests, ndests), buf, len, e.deadline_in(timeout_ns));
    };
    return sent_in_time(on(calls, post), list(dests, ndests));
}

inline int discard(const Calls& calls, void* buf) {
    return on(calls, [&](auto& e) { return e.discard(buf); });
}

inline int view(const Calls& calls, int src, const void** data, size_t* len) {
    return on(calls, [&](auto& e) { return e.view(src, data, len); });
}

inline int tryview(const Calls& calls, int src, const void** data, size_t* len) {
    return on(calls, [&](auto& e) { return e.view(src, data, len, Deadline::now()); });
}

inline int view_for(const Calls& calls, int src, const void** data, size_t* len,
                    int64_t timeout_ns) {
    return received_in_time(
        on(calls, [&](auto& e) { return e.view(src, data, len, e.deadline_in(timeout_ns)); }), src);
}

inline int release(const Calls& calls, const void* data) {
    return on(calls, [&](auto& e) { return e.release(data); });
}

inline int barrier(const Calls& calls) {
    return on(calls, [](auto& e) { return e.barrier(); });
}

inline int barrier_for(const Calls& calls, int64_t timeout_ns) {
    return passed_in_time(on(calls, [&](auto& e) { return e.barrier(e.deadline_in(timeout_ns)); }));
}

inline int barrier_group(const Calls& calls, const int* members, int n, unsigned id) {
    if (!is_list(members, n)) return no_list(n);
    return on(calls, [&](auto& e) { return e.barrier_group(list(members, n), id); });
}

inline int barrier_group_for(const Calls& calls, const int* members, int n, unsigned id,
                             int64_t timeout_ns) {
    if (!is_list(members, n)) return no_list(n);
    const auto wait = [&](auto& e) {
        return e.barrier_group(list(members, n), id, e.deadline_in(timeout_ns));
    };
    return passed_in_time(on(calls, wait));
}

inline int group_join(const Calls& calls, const char* name) {
    if (name == nullptr) return fail(BBP_EINVAL, "the group's name is a null pointer; give a text");
    return on(calls, [&](auto& e) { return e.group_join(name); });
}

inline int group_leave(const Calls& calls, const char* name) {
    if (name == nullptr) return fail(BBP_EINVAL, "the group's name is a null pointer; give a text");
    return on(calls, [&](auto& e) { return e.group_leave(name); });
}

inline int mcast_group(const Calls& calls, const char* name, const void* buf, size_t len) {
    if (name == nullptr) return fail(BBP_EINVAL, "the group's name is a null pointer; give a text");
    return on(calls, [&](auto& e) { return e.mcast_group(name, buf, len); });
}

inline int fd(const Calls& calls) {
    return on(calls, [](auto& e) { return e.fd(); });
}

}  // namespace billboard::calls
