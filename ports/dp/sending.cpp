// SPDX-License-Identifier: Apache-2.0
// What goes: edges, and dp_write.
#include "ports/dp/service.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

namespace ports::dp {

namespace {

using billboard::Deadline;

constexpr unsigned kBriefPosts = 32;      ///< tries, before it is asked whether to wait at all
constexpr unsigned kPostsPerSlice = 512;  ///< tries, each with a look at what comes
constexpr std::int64_t kPostSliceNs = 200'000;  ///< of waiting in the billboard, where time passes

}  // namespace

// ---- Edges

int Service::check_target(int nid, int dpid) {
    if (nid < 0 || static_cast<unsigned>(nid) >= ring()->ranks()) return EHOSTUNREACH;
    return dpid < 0 || static_cast<unsigned>(dpid) > kMaxDpid ? EINVAL : 0;
}

Target Service::make_target(const Endpoint& e, int nid, int dpid) {
    return {static_cast<unsigned>(nid), static_cast<unsigned>(dpid),
            e.is_reliable ? std::make_unique<GoBackNSender>(++generation_) : nullptr};
}

/// An edge that is no more; what it has on its way is still looked after.
void Service::let_go(Endpoint& e, Target&& target) {
    if (target.sender && !target.sender->is_idle()) e.leaving.push_back(std::move(target));
}

void Service::set_target(Endpoint& e, int nid, int dpid) {
    const auto held = process_->hold();
    for (Target& target : e.targets) let_go(e, std::move(target));
    e.targets.clear();
    e.target_error = check_target(nid, dpid);
    if (e.target_error == 0) e.targets.push_back(make_target(e, nid, dpid));
    e.set_raw();
}

int Service::add_target(Endpoint& e, int nid, int dpid) {
    const auto held = process_->hold();
    if (const int error = check_target(nid, dpid); error != 0) return -error;
    for (const Target& target : e.targets) {
        if (target.nid == static_cast<unsigned>(nid) && target.dpid == static_cast<unsigned>(dpid))
            return -EEXIST;
    }
    if (e.targets.size() == DP_MAX_TARGETS) return -ENOSPC;
    e.target_error = 0;
    e.targets.push_back(make_target(e, nid, dpid));
    e.set_raw();
    return 0;
}

int Service::remove_target(Endpoint& e, int nid, int dpid) {
    const auto held = process_->hold();
    const auto it = std::find_if(e.targets.begin(), e.targets.end(), [&](const Target& target) {
        return target.nid == static_cast<unsigned>(nid) &&
               target.dpid == static_cast<unsigned>(dpid);
    });
    if (it == e.targets.end()) return -ENOENT;
    let_go(e, std::move(*it));
    e.targets.erase(it);
    e.set_raw();
    return 0;
}

// ---- dp_write

int Service::write(Endpoint& e, int fd, const void* message, std::size_t length) {
    auto held = process_->hold();
    if (write_words(*ring(), e, message, length)) [[likely]]
        return static_cast<int>(length);
    return send(held, e, fd, message, length);
}

/// `fd` -1: for the engine, which may wait.
int Service::send(Held& held, Endpoint& e, int fd, const void* message, std::size_t length) {
    if (e.has_ended) return -EBADF;
    if (e.target_error != 0) return -e.target_error;
    if (e.targets.empty()) return -ENOTCONN;
    if (length > container_) return -EMSGSIZE;
    const int result = e.is_reliable ? send_reliably(held, e, fd, message, length)
                                     : send_raw(held, e, fd, message, length);
    if (result < 0) return result;
    e.count(Counter::written);
    return static_cast<int>(length);
}

int Service::send_raw(Held& held, Endpoint& e, int fd, const void* message, std::size_t length) {
    const std::span container(static_cast<const std::byte*>(message), length);
    const std::vector<Target>& targets = e.targets;
    if (targets.size() == 1) {
        const int dest = static_cast<int>(targets.front().nid);
        const std::uint64_t header = e.raw_to | static_cast<std::uint64_t>(length) << 32;
        Outgoing out(ring(), {&dest, 1}, std::as_bytes(std::span(&header, 1)), container);
        return post(held, e, fd, out);
    }
    std::vector<int> dests;
    bool is_one_dpid = true;
    for (const Target& target : targets) {
        const int nid = static_cast<int>(target.nid);
        is_one_dpid = is_one_dpid && target.dpid == targets.front().dpid;
        if (std::find(dests.begin(), dests.end(), nid) == dests.end()) dests.push_back(nid);
    }
    std::vector<std::uint64_t> lead;
    if (is_one_dpid) {
        lead.push_back(Header{kAllNids, targets.front().dpid, length, Kind::plain}.word());
    } else {
        lead.resize(1 + (targets.size() + 1) / 2);
        lead[0] =
            Header{kAllNids, static_cast<unsigned>(targets.size()), length, Kind::listed}.word();
        for (std::size_t i = 0; i < targets.size(); ++i) {
            const std::uint64_t entry = Entry{targets[i].nid, targets[i].dpid}.word();
            lead[1 + i / 2] |= entry << i % 2 * 32;
        }
    }
    Outgoing out(ring(), dests, std::as_bytes(std::span(lead)), container);
    return post(held, e, fd, out);
}

/// Sends it; waits while the network is full, and takes in what comes meanwhile: the receiver may
/// wait for that, if it is sending too. So it waits in the billboard, where nothing is taken in,
/// but seldom.
int Service::post(Held& held, Endpoint& e, int fd, Outgoing& out) {
    bool was_told = false, may_wait = false;
    Deadline deadline = Deadline::now();
    for (unsigned tries = 1;; ++tries) {
        const bool waits = tries % kPostsPerSlice == 0;
        const int result = out.post(waits ? ring()->deadline_in(kPostSliceNs) : Deadline::now());
        if (result == BBP_OK) {
            RMEM_MARK("dp.posted");
            return 0;
        }
        if (result == BBP_EPEER && !was_told) {  // one that is back is told of once
            was_told = true;
            continue;
        }
        if (result == BBP_EPEER) return -EHOSTDOWN;
        if (result == BBP_ESIZE) return -EMSGSIZE;
        if (result != BBP_EAGAIN && result != BBP_ETIMEDOUT) return -EIO;
        const bool something_came = receive_all();
        tick();
        // What is full for a moment is not worth a system call, unless the descriptor was not to
        // wait when last looked at.
        if (!may_wait && (tries >= kBriefPosts || e.is_nonblocking)) {
            if (fd >= 0 && is_nonblocking(e, fd)) return -EAGAIN;
            may_wait = true;
            deadline = ring()->deadline_in(DP_FULL_NS);
        }
        if (waits && deadline.passed(now_ns())) {
            e.count(Counter::dropped_network);
            return -ENOBUFS;
        }
        held.give_way();
        if (e.has_ended) return -EBADF;
        if (!something_came) rmem::cpu_relax();
    }
}

// ---- write(2)

void Service::serve_writes(Held& held, Endpoint& e) {
    std::vector<std::byte> written(container_ + 1);  // others come in while one of these waits
    for (;;) {
        const ssize_t n = ::recv(e.own_end(), written.data(), written.size(), MSG_DONTWAIT);
        if (n < 0 || (n == 0 && e.is_closed())) return;
        RMEM_MARK("dp.write-taken");
        if (send(held, e, -1, written.data(), static_cast<std::size_t>(n)) < 0) {
            e.count(Counter::dropped_writes);
        } else {
            e.count(Counter::served_writes);
        }
        held.give_way();
    }
}

}  // namespace ports::dp
