// SPDX-License-Identifier: Apache-2.0
#include "tools/settings.hpp"

#include <fmt/format.h>

#include <cstdlib>

namespace tools {

void Settings::add_to(cli::App& command, std::span<const Setting> settings) {
    for (const Setting& setting : settings) {
        command.add_option(setting.option, values_[setting.variable],
                           fmt::format("{} [{}]", setting.meaning, setting.variable));
    }
}

void Settings::apply() const {
    for (const auto& [variable, value] : values_) {
        if (!value.empty()) set_variable(variable, value);
    }
}

void set_variable(const std::string& name, const std::string& value) {
    ::setenv(name.c_str(), value.c_str(), 1);  // NOLINT(concurrency-mt-unsafe): one thread
}

void unset_variable(const std::string& name) {
    ::unsetenv(name.c_str());  // NOLINT(concurrency-mt-unsafe): one thread
}

}  // namespace tools
