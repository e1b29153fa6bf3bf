// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Timing profiles of one's own, in files (TOML):
///
///     base = "rfm5565"        # what is not said is as there; without: a card of which all is said
///     delay = "450ns"         # keys and values are the options of parse_timing()
///     packet = 64
///
/// Trust: a file is its user's own; it is bounded in size, and a key without a meaning is refused.
/// Errors: Error(bad_profile), its sentence beginning with file:line.

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rmem {

/// A profile's options as written, each with the line where it stands.
struct TimingFile {
    struct Option {
        std::string key, value, where;
    };
    std::string base;  ///< empty: none
    std::string base_where;
    std::vector<Option> options;
};

TimingFile read_timing_file(const std::string& path);

}  // namespace rmem
