// SPDX-License-Identifier: Apache-2.0
// A rank that is no GAMMA process, on a ring with some that are.
#include "ports/gamma/non_member.hpp"

#include "billboard/bbp.h"
#include "billboard/process/process_endpoint.hpp"
#include "tests/support/gamma_ranks.hpp"

namespace rmem::test::gamma {
namespace {

constexpr unsigned short kNobodys = 200;  ///< a semaphore of no bound port

class GammaNonMember : public Conformance {};
RMEM_ON_ALL_RINGS(GammaNonMember);

/// Until that number of processes has told that they end.
void stand_by(unsigned processes) {
    const auto process = billboard::ProcessEndpoint::open();
    ports::gamma::NonMember non_member(process->endpoint());
    for (unsigned ended = 0; ended < processes;) {
        {
            const auto held = process->hold();
            non_member.look();
        }
        if (bbp_recv_for(BBP_ANY, nullptr, 0, nullptr, kMillisecond) >= 0) ++ended;
    }
}

TEST_P(GammaNonMember, is_in_no_group_and_holds_nobody_up) {
    run(4, [](Rank& me) {
        if (me.rank == 1) return stand_by(3);
        start(3);
        check_equal(gamma_my_node(), me.rank == 0 ? 0 : me.rank - 1, "node");
        bind_to(BROADCAST);
        check_ok(gamma_sync());
        if (gamma_my_node() == 0) {
            check_ok(send_pattern(5, 4000, 1));
        } else {
            check_ok(gamma_wait(5, 1));
            check_came(4000, 1);
        }
        check_ok(gamma_sync());
        check_ok(gamma_exit());
        check_ok(bbp_send(1, nullptr, 0));
    });
}

TEST_P(GammaNonMember, is_nobody_to_wait_for_when_all_processes_are_gone) {
    run(3, [](Rank& me) {
        if (me.rank == 0) return stand_by(2);
        start(2);
        if (me.rank == 1) check_equal(gamma_wait(kNobodys, 1), GAMMA_EPEER, "gamma_wait");
        check_ok(gamma_exit());
        check_ok(bbp_send(0, nullptr, 0));
    });
}

}  // namespace
}  // namespace rmem::test::gamma
