! SPDX-License-Identifier: Apache-2.0
!
! GAMMA for Fortran: the functions of <gamma/libgamma.h> under their names, and what Fortran cannot
! say to C by itself.
!
!     use libgamma
!     result = gamma_init(2)
!     result = gamma_bind(5, other, gamma_my_par_pid(), 5, came, 5, c_loc(in), size_in_bytes)
!     result = gamma_send(5_c_short, c_loc(out), size_in_bytes)
!     result = gamma_wait(5_c_short, 1)
!
! Contract: that of the header; GAMMA's paper names a Fortran interface and prints none, so all of
! this is a reconstruction. Handlers are subroutines without arguments, of kind bind(c). Buffers
! need the attribute target.
module libgamma
    use, intrinsic :: iso_c_binding
    implicit none

    integer, parameter :: gamma_broadcast = 65535
    integer(c_signed_char), parameter :: gamma_go_back = 0
    integer(c_int), parameter :: gamma_eagain = -1, gamma_einval = -2, gamma_enode = -3, &
        gamma_esize = -4, gamma_epeer = -5, gamma_etimedout = -6, gamma_enomem = -7, &
        gamma_esys = -8, gamma_ecorrupt = -9, gamma_eversion = -10, gamma_ebusy = -11, &
        gamma_eport = -12, gamma_elost = -13, gamma_eoverlong = -14, gamma_esignal = -15

    ! What a handler reads.
    integer(c_short), bind(c, name="gamma_active_port") :: gamma_active_port
    integer(c_long), bind(c, name="gamma_msglen") :: gamma_msglen
    integer(c_int), bind(c, name="gamma_errno") :: gamma_errno

    type, bind(c) :: gamma_time_t
        integer(c_long_long) :: ns
    end type

    abstract interface
        subroutine gamma_handler() bind(c)
        end subroutine
    end interface

    interface
        integer(c_int) function c_gamma_init(num_nodes, argc, argv) bind(c, name="gamma_init")
            import
            integer(c_signed_char), value :: num_nodes
            integer(c_int), value :: argc
            type(c_ptr), value :: argv
        end function
        integer(c_int) function gamma_exit() bind(c, name="gamma_exit")
            import
        end function
        subroutine gamma_abort() bind(c, name="gamma_abort")
        end subroutine
        integer(c_int) function gamma_version() bind(c, name="gamma_version")
            import
        end function
        integer(c_int) function gamma_my_par_pid() bind(c, name="gamma_my_par_pid")
            import
        end function
        integer(c_int) function gamma_my_node() bind(c, name="gamma_my_node")
            import
        end function
        integer(c_int) function gamma_how_many_nodes() bind(c, name="gamma_how_many_nodes")
            import
        end function

        integer(c_int) function c_gamma_set_active_port(port, dest_node, dest_par_pid, dest_port, &
                handler, semaphore, buffer_kind, buffer, bytes) &
                bind(c, name="gamma_set_active_port")
            import
            integer(c_short), value :: port, dest_node, dest_port, semaphore
            integer(c_signed_char), value :: dest_par_pid, buffer_kind
            type(c_funptr), value :: handler
            type(c_ptr), value :: buffer
            integer(c_long), value :: bytes
        end function
        integer(c_int) function c_gamma_set_error_handler(port, handler) &
                bind(c, name="gamma_set_error_handler")
            import
            integer(c_short), value :: port
            type(c_funptr), value :: handler
        end function
        integer(c_int) function gamma_post_recv(port, buffer, bytes) bind(c, name="gamma_post_recv")
            import
            integer(c_short), value :: port
            type(c_ptr), value :: buffer
            integer(c_long), value :: bytes
        end function

        integer(c_int) function gamma_send(port, buffer, bytes) bind(c, name="gamma_send")
            import
            integer(c_short), value :: port
            type(c_ptr), value :: buffer
            integer(c_long), value :: bytes
        end function
        integer(c_int) function gamma_send_flowctl(port, buffer, bytes) &
                bind(c, name="gamma_send_flowctl")
            import
            integer(c_short), value :: port
            type(c_ptr), value :: buffer
            integer(c_long), value :: bytes
        end function
        integer(c_int) function gamma_send_2p(port, b1, n1, b2, n2) bind(c, name="gamma_send_2p")
            import
            integer(c_short), value :: port
            type(c_ptr), value :: b1, b2
            integer(c_long), value :: n1, n2
        end function

        integer(c_int) function gamma_wait(sem, n) bind(c, name="gamma_wait")
            import
            integer(c_short), value :: sem
            integer(c_int), value :: n
        end function
        integer(c_int) function gamma_test(sem, n) bind(c, name="gamma_test")
            import
            integer(c_short), value :: sem
            integer(c_int), value :: n
        end function
        integer(c_int) function gamma_signal(sem) bind(c, name="gamma_signal")
            import
            integer(c_short), value :: sem
        end function
        integer(c_int) function gamma_sigerr(sem) bind(c, name="gamma_sigerr")
            import
            integer(c_short), value :: sem
        end function
        integer(c_int) function gamma_sync() bind(c, name="gamma_sync")
            import
        end function
        integer(c_int) function c_gamma_atomic(fn) bind(c, name="gamma_atomic")
            import
            type(c_funptr), value :: fn
        end function

        type(gamma_time_t) function gamma_time() bind(c, name="gamma_time")
            import
        end function
        real(c_double) function gamma_time_diff(from, to) bind(c, name="gamma_time_diff")
            import
            type(gamma_time_t), value :: from, to
        end function
    end interface

contains

    integer(c_int) function gamma_init(num_nodes)
        integer, intent(in) :: num_nodes
        gamma_init = gamma_einval
        if (num_nodes < 1 .or. num_nodes > 255) return
        gamma_init = c_gamma_init(as_byte(num_nodes), 0_c_int, c_null_ptr)
    end function

    ! gamma_set_active_port, and the error handler where there is one; gamma_broadcast is a
    ! destination node too.
    integer(c_int) function gamma_bind(port, dest_node, dest_par_pid, dest_port, handler, &
            semaphore, buffer, bytes, error_handler)
        integer, intent(in) :: port, dest_node, dest_par_pid, dest_port, semaphore
        procedure(gamma_handler) :: handler
        type(c_ptr), intent(in) :: buffer
        integer(c_long), intent(in) :: bytes
        procedure(gamma_handler), optional :: error_handler
        gamma_bind = gamma_eport
        if (min(port, dest_port, semaphore) < 0 .or. max(port, dest_port, semaphore) > 255) return
        gamma_bind = gamma_enode
        if (min(dest_node, dest_par_pid) < 0 .or. dest_node > 65535 .or. dest_par_pid > 255) return
        gamma_bind = c_gamma_set_active_port(int(port, c_short), as_short(dest_node), &
            as_byte(dest_par_pid), int(dest_port, c_short), c_funloc(handler), &
            int(semaphore, c_short), gamma_go_back, buffer, bytes)
        if (gamma_bind < 0 .or. .not. present(error_handler)) return
        gamma_bind = c_gamma_set_error_handler(int(port, c_short), c_funloc(error_handler))
    end function

    integer(c_int) function gamma_atomic(fn)
        procedure(gamma_handler) :: fn
        gamma_atomic = c_gamma_atomic(c_funloc(fn))
    end function

    ! Fortran has no unsigned kinds: the same bits.
    integer(c_signed_char) function as_byte(n)
        integer, intent(in) :: n
        as_byte = int(merge(n - 256, n, n > 127), c_signed_char)
    end function
    integer(c_short) function as_short(n)
        integer, intent(in) :: n
        as_short = int(merge(n - 65536, n, n > 32767), c_short)
    end function

end module libgamma
