// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Words of a command line that cannot be parsed: the command ends with exit code 2 then, and not
/// with 1, which says that something could not be done.
/// Thread safety: functions of their arguments.

#include "rmem/error.hpp"

#include <cstddef>
#include <cstdint>
#include <string>

namespace tools {

/// Its code is invalid_argument.
class UsageError : public rmem::Error {
public:
    explicit UsageError(const std::string& sentence)
        : Error(rmem::Errc::invalid_argument, sentence) {}
};

/// "5s" and "64K", as rmem/ring/config.hpp reads them. `option` is named in the error. Throw
/// UsageError.
std::int64_t duration_option(const std::string& option, const std::string& text);
std::size_t size_option(const std::string& option, const std::string& text);

}  // namespace tools
