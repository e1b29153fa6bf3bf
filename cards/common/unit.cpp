// SPDX-License-Identifier: Apache-2.0
#include "cards/common/unit.hpp"

#include "rmem/base/environment_variable.hpp"
#include "rmem/base/failures.hpp"
#include "rmem/ring/config.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <sstream>

namespace cards {

namespace {

constexpr std::size_t kMaxFileBytes = 4096;
constexpr unsigned kMostUnits = 16;  // whose nodes are asked for what they say

[[noreturn]] void fail_at(const char* doing, const std::string& what) {
    throw rmem::Error(rmem::Errc::system,
                      fmt::format("{} {}: {}", doing, what, std::strerror(errno)));
}

/// A folder of this user's alone.
std::string folder() {
    const char* runtime = std::getenv("XDG_RUNTIME_DIR");  // NOLINT(concurrency-mt-unsafe)
    if (runtime != nullptr && *runtime == '/') return fmt::format("{}/rmem", runtime);
    // Where others cannot make it first, if the host has that.
    const std::string own = fmt::format("/run/user/{}", ::geteuid());
    if (::access(own.c_str(), W_OK) == 0) return own + "/rmem";
    return fmt::format("/tmp/rmem-{}", ::geteuid());
}

bool is_ours(const struct stat& found) {
    return found.st_uid == ::geteuid() || found.st_uid == 0;
}

void make_folder(const std::string& path) {
    if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) fail_at("making", path);
    struct stat found {};
    if (::lstat(path.c_str(), &found) != 0) fail_at("looking at", path);
    if (S_ISDIR(found.st_mode) && is_ours(found) && (found.st_mode & 022) == 0) return;
    throw rmem::Error(rmem::Errc::not_permitted,
                      fmt::format("{} is no folder that this user alone may write to; remove it, "
                                  "or set XDG_RUNTIME_DIR to another",
                                  path));
}

/// The settings in the unit's file; nothing if no node of the unit runs.
std::optional<rmem::GivenSettings::List> published(unsigned unit) {
    const std::string file = unit_file(unit);
    const rmem::Descriptor opened(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
    const int fd = opened.get();
    if (fd < 0) {
        if (errno == ENOENT || errno == ENOTDIR) return std::nullopt;
        fail_at("opening", file);
    }
    std::array<char, kMaxFileBytes> text;
    struct stat found {};
    const bool is_good = ::fstat(fd, &found) == 0 && S_ISREG(found.st_mode) && is_ours(found);
    // Its node's process keeps a lock for as long as it runs.
    const bool is_kept = ::flock(fd, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    const ssize_t bytes = ::read(fd, text.data(), text.size());
    if (!is_good) {
        throw rmem::Error(
            rmem::Errc::not_permitted,
            fmt::format("{} is another user's; remove it, or use another unit", file));
    }
    if (!is_kept || bytes <= 0) return std::nullopt;
    rmem::GivenSettings::List settings;
    std::istringstream lines(std::string(text.data(), static_cast<std::size_t>(bytes)));
    for (std::string line; std::getline(lines, line);) {
        const auto equals = line.find('=');
        if (equals != std::string::npos)
            settings.emplace_back(line.substr(0, equals), line.substr(equals + 1));
    }
    return settings;
}

/// Whether the program's environment says which node it is, as under `rmem run`.
bool names_a_node() {
    const auto is_set = [](const char* name) { return rmem::environment_setting(name) != nullptr; };
    return is_set("RMEM_RING") && (is_set("RMEM_NODE") || is_set("RMEM_RANK"));
}

/// The first rank of the environment's node that is free, and when all are taken a guest's seat.
int open_at_node(rmem_node*& node, rmem_options options) {
    const auto environment = rmem::Environment::read();
    const bool is_known = environment.ranks || environment.nodes;
    const bool is_open = !environment.rank && is_known;
    const unsigned ranks = environment.ranks.value_or(environment.nodes.value_or(1));
    const unsigned nodes = environment.nodes.value_or(ranks);
    const auto node_of = [&](unsigned rank) { return rank * nodes / ranks; };
    int result = is_open ? RMEM_EBUSY : rmem_open_with(&node, &options);
    for (unsigned rank = 0; is_open && rank < ranks && result == RMEM_EBUSY; ++rank) {
        if (node_of(rank) != environment.node.value_or(0)) continue;
        options.rank = static_cast<int>(rank);
        result = rmem_open_with(&node, &options);
    }
    if (result != RMEM_EBUSY) return result;
    const bool is_rank = environment.rank && *environment.rank != rmem::Member::kGuest;
    if (is_rank && is_known && !environment.node)
        options.node = static_cast<int>(node_of(*environment.rank));
    options.rank = RMEM_GUEST;
    return rmem_open_with(&node, &options);
}

int no_unit(unsigned unit) {
    return rmem::fail(
        RMEM_ESYS,
        fmt::format("this host has no unit {}: no `rmem node --unit {}` runs{}; start one, such as "
                    "`rmem node --unit {} --ring rig --nodes 2 --node 0 --link direct`, or set "
                    "RMEM_RING and RMEM_NODE (unit 0 alone)",
                    unit, unit, unit == 0 ? ", and RMEM_RING is not set" : "", unit));
}

}  // namespace

std::string unit_file(unsigned unit) {
    return fmt::format("{}/unit-{}", folder(), unit);
}

PublishedUnit::PublishedUnit(unsigned unit, const Settings& settings) : file_(unit_file(unit)) {
    make_folder(folder());
    fd_ = rmem::Descriptor(::open(file_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (fd_.get() < 0) fail_at("making", file_);
    if (::flock(fd_.get(), LOCK_EX | LOCK_NB) != 0) {
        throw rmem::Error(rmem::Errc::rank_taken,
                          fmt::format("unit {} is kept by another process ({}); end that, or give "
                                      "another unit",
                                      unit, file_));
    }
    std::string text;
    for (const auto& [name, value] : settings) text += fmt::format("{}={}\n", name, value);
    if (::ftruncate(fd_.get(), 0) != 0 ||
        ::pwrite(fd_.get(), text.data(), text.size(), 0) != static_cast<ssize_t>(text.size()))
        fail_at("writing", file_);
}

PublishedUnit::~PublishedUnit() {
    ::unlink(file_.c_str());
}

std::string setting_of_units(const char* name) {
    std::string all = rmem::environment_text(name);
    for (unsigned unit = 0; unit < kMostUnits; ++unit) {
        for (const auto& [setting, value] : published(unit).value_or(rmem::GivenSettings::List())) {
            if (setting == name) all += (all.empty() ? "" : ",") + value;
        }
    }
    return all;
}

unsigned count_units() noexcept try {
    unsigned units = 0;
    if (rmem::environment_setting("RMEM_RING") != nullptr) units = 1;
    while (published(units)) ++units;
    return units;
} catch (const rmem::Error&) {
    return 0;
}

OwnNode open_unit(unsigned unit, int& code) noexcept {
    rmem_node* node = nullptr;
    code = rmem::guarded([&]() -> int {
        rmem_options options = RMEM_OPTIONS;
        options.await = RMEM_AWAIT_NONE;  // a card is there without the others
        if (unit == 0 && names_a_node()) return open_at_node(node, options);
        auto settings = published(unit);
        if (!settings) {
            if (unit != 0 || rmem::environment_setting("RMEM_RING") == nullptr)
                return no_unit(unit);
            return open_at_node(node, options);
        }
        const rmem::GivenSettings given(std::move(*settings));
        return open_at_node(node, options);
    });
    return OwnNode(node);
}

}  // namespace cards
