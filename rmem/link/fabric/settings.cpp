// SPDX-License-Identifier: Apache-2.0
#include "rmem/link/fabric/settings.hpp"

#include "rmem/base/environment_variable.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>

namespace rmem::fabric {

namespace {

constexpr std::size_t kMaxListBytes = std::size_t{1} << 16;

[[noreturn]] void refuse_setting(const std::string& value, const std::string& why) {
    throw Error(Errc::bad_environment,
                fmt::format("RMEM_GROUP is '{}': {}; on link fabric give the address of each node "
                            "in order, as in 10.0.0.1:7400,10.0.0.2:7400, a file with one on each "
                            "line, or a directory that all nodes see",
                            value, why));
}

/// The lines of a file as a list with commas.
std::string list_in(const std::string& path) {
    std::ifstream file(path);
    std::string list, line;
    while (std::getline(file, line)) {
        line.resize(std::min(line.find('#'), line.size()));
        for (const char c : line) {
            if (std::isspace(static_cast<unsigned char>(c)) == 0) list += c;
        }
        if (!list.empty() && list.back() != ',') list += ',';
        if (list.size() > kMaxListBytes) refuse_setting(path, "that file is no list of addresses");
    }
    if (!list.empty()) list.pop_back();
    if (list.empty()) refuse_setting(path, "that file has no addresses, or cannot be read");
    return list;
}

/// Another user may have been there before, to read or to mislead.
std::string own_directory() {
    const std::string path = fmt::format("{}{}", kOwnDirectory, ::getuid());
    struct stat facts {};
    const bool is_there = (::mkdir(path.c_str(), S_IRWXU) == 0 || errno == EEXIST) &&
                          ::lstat(path.c_str(), &facts) == 0;
    if (is_there && S_ISDIR(facts.st_mode) && facts.st_uid == ::getuid() &&
        (facts.st_mode & (S_IWGRP | S_IWOTH)) == 0)
        return path;
    throw Error(Errc::bad_environment,
                fmt::format("the nodes of this host meet in the directory '{}', which is missing, "
                            "or open to other users; remove it, or give another one in RMEM_GROUP",
                            path));
}

}  // namespace

bool Settings::leave_host() const {
    if (provider == "shm") return false;
    if (!nodes.empty()) {
        udp::Endpoints list;
        list.nodes = nodes;
        return list.leave_host();
    }
    for (const udp::Interface& one : udp::interfaces()) {
        if (one.is_loop_back && udp::is_named(one.name, one.ip, interface)) return false;
    }
    return true;
}

std::string Settings::text() const {
    const std::string how = provider.empty() ? "" : fmt::format(" by {}", provider);
    if (!nodes.empty()) return fmt::format("fabric of {} nodes{}", nodes.size(), how);
    return fmt::format("fabric of directory '{}'{}", directory, how);
}

Settings Settings::read(unsigned nodes) {
    Settings settings;
    settings.provider = environment_text("RMEM_PROVIDER");
    settings.interface = environment_text("RMEM_INTERFACE");
    if (const std::string file = environment_text("RMEM_TOPOLOGY"); !file.empty())
        settings.topology = Topology::read(file, nodes);
    const std::string group = environment_text("RMEM_GROUP");
    if (group.empty()) {
        settings.directory = own_directory();
        if (settings.interface.empty()) settings.interface = "lo";
        return settings;
    }
    std::error_code ignored;
    if (std::filesystem::is_directory(group, ignored)) {
        settings.directory = std::filesystem::absolute(group, ignored).string();
        return settings;
    }
    const bool is_path = group.find('/') != std::string::npos;
    if (is_path && !std::filesystem::is_regular_file(group, ignored))
        refuse_setting(group, "there is no such file or directory");
    const std::string list = is_path ? list_in(group) : group;
    settings.nodes = udp::Endpoints::parse(list, "", nodes).nodes;
    if (settings.nodes.empty()) refuse_setting(group, "a fabric has no multicast groups");
    return settings;
}

}  // namespace rmem::fabric
