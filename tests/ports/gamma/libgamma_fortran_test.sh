#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The Fortran interface: a program that sends, broadcasts, waits and is told of an error, between
# three nodes.
# shellcheck source=tests/support/shell.sh
source "$RMEM_SOURCE_DIR/tests/support/shell.sh"

rmem=$RMEM_BUILD_DIR/tools/rmem
need gfortran "$rmem"
cd "$work"

cat >ring.f90 <<'PROGRAM'
module handlers
    use libgamma
    implicit none
    integer, target :: inbox(1000) = 0
    integer :: errors = 0
contains
    subroutine came() bind(c)
        integer :: result
        result = gamma_signal(gamma_active_port)
    end subroutine
    subroutine failed() bind(c)
        if (gamma_errno == gamma_eoverlong) errors = errors + 1
    end subroutine
    subroutine twice() bind(c)
        inbox(1) = 2 * inbox(1)
    end subroutine
end module

program ring
    use handlers
    implicit none
    integer, target :: outbox(2000)
    integer :: i, next, pid
    integer(c_long) :: room
    type(gamma_time_t) :: start

    start = gamma_time()
    call check(gamma_init(0) == gamma_einval, "no nodes")
    call check(gamma_init(3) == 0, "gamma_init")
    call check(gamma_how_many_nodes() == 3, "nodes")
    pid = gamma_my_par_pid()
    next = mod(gamma_my_node() + 1, 3)
    room = int(size(inbox), c_long) * 4
    call check(gamma_bind(5, 3, pid, 5, came, 5, c_loc(inbox), room) == gamma_enode, "no such node")
    call check(gamma_bind(5, next, pid, 5, came, 5, c_loc(inbox), room, failed) == 0, "gamma_bind")
    call check(gamma_bind(200, gamma_broadcast, pid, 200, came, 200, c_loc(inbox), room) == 0, &
        "broadcast")
    call check(gamma_sync() == 0, "gamma_sync")

    outbox = [(i + gamma_my_node(), i = 1, size(outbox))]
    call check(gamma_send(5_c_short, c_loc(outbox), room) == 0, "gamma_send")
    call check(gamma_wait(5_c_short, 1) == 0, "gamma_wait")
    call check(gamma_msglen == room, "gamma_msglen")
    call check(all(inbox == [(i + mod(gamma_my_node() + 2, 3), i = 1, size(inbox))]), "what came")
    call check(gamma_sync() == 0, "gamma_sync")

    if (gamma_my_node() == 1) then
        call check(gamma_send_2p(200_c_short, c_loc(outbox), 4_c_long, &
            c_loc(outbox(100)), 4_c_long) == 0, "2p")
    else
        call check(gamma_wait(200_c_short, 1) == 0, "gamma_wait")
        call check(inbox(1) == 2 .and. inbox(2) == 101, "the broadcast")
        call check(gamma_atomic(twice) == 0 .and. inbox(1) == 4, "gamma_atomic")
    end if
    call check(gamma_sync() == 0, "gamma_sync")

    call check(gamma_send_flowctl(5_c_short, c_loc(outbox), 8000_c_long) == 0, "overlong")
    call check(gamma_sync() == 0, "gamma_sync")
    do while (errors == 0)
        call check(gamma_test(5_c_short, 1) == 0, "gamma_test")
    end do
    call check(gamma_time_diff(start, gamma_time()) > 0, "gamma_time")
    call check(gamma_sync() == 0, "gamma_sync")
    call check(gamma_exit() == 0, "gamma_exit")
    print "(a)", "all well"
contains
    subroutine check(holds, what)
        logical, intent(in) :: holds
        character(*), intent(in) :: what
        if (holds) return
        print "(2a)", "FAILED: ", what
        stop 1
    end subroutine
end program
PROGRAM

gfortran -std=f2018 -Wall -Wextra -Werror -o ring \
    "$RMEM_SOURCE_DIR/ports/gamma/libgamma.f90" ring.f90 \
    -L"$RMEM_BUILD_DIR/ports/gamma" -lgamma \
    -Wl,-rpath,"$RMEM_BUILD_DIR/ports/gamma:$RMEM_BUILD_DIR/billboard:$RMEM_BUILD_DIR/rmem" \
    -Wl,-rpath-link,"$RMEM_BUILD_DIR/billboard:$RMEM_BUILD_DIR/rmem"
"$rmem" run -n 3 --join-timeout 20s -- ./ring | tee said
[[ $(grep -c 'all well' said) == 3 ]]
