// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A variable that holds several settings, such as RMEM_GAMMA=pid=7,patience=1s.
///
/// Thread safety: no other thread changes the environment meanwhile.
/// Errors: `Error(bad_environment)`, which names the variable, the key and what is possible.

#include "rmem/base/environment_variable.hpp"
#include "rmem/base/suggestion.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <sstream>
#include <string>
#include <vector>

namespace rmem {

struct SettingKey {
    const char* name;
    /// Takes a value of it, or throws malformed_setting(); `what` names variable and key.
    std::function<void(const std::string& what, const std::string& value)> take;
};

/// All of the variable's keys, in order; so where one is there twice the last value holds.
inline void read_setting_list(const char* variable, const std::vector<SettingKey>& keys) {
    std::istringstream items(environment_text(variable));
    for (std::string item; std::getline(items, item, ',');) {
        const auto equals = item.find('=');
        const std::string name = item.substr(0, equals);
        const auto key = std::find_if(keys.begin(), keys.end(),
                                      [&](const SettingKey& one) { return one.name == name; });
        if (key != keys.end() && equals != std::string::npos && equals + 1 != item.size()) {
            key->take(fmt::format("{}: {}", variable, name), item.substr(equals + 1));
            continue;
        }
        std::vector<std::string> names;
        for (const SettingKey& one : keys) names.emplace_back(one.name);
        throw Error(Errc::bad_environment,
                    fmt::format("{} has '{}'{}; give <key>=<value>, with commas between them, of "
                                "the keys {}",
                                variable, item, did_you_mean(name, names), fmt::join(names, ", ")));
    }
}

}  // namespace rmem
