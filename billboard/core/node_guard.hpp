// SPDX-License-Identifier: Apache-2.0
#pragma once

/// An endpoint on link udp, whose node may be dropped by the others, or lose its engine, at any
/// moment.
///
/// Soon the bank is another incarnation's then: its contents are not for the program, and may
/// change while it reads. So each call checks afterwards whether the bank is still of the node's
/// incarnation in which it was opened; if it is not, the call's result is BBP_EPEER, as for all
/// calls to come, until the program opens the ring again. A view that is out may show
/// anything then. The same holds for a message of a rank that has meanwhile given this one up.
/// Contract: billboard/endpoint.hpp. Thread safety, errors: as there.

#include "billboard/core/forwarding.hpp"
#include "billboard/errors.hpp"

#include <utility>

namespace billboard {

template <class Core>
class NodeGuard final : public Forwarding<NodeGuard<Core>> {
public:
    template <class... Arguments>
    explicit NodeGuard(Arguments&&... arguments) : core_(std::forward<Arguments>(arguments)...) {}

private:
    friend Forwarding<NodeGuard>;

    Core& target() noexcept { return core_; }
    const Core& target() const noexcept { return core_; }
    template <class Call>
    auto local(Call&& call) {
        return call(core_);
    }
    template <class Call>
    [[nodiscard, gnu::always_inline]] int waits(Deadline deadline, bool, Call&& call) {
        const int result = call(core_, deadline);
        return core_.has_bank() ? result : lost();
    }
    /// A call that named nobody goes on to the next message.
    template <class Call, class End>
    [[gnu::always_inline]] int receives(int src, Deadline deadline, Call&& call, End&& end) {
        for (;;) {
            const int from = waits(deadline, false, call);
            if (from < 0 || !core_.is_given_up_by(static_cast<unsigned>(from))) [[likely]]
                return from;
            end(core_);
            core_.give_up(static_cast<unsigned>(from));
            if (src != BBP_ANY) return core_.tell_gone(static_cast<unsigned>(from));
        }
    }
    [[nodiscard]] static int lost() {
        return fail(BBP_EPEER,
                    "this node was removed from the ring (or its engine stopped), so no other rank "
                    "can be reached; call bbp_finalize, then bbp_init, to rejoin");
    }

    Core core_;
};

}  // namespace billboard
