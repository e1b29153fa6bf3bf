// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Barriers, of all ranks and of groups.
///
/// arrival   each member writes its arrival count into a word of its own and waits until every
///           member's count has come as far: one propagation. The default. The last to come wakes
///           those who sleep: were each to do so, all would run for each that comes.
/// paper     the lowest member collects a null message from each other member and answers with one
///           multicast: two propagations, as the paper's MPI_Barrier.
///
/// An arrival count goes with a barrier id, and an id with one list of members: counts of different
/// groups would not be comparable.
///
/// Invariants: a call waits with the list that its barrier was used with before, which is in order
/// and has this rank in it; an arrival is written once, however many calls wait for it.
/// Thread safety: one thread. Errors: billboard/endpoint.hpp.

#include "billboard/core/own_rank.hpp"
#include "billboard/core/peers.hpp"
#include "billboard/core/set_aside.hpp"
#include "rmem/base/check.hpp"
#include "rmem/base/marks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <span>
#include <vector>

namespace billboard {

template <class Own>
class Barriers {
public:
    /// `messages`: the endpoint, by which the members of a barrier of kind `paper` talk.
    Barriers(Own& own, Peers<Own>& peers, const SetAside& aside, Endpoint& messages)
        : own_(own), peers_(peers), aside_(aside), messages_(messages), everybody_(own.ranks) {
        std::iota(everybody_.begin(), everybody_.end(), 0);
    }

    /// Before the rank joins: writes its counts. After its `first_incarnation` a rank resumes from
    /// those of the others.
    void begin(bool first_incarnation);
    [[nodiscard]] int barrier(Deadline deadline);
    [[nodiscard]] int barrier_group(std::span<const int> members, unsigned id, Deadline deadline);

private:
    [[nodiscard]] int check_members(std::span<const int> members, unsigned id);
    int arrive_and_wait(std::span<const int> members, std::size_t index, Deadline deadline);
    [[nodiscard]] int barrier_by_messages(std::span<const int> members, unsigned id,
                                          Deadline deadline);
    std::size_t word(unsigned r, std::size_t index) const {
        return index == 0 ? own_.geometry.barrier(r)
                          : own_.geometry.barrier(r, static_cast<unsigned>(index - 1));
    }
    bool has_arrived(unsigned m, std::size_t index) const {
        return static_cast<std::int32_t>(own_.memory.load(word(m, index)) - counts_[index]) >= 0;
    }

    Own& own_;
    Peers<Own>& peers_;
    const SetAside& aside_;
    Endpoint& messages_;
    std::vector<int> everybody_;
    // By index: 0 is everybody's, a group's is its id and one.
    std::vector<std::uint32_t> counts_ = std::vector<std::uint32_t>(1 + kBarrierIds, kFirstCount);
    std::vector<bool> pending_ = std::vector<bool>(1 + kBarrierIds);  ///< arrived and timed out
    std::vector<std::vector<int>> members_ = std::vector<std::vector<int>>(kBarrierIds);  ///< by id
};

template <class Own>
void Barriers<Own>::begin(bool first_incarnation) {
    for (std::size_t i = 0; i < counts_.size(); ++i) {
        // Otherwise they would wait for it forever. A rank that never joined has no count: its
        // words are 0, which is also what counts come to by wrapping.
        for (unsigned s = 0; !first_incarnation && s < own_.ranks; ++s) {
            if (own_.memory.load(own_.geometry.incarnation(s)) == 0) continue;
            const std::uint32_t theirs = own_.memory.load(word(s, i));
            if (static_cast<std::int32_t>(theirs - counts_[i]) > 0) counts_[i] = theirs;
        }
        own_.memory.post_word(word(own_.me, i), counts_[i]);
    }
}

template <class Own>
int Barriers<Own>::barrier(Deadline deadline) {
    if (own_.settings.barrier == BarrierKind::paper)
        return barrier_by_messages(everybody_, 0, deadline);
    return arrive_and_wait(everybody_, 0, deadline);
}

template <class Own>
int Barriers<Own>::barrier_group(std::span<const int> members, unsigned id, Deadline deadline) {
    if (id >= kBarrierIds) {
        return fail(BBP_EINVAL, fmt::format("there is no barrier {}; ids go from 0 to {}", id,
                                            kBarrierIds - 1));
    }
    auto& known = members_[id];
    if (known.empty() || !std::equal(members.begin(), members.end(), known.begin(), known.end())) {
        if (const int bad = check_members(members, id); bad != BBP_OK) return bad;
    }
    if (own_.settings.barrier == BarrierKind::paper)
        return barrier_by_messages(known, id + 1, deadline);
    return arrive_and_wait(known, id + 1, deadline);
}

/// The list that the barrier was used with before, or is from now on.
template <class Own>
int Barriers<Own>::check_members(std::span<const int> members, unsigned id) {
    if (const int bad = own_.check_ranks(members); bad != BBP_OK) return bad;
    std::vector<int> sorted(members.begin(), members.end());
    std::sort(sorted.begin(), sorted.end());
    if (!std::binary_search(sorted.begin(), sorted.end(), static_cast<int>(own_.me))) {
        return fail(BBP_EINVAL,
                    fmt::format("rank {} is not in its own list of members; add it", own_.me));
    }
    auto& known = members_[id];
    if (known.empty()) known = sorted;
    if (known != sorted) {
        return fail(BBP_EINVAL,
                    fmt::format("barrier {} was used with another list of members; give "
                                "each group an id of its own",
                                id));
    }
    return BBP_OK;
}

template <class Own>
int Barriers<Own>::arrive_and_wait(std::span<const int> members, std::size_t index,
                                   Deadline deadline) {
    RMEM_CHECK_IF(Own::kIsSimulated, std::is_sorted(members.begin(), members.end()) &&
                                         std::binary_search(members.begin(), members.end(),
                                                            static_cast<int>(own_.me)));
    own_.memory.progress();
    if (!pending_[index]) {  // else a former call has arrived and timed out
        const int room = peers_.wait_for(BBP_ANY, deadline, [&]() -> int {
            return own_.memory.room(kAnnounceBytes) ? BBP_OK : BBP_EAGAIN;
        });
        if (room == BBP_ETIMEDOUT) return barrier_timed_out({});
        if (room != BBP_OK) return room;
        RMEM_MARK("barrier.before-arrival");
        own_.memory.post_word(word(own_.me, index), ++counts_[index]);
        own_.memory.commit();
        pending_[index] = true;
        RMEM_MARK("barrier.arrived");
    }
    std::size_t next = 0;  // members before it have arrived
    // The last is who finds all others arrived at once. Two that come at the same time may not see
    // each other in their first look, each in its second; a sleeper was there before.
    unsigned looks = 0;
    int awaited = BBP_ANY;
    const int result = peers_.wait_for(awaited, deadline, [&]() -> int {
        ++looks;
        for (; next < members.size(); ++next) {
            const auto m = static_cast<unsigned>(members[next]);
            if (m == own_.me) continue;
            if (aside_.has_end(m))
                return peers_.tell_gone(m);  // has it arrived, then its new self has
            if (has_arrived(m, index)) continue;
            awaited = static_cast<int>(m);
            return peers_.is_still_gone(m) ? peers_.tell_gone(m) : BBP_EAGAIN;
        }
        return BBP_OK;
    });
    // Where there are several banks, the words of the last two may pass each other.
    if (result == BBP_OK && (Own::Memory::kReplicated || looks <= 2)) {
        for (const int m : members) own_.memory.notify(static_cast<unsigned>(m));
    }
    if (result != BBP_ETIMEDOUT && result != BBP_EAGAIN) pending_[index] = false;
    if (result == BBP_OK) own_.count(Counter::barriers);
    if (result != BBP_ETIMEDOUT) return result;
    std::vector<int> missing;
    for (const int m : members) {
        const auto r = static_cast<unsigned>(m);
        if (r != own_.me && !has_arrived(r, index)) missing.push_back(m);
    }
    return barrier_timed_out(missing);
}

template <class Own>
int Barriers<Own>::barrier_by_messages(std::span<const int> members, unsigned id,
                                       Deadline deadline) {
    if (members.size() < 2) return BBP_OK;
    const int coordinator = members[0];
    std::uint32_t word = id;
    const std::size_t bytes = id == 0 ? 0 : sizeof word;  // everybody's barrier: null messages
    std::size_t len = 0;
    int result = BBP_OK;
    if (static_cast<int>(own_.me) != coordinator) {
        result = messages_.send(coordinator, &word, bytes, deadline, Class::barrier);
        if (result == BBP_OK)
            result =
                messages_.recv(coordinator, &word, sizeof word, &len, deadline, Class::barrier);
    } else {
        for (const int m : members.subspan(1)) {
            result = messages_.recv(m, &word, sizeof word, &len, deadline, Class::barrier);
            if (result == BBP_ETIMEDOUT) return barrier_timed_out({&m, 1});
            if (result < 0) return result;
        }
        word = id;
        result = messages_.mcast(members.subspan(1), &word, bytes, deadline, Class::barrier);
    }
    if (result == BBP_ETIMEDOUT) return barrier_timed_out(members.first(1));
    if (result < 0) return result;
    own_.count(Counter::barriers);
    return BBP_OK;
}

}  // namespace billboard
