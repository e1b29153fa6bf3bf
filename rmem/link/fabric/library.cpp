// SPDX-License-Identifier: Apache-2.0
#include "rmem/link/fabric/library.hpp"

#include "rmem/base/descriptor.hpp"
#include "rmem/link/fabric/kept_signals.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <type_traits>

namespace rmem::fabric {

namespace {

constexpr const char* kFile = "libfabric.so.1";

template <class Function>
void find(void* library, const char* name, Function& function) {
    static_assert(std::is_pointer_v<Function>);
    void* const found = ::dlsym(library, name);
    if (found == nullptr) {
        throw Error(Errc::no_fabric, fmt::format("{} has no {}: it is older than this link needs; "
                                                 "install libfabric 1.14 or newer",
                                                 kFile, name));
    }
    function = reinterpret_cast<Function>(found);
}

Library load() {
    const KeptSignals kept;
    fill_standard_streams();  // its descriptors are made whenever it likes
    void* const file = ::dlopen(kFile, RTLD_NOW | RTLD_LOCAL);
    if (file == nullptr) {
        throw Error(Errc::no_fabric,
                    fmt::format("link fabric needs {}, which cannot be loaded ({}); install "
                                "libfabric (Debian: apt install libfabric1)",
                                kFile, ::dlerror()));
    }
    Library library{};
    find(file, "fi_getinfo", library.getinfo);
    find(file, "fi_freeinfo", library.freeinfo);
    find(file, "fi_dupinfo", library.dupinfo);
    find(file, "fi_fabric", library.fabric);
    find(file, "fi_strerror", library.strerror);
    find(file, "fi_version", library.version);
    return library;
}

}  // namespace

const Library& library() {
    static const Library loaded = load();
    return loaded;
}

}  // namespace rmem::fabric
