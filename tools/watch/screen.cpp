// SPDX-License-Identifier: Apache-2.0
#include "tools/watch/screen.hpp"

#include "tools/output.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <array>
#include <string>
#include <string_view>

namespace tools {

namespace {

// Alternate screen, no cursor, and no new line by itself after the last column; and back.
constexpr std::string_view kEnter = "\x1b[?1049h\x1b[?25l\x1b[?7l";
constexpr std::string_view kLeave = "\x1b[?7h\x1b[?25h\x1b[?1049l";

const char* colour_of(LineStyle style) {
    switch (style) {
        case LineStyle::heading: return "\x1b[1m";
        case LineStyle::alarm: return "\x1b[31m";
        case LineStyle::footer: return "\x1b[2m";
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
        // A user who stopped or dumped it by a key would be left with this screen.
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
    show(drawn(lines, is_colourful_));
}

std::string drawn(const std::vector<Line>& lines, bool is_colourful) {
    // Old text is erased before, not after: a line as wide as the screen leaves the cursor on its
    // last character.
    std::string text = "\x1b[H\x1b[J";
    for (std::size_t i = 0; i < lines.size(); ++i) {
        const std::string colour = is_colourful ? colour_of(lines[i].style) : "";
        text += (i == 0 ? "" : "\r\n") + colour + lines[i].text;
        text += colour.empty() ? "" : "\x1b[0m";
    }
    return text;
}

std::string Screen::take_keys() {
    std::array<char, 64> keys{};
    const ssize_t count = ::read(STDIN_FILENO, keys.data(), keys.size());
    return count <= 0 ? "q" : keys_of({keys.data(), static_cast<std::size_t>(count)});
}

std::string keys_of(std::string_view sent) {
    std::string keys;
    for (std::size_t i = 0; i < sent.size(); ++i) {
        if (sent[i] != '\x1b') {
            keys += sent[i];
            continue;
        }
        if (i + 1 >= sent.size() || (sent[i + 1] != '[' && sent[i + 1] != 'O')) continue;
        std::size_t end = i + 2;  // parameters, and then a letter or ~
        while (end < sent.size() && (sent[end] < '@' || sent[end] > '~')) ++end;
        const std::string_view sequence = sent.substr(i + 2, end - i - 1);
        if (sequence == "A") keys += 'k';
        if (sequence == "B") keys += 'j';
        if (sequence == "C") keys += 'l';
        if (sequence == "D") keys += 'h';
        if (sequence == "5~") keys += 'b';
        if (sequence == "6~") keys += 'f';
        i = end;
    }
    return keys;
}

}  // namespace tools
