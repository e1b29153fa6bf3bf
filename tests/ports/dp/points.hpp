// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What the tests of Directed Point share: calls of dp.h whose results and bytes are checked.

#include "ports/dp/dp.h"
#include "tests/support/conformance.hpp"

#include <fcntl.h>

#include <cerrno>
#include <cstring>
#include <functional>

namespace rmem::test {

/// An endpoint, closed at the end.
class Point {
public:
    explicit Point(int dpid, Place place = Place::here()) : fd_(dp_open(dpid)) {
        check(fd_ >= 0, fmt::format("dp_open({}): {}", dpid, dp_last_error()), place);
    }
    ~Point() { close(); }
    Point(const Point&) = delete;
    Point& operator=(const Point&) = delete;

    int fd() const { return fd_; }
    void close() {
        if (fd_ >= 0) dp_close(fd_);
        fd_ = -1;
    }
    Point& to(int nid, int dpid) {
        dp_target(fd_, nid, dpid);
        return *this;
    }
    void write(std::size_t size, std::uint64_t seed, Place place = Place::here()) {
        auto bytes = pattern(size, seed);
        int written = 0;
        do {  // the receiver may get no processor for DP_FULL_NS
            errno = 0;
            written = dp_write(fd_, bytes.data(), static_cast<int>(size));
        } while (written < 0 && errno == ENOBUFS);
        check_equal(written, static_cast<int>(size),
                    fmt::format("dp_write of {} bytes (errno {})", size, errno), place);
    }
    /// Reads the next message, checks it; does not flush it.
    const char* see(std::size_t size, std::uint64_t seed, Place place = Place::here()) {
        char* at = nullptr;
        const int length = dp_read(fd_, &at);
        check_equal(length, static_cast<int>(size), "dp_read's length", place);
        check_bytes(at, size, seed, place);
        return at;
    }
    void read(std::size_t size, std::uint64_t seed, Place place = Place::here()) {
        see(size, seed, place);
        check_equal(dp_fsync(fd_, 1), 1, "dp_fsync", place);
    }
    /// No read waits.
    void make_nonblocking(Place place = Place::here()) const {
        check_equal(::fcntl(fd_, F_SETFL, O_NONBLOCK), 0, "fcntl", place);
    }
    void make_reliable(Place place = Place::here()) const {
        check_equal(dp_reliable(fd_, 1), 0, "dp_reliable", place);
    }
    void drain(Place place = Place::here()) const {
        errno = 0;
        const int result = dp_drain(fd_, kLong);
        check_equal(result, 0, fmt::format("dp_drain: {}", std::strerror(errno)), place);
    }
    void pool(std::size_t bytes, Place place = Place::here()) {
        dpmmap_t map{nullptr, bytes};
        check_equal(dp_mmap(fd_, &map), 0, "dp_mmap", place);
    }
    dp_stat_t stat() const {
        dp_stat_t stat{};
        dp_stat(fd_, &stat);
        return stat;
    }

private:
    int fd_;
};

/// What is sent before its endpoint is there is dropped: waits until every rank has opened what it
/// opens.
inline void all_are_open(Rank& me, Place place = Place::here()) {
    constexpr std::size_t kWord = 1000;
    me.raise(kWord);
    me.await_word(kWord, static_cast<std::uint32_t>(me.ranks), place);
}

/// A test whose ranks have an endpoint with the DPID 1.
class PointTest : public Conformance {
protected:
    /// Runs the body in each rank once all endpoints are open.
    static void run_points(unsigned ranks, const std::function<void(Rank&, Point&)>& body) {
        run(ranks, [&](Rank& me) {
            Point point(1);
            all_are_open(me);
            body(me, point);
        });
    }
};

inline dp_stat_t stat_of_process() {
    dp_stat_t stat{};
    dp_stat(-1, &stat);
    return stat;
}

/// The call fails with this errno.
#define CHECK_ERRNO(call, expected)                                                           \
    do {                                                                                      \
        errno = 0;                                                                            \
        const int result_ = (call);                                                           \
        const int error_ = errno;                                                             \
        check_equal(result_, -1, #call);                                                      \
        check_equal(std::string(std::strerror(error_)), std::string(std::strerror(expected)), \
                    "errno of " #call);                                                       \
    } while (false)

/// All calls of a descriptor refuse it.
inline void check_is_no_endpoint(int fd) {
    char* at = nullptr;
    dpmmap_t pool{nullptr, 0};
    CHECK_ERRNO(dp_read(fd, &at), EBADF);
    CHECK_ERRNO(dp_write(fd, &at, 1), EBADF);
    CHECK_ERRNO(dp_fsync(fd, 1), EBADF);
    CHECK_ERRNO(dp_mmap(fd, &pool), EBADF);
    CHECK_ERRNO(dp_target_add(fd, 0, 1), EBADF);
    CHECK_ERRNO(dp_reliable(fd, 1), EBADF);
}

}  // namespace rmem::test
