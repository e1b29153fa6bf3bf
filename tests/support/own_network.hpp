// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A network for a test's ring that no other host, and no other test, hears: loop-back, and a port
/// of its own, or on link fabric a directory of the test's own.

#include "rmem/base/link_kind.hpp"
#include "rmem/link/fabric/make_endpoint.hpp"

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>

#include <unistd.h>

namespace rmem::test {

/// A directory that goes with the process that made it.
class OwnDirectory {
public:
    OwnDirectory() {
        std::string name = (std::filesystem::temp_directory_path() / "rmem-test-XXXXXX").string();
        if (::mkdtemp(name.data()) != nullptr) path_ = name;
    }
    ~OwnDirectory() {
        std::error_code ignored;
        if (::getpid() == maker_) std::filesystem::remove_all(path_, ignored);
    }
    OwnDirectory(const OwnDirectory&) = delete;
    OwnDirectory& operator=(const OwnDirectory&) = delete;
    const std::string& path() const { return path_; }

private:
    const ::pid_t maker_ = ::getpid();
    std::string path_;
};

/// RMEM_GROUP for a ring of that name; RMEM_INTERFACE is lo.
inline std::string own_group(const std::string& ring, LinkKind link = LinkKind::udp) {
    if (link == LinkKind::fabric) {
        static const OwnDirectory meeting_place;  // rings share it: files have their names
        // Loaded once, and not by each process that is forked: that takes Debian's half a second.
        static const auto loaded = fabric::offers();
        static_cast<void>(loaded);
        return meeting_place.path();
    }
    return "239.1.2.3:" + std::to_string(10'000 + std::hash<std::string>{}(ring) % 20'000);
}

/// For what this process and its children open from now on. Call it while there is one thread.
inline void stay_on_this_host(const std::string& ring, LinkKind link = LinkKind::udp) {
    ::setenv("RMEM_GROUP", own_group(ring, link).c_str(),
             1);                          // NOLINT(concurrency-mt-unsafe): one thread
    ::setenv("RMEM_INTERFACE", "lo", 1);  // NOLINT(concurrency-mt-unsafe): as above
}

}  // namespace rmem::test
