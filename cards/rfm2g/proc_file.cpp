// SPDX-License-Identifier: Apache-2.0
// /proc/rfm2g, by which the vendor's driver says how many cards there are: programs that look for
// it by fopen(3), rfm2g_util among them, find it as the driver would have it. All else that they
// open is opened as ever.

#include "cards/common/unit.hpp"

#include <dlfcn.h>

#include <cstdio>
#include <cstring>
#include <string>

namespace {

using Open = std::FILE* (*)(const char*, const char*);

std::FILE* proc_file() noexcept {
    std::FILE* const file = ::fmemopen(nullptr, BUFSIZ, "w+");
    if (file == nullptr) return nullptr;
    std::fprintf(file, "MODULE_NAME                rfm2g\nRFM2G_DEVICE_COUNT         %u\n\n",
                 cards::count_units());
    std::rewind(file);
    return file;
}

std::FILE* open(const char* name, const char* path, const char* mode) noexcept {
    const bool is_asked_for = path != nullptr && std::strcmp(path, "/proc/rfm2g") == 0;
    if (is_asked_for && mode != nullptr && mode[0] == 'r') return proc_file();
    return reinterpret_cast<Open>(::dlsym(RTLD_NEXT, name))(path, mode);
}

}  // namespace

// The compiler has seen them declared as the system's.
extern "C" __attribute__((visibility("default"))) std::FILE* fopen(const char* path,
                                                                   const char* mode) {
    return open("fopen", path, mode);
}
extern "C" __attribute__((visibility("default"))) std::FILE* fopen64(const char* path,
                                                                     const char* mode) {
    return open("fopen64", path, mode);
}
