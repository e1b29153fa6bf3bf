// SPDX-License-Identifier: Apache-2.0
#include "ports/munet/munet.h"

#include "ports/munet/connection.hpp"
#include "ports/munet/program.hpp"
#include "rmem/base/at_fork.hpp"
#include "rmem/base/kept_sentence.hpp"
#include "rmem/ring/config.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <limits>
#include <new>
#include <string>

namespace {

using ports::munet::Address;
using ports::munet::Connection;
using rmem::Deadline;

thread_local rmem::KeptSentence last_error;  // NOLINT: each thread's own

[[gnu::cold]] int fail(int code, const std::string& sentence) {
    last_error.keep(sentence);
    return code;
}

}  // namespace

/// Of munet.h.
struct mu_endpoint final : private rmem::AtFork {
    explicit mu_endpoint(Connection&& made)
        : connection(std::move(made)),
          program(connection.memory(), connection.geometry(), connection.own(), connection) {}

    /// The sentence for a failed send.
    [[gnu::cold]] int refused(int code, Address to, std::size_t bytes) const;
    /// A receive that found nothing: the daemon may need this processor, or be gone.
    int nothing() {
        connection.give_way();
        if (++empty_polls % kPollsPerLook != 0) return -EAGAIN;
        return connection.has_daemon() ? -EAGAIN : fail(-ENETDOWN, connection.no_daemon());
    }
    Deadline deadline() const {
        if (timeout_ns < 0) return Deadline::never();
        return Deadline::in(timeout_ns);
    }

    static constexpr unsigned kPollsPerLook = 64;
    bool is_inherited = false;  ///< by a forked child, in which its memory is not there
    Connection connection;
    ports::munet::Program program;
    std::int64_t timeout_ns = -1;
    unsigned empty_polls = 0;

private:
    void in_child() noexcept override { is_inherited = true; }
};

int mu_endpoint::refused(int code, Address to, std::size_t bytes) const {
    const std::string whom = fmt::format("endpoint {} of node {}", to.endpoint, to.node);
    switch (code) {
        case -ECONNREFUSED:
            return fail(code, whom + ": there is none; ask its program for its address");
        case -EUSERS:
            return fail(code,
                        whom +
                            " has no place left for another sender; a daemon started with more "
                            "--munet-senders has");
        case -ENETUNREACH:
            return fail(code,
                        fmt::format("node {} cannot be reached; nodes count from 0 to {}, and each "
                                    "needs `rmem node --munet`",
                                    to.node, connection.nodes() - 1));
        case -ECONNRESET:
            return fail(
                code, whom + " was destroyed, or its node lost; what it had not received is lost");
        case -EMSGSIZE:
            return fail(code,
                        fmt::format("a message of {} bytes is too long for {} (mu_max_message), or "
                                    "for the host send buffer of {} bytes",
                                    bytes, whom, connection.geometry().send_bytes));
        case -ENOBUFS:
            return fail(code, "256 destinations are in use; this endpoint can have no more");
        case -ETIMEDOUT: return fail(code, whom + " did not make room in time (mu_set_timeout)");
        case -ENETDOWN: return fail(code, connection.no_daemon());
        default: return fail(code, fmt::format("{}: {}", whom, std::strerror(-code)));
    }
}

namespace {

/// The address in our terms; false if there can be no such.
bool is_address(mu_addr_t a, Address* to) {
    if (a.node < 0 || a.node > std::numeric_limits<std::uint16_t>::max()) return false;
    *to = {static_cast<std::uint16_t>(a.node), a.ep};
    return true;
}

[[gnu::cold]] int bad_argument(const char* what) {
    return fail(-EINVAL, what);
}

bool is_usable(const mu_endpoint* ep) {
    return ep != nullptr && !ep->is_inherited;
}
[[gnu::cold]] int unusable(const mu_endpoint* ep) {
    return bad_argument(ep == nullptr ? "the endpoint is a null pointer"
                                      : "a fork()ed child has none of its parent's endpoints; "
                                        "create one here, or use it in the parent");
}

template <class Send>
int send_by(mu_endpoint* ep, mu_addr_t dst, const void* msg, size_t len, Send&& send) noexcept {
    Address to;
    if (!is_usable(ep)) [[unlikely]]
        return unusable(ep);
    if (msg == nullptr && len != 0) return bad_argument("the message is a null pointer");
    if (!is_address(dst, &to)) {
        return fail(-ENETUNREACH, fmt::format("there is no node {}; nodes count from 0", dst.node));
    }
    if (len > std::numeric_limits<int>::max()) return ep->refused(-EMSGSIZE, to, len);
    try {
        const int result = send(to);
        return result == 0 ? 0 : ep->refused(result, to, len);
    } catch (const std::bad_alloc&) {
        return fail(-ENOMEM, "out of private memory");
    }
}

void tell(Address from, mu_addr_t* to) {
    if (to != nullptr) *to = {from.node, from.endpoint};
}

}  // namespace

extern "C" {

int mu_create_endpoint(mu_endpoint_t** ep, size_t send_buf, size_t recv_buf) {
    if (ep == nullptr) return bad_argument("the place for the endpoint is a null pointer");
    *ep = nullptr;
    try {
        Connection connection;
        std::string why;
        const int result = connection.open(send_buf, recv_buf, &why);
        if (result != 0) return fail(result, why);
        *ep = new mu_endpoint(std::move(connection));
        return 0;
    } catch (const rmem::Error& e) {
        return fail(-EINVAL, e.sentence());
    } catch (const std::bad_alloc&) {
        return fail(-ENOMEM, "out of private memory");
    } catch (const std::exception& e) {
        return fail(-EIO, e.what());
    }
}

int mu_destroy_endpoint(mu_endpoint_t* ep) {
    delete ep;
    return 0;
}

int mu_send(mu_endpoint_t* ep, mu_addr_t dst, const void* msg, size_t len) {
    return send_by(ep, dst, msg, len,
                   [&](Address to) { return ep->program.send(to, msg, len, ep->deadline()); });
}

int mu_send_DMA(mu_endpoint_t* ep, mu_addr_t dst, const void* msg, size_t len) {
    return send_by(ep, dst, msg, len,
                   [&](Address to) { return ep->program.send_dma(to, msg, len, ep->deadline()); });
}

int mu_recv(mu_endpoint_t* ep, void* buf, size_t maxlen, mu_addr_t* src) {
    if (!is_usable(ep)) [[unlikely]]
        return unusable(ep);
    if (buf == nullptr && maxlen != 0) return bad_argument("the buffer is a null pointer");
    try {
        Address from;
        const int result = ep->program.recv(buf, maxlen, &from);
        if (result >= 0) [[likely]] {
            tell(from, src);
            ep->empty_polls = 0;
            return result;
        }
        if (result == -EAGAIN) return ep->nothing();
        tell(from, src);
        return fail(result,
                    fmt::format("the next message, of endpoint {} of node {}, has {} bytes, and "
                                "there is room for {}; it stays",
                                from.endpoint, from.node, ep->program.probe(nullptr), maxlen));
    } catch (const std::bad_alloc&) {
        return fail(-ENOMEM, "out of private memory");
    }
}

int mu_wait(mu_endpoint_t* ep, int64_t timeout_ns) {
    if (!is_usable(ep)) return unusable(ep);
    try {
        const int result =
            ep->program.wait(timeout_ns < 0 ? Deadline::never() : Deadline::in(timeout_ns));
        if (result == -ETIMEDOUT) return fail(result, "no message came within the time-out");
        return result == 0 ? 0 : fail(result, ep->connection.no_daemon());
    } catch (const std::bad_alloc&) {
        return fail(-ENOMEM, "out of private memory");
    }
}

int mu_probe(mu_endpoint_t* ep, mu_addr_t* src) {
    if (!is_usable(ep)) return unusable(ep);
    try {
        Address from;
        const int result = ep->program.probe(&from);
        if (result < 0) return ep->nothing();
        tell(from, src);
        return result;
    } catch (const std::bad_alloc&) {
        return fail(-ENOMEM, "out of private memory");
    }
}

int mu_address(const mu_endpoint_t* ep, mu_addr_t* own) {
    if (!is_usable(ep)) return unusable(ep);
    if (own == nullptr) return bad_argument("the place for the address is a null pointer");
    tell(ep->program.own(), own);
    return 0;
}

int mu_set_timeout(mu_endpoint_t* ep, int64_t timeout_ns) {
    if (!is_usable(ep)) return unusable(ep);
    ep->timeout_ns = timeout_ns;
    return 0;
}

int64_t mu_max_message(mu_endpoint_t* ep, mu_addr_t dst) {
    Address to;
    std::int64_t most = 0;
    const int result = send_by(ep, dst, nullptr, 0, [&](Address a) {
        to = a;
        most = ep->program.most(a, ep->deadline());
        return most < 0 ? static_cast<int>(most) : 0;
    });
    return result < 0 ? result : most;
}

int mu_version(void) {
    return MU_VERSION;
}

const char* mu_last_error(void) {
    return last_error.c_str();
}

}  // extern "C"
