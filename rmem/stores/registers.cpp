// SPDX-License-Identifier: Apache-2.0
#include "rmem/stores/registers.hpp"

#include <algorithm>
#include <cstring>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace rmem::stores {

namespace {

// Components of the image, by their bits in the header.
constexpr unsigned kSse = 1;
constexpr unsigned kYmmHigh = 2;    ///< bytes 16 to 31 of registers 0 to 15
constexpr unsigned kMasks = 5;      ///< k0 to k7
constexpr unsigned kZmmHigh = 6;    ///< bytes 32 to 63 of registers 0 to 15
constexpr unsigned kZmmOthers = 7;  ///< registers 16 to 31
constexpr unsigned kComponents = 8;

constexpr std::size_t kXmmAt = 160;
constexpr std::size_t kHeaderAt = 512;
constexpr std::size_t kHeaderBytes = 64;

/// Where each component is; the processor says so. 0: it has none.
std::array<std::size_t, kComponents> places_of_components() noexcept {
    std::array<std::size_t, kComponents> places{};
#if defined(__x86_64__)
    for (unsigned component = kYmmHigh; component < kComponents; ++component) {
        unsigned size = 0, offset = 0, c = 0, d = 0;
        constexpr unsigned kExtendedStates = 0xD;
        if (__get_cpuid_count(kExtendedStates, component, &size, &offset, &c, &d) != 0 && size != 0)
            places[component] = offset;
    }
#endif
    return places;
}

}  // namespace

/// The part [from, from + bytes) of what the component has at `at`, of `size` bytes.
void VectorRegisters::copy_part(unsigned component, std::size_t at, std::size_t size, std::byte* to,
                                std::size_t from, std::size_t bytes) const noexcept {
    static const auto places = places_of_components();
    if (bytes <= from) return;
    const std::size_t part = std::min(size, bytes - from);
    std::memset(to + from, 0, part);
    if (component == kSse) {
        if (kXmmAt + at + part <= image_.size()) {
            std::memcpy(to + from, image_.data() + kXmmAt + at, part);
        }
        return;
    }
    if (image_.size() < kHeaderAt + kHeaderBytes) return;
    std::uint64_t present = 0;
    std::memcpy(&present, image_.data() + kHeaderAt, sizeof present);
    const std::size_t place = places[component];
    if ((present >> component & 1) == 0 || place == 0 || place + at + part > image_.size()) return;
    std::memcpy(to + from, image_.data() + place + at, part);
}

void VectorRegisters::copy(unsigned number, void* to, std::size_t bytes) const noexcept {
    auto* out = static_cast<std::byte*>(to);
    bytes = std::min(bytes, kVectorBytes);
    if (number >= 16) {
        copy_part(kZmmOthers, (number - 16) * std::size_t{64}, 64, out, 0, bytes);
        return;
    }
    copy_part(kSse, number * std::size_t{16}, 16, out, 0, bytes);
    copy_part(kYmmHigh, number * std::size_t{16}, 16, out, 16, bytes);
    copy_part(kZmmHigh, number * std::size_t{32}, 32, out, 32, bytes);
}

std::uint64_t VectorRegisters::mask(unsigned number) const noexcept {
    std::uint64_t value = 0;
    copy_part(kMasks, number * sizeof value, sizeof value, reinterpret_cast<std::byte*>(&value), 0,
              sizeof value);
    return value;
}

}  // namespace rmem::stores
