// SPDX-License-Identifier: Apache-2.0
#include "rmem/stores/mode.hpp"

#include "rmem/base/environment_variable.hpp"
#include "rmem/base/quantity.hpp"
#include "rmem/stores/debugger.hpp"
#include "rmem/stores/instrumented.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <sstream>
#include <string_view>

namespace rmem {

namespace {

constexpr std::array kModes = {StoresMode::exact, StoresMode::instrumented, StoresMode::scan};

#if defined(__x86_64__)
constexpr StoresMode kDefault = StoresMode::exact;
#else
constexpr StoresMode kDefault = StoresMode::scan;
#endif

/// A number of bytes, 0x… or decimal.
std::size_t parse_place(std::string_view number, const std::string& whole) {
    const bool is_hex = number.starts_with("0x");
    const std::string_view digits = is_hex ? number.substr(2) : number;
    std::size_t value = 0;
    const auto [end, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), value, is_hex ? 16 : 10);
    if (error == std::errc{} && end == digits.data() + digits.size()) return value;
    throw malformed_setting("RMEM_SYNC_WORDS", whole,
                            "offsets, with + and bytes or without, such as 0x100,0x2000+64");
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
                            "instrumented or scan",
                            text));
}

StoresMode stores_setting() {
    const char* text = environment_setting("RMEM_STORES");
    if (text != nullptr) return parse_stores(text);
    if (stores::is_instrumented()) return StoresMode::instrumented;
    // A debugger's step over a store that is captured exactly does not end behind it.
    return stores::is_debugged() ? StoresMode::scan : kDefault;
}

std::vector<WordRange> sync_words_setting() {
    std::vector<WordRange> ranges;
    const char* text = environment_setting("RMEM_SYNC_WORDS");
    if (text == nullptr) return ranges;
    std::istringstream parts(text);
    for (std::string part; std::getline(parts, part, ',');) {
        const auto plus = part.find('+');
        WordRange range;
        range.offset = parse_place(part.substr(0, plus), text);
        if (plus != std::string::npos) range.bytes = parse_place(part.substr(plus + 1), text);
        ranges.push_back(range);
    }
    return ranges;
}

}  // namespace rmem
