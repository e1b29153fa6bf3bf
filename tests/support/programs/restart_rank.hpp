// SPDX-License-Identifier: Apache-2.0
#pragma once

/// One rank of ring-restarts: sends to and receives from all others while any of them may die and
/// come back.
///
/// Each message tells its sender's incarnation, and its number among that incarnation's messages to
/// this one. The rank fails unless, of each other rank,
///   - the messages of an incarnation come from number 0 on, each once, in order, intact;
///   - nothing comes of an incarnation that it was told the end of (BBP_EPEER of a receive), or
///     that is older than one it has heard;
///   - a new incarnation is heard only after BBP_EPEER;
///   - nothing comes that was meant for its own former incarnation.
/// A rank that all others are dead to has lost its node: it opens the ring again, as a new
/// incarnation.
/// Thread safety: one thread. Errors: `CheckFailed`.

#include "billboard/bbp.h"
#include "tests/support/checks.hpp"
#include "tests/support/patterns.hpp"
#include "tests/support/programs/restart_record.hpp"

#include <sched.h>
#include <chrono>
#include <cstring>
#include <thread>
#include <vector>

namespace rmem::test {

inline constexpr std::size_t kLargest = 40'000;  // in parts, where a partition is smaller
inline constexpr std::size_t kInOnePart = 8'192;
inline constexpr std::int64_t kSendNs = 20'000'000;
inline constexpr std::int64_t kIdleNs = 200'000;
inline constexpr std::int64_t kMeetNs = 30'000'000'000;
inline constexpr unsigned kAtOnce = 16;  // messages of one sender before it is the next one's turn

/// The front of each message.
struct Front {
    std::uint32_t incarnation = 0;  ///< of the sender
    std::uint32_t to_incarnation =
        0;  ///< that the sender has heard of the receiver; 0: of none yet
    std::uint32_t number = 0;
    std::uint32_t is_last = 0;
};

/// Another rank, as the present incarnation knows it.
struct Other {
    std::uint32_t heard = 0;     ///< its incarnation that messages came from last
    std::uint32_t next_in = 0;   ///< number of its next message
    bool end_received = false;   ///< a receive has told that this incarnation has ended
    bool told = false;           ///< that it ended, by any call since a message came
    bool gone = false;           ///< the last call said so
    bool has_last = false;       ///< its last message has come
    std::uint32_t next_out = 0;  ///< number of the next message to it
    bool last_sent = false;
};

class LivingRank {
public:
    /// The ring and the rank's place in it are the environment's.
    LivingRank(RestartRecord& record, std::uint64_t seed) : record_(record), state_(seed) {
        buffer_.resize(kLargest);
        outgoing_.reserve(kLargest);
    }

    /// Until the record says that it may leave.
    void run() {
        do open();
        while (!live());
        check_ok(bbp_barrier_for(kMeetNs), "the barrier of all");
        me().met = incarnation_;
        while (record_.phase != Phase::leaving) pause();
        check_ok(bbp_finalize(), "bbp_finalize");
    }

private:
    RestartsOfRank& me() const { return record_.ranks.at(static_cast<std::size_t>(rank_)); }

    void open() {
        incarnation_ = ++record_.incarnations;
        int code = BBP_OK;
        // Others may be dead or cut off for longer than it waits for them, or its node may be.
        while ((code = bbp_init(&rank_, &ranks_)) == BBP_ETIMEDOUT) {
        }
        check_ok(code, "bbp_init");
        others_.assign(static_cast<std::size_t>(ranks_), {});
        for (auto& heard : me().heard) heard = 0;
        me().incarnation = incarnation_;
    }

    /// True: all is said. False: the node was lost.
    bool live() {
        for (;;) {
            const bool was_idle = !exchange();
            if (all_gone()) {
                me().incarnation = 0;
                ++me().reopens;
                check_ok(bbp_finalize(), "bbp_finalize without a node");
                return false;
            }
            if (is_done()) me().done = incarnation_;
            if (record_.phase >= Phase::meeting) {
                check(is_done(), "told to meet before all was said");
                return true;
            }
            if (was_idle) wait_a_little();
        }
    }

    /// A few messages from and to each; false when there was nothing to do.
    bool exchange() {
        bool did = false;
        for (int rank = 0; rank < ranks_; ++rank) {
            if (rank == rank_) continue;
            for (unsigned i = 0; i < kAtOnce && receive(rank, 0); ++i) did = true;
            if (send(rank)) did = true;
        }
        return did;
    }
    /// By name: a receiver from anyone is not told which rank has come back.
    void wait_a_little() {
        const auto some = static_cast<int>(next_random(state_) % static_cast<unsigned>(ranks_));
        if (some != rank_) receive(some, kIdleNs);
        ::sched_yield();
    }

    bool receive(int rank, std::int64_t patience_ns) {
        std::size_t size = 0;
        const int code = bbp_recv_for(rank, buffer_.data(), buffer_.size(), &size, patience_ns);
        Other& other = others_[static_cast<std::size_t>(rank)];
        other.gone = code == BBP_EPEER;
        if (code == BBP_ETIMEDOUT) return false;
        if (code == BBP_EPEER) {
            other.end_received = other.heard != 0;
            hear_of_its_end(rank);
            return false;
        }
        check_code(code, rank, fmt::format("receiving from rank {}", rank));
        take(rank, {buffer_.data(), size});
        return true;
    }

    /// Messages to it are lost, or nobody knows: the next is for a new incarnation.
    void hear_of_its_end(int rank) {
        Other& other = others_[static_cast<std::size_t>(rank)];
        other.told = true;
        other.next_out = 0;
        other.last_sent = other.has_last = false;
        me().done = 0;
        ++me().told[static_cast<std::size_t>(rank)];
    }

    void take(int rank, std::span<const std::byte> message) {
        Front front;
        check(message.size() >= sizeof front,
              fmt::format("a message of {} bytes came from rank {}", message.size(), rank));
        std::memcpy(&front, message.data(), sizeof front);
        Other& other = others_[static_cast<std::size_t>(rank)];
        const std::string which = fmt::format(
            "message {} of incarnation {} of rank {} (to incarnation {}; here is incarnation {} of "
            "rank {}, which has heard incarnation {}, and expects its {}; {}told of its end{})",
            front.number, front.incarnation, rank, front.to_incarnation, incarnation_, rank_,
            other.heard, other.next_in, other.told ? "" : "not ",
            other.end_received ? " by a receive" : "");
        if (front.incarnation != other.heard) {
            check(front.incarnation > other.heard, "of a former incarnation: " + which);
            check(other.heard == 0 || other.told,
                  "nobody told that the former incarnation is gone: " + which);
            meet(rank, front.incarnation);
        } else {
            check(!other.end_received, "of an incarnation whose end was told: " + which);
        }
        check(front.to_incarnation == 0 || front.to_incarnation == incarnation_,
              "for another incarnation: " + which);
        check(!other.has_last, "after the last one: " + which);
        check_equal(front.number, other.next_in, which);
        const auto body = message.subspan(sizeof front);
        check_equal(first_difference(body, seed_of(front, rank_)), body.size(),
                    "damaged: " + which);
        ++other.next_in;
        other.has_last = front.is_last != 0;
        ++me().received[static_cast<std::size_t>(rank)];
    }
    void meet(int rank, std::uint32_t incarnation) {
        Other& other = others_[static_cast<std::size_t>(rank)];
        other.heard = incarnation;
        other.next_in = 0;
        // A send tells of the end of an incarnation whose first messages may still wait to be
        // received.
        if (other.end_received) other.told = false;
        other.end_received = other.has_last = false;
        me().heard[static_cast<std::size_t>(rank)] = incarnation;
    }

    bool send(int rank) {
        Other& other = others_[static_cast<std::size_t>(rank)];
        if (other.last_sent) return false;
        const bool is_last = record_.phase >= Phase::ending;
        const Front front{incarnation_, other.told ? 0 : other.heard, other.next_out,
                          is_last ? 1U : 0U};
        compose(front, rank);
        const int code = outgoing_.size() <= kInOnePart
                             ? bbp_trysend(rank, outgoing_.data(), outgoing_.size())
                             : bbp_send_for(rank, outgoing_.data(), outgoing_.size(), kSendNs);
        other.gone = code == BBP_EPEER;
        if (code == BBP_EAGAIN || code == BBP_ETIMEDOUT) return false;
        if (code == BBP_EPEER) {
            hear_of_its_end(rank);
            return false;
        }
        check_ok(code, fmt::format("sending to rank {}", rank));
        ++other.next_out;
        other.last_sent = is_last;
        return true;
    }
    /// Of any size: most are short, some are longer than a partition.
    void compose(const Front& front, int rank) {
        const std::uint64_t random = next_random(state_);
        std::size_t most = 60;
        if (random % 8 == 0) most = 2'000;
        if (random % 32 == 0) most = kInOnePart - sizeof front;
        if (random % 256 == 0) most = kLargest - sizeof front;
        outgoing_.resize(sizeof front + random / 256 % (most + 1));
        std::memcpy(outgoing_.data(), &front, sizeof front);
        fill(std::span(outgoing_).subspan(sizeof front), seed_of(front, rank));
    }
    static std::uint64_t seed_of(const Front& front, int receiver) {
        return (std::uint64_t{front.incarnation} << 40U) + (std::uint64_t{front.number} << 8U) +
               static_cast<unsigned>(receiver);
    }

    template <class Holds>
    bool of_all_others(Holds holds) const {
        for (int rank = 0; rank < ranks_; ++rank) {
            if (rank != rank_ && !holds(others_[static_cast<std::size_t>(rank)])) return false;
        }
        return true;
    }
    bool all_gone() const {
        return of_all_others([](const Other& o) { return o.gone; });
    }
    bool is_done() const {
        return of_all_others([](const Other& o) { return o.has_last && o.last_sent; });
    }
    static void pause() { std::this_thread::sleep_for(std::chrono::milliseconds(1)); }

    RestartRecord& record_;
    std::uint64_t state_;
    int rank_ = 0, ranks_ = 0;
    std::uint32_t incarnation_ = 0;
    std::vector<Other> others_;
    std::vector<std::byte> buffer_, outgoing_;
};

}  // namespace rmem::test
