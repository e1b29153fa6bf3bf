// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Whose files in /dev/shm this process uses. All users make files there, under any name, so a name
/// proves nothing: a process that takes part in a ring that another user has made hands that user
/// all that it writes.
///
/// Terms
///   to take part   to map a ring in order to write into it, or to listen at its bell
///   to look        to read it, as tools do
/// Rule: a file is for us when it is the own user's or root's, or when it is shared with a group,
///   gives others nothing (mode & 007 is 0), and the group is the one that was asked for
///   (RMEM_UNIX_GROUP). To look, any group will do that the host lets us in by, and root may look
///   at everything.
/// The opened file is asked (fstat), not its name, so that a swap in between changes nothing.
/// Thread safety: any. Errors: `Error(not_permitted)` names the file, its owner and mode, and what
/// to do.

#include "rmem/error.hpp"

#include <sys/stat.h>
#include <sys/types.h>

#include <optional>
#include <string>

namespace rmem {

/// The users who are trusted besides the own user and root.
struct Trust {
    std::optional<gid_t> group{};  ///< that was asked for
    bool only_looks = false;
};

[[nodiscard]] RMEM_API bool is_for_us(const struct stat& found, const Trust& trust) noexcept;

/// Throws unless it is for us. `object`: its path.
RMEM_API void check_owner(const std::string& object, const struct stat& found, const Trust& trust);

/// A user's name, or the number where it has none.
RMEM_API std::string user_text(uid_t user);
/// "user alice (1001), group rig, mode 0660"
RMEM_API std::string owner_text(const struct stat& found);

/// By name or number; nothing where there is no such user.
[[nodiscard]] RMEM_API std::optional<uid_t> user_named(const std::string& name);
/// Of RMEM_UNIX_GROUP; nothing for an empty name. Throws `Error(bad_environment)` where no group is
/// named so.
[[nodiscard]] RMEM_API std::optional<gid_t> group_named(const std::string& name);

}  // namespace rmem
