// SPDX-License-Identifier: Apache-2.0
#include "rmem/base/ownership.hpp"

#include <fmt/format.h>
#include <grp.h>
#include <pwd.h>
#include <unistd.h>

#include <array>
#include <charconv>

namespace rmem {

namespace {

using EntrySpace = std::array<char, 65536>;  // groups may have many members

std::string group_text(gid_t id) {
    EntrySpace space;
    ::group entry{}, *found = nullptr;
    ::getgrgid_r(id, &entry, space.data(), space.size(), &found);
    return found == nullptr ? fmt::to_string(id) : std::string(entry.gr_name);
}

}  // namespace

bool is_for_us(const struct stat& found, const Trust& trust) noexcept {
    const uid_t self = ::geteuid();
    if (found.st_uid == self || found.st_uid == 0) return true;
    if (trust.only_looks && self == 0) return true;
    if ((found.st_mode & S_IRWXO) != 0) return false;
    // The host lets nobody in by such a mode but the group.
    return trust.only_looks || (trust.group && *trust.group == found.st_gid);
}

void check_owner(const std::string& object, const struct stat& found, const Trust& trust) {
    if (is_for_us(found, trust)) return;
    const std::string whose = owner_text(found);
    if ((found.st_mode & S_IRWXO) != 0) {
        throw Error(Errc::not_permitted,
                    fmt::format("{} belongs to {} and is open to everybody: a process enters "
                                "another user's ring only if others have no access (mode 0660) and "
                                "RMEM_UNIX_GROUP names its group; use another RMEM_RING, or have "
                                "that user or root remove it",
                                object, whose));
    }
    throw Error(Errc::not_permitted,
                fmt::format("{} belongs to {}; if that ring is meant, set RMEM_UNIX_GROUP={} here, "
                            "too; if not, use another RMEM_RING",
                            object, whose, group_text(found.st_gid)));
}

std::string user_text(uid_t user) {
    EntrySpace space;
    ::passwd entry{}, *found = nullptr;
    ::getpwuid_r(user, &entry, space.data(), space.size(), &found);
    return found == nullptr ? fmt::to_string(user) : std::string(entry.pw_name);
}

std::string owner_text(const struct stat& found) {
    return fmt::format("user {} ({}), group {}, mode {:04o}", user_text(found.st_uid), found.st_uid,
                       group_text(found.st_gid), found.st_mode & 07777U);
}

std::optional<uid_t> user_named(const std::string& name) {
    EntrySpace space;
    ::passwd entry{}, *found = nullptr;
    ::getpwnam_r(name.c_str(), &entry, space.data(), space.size(), &found);
    if (found != nullptr) return entry.pw_uid;
    uid_t number = 0;
    const char* end = name.data() + name.size();
    const auto [rest, error] = std::from_chars(name.data(), end, number);
    return error == std::errc{} && rest == end ? std::optional(number) : std::nullopt;
}

std::optional<gid_t> group_named(const std::string& name) {
    if (name.empty()) return std::nullopt;
    EntrySpace space;
    ::group entry{}, *found = nullptr;
    ::getgrnam_r(name.c_str(), &entry, space.data(), space.size(), &found);
    if (found != nullptr) return entry.gr_gid;
    throw Error(Errc::bad_environment,
                fmt::format("RMEM_UNIX_GROUP: no group is named '{}'; give one that `getent group` "
                            "lists",
                            name));
}

}  // namespace rmem
