// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Barriers, of all ranks and of groups.
///
/// arrival   each member writes its arrival into a word of its own and waits until every member's
///           word has come as far: one propagation. The default. The last to come wakes those who
///           sleep: were each to do so, all would run for each that comes.
/// paper     the lowest member collects a null message from each other member and answers with one
///           multicast: two propagations, as the paper's MPI_Barrier.
///
/// An arrival goes with a barrier id, an id with one list of members, and the members with their
/// incarnations: the word has a hash of these, and a count of the barriers since they last changed.
/// So no arrival is the 0 of a rank that has not come, or what is left of one that has died, or
/// what those have counted who are still to be told of its end. What fails takes no count, so of
/// two members none is more than one barrier ahead.
///
/// Invariants: a call waits with the list that its barrier was used with before, which is in order
/// and has this rank in it; an arrival is said once, however many calls wait for it, and not before
/// the ends of members' former incarnations are told.
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
        : own_(own), peers_(peers), aside_(aside), messages_(messages), everybody_(own.expected) {
        std::iota(everybody_.begin(), everybody_.end(), 0);
    }

    /// Before the rank joins: it has arrived nowhere.
    void begin();
    [[nodiscard]] int barrier(Deadline deadline);
    [[nodiscard]] int barrier_group(std::span<const int> members, unsigned id, Deadline deadline);

private:
    /// Of this rank, at a barrier.
    struct Arrival {
        std::uint32_t word = 0;   ///< the last; 0: none. Of kind `paper`: how many were heard
        std::uint32_t met = ~0U;  ///< Peers::met() then
        bool is_pending = false;  ///< said, and the barrier was not complete yet
    };
    /// What a member has said by message to a barrier that this rank is not in.
    struct Heard {
        int from;
        std::size_t index;
        std::uint32_t incarnation;
        bool operator==(const Heard&) const = default;
    };
    static constexpr std::uint32_t kCountMask = 0xff;
    static constexpr unsigned kEpochShift = 9;
    static constexpr std::uint32_t kSaid = 1U << (kEpochShift - 1);  ///< no arrival is 0
    static constexpr std::uint32_t kFirstArrival = 0xf0;  ///< so that it wraps where tests see it

    [[nodiscard]] int check_members(std::span<const int> members, unsigned id);
    int arrive_and_wait(std::span<const int> members, std::size_t index, Deadline deadline);
    [[nodiscard]] bool say_arrival(std::span<const int> members, Arrival& mine, std::size_t at);
    [[nodiscard]] int barrier_by_messages(std::span<const int> members, std::size_t index,
                                          Deadline deadline);
    [[nodiscard]] int hear(int member, std::size_t index, Deadline deadline);
    std::size_t word(unsigned r, std::size_t index) const {
        return index == 0 ? own_.geometry.barrier(r)
                          : own_.geometry.barrier(r, static_cast<unsigned>(index - 1));
    }
    static bool is_of_same_members(std::uint32_t theirs, std::uint32_t mine) {
        return ((theirs ^ mine) & ~kCountMask) == 0;
    }
    /// Whether its member is where this rank is, or one further.
    static bool has_arrived(std::uint32_t theirs, std::uint32_t mine) {
        return is_of_same_members(theirs, mine) && ((theirs - mine) & kCountMask) <= 1;
    }

    Own& own_;
    Peers<Own>& peers_;
    const SetAside& aside_;
    Endpoint& messages_;
    std::vector<int> everybody_;
    // By index: 0 is everybody's, a group's is its id and one.
    std::vector<Arrival> arrivals_ = std::vector<Arrival>(1 + kBarrierIds);
    std::vector<std::vector<int>> members_ = std::vector<std::vector<int>>(kBarrierIds);  ///< by id
    std::vector<Heard> heard_;
};

template <class Own>
void Barriers<Own>::begin() {
    for (std::size_t i = 0; i < arrivals_.size(); ++i) own_.memory.post_word(word(own_.me, i), 0);
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

/// True when it is said, or was; false: there is no room for it.
template <class Own>
bool Barriers<Own>::say_arrival(std::span<const int> members, Arrival& mine, std::size_t at) {
    std::uint32_t epoch = mine.word & ~kCountMask;
    if (mine.met != peers_.met()) {
        std::uint32_t hash = 1;
        for (const int m : members) hash = hash * 31 + peers_.incarnation(static_cast<unsigned>(m));
        epoch = hash << kEpochShift | kSaid;
    }
    const bool goes_on = (mine.word & ~kCountMask) == epoch;
    mine.is_pending = mine.is_pending && goes_on;
    if (!mine.is_pending && !own_.memory.room(kAnnounceBytes)) return false;
    mine.met = peers_.met();
    if (mine.is_pending) return true;
    RMEM_MARK("barrier.before-arrival");
    mine.word = epoch | ((goes_on ? mine.word + 1 : kFirstArrival) & kCountMask);
    own_.memory.post_word(at, mine.word);
    own_.memory.commit();
    mine.is_pending = true;
    RMEM_MARK("barrier.arrived");
    return true;
}

template <class Own>
int Barriers<Own>::arrive_and_wait(std::span<const int> members, std::size_t index,
                                   Deadline deadline) {
    RMEM_CHECK_IF(Own::kIsSimulated, std::is_sorted(members.begin(), members.end()) &&
                                         std::binary_search(members.begin(), members.end(),
                                                            static_cast<int>(own_.me)));
    own_.memory.progress();
    Arrival& mine = arrivals_[index];
    std::size_t next = 0;  // members before it have arrived
    // The last is who finds all others arrived at once. Two that come at the same time may not see
    // each other in their first look, each in its second; a sleeper was there before.
    unsigned looks = 0;
    int awaited = BBP_ANY;
    const int result = peers_.wait_for(awaited, deadline, [&]() -> int {
        if (!mine.is_pending || mine.met != peers_.met()) {
            for (const int m : members) {
                if (aside_.has_end(static_cast<unsigned>(m)))
                    return peers_.tell_gone(static_cast<unsigned>(m));
            }
            const std::uint32_t before = mine.is_pending ? mine.word : 0;
            if (!say_arrival(members, mine, word(own_.me, index))) return BBP_EAGAIN;
            if (mine.word != before) next = looks = 0;
        }
        ++looks;
        for (; next < members.size(); ++next) {
            const auto m = static_cast<unsigned>(members[next]);
            const bool is_gone = peers_.is_gone(m);  // before the look: it arrives, and then leaves
            if (m == own_.me) continue;
            const std::uint32_t theirs = own_.memory.load(word(m, index));
            if (has_arrived(theirs, mine.word)) continue;
            awaited = static_cast<int>(m);
            if (is_gone && peers_.is_still_gone(m)) return peers_.tell_gone(m);
            // One that knows the same incarnations is on its way. Others may have come, or come
            // again: then arrivals count from the beginning.
            if (is_of_same_members(theirs, mine.word)) return BBP_EAGAIN;
            peers_.see(m);
            peers_.see(static_cast<unsigned>(members[looks % members.size()]));
            return BBP_EAGAIN;
        }
        return BBP_OK;
    });
    // Where there are several banks, the words of the last two may pass each other.
    if (result == BBP_OK && (Own::Memory::kReplicated || looks <= 2)) {
        for (const int m : members) own_.memory.notify(static_cast<unsigned>(m));
    }
    if (result == BBP_OK) mine.is_pending = false;
    if (result == BBP_OK) own_.count(Counter::barriers);
    if (result != BBP_ETIMEDOUT) return result;
    std::vector<int> missing;
    for (const int m : members) {
        const auto r = static_cast<unsigned>(m);
        if (r == own_.me || !mine.is_pending) continue;
        if (!has_arrived(own_.memory.load(word(r, index)), mine.word)) missing.push_back(m);
    }
    return barrier_timed_out(missing);
}

/// Waits for what the member says to this barrier. What it says to another one, which it has come
/// to in the meantime, is kept.
template <class Own>
int Barriers<Own>::hear(int member, std::size_t index, Deadline deadline) {
    const auto m = static_cast<unsigned>(member);
    for (;;) {
        // A former incarnation has arrived nowhere.
        std::erase_if(heard_, [&](const Heard& h) {
            return h.from == member && h.incarnation != peers_.incarnation(m);
        });
        if (std::erase(heard_, Heard{member, index, peers_.incarnation(m)}) != 0) return BBP_OK;
        std::uint32_t said = 0;
        std::size_t len = 0;
        const int result =
            messages_.recv(member, &said, sizeof said, &len, deadline, Class::barrier);
        if (result < 0) return result;
        const Heard one{member, len == 0 ? 0 : said, peers_.incarnation(m)};
        if (one.index == index) return BBP_OK;
        if (one.index <= kBarrierIds && !aside_.has_end(m) &&
            std::find(heard_.begin(), heard_.end(), one) == heard_.end())
            heard_.push_back(one);
    }
}

template <class Own>
int Barriers<Own>::barrier_by_messages(std::span<const int> members, std::size_t index,
                                       Deadline deadline) {
    if (members.size() < 2) return BBP_OK;
    const int coordinator = members[0];
    const auto word = static_cast<std::uint32_t>(index);
    const std::size_t bytes = index == 0 ? 0 : sizeof word;  // everybody's barrier: null messages
    Arrival& mine = arrivals_[index];
    const bool collects = static_cast<int>(own_.me) == coordinator;
    auto missing = members.first(1);
    int result = BBP_OK;
    if (!collects) {
        if (!mine.is_pending)
            result = messages_.send(coordinator, &word, bytes, deadline, Class::barrier);
        mine.is_pending = result == BBP_OK;
        if (result == BBP_OK) result = hear(coordinator, index, deadline);
    } else {
        // A member that was heard waits for the answer, and says it only once.
        while (result == BBP_OK && mine.word + 1 < members.size()) {
            result = hear(members[mine.word + 1], index, deadline);
            if (result == BBP_OK) ++mine.word;
        }
        missing = members.subspan(std::min<std::size_t>(mine.word + 1, members.size() - 1));
        if (result == BBP_OK) {
            result = messages_.mcast(members.subspan(1), &word, bytes, deadline, Class::barrier);
            if (result != BBP_ETIMEDOUT && result != BBP_EAGAIN) mine.word = 0;
        }
    }
    if (result == BBP_ETIMEDOUT) return barrier_timed_out(missing);
    if (result == BBP_EAGAIN) return result;
    mine.is_pending = false;
    if (result < 0) return result;
    own_.count(Counter::barriers);
    return BBP_OK;
}

}  // namespace billboard
