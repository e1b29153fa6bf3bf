// SPDX-License-Identifier: Apache-2.0
#include "rmem/given_options.hpp"

#include "rmem/base/quantity.hpp"
#include "rmem/rmem.h"

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace rmem {

namespace {

/// What a program compiled with an older header knows is a shorter one.
rmem_options completed(const rmem_options& given) {
    rmem_options options = RMEM_OPTIONS;
    if (given.size < offsetof(rmem_options, ring) + sizeof options.ring ||
        given.size > sizeof options) {
        throw Error(
            Errc::invalid_argument,
            fmt::format("the options say that they have {} bytes, and have {}; begin with "
                        "rmem_options options = RMEM_OPTIONS, and use a library that is not older "
                        "than its header",
                        given.size, sizeof options));
    }
    std::memcpy(&options, &given, given.size);
    return options;
}

}  // namespace

GivenSettings::List settings_of(const rmem_options* given) {
    GivenSettings::List list;
    if (given == nullptr) return list;
    const rmem_options options = completed(*given);
    const auto give_text = [&](const char* name, const char* text) {
        if (text != nullptr) list.emplace_back(name, text);
    };
    const auto give_number = [&](const char* name, auto number, auto least) {
        if (number >= least) list.emplace_back(name, fmt::format("{}", number));
    };
    give_text("RMEM_RING", options.ring);
    give_text("RMEM_LINK", options.link);
    give_number("RMEM_NODE", options.node, 0);
    give_number("RMEM_NODES", options.nodes, 1);
    if (options.rank == RMEM_GUEST) list.emplace_back("RMEM_RANK", "guest");
    give_number("RMEM_RANK", options.rank, 0);
    give_number("RMEM_RANKS", options.ranks, 1);
    give_number("RMEM_SIZE", options.memory_bytes, std::uint64_t{1});
    if (options.timeout_ns > 0) {
        list.emplace_back("RMEM_JOIN_TIMEOUT", duration_setting(options.timeout_ns));
    }
    if (options.await < 0 || options.await > RMEM_AWAIT_NONE) {
        throw Error(Errc::invalid_argument,
                    fmt::format("there is no await {}; give RMEM_AWAIT_ALL, RMEM_AWAIT_NONE or 0",
                                options.await));
    }
    if (options.await != 0)
        list.emplace_back("RMEM_AWAIT", options.await == RMEM_AWAIT_ALL ? "all" : "none");
    for (const char* const* next = options.settings; next != nullptr && *next != nullptr; ++next) {
        const std::string_view setting = *next;
        const auto equals = setting.find('=');
        if (equals == std::string_view::npos) {
            throw Error(Errc::invalid_argument,
                        fmt::format("'{}' is no setting; give RMEM_NAME=value", setting));
        }
        list.emplace_back(setting.substr(0, equals), setting.substr(equals + 1));
    }
    return list;
}

}  // namespace rmem
