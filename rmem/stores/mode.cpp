// SPDX-License-Identifier: Apache-2.0
#include "rmem/stores/mode.hpp"

#include "rmem/base/environment_variable.hpp"
#include "rmem/stores/instrumented.hpp"

#include <fmt/format.h>

#include <array>

namespace rmem {

namespace {

constexpr std::array kModes = {StoresMode::exact, StoresMode::instrumented, StoresMode::scan};

#if defined(__x86_64__)
constexpr StoresMode kDefault = StoresMode::exact;
#else
constexpr StoresMode kDefault = StoresMode::scan;
#endif

}  // namespace

const char* name_of(StoresMode mode) noexcept {
    switch (mode) {
        case StoresMode::exact: return "exact";
        case StoresMode::instrumented: return "instrumented";
        case StoresMode::scan: return "scan";
    }
    return "unknown";
}

StoresMode parse_stores(const std::string& text) {
    for (const StoresMode mode : kModes) {
        if (text == name_of(mode)) return mode;
    }
    throw Error(Errc::bad_environment,
                fmt::format("RMEM_STORES: there is no way '{}' to capture stores; give exact, "
                            "instrumented or scan",
                            text));
}

StoresMode stores_setting() {
    const char* text = environment_setting("RMEM_STORES");
    if (text != nullptr) return parse_stores(text);
    return stores::is_instrumented() ? StoresMode::instrumented : kDefault;
}

}  // namespace rmem
