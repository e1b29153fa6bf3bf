// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Barriers, and groups by name. Part of EndpointCore (billboard/core/endpoint_core.hpp).
///
/// arrival   each member writes its arrival count into a word of its own and waits until every
///           member's count has come as far: one propagation. The default. The last to come wakes
///           those who sleep: were each to do so, all would run for each that comes.
/// paper     the lowest member collects a null message from each other member and answers with one
///           multicast: two propagations, as the paper's MPI_Barrier.
///
/// An arrival count goes with a barrier id, and an id with one list of members: counts of different
/// groups would not be comparable.

#include "billboard/core/endpoint_core.hpp"
#include "rmem/base/hash.hpp"
#include "rmem/base/marks.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace billboard {

template <class M, template <class> class BoardOf>
int EndpointCore<M, BoardOf>::barrier(Deadline deadline) {
    if (settings_.barrier == BarrierKind::paper)
        return barrier_by_messages(everybody_, 0, deadline);
    return arrive_and_wait(everybody_, 0, deadline);
}

template <class M, template <class> class BoardOf>
int EndpointCore<M, BoardOf>::barrier_group(std::span<const int> members, unsigned id,
                                            Deadline deadline) {
    if (id >= kBarrierIds) {
        return fail(BBP_EINVAL, fmt::format("there is no barrier {}; ids go from 0 to {}", id,
                                            kBarrierIds - 1));
    }
    auto& known = barrier_members_[id];
    if (known.empty() || !std::equal(members.begin(), members.end(), known.begin(), known.end())) {
        if (const int bad = check_members(members, id); bad != BBP_OK) return bad;
    }
    if (settings_.barrier == BarrierKind::paper)
        return barrier_by_messages(known, id + 1, deadline);
    return arrive_and_wait(known, id + 1, deadline);
}

/// The list that the barrier was used with before, or is from now on.
template <class M, template <class> class BoardOf>
int EndpointCore<M, BoardOf>::check_members(std::span<const int> members, unsigned id) {
    if (const int bad = check_message(members, nullptr, 0); bad != BBP_OK) return bad;
    std::vector<int> sorted(members.begin(), members.end());
    std::sort(sorted.begin(), sorted.end());
    if (!std::binary_search(sorted.begin(), sorted.end(), static_cast<int>(me_))) {
        return fail(BBP_EINVAL,
                    fmt::format("rank {} is not in the list of members that it waits with", me_));
    }
    auto& known = barrier_members_[id];
    if (known.empty()) known = sorted;
    if (known != sorted) {
        return fail(BBP_EINVAL,
                    fmt::format("barrier {} was used with another list of members; give "
                                "each group an id of its own",
                                id));
    }
    return BBP_OK;
}

template <class M, template <class> class BoardOf>
int EndpointCore<M, BoardOf>::arrive_and_wait(std::span<const int> members, std::size_t index,
                                              Deadline deadline) {
    memory_.progress();
    if (!barrier_pending_[index]) {  // else a former call has arrived and timed out
        const int room = wait_for(
            deadline, [&]() -> int { return memory_.room(kAnnounceBytes) ? BBP_OK : BBP_EAGAIN; });
        if (room == BBP_ETIMEDOUT) return barrier_timed_out({});
        if (room != BBP_OK) return room;
        RMEM_MARK("barrier.before-arrival");
        memory_.post_word(barrier_word(me_, index), ++barrier_counts_[index]);
        memory_.commit();
        barrier_pending_[index] = true;
        RMEM_MARK("barrier.arrived");
    }
    const std::uint32_t count_now = barrier_counts_[index];
    const auto has_arrived = [&](unsigned m) {
        return static_cast<std::int32_t>(memory_.load(barrier_word(m, index)) - count_now) >= 0;
    };
    std::size_t next = 0;  // members before it have arrived
    // The last is who finds all others arrived at once. Two that come at the same time may not see
    // each other in their first look, each in its second; who sleeps then was there before.
    unsigned looks = 0;
    const int result = wait_for(deadline, [&]() -> int {
        ++looks;
        for (; next < members.size(); ++next) {
            const auto m = static_cast<unsigned>(members[next]);
            if (m == me_) continue;
            if (aside_.has_end(m)) return tell_gone(m);  // has it arrived, then its new self has
            if (has_arrived(m)) continue;
            awaited_ = static_cast<int>(m);
            return is_gone(m) ? tell_gone(m) : BBP_EAGAIN;
        }
        return BBP_OK;
    });
    // Where there are several banks, the write itself has woken those who sleep.
    if (!M::kReplicated && result == BBP_OK && looks <= 2) {
        for (const int m : members) memory_.notify(static_cast<unsigned>(m));
    }
    if (result != BBP_ETIMEDOUT && result != BBP_EAGAIN) barrier_pending_[index] = false;
    if (result == BBP_OK) count(Counter::barriers);
    if (result != BBP_ETIMEDOUT) return result;
    std::vector<int> missing;
    for (const int m : members) {
        const auto r = static_cast<unsigned>(m);
        if (r != me_ && !has_arrived(r)) missing.push_back(m);
    }
    return barrier_timed_out(missing);
}

template <class M, template <class> class BoardOf>
int EndpointCore<M, BoardOf>::barrier_by_messages(std::span<const int> members, unsigned id,
                                                  Deadline deadline) {
    if (members.size() < 2) return BBP_OK;
    const int coordinator = members[0];
    std::uint32_t word = id;
    const std::size_t bytes = id == 0 ? 0 : sizeof word;  // everybody's barrier: null messages
    std::size_t len = 0;
    int result = BBP_OK;
    if (static_cast<int>(me_) != coordinator) {
        result = send(coordinator, &word, bytes, deadline, Class::barrier);
        if (result == BBP_OK)
            result = recv(coordinator, &word, sizeof word, &len, deadline, Class::barrier);
    } else {
        for (const int m : members.subspan(1)) {
            result = recv(m, &word, sizeof word, &len, deadline, Class::barrier);
            if (result == BBP_ETIMEDOUT) return barrier_timed_out({&m, 1});
            if (result < 0) return result;
        }
        word = id;
        result = mcast(members.subspan(1), &word, bytes, deadline, Class::barrier);
    }
    if (result == BBP_ETIMEDOUT) return barrier_timed_out(members.first(1));
    if (result < 0) return result;
    count(Counter::barriers);
    return BBP_OK;
}

/// Never 0 in the low word, which stands for an unused place.
inline std::uint64_t group_hash_of(std::string_view name) {
    const std::uint64_t hash = rmem::Fnv1a().add(name).value();
    return (hash & 0xffffffff) == 0 ? hash | 1 : hash;
}

template <class M, template <class> class BoardOf>
bool EndpointCore<M, BoardOf>::is_in_group(unsigned r, std::uint64_t hash) const {
    for (unsigned i = 0; i < kJoinedGroups; ++i) {
        const std::size_t at = geometry_.group_hash(r, i);
        if (memory_.load(at) == static_cast<std::uint32_t>(hash) &&
            memory_.load(at + 4) == static_cast<std::uint32_t>(hash >> 32)) {
            return true;
        }
    }
    return false;
}

template <class M, template <class> class BoardOf>
int EndpointCore<M, BoardOf>::group_join(std::string_view name) {
    if (name.empty()) return fail(BBP_EINVAL, "a group needs a name; the one given is empty");
    const std::uint64_t hash = group_hash_of(name);
    if (is_in_group(me_, hash)) return BBP_OK;
    for (unsigned i = 0; i < kJoinedGroups; ++i) {
        const std::size_t at = geometry_.group_hash(me_, i);
        if (memory_.load(at) != 0) continue;
        memory_.post_word(at + 4, static_cast<std::uint32_t>(hash >> 32));
        RMEM_MARK("group.half-joined");
        memory_.post_word(at, static_cast<std::uint32_t>(hash));  // last: it makes the place valid
        memory_.commit();
        return BBP_OK;
    }
    return fail(BBP_ENOMEM,
                fmt::format("rank {} is in {} groups already; leave one before joining '{}'", me_,
                            kJoinedGroups, name));
}

template <class M, template <class> class BoardOf>
int EndpointCore<M, BoardOf>::group_leave(std::string_view name) {
    const std::uint64_t hash = group_hash_of(name);
    for (unsigned i = 0; i < kJoinedGroups; ++i) {
        const std::size_t at = geometry_.group_hash(me_, i);
        if (memory_.load(at) != static_cast<std::uint32_t>(hash) ||
            memory_.load(at + 4) != static_cast<std::uint32_t>(hash >> 32)) {
            continue;
        }
        memory_.post_word(at, 0);
        memory_.commit();
        return BBP_OK;
    }
    return fail(BBP_EINVAL, fmt::format("rank {} is not in group '{}'", me_, name));
}

template <class M, template <class> class BoardOf>
int EndpointCore<M, BoardOf>::mcast_group(std::string_view name, const void* buf, std::size_t len,
                                          Deadline deadline, Class cls) {
    memory_.progress();
    const std::uint64_t hash = group_hash_of(name);
    std::vector<int> dests;
    for (unsigned r = 0; r < ranks_; ++r) {
        if (r != me_ && is_in_group(r, hash) && !is_gone(r)) dests.push_back(static_cast<int>(r));
    }
    const int result = mcast(dests, buf, len, deadline, cls);
    return result == BBP_OK ? static_cast<int>(dests.size()) : result;
}

}  // namespace billboard
