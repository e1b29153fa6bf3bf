// SPDX-License-Identifier: Apache-2.0
#include "rmem/stores/mode.hpp"

#include "rmem/base/environment_variable.hpp"
#include "rmem/base/quantity.hpp"
#include "rmem/stores/debugger.hpp"
#include "rmem/stores/instrumented.hpp"

#include <fmt/format.h>

#include <array>
#include <cctype>
#include <optional>
#include <sstream>

namespace rmem {

namespace {

constexpr std::array kModes = {StoresMode::exact, StoresMode::instrumented, StoresMode::scan};

#if defined(__x86_64__)
constexpr StoresMode kDefault = StoresMode::exact;
#else
constexpr StoresMode kDefault = StoresMode::scan;
#endif

struct Setting {
    std::optional<StoresMode> way;
    std::vector<WordRange> sync_words;
};

Setting read_setting() {
    Setting setting;
    std::istringstream parts(environment_text("RMEM_STORES"));
    for (std::string part; std::getline(parts, part, ',');) {
        if (part.empty() || std::isdigit(static_cast<unsigned char>(part[0])) == 0) {
            setting.way = parse_stores(part);
            continue;
        }
        const auto plus = part.find('+');
        WordRange range;
        range.offset = parse_size("RMEM_STORES: the offset of a word", part.substr(0, plus));
        if (plus != std::string::npos)
            range.bytes = parse_size("RMEM_STORES: a number of bytes", part.substr(plus + 1));
        setting.sync_words.push_back(range);
    }
    return setting;
}

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
                            "instrumented or scan, and after it words that leave last, such as "
                            "scan,0x100,0x2000+64",
                            text));
}

StoresMode stores_setting() {
    if (const auto way = read_setting().way) return *way;
    if (stores::is_instrumented()) return StoresMode::instrumented;
    // A debugger's step over a store that is captured exactly does not end behind it.
    return stores::is_debugged() ? StoresMode::scan : kDefault;
}

std::vector<WordRange> sync_words_setting() {
    return read_setting().sync_words;
}

}  // namespace rmem
