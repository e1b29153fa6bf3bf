// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What the C functions of Fast Messages keep for this process, and how they tell what went wrong.

#include "ports/fm/runtime.hpp"

#include <cerrno>
#include <memory>
#include <string>

namespace ports::fm {

struct Current {
    Parameters parameters;
    Handlers handlers;
    std::unique_ptr<Runtime> runtime;
};
extern Current current;

inline constexpr int kMaxHandlers = 65535;

/// A call that succeeds leaves errno as it was, whatever the system has said to it on the way.
class KeptErrno {
public:
    KeptErrno() noexcept : before_(*at_) {}
    ~KeptErrno() { *at_ = before_; }
    KeptErrno(const KeptErrno&) = delete;
    KeptErrno& operator=(const KeptErrno&) = delete;

    void fail(int error) const noexcept { before_ = error; }

private:
    int* at_ = &errno;
    mutable int before_;
};

/// Sets errno, and keeps the sentence for bbp_last_error.
[[gnu::cold]] void refuse(int error, int code, const std::string& sentence);
[[gnu::cold]] void not_initialized();

/// What FM_extract says: that many, or the end of a node.
[[nodiscard]] int untold_end(Runtime& runtime);
[[nodiscard]] inline int extracted(Runtime& runtime, int result) {
    return result != 0 ? result : untold_end(runtime);
}

}  // namespace ports::fm
