// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The terminal as a screen that is drawn in place: the alternate one, so that the former text
/// comes back at the end of the object, however its scope is left.
///
/// Plain sequences that every terminal of today obeys; there is nothing to edit or to scroll that
/// would want a library.
/// Thread safety: one object in a process, one thread. Signals that end the command must go through
/// StopSignals, so that the destructor runs.

#include "tools/watch/top_frame.hpp"

#include <termios.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace tools {

class Screen {
public:
    Screen();
    ~Screen();
    Screen(const Screen&) = delete;
    Screen& operator=(const Screen&) = delete;

    struct Size {
        std::size_t columns, rows;
    };
    static Size size();
    void draw(const std::vector<Line>& lines) const;

    /// Whether keys can be read from the standard input, one by one.
    bool has_keys() const { return has_keys_; }
    /// Takes the keys that were hit, as keys_of() names them; the end of the input is a q.
    std::string take_keys();

private:
    bool has_keys_ = false, is_colourful_ = false;
    termios before_{};
};

/// The text that draws the lines in place of the old ones.
std::string drawn(const std::vector<Line>& lines, bool is_colourful);

/// A terminal's input for keys, a character for each: arrows as k j h l (up, down, left, right),
/// page up and down as b and f, the rest as it is. Sequences of other keys are left out.
std::string keys_of(std::string_view sent);

}  // namespace tools
