// SPDX-License-Identifier: Apache-2.0
#include "ports/gamma/process.hpp"
#include "rmem/base/environment_variable.hpp"

#include <fmt/format.h>

#include <string>

namespace ports::gamma {

namespace {

/// An empty one counts as unset.
const char* variable(const char* name) {
    const char* text = rmem::environment_variable(name);
    return text == nullptr || *text == '\0' ? nullptr : text;
}

bool parse_switch(const char* name, const std::string& text) {
    if (text == "on") return true;
    if (text == "off") return false;
    throw rmem::Error(rmem::Errc::bad_environment,
                      fmt::format("{}: '{}' is not valid; give on or off", name, text));
}

}  // namespace

Settings Settings::read() {
    Settings settings;
    if (const auto timeout = rmem::Environment::read().join_timeout_ns)
        settings.join_timeout_ns = *timeout;
    if (const char* text = variable("RMEM_GAMMA_PATIENCE"))
        settings.patience_ns = rmem::parse_duration_ns("RMEM_GAMMA_PATIENCE", text);
    if (const char* text = variable("RMEM_GAMMA_PROGRESS"))
        settings.has_progress_thread = parse_switch("RMEM_GAMMA_PROGRESS", text);
    if (const char* text = variable("RMEM_GAMMA_PID"))
        settings.par_pid = rmem::parse_unsigned("RMEM_GAMMA_PID", text, kMaxGroups - 1);
    return settings;
}

}  // namespace ports::gamma
