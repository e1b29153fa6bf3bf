// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The environment that settings are read from: the process's, or in a simulated process the one
/// that its world gives it; before either, what a call was given beside it.
///
/// Thread safety: as getenv; what a call was given is its thread's.

#include "rmem/error.hpp"

#include <string>
#include <utility>
#include <vector>

namespace rmem {

/// The value of a variable; null where it is unset.
RMEM_API const char* environment_variable(const char* name) noexcept;

/// The same of a setting: an empty one counts as unset.
RMEM_API const char* environment_setting(const char* name) noexcept;

/// The value of a variable; empty where it is unset.
RMEM_API std::string environment_text(const char* name);

/// Every RMEM_ variable that something of this project reads.
RMEM_API const std::vector<std::string>& setting_names();

/// Settings that come before those of the environment, on this thread, while the object is there;
/// the newest object's first. One that is given as empty is unset. Throws bad_environment for a
/// name that nothing reads.
class RMEM_API GivenSettings {
public:
    using List = std::vector<std::pair<std::string, std::string>>;

    explicit GivenSettings(List settings);
    ~GivenSettings();
    GivenSettings(const GivenSettings&) = delete;
    GivenSettings& operator=(const GivenSettings&) = delete;

    /// Null: it was not given.
    const char* find(const char* name) const noexcept;

private:
    const List settings_;
    const GivenSettings* const before_;
};

/// The RMEM_ variables in the process's environment that nothing reads: the user believes that they
/// are settings, or they are for another program.
RMEM_API std::vector<std::string> unread_settings();

/// Throws bad_environment for one of them whose name is one edit away from that of a setting.
RMEM_API void refuse_misspelt_settings();

}  // namespace rmem
