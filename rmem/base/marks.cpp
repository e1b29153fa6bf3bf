// SPDX-License-Identifier: Apache-2.0
#ifdef RMEM_MARKS

#include "rmem/base/marks.hpp"

#include <csignal>
#include <cstdlib>
#include <string>

namespace rmem {

namespace {

struct Target {
    std::string mark;
    long passes = 1;
    int signal;

    explicit Target(const std::string& text)
        : mark(text.substr(text.find(':') + 1)),
          signal(text.starts_with("stop:") ? SIGSTOP : SIGKILL) {
        if (const auto colon = mark.find(':'); colon != std::string::npos) {
            passes = std::strtol(mark.c_str() + colon + 1, nullptr, 10);
            mark.resize(colon);
        }
    }
    bool is_reached(const char* name) { return mark == name && --passes == 0; }
};

}  // namespace

void reach_mark(const char* name) noexcept {
    // Not before it is set: a process may pass marks and then fork one that is to be killed.
    const char* text = std::getenv("RMEM_AT_MARK");
    if (text == nullptr) return;
    static Target target(text);
    if (target.is_reached(name)) ::raise(target.signal);  // this thread does no more before that
}

}  // namespace rmem

#endif
