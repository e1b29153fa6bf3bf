// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What this process has loaded, and how a pointer into it is told to another process of the same
/// binary, which has its images elsewhere: as the module's place in the list and the offset from
/// its base.
///
/// Two processes understand each other's pointers into the program if they have the same program,
/// and into its libraries if they have loaded the same list in the same order. Both are told by a
/// hash of build ids; of a module without one the code itself is hashed.
/// Thread safety: as a value. Only modules that were loaded when it was made are known.

#include <cstddef>
#include <cstdint>
#include <vector>

struct dl_phdr_info;

namespace ports::fm {

class Modules {
public:
    struct Place {
        std::uint32_t module;  ///< kUnknown: none
        std::uint32_t offset;
        [[nodiscard]] bool is_known() const noexcept { return module != kUnknown; }
    };
    static constexpr std::uint32_t kUnknown = ~std::uint32_t{0};

    Modules();

    [[nodiscard]] std::uint64_t program() const noexcept { return program_; }
    [[nodiscard]] std::uint64_t all() const noexcept { return all_; }

    /// Of a module that is known, or nowhere.
    [[nodiscard]] Place find(const void* code) noexcept {
        const auto at = reinterpret_cast<std::uintptr_t>(code);
        if (const Module& m = list_[latest_]; at - m.code < m.code_bytes) [[likely]]
            return {latest_, static_cast<std::uint32_t>(at - m.base)};
        return find_slowly(at);
    }
    /// Null: no code there.
    [[nodiscard]] const void* at(Place place) const noexcept {
        if (place.module >= list_.size()) return nullptr;
        const Module& m = list_[place.module];
        const std::uintptr_t at = m.base + place.offset;
        return at - m.code < m.code_bytes ? reinterpret_cast<const void*>(at) : nullptr;
    }

private:
    struct Module {
        std::uintptr_t base = 0, code = 0;  ///< of the image; where its code begins
        std::size_t code_bytes = 0;
        std::uint64_t id = 0;
    };
    static int add(::dl_phdr_info* info, std::size_t size, void* list) noexcept;
    Place find_slowly(std::uintptr_t at) noexcept;

    std::vector<Module> list_;  ///< the program first
    std::uint32_t latest_ = 0;
    std::uint64_t program_ = 0, all_ = 0;
};

}  // namespace ports::fm
