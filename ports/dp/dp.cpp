// SPDX-License-Identifier: Apache-2.0
#include "ports/dp/dp.h"

#include "ports/dp/last_error.hpp"
#include "ports/dp/service.hpp"
#include "rmem/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <system_error>

namespace {

using ports::dp::Descriptors;
using ports::dp::Endpoint;
using ports::dp::fail;
using ports::dp::Service;

int errno_of(const rmem::Error& error) {
    switch (error.code()) {
        case rmem::Errc::rank_taken: return EBUSY;
        case rmem::Errc::timed_out: return ETIMEDOUT;
        case rmem::Errc::no_space: return ENOSPC;
        case rmem::Errc::not_permitted: return EACCES;
        case rmem::Errc::no_such_ring: return ENOENT;
        case rmem::Errc::system: return EIO;
        default: return EINVAL;
    }
}

/// A negative errno as the system's calls tell it.
int told(int result) {
    if (result >= 0) [[likely]]
        return result;
    errno = -result;
    return -1;
}

template <class Body>
int on_endpoint(int fd, Body&& body) noexcept {
    Endpoint* e = Descriptors::find(fd);
    if (e == nullptr) [[unlikely]] {
        errno = EBADF;
        return -1;
    }
    try {
        return told(body(e->service(), *e));
    } catch (const std::bad_alloc&) {
        errno = ENOMEM;
    } catch (const std::system_error& error) {
        errno = error.code().value();
    } catch (const std::exception&) {
        errno = EIO;
    }
    return -1;
}

/// `body` where the process endpoint is free for it; -1: it is not, or `body` says so.
template <class Body>
[[gnu::always_inline]] inline int if_passing(int fd, Body&& body) {
    Endpoint* const e = Descriptors::known(fd);
    if (e == nullptr) [[unlikely]]
        return -1;
    const billboard::ProcessEndpoint::Passing passing(e->process());
    return passing ? body(e->service(), *e) : -1;
}

[[gnu::noinline]] int read_slowly(int fd, char** address) {
    if (address == nullptr) return told(-EFAULT);
    return on_endpoint(fd,
                       [&](Service& service, Endpoint& e) { return service.read(e, fd, address); });
}

[[gnu::noinline]] int write_slowly(int fd, const void* message, int length) {
    if (length < 0) return told(-EINVAL);
    if (message == nullptr && length != 0) return told(-EFAULT);
    return on_endpoint(fd, [&](Service& service, Endpoint& e) {
        return service.write(e, fd, message, static_cast<std::size_t>(length));
    });
}

[[gnu::noinline]] int flush_slowly(int fd, int n) {
    if (n < 0) return told(-EINVAL);
    return on_endpoint(fd, [&](Service& service, Endpoint& e) {
        return service.flush(e, static_cast<std::uint32_t>(n));
    });
}

}  // namespace

extern "C" {

int dp_open(int dpid) {
    if (dpid < 0 || dpid > DP_MAX_DPID)
        return fail(EINVAL,
                    fmt::format("dp_open: dpid is {}; it must be 0 to {}", dpid, DP_MAX_DPID));
    try {
        Service* service = Service::make();
        if (service == nullptr) {
            return fail(EOPNOTSUPP,
                        "a fork()ed child is not on the ring; use read and write on what "
                        "it has inherited, or execute a program with a rank of its own");
        }
        const int fd = service->open(static_cast<unsigned>(dpid));
        if (fd == -EADDRINUSE) {
            return fail(
                EADDRINUSE,
                fmt::format("this process has an endpoint {} already; close it first", dpid));
        }
        return told(fd);
    } catch (const rmem::Error& error) {
        return fail(errno_of(error), error.what());
    } catch (const std::system_error& error) {
        return fail(error.code().value(), error.what());
    } catch (const std::bad_alloc&) {
        return fail(ENOMEM, "no memory for an endpoint");
    } catch (const std::exception& error) {
        return fail(EIO, error.what());
    }
}

int dp_read(int fd, char** address) {
    const int length = if_passing(fd, [&](Service& service, Endpoint& e) {
        return address != nullptr ? service.read_expected(e, address) : -1;
    });
    return length >= 0 ? length : read_slowly(fd, address);
}

int dp_try_read(int fd, char** address) {
    if (address == nullptr) return told(-EFAULT);
    return on_endpoint(
        fd, [&](Service& service, Endpoint& e) { return service.try_read(e, fd, address); });
}

int dp_write(int fd, void* msg, int len) {
    const int length = if_passing(fd, [&](Service& service, Endpoint& e) {
        return msg != nullptr && service.write_expected(e, msg, static_cast<std::size_t>(len)) ? len
                                                                                               : -1;
    });
    return length >= 0 ? length : write_slowly(fd, msg, len);
}

int dp_fsync(int fd, int n) {
    const int flushed = if_passing(fd, [&](Service&, Endpoint& e) {
        return n >= 0 ? static_cast<int>(e.pool->flush(static_cast<std::uint32_t>(n))) : -1;
    });
    return flushed >= 0 ? flushed : flush_slowly(fd, n);
}

int dp_mmap(int fd, dpmmap_t* tbp) {
    if (tbp == nullptr) return told(-EFAULT);
    return on_endpoint(fd,
                       [&](Service& service, Endpoint& e) { return service.set_pool(e, *tbp); });
}

void dp_close(int fd) {
    on_endpoint(fd, [&](Service& service, Endpoint& e) {
        service.close(e, fd);
        return 0;
    });
}

void dp_target(int fd, int nid, int dpid) {
    on_endpoint(fd, [&](Service& service, Endpoint& e) {
        service.set_target(e, nid, dpid);
        return 0;
    });
}

int dp_target_add(int fd, int nid, int dpid) {
    return on_endpoint(
        fd, [&](Service& service, Endpoint& e) { return service.add_target(e, nid, dpid); });
}

int dp_target_remove(int fd, int nid, int dpid) {
    return on_endpoint(
        fd, [&](Service& service, Endpoint& e) { return service.remove_target(e, nid, dpid); });
}

int dp_reliable(int fd, int on) {
    return on_endpoint(
        fd, [&](Service& service, Endpoint& e) { return service.set_reliable(e, on != 0); });
}

int dp_drain(int fd, int64_t timeout_ns) {
    return on_endpoint(fd,
                       [&](Service& service, Endpoint& e) { return service.drain(e, timeout_ns); });
}

int dp_nid(void) {
    Service* service = Service::current();
    return service == nullptr ? -1 : service->nid();
}

int dp_nids(void) {
    Service* service = Service::current();
    return service == nullptr ? -1 : service->nids();
}

int dp_container(void) {
    Service* service = Service::current();
    return service == nullptr ? -1 : service->container();
}

int dp_stat_sized(int fd, dp_stat_t* stat, size_t size) {
    if (stat == nullptr) return told(-EFAULT);
    dp_stat_t counts{};
    if (fd == -1) {
        if (Service* service = Service::current()) service->stat(nullptr, counts);
    } else if (const int result = on_endpoint(
                   fd, [&](Service& service, Endpoint& e) { return service.stat(&e, counts); });
               result != 0) {
        return result;
    }
    const std::size_t known = std::min(size, sizeof counts);
    std::memcpy(stat, &counts, known);
    std::memset(reinterpret_cast<char*>(stat) + known, 0, size - known);
    return 0;
}

int dp_version(void) {
    return DP_VERSION;
}

const char* dp_last_error(void) {
    return ports::dp::last_error();
}

}  // extern "C"
