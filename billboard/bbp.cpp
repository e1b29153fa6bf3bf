// SPDX-License-Identifier: Apache-2.0
#include "billboard/bbp.h"

#include "billboard/boards/inline_board.hpp"
#include "billboard/core/endpoint_core.hpp"
#include "billboard/errors.hpp"
#include "billboard/process/bbp_shared.hpp"
#include "billboard/process/process_endpoint.hpp"
#include "rmem/base/at_fork.hpp"
#include "rmem/base/process_state.hpp"
#include "rmem/link/direct/memory.hpp"

#include <fmt/format.h>

#include <memory>
#include <new>

namespace {

static_assert(BBP_MAX_BARRIERS == billboard::kBarrierIds);
static_assert(BBP_MAX_JOINED == billboard::kJoinedGroups);

using billboard::Deadline;
using billboard::Endpoint;
using billboard::fail;
using billboard::Fastest;

/// This process's endpoint: `any` always, `fastest` too when it is of the type whose calls are
/// worth compiling in here and no other thread uses it. One predicted branch in each call tells
/// them apart.
struct Current {
    std::shared_ptr<billboard::ProcessEndpoint> process;
    Endpoint* any = nullptr;
    Fastest* fastest = nullptr;
};
Current current;

[[maybe_unused]] const bool registered = rmem::sim::exchanges<current>();

/// In a forked child the calls find no endpoint. That of the parent is kept, and never touched.
class Child final : rmem::AtFork {
public:
    bool is_one = false;  ///< forked by a process that was in a ring, and in none since

private:
    void in_child() noexcept override {
        if (current.any == nullptr) return;
        is_one = true;
        std::construct_at(&current);
    }
};
Child child;

[[gnu::cold]] int not_joined() {
    if (child.is_one) return fail(BBP_EINVAL, rmem::kForkedChild);
    return fail(BBP_EINVAL,
                "this process is in no ring; call bbp_init first, and other functions only after "
                "it has returned 0");
}

[[gnu::cold]] int no_list(int length) {
    return fail(
        BBP_EINVAL,
        fmt::format("the list of ranks is a null pointer, or its length ({}) is negative", length));
}

/// Calls `body` with this process's endpoint.
template <class Body>
inline int on_endpoint(Body&& body) noexcept {
    return billboard::guarded([&]() -> int {
        if (current.fastest != nullptr) [[likely]]
            return body(*current.fastest);
        if (current.any == nullptr) [[unlikely]]
            return not_joined();
        return body(*current.any);
    });
}

// What the expected ways of sending and receiving leave. Not part of them, so that these save no
// registers.
[[gnu::noinline]] int send_later(int dest, const void* buf, size_t len) {
    return on_endpoint([&](auto& e) { return e.send(dest, buf, len); });
}
[[gnu::noinline]] int send_in_lines(int dest, const void* buf, size_t len) {
    if (current.fastest->send_in_lines(dest, buf, len)) return BBP_OK;
    return send_later(dest, buf, len);
}
[[gnu::noinline]] int send_in_line(int dest, const void* buf, size_t len) {
    if (current.fastest->send_in_line(dest, buf, len)) return BBP_OK;
    return send_in_lines(dest, buf, len);
}
[[gnu::noinline]] int recv_later(int src, void* buf, size_t cap, size_t* len) {
    return on_endpoint([&](auto& e) { return e.recv(src, buf, cap, len); });
}
[[gnu::noinline]] int recv_lines(int src, void* buf, size_t cap, size_t* len) {
    return billboard::guarded([&] {
        const int from = current.fastest->recv_lines(src, buf, cap, len);
        return from >= 0 ? from : current.fastest->recv(src, buf, cap, len);
    });
}
[[gnu::noinline]] int recv_after_look(int src, void* buf, size_t cap, size_t* len) {
    return billboard::guarded([&] { return current.fastest->recv_after_look(src, buf, cap, len); });
}

/// A call whose time-out had passed already tried once, and did not get there in time.
int received_in_time(int result, int src) {
    return result == BBP_EAGAIN ? billboard::receive_timed_out(src) : result;
}
int sent_in_time(int result, std::span<const int> dests) {
    return result == BBP_EAGAIN ? billboard::send_timed_out(dests) : result;
}
int passed_in_time(int result) {
    return result == BBP_EAGAIN ? billboard::barrier_timed_out({}) : result;
}

bool is_list(const int* ranks, int n) {
    return n >= 0 && (ranks != nullptr || n == 0);
}
std::span<const int> list(const int* ranks, int n) {
    return {ranks, static_cast<size_t>(n)};
}

}  // namespace

extern "C" {

int bbp_init(int* rank, int* nprocs) {
    if (current.any != nullptr) {
        return fail(BBP_EINVAL, "this process is in a ring already; call bbp_finalize first");
    }
    return billboard::guarded([&] {
        current.process = billboard::ProcessEndpoint::open();
        child.is_one = false;
        current.any = &current.process->guarded();
        current.fastest = billboard::fastest(current.any);
        if (rank != nullptr) *rank = static_cast<int>(current.any->rank());
        if (nprocs != nullptr) *nprocs = static_cast<int>(current.any->ranks());
        return static_cast<int>(BBP_OK);
    });
}

int bbp_finalize(void) {
    if (current.any == nullptr) return not_joined();
    current.any = current.fastest = nullptr;
    current.process.reset();
    return BBP_OK;
}

int bbp_send(int dest, const void* buf, size_t len) {
    if (current.fastest == nullptr) return send_later(dest, buf, len);
    if (current.fastest->send_in_slot(dest, buf, len)) [[likely]]
        return BBP_OK;
    return send_in_line(dest, buf, len);
}
int bbp_trysend(int dest, const void* buf, size_t len) {
    return on_endpoint([&](auto& e) { return e.send(dest, buf, len, Deadline::now()); });
}
int bbp_send_for(int dest, const void* buf, size_t len, int64_t timeout_ns) {
    return sent_in_time(
        on_endpoint([&](auto& e) { return e.send(dest, buf, len, e.deadline_in(timeout_ns)); }),
        {&dest, 1});
}

int bbp_recv(int src, void* buf, size_t cap, size_t* len) {
    if (current.fastest != nullptr) [[likely]] {
        const int from = current.fastest->recv_at_once(src, buf, cap, len);
        if (from >= 0) [[likely]]
            return from;
        if (from == Fastest::kInLines) return recv_lines(src, buf, cap, len);
        if (from == BBP_EAGAIN) return recv_after_look(src, buf, cap, len);
    }
    return recv_later(src, buf, cap, len);
}
int bbp_tryrecv(int src, void* buf, size_t cap, size_t* len) {
    return on_endpoint([&](auto& e) { return e.recv(src, buf, cap, len, Deadline::now()); });
}
int bbp_recv_for(int src, void* buf, size_t cap, size_t* len, int64_t timeout_ns) {
    return received_in_time(
        on_endpoint([&](auto& e) { return e.recv(src, buf, cap, len, e.deadline_in(timeout_ns)); }),
        src);
}

int bbp_msgavail(int src) {
    return on_endpoint([&](auto& e) { return e.available(src); });
}
int bbp_probe(int src, size_t* len) {
    return on_endpoint([&](auto& e) { return e.probe(src, len); });
}

int bbp_mcast(const int* dests, int ndests, const void* buf, size_t len) {
    if (!is_list(dests, ndests)) return no_list(ndests);
    return on_endpoint([&](auto& e) { return e.mcast(list(dests, ndests), buf, len); });
}
int bbp_trymcast(const int* dests, int ndests, const void* buf, size_t len) {
    if (!is_list(dests, ndests)) return no_list(ndests);
    return on_endpoint(
        [&](auto& e) { return e.mcast(list(dests, ndests), buf, len, Deadline::now()); });
}
int bbp_mcast_for(const int* dests, int ndests, const void* buf, size_t len, int64_t timeout_ns) {
    if (!is_list(dests, ndests)) return no_list(ndests);
    const auto send = [&](auto& e) {
        return e.mcast(list(dests, ndests), buf, len, e.deadline_in(timeout_ns));
    };
    return sent_in_time(on_endpoint(send), list(dests, ndests));
}

int bbp_compose(size_t len, void** buf) {
    return on_endpoint([&](auto& e) { return e.compose(len, buf); });
}
int bbp_post(int dest, void* buf, size_t len) {
    return on_endpoint([&](auto& e) { return e.post({&dest, 1}, buf, len); });
}
int bbp_trypost(int dest, void* buf, size_t len) {
    return on_endpoint([&](auto& e) { return e.post({&dest, 1}, buf, len, Deadline::now()); });
}
int bbp_post_for(int dest, void* buf, size_t len, int64_t timeout_ns) {
    const auto post = [&](auto& e) {
        return e.post({&dest, 1}, buf, len, e.deadline_in(timeout_ns));
    };
    return sent_in_time(on_endpoint(post), {&dest, 1});
}
int bbp_post_mcast(const int* dests, int ndests, void* buf, size_t len) {
    if (!is_list(dests, ndests)) return no_list(ndests);
    return on_endpoint([&](auto& e) { return e.post(list(dests, ndests), buf, len); });
}
int bbp_trypost_mcast(const int* dests, int ndests, void* buf, size_t len) {
    if (!is_list(dests, ndests)) return no_list(ndests);
    return on_endpoint(
        [&](auto& e) { return e.post(list(dests, ndests), buf, len, Deadline::now()); });
}
int bbp_post_mcast_for(const int* dests, int ndests, void* buf, size_t len, int64_t timeout_ns) {
    if (!is_list(dests, ndests)) return no_list(ndests);
    const auto post = [&](auto& e) {
        return e.post(list(dests, ndests), buf, len, e.deadline_in(timeout_ns));
    };
    return sent_in_time(on_endpoint(post), list(dests, ndests));
}
int bbp_discard(void* buf) {
    return on_endpoint([&](auto& e) { return e.discard(buf); });
}
int bbp_view(int src, const void** data, size_t* len) {
    return on_endpoint([&](auto& e) { return e.view(src, data, len); });
}
int bbp_tryview(int src, const void** data, size_t* len) {
    return on_endpoint([&](auto& e) { return e.view(src, data, len, Deadline::now()); });
}
int bbp_view_for(int src, const void** data, size_t* len, int64_t timeout_ns) {
    return received_in_time(
        on_endpoint([&](auto& e) { return e.view(src, data, len, e.deadline_in(timeout_ns)); }),
        src);
}
int bbp_release(const void* data) {
    return on_endpoint([&](auto& e) { return e.release(data); });
}

int bbp_barrier(void) {
    return on_endpoint([](auto& e) { return e.barrier(); });
}
int bbp_barrier_for(int64_t timeout_ns) {
    return passed_in_time(
        on_endpoint([&](auto& e) { return e.barrier(e.deadline_in(timeout_ns)); }));
}
int bbp_barrier_group(const int* members, int n, unsigned id) {
    if (!is_list(members, n)) return no_list(n);
    return on_endpoint([&](auto& e) { return e.barrier_group(list(members, n), id); });
}
int bbp_barrier_group_for(const int* members, int n, unsigned id, int64_t timeout_ns) {
    if (!is_list(members, n)) return no_list(n);
    const auto wait = [&](auto& e) {
        return e.barrier_group(list(members, n), id, e.deadline_in(timeout_ns));
    };
    return passed_in_time(on_endpoint(wait));
}

int bbp_group_join(const char* name) {
    if (name == nullptr) return fail(BBP_EINVAL, "the group's name is a null pointer; give a text");
    return on_endpoint([&](auto& e) { return e.group_join(name); });
}
int bbp_group_leave(const char* name) {
    if (name == nullptr) return fail(BBP_EINVAL, "the group's name is a null pointer; give a text");
    return on_endpoint([&](auto& e) { return e.group_leave(name); });
}
int bbp_mcast_group(const char* name, const void* buf, size_t len) {
    if (name == nullptr) return fail(BBP_EINVAL, "the group's name is a null pointer; give a text");
    return on_endpoint([&](auto& e) { return e.mcast_group(name, buf, len); });
}

int bbp_fd(void) {
    return on_endpoint([](auto& e) { return e.fd(); });
}

int bbp_version(void) {
    return BBP_VERSION;
}

const char* bbp_strerror(int code) {
    return rmem::meaning_of(code);
}

const char* bbp_last_error(void) {
    return billboard::last_error();
}

}  // extern "C"

void billboard::bbp_goes_by(Endpoint& plain, Endpoint& guarded) noexcept {
    if (current.any != &plain) return;
    current.any = &guarded;
    current.fastest = nullptr;
}

billboard::Endpoint* billboard::Endpoint::of_bbp_init() noexcept {
    return current.any;
}
