// SPDX-License-Identifier: Apache-2.0
// The files of the vendor's driver, which programs look for by themselves: /proc/rfm2g, which says
// how many cards there are, by fopen(3), as rfm2g_util does; and the descriptor of a handle, from
// which pread(2) reads the memory. All else that they open and read is opened and read as ever.

#include "cards/common/unit.hpp"
#include "cards/rfm2g/handle.hpp"
#include "rmem/base/descriptor.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>

namespace cards::rfm2g {

namespace {

/// Of each place; never destroyed, since other threads may read at the end of a program.
std::array<rmem::Descriptor, Handles::kPlaces>& descriptors() {
    static auto* const all = new std::array<rmem::Descriptor, Handles::kPlaces>;
    return *all;
}

constexpr std::size_t kMostNumbers = 4096;
std::array<std::atomic<unsigned>, kMostNumbers> places{};  // by the descriptor's number; kNone

ssize_t read_memory(unsigned place, void* to, std::size_t bytes, off64_t offset) noexcept {
    RFM2GHANDLE const handle = &seen_of_handles[place];
    const auto size = static_cast<off64_t>(handle->Config.MemorySize);
    const std::size_t left = offset < size ? static_cast<std::size_t>(size - offset) : 0;
    const auto part = static_cast<RFM2G_UINT32>(std::min(bytes, left));
    if (offset >= 0 && part == 0) return 0;
    if (offset >= 0 &&
        RFM2gRead(handle, static_cast<RFM2G_UINT32>(offset), to, part) == RFM2G_SUCCESS)
        return static_cast<ssize_t>(part);
    errno = EINVAL;
    return -1;
}

using Read = ssize_t (*)(int, void*, std::size_t, off64_t);

ssize_t read_at(Read next, int fd, void* to, std::size_t bytes, off64_t offset) noexcept {
    if (const auto number = static_cast<std::size_t>(fd); number < kMostNumbers) {
        // relaxed is enough: a program has the number from the handle, which was stored behind it
        const unsigned place = places[number].load(std::memory_order_relaxed);
        // A program that has closed it may have another file by that number.
        if (place != Handles::kNone && descriptors()[place].is_ours())
            return read_memory(place, to, bytes, offset);
    }
    return next(fd, to, bytes, offset);
}

}  // namespace

int open_descriptor(unsigned place) {
    rmem::Descriptor fd(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    const auto number = static_cast<std::size_t>(fd.get());
    if (number >= kMostNumbers) return -1;
    descriptors()[place] = std::move(fd);
    // relaxed is enough: as in read_at()
    places[number].store(place, std::memory_order_relaxed);
    return descriptors()[place].get();
}

void close_descriptor(unsigned place) noexcept {
    rmem::Descriptor& fd = descriptors()[place];
    // relaxed is enough: as in read_at()
    if (fd.get() >= 0)
        places[static_cast<std::size_t>(fd.get())].store(Handles::kNone, std::memory_order_relaxed);
    fd.reset();
}

}  // namespace cards::rfm2g

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
extern "C" __attribute__((visibility("default"))) ssize_t pread(int fd, void* to, std::size_t bytes,
                                                                off_t offset) {
    static const auto next = reinterpret_cast<cards::rfm2g::Read>(::dlsym(RTLD_NEXT, "pread"));
    return cards::rfm2g::read_at(next, fd, to, bytes, offset);
}
extern "C" __attribute__((visibility("default"))) ssize_t pread64(int fd, void* to,
                                                                  std::size_t bytes,
                                                                  off64_t offset) {
    static const auto next = reinterpret_cast<cards::rfm2g::Read>(::dlsym(RTLD_NEXT, "pread64"));
    return cards::rfm2g::read_at(next, fd, to, bytes, offset);
}
