// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A transport of the MPI device for tests: queues in memory between the ranks of one thread, short
/// ones, which refuse now and then by a seed.
///
///     Pipes pipes(3, seed);
///     Device<Pipe> device(pipes.of(0), completions);
///
/// It keeps the promises of mpi_channel/transport.hpp, and lets a test harm ranks: they die, or
/// send packets that no device sends.

#include "billboard/bbp.h"
#include "mpi_channel/transport.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <deque>
#include <map>
#include <random>
#include <span>
#include <vector>

class Pipes;

class Pipe {
public:
    using Simulated = Pipes;  ///< the device's checks run in every build
    using Bytes = std::span<const std::byte>;

    Pipe(Pipes& pipes, unsigned rank) : pipes_(&pipes), rank_(rank) {}

    unsigned rank() const { return rank_; }
    unsigned ranks() const;
    std::size_t packet_most() const { return 512; }
    int send_control_block(Bytes header, Bytes message, unsigned to);
    int mcast_control(Bytes header, Bytes message, std::span<const int> to);
    int recv_any_control(Bytes* packet, unsigned* from);
    int send_channel(Bytes bulk, unsigned to, std::size_t* sent);
    void expect_bulk(unsigned from, std::size_t bytes);
    int recv_from_channel(std::span<std::byte> room, unsigned from, std::size_t* size);
    int ask_for(unsigned from);
    bool has_backlog() const { return false; }
    static constexpr bool kHasBarriers = true;
    int barrier(std::span<const int> members, unsigned id);
    mpi_channel::TransportCounters counters() const { return counters_; }

private:
    Pipes* pipes_;
    unsigned rank_;
    std::vector<std::byte> in_;
    std::map<unsigned, bool> waits_;  ///< in a barrier
    mpi_channel::TransportCounters counters_;
};

class Pipes {
public:
    Pipes(unsigned ranks, unsigned seed, std::size_t most = 8)
        : queues_(ranks * ranks), due_(ranks * ranks), dead_(ranks), most_(most), random_(seed) {
        for (unsigned r = 0; r < ranks; ++r) pipes_.emplace_back(*this, r);
    }
    Pipe& of(unsigned rank) { return pipes_[rank]; }
    unsigned ranks() const { return static_cast<unsigned>(pipes_.size()); }
    /// Its messages stay.
    void kill(unsigned rank) { dead_[rank] = true; }
    /// One call in `n` finds no room or nothing, though there is; 0: none does.
    void refuse_one_in(unsigned n) { refuse_ = n; }
    /// Whatever a rank sends.
    void put(unsigned from, unsigned to, std::vector<std::byte> bytes) {
        queue(from, to).push_back(std::move(bytes));
    }
    bool empty() const {
        return std::all_of(queues_.begin(), queues_.end(), [](const auto& q) { return q.empty(); });
    }

private:
    friend class Pipe;
    using Queue = std::deque<std::vector<std::byte>>;
    Queue& queue(unsigned from, unsigned to) { return queues_[from * ranks() + to]; }
    std::size_t& due(unsigned from, unsigned to) { return due_[from * ranks() + to]; }
    bool refuses() { return refuse_ != 0 && random_() % refuse_ == 0; }

    std::vector<Queue> queues_;
    std::vector<std::size_t> due_;  ///< bulk that was announced
    std::vector<bool> dead_;
    std::map<unsigned, std::vector<unsigned>> arrivals_;  ///< of each barrier
    std::size_t most_;
    unsigned refuse_ = 0;
    std::mt19937 random_;
    std::deque<Pipe> pipes_;
};

inline unsigned Pipe::ranks() const {
    return pipes_->ranks();
}

inline int Pipe::send_control_block(Bytes header, Bytes message, unsigned to) {
    auto& queue = pipes_->queue(rank_, to);
    if (pipes_->dead_[to]) return BBP_EPEER;
    if (queue.size() >= pipes_->most_ || pipes_->refuses()) return BBP_EAGAIN;
    std::vector<std::byte> packet(header.begin(), header.end());
    packet.insert(packet.end(), message.begin(), message.end());
    queue.push_back(std::move(packet));
    ++counters_.packets_sent;
    return BBP_OK;
}

/// As the billboard's: the first to come finds the others missing, and calls again.
inline int Pipe::barrier(std::span<const int> members, unsigned id) {
    auto& counts = pipes_->arrivals_[id];
    counts.resize(ranks());
    auto& mine = pipes_->arrivals_[id][rank_];
    if (!waits_[id]) ++mine;
    waits_[id] = true;
    for (const int m : members) {
        const auto member = static_cast<unsigned>(m);
        if (counts[member] >= mine) continue;
        if (pipes_->dead_[member]) return BBP_EPEER;
        return BBP_EAGAIN;
    }
    waits_[id] = false;
    return BBP_OK;
}

inline int Pipe::mcast_control(Bytes header, Bytes message, std::span<const int> to) {
    const auto is_full = [&](int r) {
        return !pipes_->dead_[static_cast<unsigned>(r)] &&
               pipes_->queue(rank_, static_cast<unsigned>(r)).size() >= pipes_->most_;
    };
    if (std::any_of(to.begin(), to.end(), is_full) || pipes_->refuses()) return BBP_EAGAIN;
    std::vector<std::byte> packet(header.begin(), header.end());
    packet.insert(packet.end(), message.begin(), message.end());
    bool reaches_all = true;
    for (const int r : to) {
        const auto rank = static_cast<unsigned>(r);
        if (pipes_->dead_[rank])
            reaches_all = false;
        else
            pipes_->queue(rank_, rank).push_back(packet);
    }
    ++counters_.multicasts;
    return reaches_all ? BBP_OK : BBP_EPEER;
}

inline int Pipe::recv_any_control(Bytes* packet, unsigned* from) {
    if (pipes_->refuses()) return BBP_EAGAIN;
    const unsigned first = static_cast<unsigned>(pipes_->random_() % ranks());
    for (unsigned i = 0; i < ranks(); ++i) {
        *from = (first + i) % ranks();
        auto& queue = pipes_->queue(*from, rank_);
        if (queue.empty()) continue;
        if (pipes_->due(*from, rank_) != 0) return mpi_channel::kBulk;
        if (queue.front().size() > packet_most()) return BBP_ESIZE;
        in_ = std::move(queue.front());
        queue.pop_front();
        *packet = in_;
        ++counters_.packets_received;
        return BBP_OK;
    }
    return BBP_EAGAIN;
}

inline int Pipe::send_channel(Bytes bulk, unsigned to, std::size_t* sent) {
    *sent = 0;
    auto& queue = pipes_->queue(rank_, to);
    while (!bulk.empty()) {
        if (pipes_->dead_[to]) return BBP_EPEER;
        if (queue.size() >= pipes_->most_ || pipes_->refuses()) {
            return *sent == 0 ? BBP_EAGAIN : BBP_OK;
        }
        const auto piece =
            bulk.first(std::min<std::size_t>(bulk.size(), 1 + pipes_->random_() % 5000));
        queue.emplace_back(piece.begin(), piece.end());
        *sent += piece.size();
        bulk = bulk.subspan(piece.size());
    }
    return BBP_OK;
}

inline void Pipe::expect_bulk(unsigned from, std::size_t bytes) {
    pipes_->due(from, rank_) += bytes;
}

inline int Pipe::recv_from_channel(std::span<std::byte> room, unsigned from, std::size_t* size) {
    auto& queue = pipes_->queue(from, rank_);
    if (queue.empty() || pipes_->refuses()) return BBP_EAGAIN;
    auto& piece = queue.front();
    std::size_t& due = pipes_->due(from, rank_);
    *size = std::min({room.size(), piece.size(), due});
    std::copy_n(piece.begin(), *size, room.begin());
    due -= *size;
    piece.erase(piece.begin(), piece.begin() + static_cast<std::ptrdiff_t>(*size));
    if (piece.empty() || due == 0) queue.pop_front();
    return BBP_OK;
}

inline int Pipe::ask_for(unsigned from) {
    if (!pipes_->queue(from, rank_).empty()) return BBP_OK;
    return pipes_->dead_[from] ? BBP_EPEER : BBP_EAGAIN;
}
