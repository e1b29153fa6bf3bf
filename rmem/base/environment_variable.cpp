// SPDX-License-Identifier: Apache-2.0
#include "rmem/base/environment_variable.hpp"

#include "rmem/base/program_host.hpp"
#include "rmem/base/suggestion.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

namespace rmem {

namespace {

constinit thread_local const GivenSettings* given = nullptr;

bool is_known(std::string_view name) {
    const auto& known = setting_names();
    return std::find(known.begin(), known.end(), name) != known.end();
}

/// The setting that is meant by a name that nothing reads; empty where none is.
std::string meant_by(std::string_view name) {
    for (const char* list : {"GAMMA", "MPI"}) {  // a key of one of these lists
        if (name.starts_with(fmt::format("RMEM_{}_", list))) return fmt::format("RMEM_{}", list);
    }
    return nearest_name(name, setting_names(), 1);
}

}  // namespace

GivenSettings::GivenSettings(List settings) : settings_(std::move(settings)), before_(given) {
    for (const auto& [name, value] : settings_) {
        if (is_known(name)) continue;
        const std::string meant = meant_by(name);
        throw Error(Errc::bad_environment,
                    fmt::format("{} is given, and nothing reads it; {}", name,
                                meant.empty() ? "rmem(7) has the names of all settings"
                                              : fmt::format("did you mean {}?", meant)));
    }
    given = this;
}

GivenSettings::~GivenSettings() {
    given = before_;
}

const char* GivenSettings::find(const char* name) const noexcept {
    for (const auto& [given_name, value] : settings_) {
        if (given_name == name) return value.c_str();
    }
    return before_ == nullptr ? nullptr : before_->find(name);
}

const char* environment_variable(const char* name) noexcept {
    if (given != nullptr) {
        if (const char* text = given->find(name)) return text;
    }
    if (const ProgramHost* host = program_host()) return host->variable(name);
    return std::getenv(name);  // NOLINT(concurrency-mt-unsafe): read at start-up
}

const char* environment_setting(const char* name) noexcept {
    const char* text = environment_variable(name);
    return text == nullptr || *text == '\0' ? nullptr : text;
}

std::string environment_text(const char* name) {
    const char* text = environment_variable(name);
    return text == nullptr ? "" : text;
}

const std::vector<std::string>& setting_names() {
    static const std::vector<std::string> names = {
        "RMEM_AT_MARK",      "RMEM_AWAIT",      "RMEM_BARRIER",   "RMEM_BOUND",
        "RMEM_BULK",         "RMEM_CC",         "RMEM_CHECK",     "RMEM_CXX",
        "RMEM_DEAD_TIMEOUT", "RMEM_DP_POOL",    "RMEM_FAULTS",    "RMEM_GAMMA",
        "RMEM_GROUP",        "RMEM_INSECURE",   "RMEM_INTERFACE", "RMEM_JOIN_TIMEOUT",
        "RMEM_KEY_FILE",     "RMEM_LAST_WORDS", "RMEM_LAYOUT",    "RMEM_LINK",
        "RMEM_MAP",          "RMEM_MPI",        "RMEM_MPICH",     "RMEM_MUNET",
        "RMEM_NODE",         "RMEM_NODES",      "RMEM_PARTITION", "RMEM_PAYLOAD",
        "RMEM_PROVIDER",     "RMEM_RANK",       "RMEM_RANKS",     "RMEM_RFM2G_NAMES",
        "RMEM_RFM2G_WINDOW", "RMEM_RING",       "RMEM_SIZE",      "RMEM_SPIN",
        "RMEM_STORES",       "RMEM_TIMING",     "RMEM_TOPOLOGY",  "RMEM_UNIX_GROUP",
    };
    return names;
}

std::vector<std::string> unread_settings() {
    std::vector<std::string> names;
    for (char** entry = environ; *entry != nullptr; ++entry) {
        const std::string_view assignment = *entry;
        const auto equals = assignment.find('=');
        if (!assignment.starts_with("RMEM_") || equals + 1 >= assignment.size()) continue;
        const std::string_view name = assignment.substr(0, equals);
        if (!is_known(name)) names.emplace_back(name);
    }
    return names;
}

void refuse_misspelt_settings() {
    if (program_host() != nullptr) return;
    for (const std::string& name : unread_settings()) {
        const std::string meant = meant_by(name);
        if (meant.empty()) continue;
        throw Error(Errc::bad_environment,
                    fmt::format("{} is set, and nothing reads it; did you mean {}? Correct it, or "
                                "unset it",
                                name, meant));
    }
}

}  // namespace rmem
