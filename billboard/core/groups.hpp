// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Groups by name: which ranks have joined one.
///
/// A rank shows the groups that it is in by hashes of their names, in words of its own. It keeps
/// nothing else.
/// Invariant: a place is valid as long as its low word is not 0; that is written last, and cleared
/// first.
/// Thread safety: one thread. Errors: billboard/endpoint.hpp.

#include "billboard/core/own_rank.hpp"
#include "billboard/core/peers.hpp"
#include "rmem/base/check.hpp"
#include "rmem/base/hash.hpp"
#include "rmem/base/marks.hpp"

#include <fmt/format.h>

#include <string_view>
#include <vector>

namespace billboard {

template <class Own>
class Groups {
public:
    Groups(Own& own, Peers<Own>& peers) : own_(own), peers_(peers) {}

    /// Before the rank joins: it is in none.
    void begin();
    [[nodiscard]] int join(std::string_view name);
    [[nodiscard]] int leave(std::string_view name);
    /// The other members that live.
    [[nodiscard]] std::vector<int> others(std::string_view name);

private:
    friend struct PlantedBug;  ///< a test's, which a check finds

    void show(unsigned place, std::uint64_t hash);
    bool holds(std::size_t at, std::uint64_t hash) const {
        return own_.memory.load(at) == static_cast<std::uint32_t>(hash) &&
               own_.memory.load(at + 4) == static_cast<std::uint32_t>(hash >> 32);
    }
    bool is_in(unsigned r, std::uint64_t hash) const;

    Own& own_;
    Peers<Own>& peers_;
};

/// FNV-1a; never 0 in the low word, which stands for an unused place.
inline std::uint64_t group_hash_of(std::string_view name) {
    const std::uint64_t hash = rmem::Fnv1a().add(name).value();
    return (hash & 0xffffffff) == 0 ? hash | 1 : hash;
}

template <class Own>
void Groups<Own>::begin() {
    for (unsigned i = 0; i < kJoinedGroups; ++i)
        own_.memory.post_word(own_.geometry.group_hash(own_.me, i), 0);
}

template <class Own>
bool Groups<Own>::is_in(unsigned r, std::uint64_t hash) const {
    for (unsigned i = 0; i < kJoinedGroups; ++i) {
        if (holds(own_.geometry.group_hash(r, i), hash)) return true;
    }
    return false;
}

template <class Own>
int Groups<Own>::join(std::string_view name) {
    if (name.empty()) return fail(BBP_EINVAL, "a group needs a name; the one given is empty");
    const std::uint64_t hash = group_hash_of(name);
    if (is_in(own_.me, hash)) return BBP_OK;
    for (unsigned i = 0; i < kJoinedGroups; ++i) {
        if (own_.memory.load(own_.geometry.group_hash(own_.me, i)) != 0) continue;
        show(i, hash);
        return BBP_OK;
    }
    return fail(BBP_ENOMEM,
                fmt::format("rank {} is in {} groups already; leave one before joining '{}'",
                            own_.me, kJoinedGroups, name));
}

template <class Own>
void Groups<Own>::show(unsigned place, std::uint64_t hash) {
    const auto low = static_cast<std::uint32_t>(hash);
    RMEM_CHECK(low != 0);
    const std::size_t at = own_.geometry.group_hash(own_.me, place);
    own_.memory.post_word(at + 4, static_cast<std::uint32_t>(hash >> 32));
    RMEM_MARK("group.half-joined");
    own_.memory.post_word(at, low);  // last: it makes the place valid
    own_.memory.commit();
}

template <class Own>
int Groups<Own>::leave(std::string_view name) {
    const std::uint64_t hash = group_hash_of(name);
    for (unsigned i = 0; i < kJoinedGroups; ++i) {
        const std::size_t at = own_.geometry.group_hash(own_.me, i);
        if (!holds(at, hash)) continue;
        own_.memory.post_word(at, 0);
        own_.memory.commit();
        return BBP_OK;
    }
    return fail(BBP_EINVAL,
                fmt::format("rank {} is not in group '{}'; join it first", own_.me, name));
}

template <class Own>
std::vector<int> Groups<Own>::others(std::string_view name) {
    own_.memory.progress();
    const std::uint64_t hash = group_hash_of(name);
    std::vector<int> ranks;
    for (unsigned r = 0; r < own_.ranks; ++r) {
        if (r != own_.me && is_in(r, hash) && !peers_.is_still_gone(r))
            ranks.push_back(static_cast<int>(r));
    }
    return ranks;
}

}  // namespace billboard
