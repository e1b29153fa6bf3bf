// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A process's endpoint as those see it who hold nothing: each call holds it for itself.
///
/// A call that waits does so in slices, and gives way between them, so that the progress thread and
/// others come in. Not so the sending of a message larger than a partition: its parts are sent in
/// one go.
/// Contract, errors: billboard/endpoint.hpp. Thread safety: any thread; a message in view is its
/// viewer's.

#include "billboard/core/forwarding.hpp"
#include "billboard/process/process_endpoint.hpp"

namespace billboard {

class SharedEndpoint final : public Forwarding<SharedEndpoint> {
public:
    explicit SharedEndpoint(ProcessEndpoint& process) : process_(process) {}

private:
    friend Forwarding<SharedEndpoint>;

    Endpoint& target() const noexcept { return process_.endpoint(); }
    template <class Call>
    auto local(Call&& call) {
        const auto held = process_.hold();
        return call(target());
    }
    template <class Call>
    [[nodiscard]] int waits(Deadline deadline, bool is_whole, Call&& call) {
        auto held = process_.hold();
        if (is_whole) return call(target(), deadline);
        // Before a clock is read: mostly it needs no waiting.
        if (const int result = call(target(), Deadline::now());
            result != BBP_EAGAIN || is_try(deadline))
            return result;
        for (Slices slices(held, target(), deadline);; slices.pass()) {
            const int result = call(target(), slices.deadline());
            if (result != BBP_ETIMEDOUT || slices.is_last()) return result;
        }
    }
    template <class Call, class End>
    [[nodiscard]] int receives(int, Deadline deadline, Call&& call, End&&) {
        return waits(deadline, false, call);
    }

    ProcessEndpoint& process_;
};

}  // namespace billboard
