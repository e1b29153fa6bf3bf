// SPDX-License-Identifier: Apache-2.0
#include "tools/screen.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <array>
#include <string>
#include <string_view>

#include "tools/output.hpp"

namespace tools {

namespace {

// Alternate screen, no cursor, and no new line by itself behind the last column; and back.
constexpr std::string_view kEnter = "\x1b[?1049h\x1b[?25l\x1b[?7l";
constexpr std::string_view kLeave = "\x1b[?7h\x1b[?25h\x1b[?1049l";

const char* colour_of(LineStyle style) {
    switch (style) {
        case LineStyle::heading: return "\x1b[1m";
        case LineStyle::alarm: return "\x1b[31m";
        case LineStyle::plain: break;
    }
    return "";
}

}  // namespace

Screen::Screen() : is_colourful_(is_colourful(STDOUT_FILENO)) {
    has_keys_ = ::isatty(STDIN_FILENO) == 1 && ::tcgetattr(STDIN_FILENO, &before_) == 0;
    if (has_keys_) {
        termios keys = before_;
        keys.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
        // Whoever stopped or dumped it by a key would be left with this screen.
        keys.c_cc[VSUSP] = keys.c_cc[VQUIT] = _POSIX_VDISABLE;
        ::tcsetattr(STDIN_FILENO, TCSANOW, &keys);
    }
    show(kEnter);
}

Screen::~Screen() {
    // The terminal may be gone; there is nothing to do about that.
    [[maybe_unused]] const auto written = ::write(STDOUT_FILENO, kLeave.data(), kLeave.size());
    if (has_keys_) ::tcsetattr(STDIN_FILENO, TCSANOW, &before_);
}

Screen::Size Screen::size() {
    winsize size{};
    if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0) {
        return {80, 24};
    }
    return {size.ws_col, size.ws_row};
}

void Screen::draw(const std::vector<Line>& lines) const {
    std::string text = "\x1b[H";
    for (std::size_t i = 0; i < lines.size(); ++i) {
        const std::string colour = is_colourful_ ? colour_of(lines[i].style) : "";
        text += (i == 0 ? "" : "\r\n") + colour + lines[i].text;
        text += (colour.empty() ? "" : "\x1b[0m") + std::string("\x1b[K");
    }
    show(text + "\x1b[J");  // what is left of a longer frame
}

bool Screen::take_keys() {
    std::array<char, 64> keys{};
    const ssize_t count = ::read(STDIN_FILENO, keys.data(), keys.size());
    if (count <= 0) return false;
    const std::string_view hit(keys.data(), static_cast<std::size_t>(count));
    return hit.find('q') == std::string_view::npos;
}

}  // namespace tools
