// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The systems that are compared, each as a program written for it would use it: a message to the
/// other of two ranks, and the next one from it.
///
///     Gamma gamma(rank);           // joins, after bbp_init
///     gamma.send(8);               // rank 0
///     gamma.receive(8);            // rank 1: waits
///
/// A receiver that reads in place looks at a word of each line, so that moving the bytes is paid by
/// all. Each system is used in a process of its own: one with threads makes the endpoint's lock
/// necessary, which those without do not have to pay for.
/// Threads: one. Errors: `rmem::Error`.

#include "tools/measure/rank_group.hpp"

#include "billboard/bbp.h"

#include <dp/dp.h>
#include <fm/fm1.h>
#include <fm/fm2.h>
#include <gamma/libgamma.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <vector>

namespace bench {

inline constexpr std::size_t kMostBytes = 16384;  ///< of a message here
inline constexpr std::size_t kMostHandlers = 1000;

/// Ranks 0 and 1 are each other's peer.
inline int peer_of(const RankContext& rank) {
    return rank.rank == 0 ? 1 : 0;
}

/// Ends the process with a call's error, through an exception.
[[noreturn]] void fail(const char* call, const char* why);

class Billboard {
public:
    static constexpr const char* kName = "bbp_send";
    static constexpr std::size_t kSmall = 8, kMost = kMostBytes;

    explicit Billboard(const RankContext& rank) : peer_(peer_of(rank)) {}
    void send(std::size_t bytes) { checked(bbp_send(peer_, message_.data(), bytes)); }
    /// False: there is no room for now.
    bool try_send(std::size_t bytes) {
        const int result = bbp_trysend(peer_, message_.data(), bytes);
        return result != BBP_EAGAIN && checked(result) == BBP_OK;
    }
    void receive(std::size_t) {
        checked(bbp_recv(peer_, message_.data(), message_.size(), nullptr));
    }

private:
    int peer_;
    std::vector<std::byte> message_ = std::vector<std::byte>(kMostBytes);
};

/// The count of arrivals for both versions of Fast Messages.
struct FastMessages {
    static int received;

    explicit FastMessages(const RankContext& rank);
    ~FastMessages();
    FastMessages(const FastMessages&) = delete;
    FastMessages& operator=(const FastMessages&) = delete;

    int peer;
};

/// FM_send_4: four words.
class Fm4 : FastMessages {
public:
    static constexpr const char* kName = "FM_send_4";
    static constexpr std::size_t kSmall = 16, kMost = 16;

    explicit Fm4(const RankContext& rank) : FastMessages(rank) {}
    void send(std::size_t) { send_to(on_words); }
    void send_to(FM_handler4 handler) { FM_send_4(peer, handler, 1, 2, 3, 4); }
    void receive(std::size_t) {
        while (received == 0) FM_extract();
        --received;
    }

private:
    static void on_words(int, int, int, int) { ++received; }
};

/// FM_send of FM 1.0: one frame.
class Fm1 : FastMessages {
public:
    static constexpr const char* kName = "FM_send";
    static constexpr std::size_t kSmall = 16, kMost = FM_MAX_SIZE;

    explicit Fm1(const RankContext& rank) : FastMessages(rank) {}
    void send(std::size_t bytes) {
        FM_send(peer, on_buffer, message_.data(), static_cast<int>(bytes));
    }
    void receive(std::size_t) {
        while (received == 0) FM_extract();
        --received;
    }

private:
    static void on_buffer(void* bytes, int size);
    std::array<char, FM_MAX_SIZE> message_{};
};

/// FM 2.x: one piece out, one FM_receive in.
class Fm2 : FastMessages {
public:
    static constexpr const char* kName = "FM 2.x";
    static constexpr std::size_t kSmall = 16, kMost = kMostBytes;

    explicit Fm2(const RankContext& rank)
        : FastMessages(rank), id_(FM_register_handler(FM_ANY_ID, on_stream)) {}
    void send(std::size_t bytes) { send_to(id_, bytes); }
    void send_to(ULONG handler, std::size_t bytes) {
        FM_stream* const stream = FM_begin_message(static_cast<ULONG>(peer), bytes, handler);
        if (stream == nullptr) fail("FM_begin_message", bbp_last_error());
        FM_send_piece(stream, message_.data(), bytes);
        FM_end_message(stream);
    }
    void receive(std::size_t bytes) {
        size_ = static_cast<unsigned>(bytes);
        while (received == 0) FM_extract(~0UL);
        --received;
    }
    /// A handler of its own code for each number below kMostHandlers.
    static FM_handler* handler(std::size_t number);
    static int take(FM_stream* stream);

private:
    static int on_stream(FM_stream* stream, unsigned) { return take(stream); }
    static unsigned size_;
    ULONG id_;
    std::vector<char> message_ = std::vector<char>(kMostBytes);
};

/// GAMMA's active port, whose handler signals: the paper's synchronous receive.
class Gamma {
public:
    static constexpr const char* kName = "gamma_send";
    static constexpr std::size_t kSmall = 8, kMost = kMostBytes;

    explicit Gamma(const RankContext& rank);
    ~Gamma() { gamma_exit(); }
    Gamma(const Gamma&) = delete;
    Gamma& operator=(const Gamma&) = delete;

    void send(std::size_t bytes) {
        if (gamma_send(kPort, message_.data(), bytes) < 0) fail("gamma_send", gamma_last_error());
    }
    void receive(std::size_t) {
        if (gamma_wait(kPort, 1) < 0) fail("gamma_wait", gamma_last_error());
    }
    static void barrier() {
        if (gamma_sync() < 0) fail("gamma_sync", gamma_last_error());
    }

private:
    static constexpr unsigned short kPort = 5;
    static void on_arrival() { gamma_signal(kPort); }
    static void on_error();
    std::vector<std::byte> message_ = std::vector<std::byte>(kMostBytes),
                           landing_ = std::vector<std::byte>(kMostBytes);
};

/// Directed Point, raw: the reader answers often enough for nothing to be dropped.
class Dp {
public:
    static constexpr const char* kName = "dp_write";
    static constexpr std::size_t kSmall = 8, kMost = kMostBytes;

    explicit Dp(const RankContext& rank);
    ~Dp() { dp_close(fd_); }
    Dp(const Dp&) = delete;
    Dp& operator=(const Dp&) = delete;

    /// A pool for `bytes` bytes of messages that nobody has read.
    void take_pool(std::size_t bytes);
    void send(std::size_t bytes) {
        // Full for long where the host has taken the receiver away: nothing was sent.
        while (dp_write(fd_, message_.data(), static_cast<int>(bytes)) < 0) {
            if (errno != ENOBUFS) fail_by_errno("dp_write");
        }
    }
    void receive(std::size_t) {
        char* at = nullptr;
        const int length = dp_read(fd_, &at);
        if (length < 0) fail_by_errno("dp_read");
        look_at(at, static_cast<std::size_t>(length));
        dp_fsync(fd_, 1);
    }

private:
    [[noreturn]] static void fail_by_errno(const char* call);
    static void look_at(const char* bytes, std::size_t size);
    int fd_;
    std::vector<char> message_ = std::vector<char>(kMostBytes);
};

/// A handler of FM 1.0, of its own code, for each number below kMostHandlers.
FM_handler4 fm1_handler(std::size_t number);

}  // namespace bench
