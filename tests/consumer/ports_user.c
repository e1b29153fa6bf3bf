/* SPDX-License-Identifier: Apache-2.0 */
/* One program with all systems: each of two ranks sends a number to the other by each of them, and
 * waits for the other's. MU-Net's daemon is where RMEM_MUNET says. */
#include <billboard/bbp.h>
#include <dp/dp.h>
#include <fm/fm1.h>
#include <fm/fm2.h>
#include <gamma/libgamma.h>
#include <munet/munet.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static int rank, other;
static int by_fm1 = -1, by_fm2 = -1, by_gamma = -1;

static void check(int holds, const char* what) {
    if (holds) return;
    fprintf(stderr, "rank %d: %s; %s %s %s\n", rank, what, bbp_last_error(), dp_last_error(),
            mu_last_error());
    exit(1);
}

static void take_fm1(int number, int b, int c, int d) {
    by_fm1 = number + b + c + d;
}
static int take_fm2(FM_stream* stream, unsigned sender) {
    FM_receive(&by_fm2, stream, sizeof by_fm2);
    return sender == (unsigned)other ? FM_CONTINUE : FM_QUIT;
}
static void take_gamma(void) {
    gamma_signal(5);
}

static void billboard_and_munet(void) {
    mu_endpoint_t* ep;
    mu_addr_t own, to = {0, 0}, from;
    int number = 10 + rank, got = -1;
    size_t size = 0;
    check(mu_create_endpoint(&ep, 65536, 65536) == 0, "mu_create_endpoint");
    check(mu_address(ep, &own) == 0, "mu_address");
    check(bbp_send(other, &own.ep, 1) == BBP_OK, "bbp_send");
    check(bbp_recv(other, &to.ep, 1, &size) == other && size == 1, "bbp_recv");
    check(mu_send(ep, to, &number, sizeof number) == 0, "mu_send");
    while (mu_recv(ep, &got, sizeof got, &from) == -EAGAIN) check(mu_wait(ep, -1) == 0, "mu_wait");
    check(got == 10 + other && from.ep == to.ep, "MU-Net's number");
    check(bbp_barrier() == BBP_OK, "bbp_barrier");
    mu_destroy_endpoint(ep);
}

static void fast_messages(ULONG handler) {
    int number = 20 + rank;
    FM_stream* stream = FM_begin_message((ULONG)other, sizeof number, handler);
    check(stream != NULL, "FM_begin_message");
    FM_send_piece(stream, &number, sizeof number);
    FM_end_message(stream);
    FM_send_4(other, take_fm1, 30 + rank, 0, 0, 0);
    while (by_fm1 < 0 || by_fm2 < 0) {
        FM_extract();
        FM_extract(~0UL);
    }
    check(by_fm2 == 20 + other, "the number of FM 2.x");
    check(by_fm1 == 30 + other, "the number of FM 1.0");
}

static void active_ports(void) {
    int number = 40 + rank;
    check(gamma_send(5, &number, sizeof number) == 0, "gamma_send");
    check(gamma_wait(5, 1) == 0 && by_gamma == 40 + other, "GAMMA's number");
}

static void directed_point(int fd) {
    int number = 50 + rank;
    char* at;
    dp_target(fd, other, 7);
    check(dp_write(fd, &number, sizeof number) == sizeof number, "dp_write");
    check(dp_read(fd, &at) == sizeof number && *(int*)(void*)at == 50 + other, "DP's number");
    check(dp_fsync(fd, 1) == 1, "dp_fsync");
}

int main(int argc, char** argv) {
    int ranks, fd;
    ULONG handler;
    alarm(60);
    check(FM_version() == FM_VERSION && gamma_version() == GAMMA_VERSION, "version");
    check(dp_version() == DP_VERSION && mu_version() == MU_VERSION, "version");
    check(bbp_init(&rank, &ranks) == BBP_OK && ranks == 2, "bbp_init");
    other = 1 - rank;
    FM_initialize();
    check(FM_numnodes == 2, "FM_initialize");
    handler = FM_register_handler(FM_ANY_ID, take_fm2);
    check(gamma_init(2, argc, argv) == 0, gamma_last_error());
    check(gamma_setport(5, 0, other, 5, take_gamma, NULL, &by_gamma, sizeof by_gamma) == 0,
          gamma_last_error());
    fd = dp_open(7);
    check(fd >= 0, "dp_open");
    check(gamma_sync() == 0, "gamma_sync");
    billboard_and_munet();
    fast_messages(handler);
    active_ports();
    directed_point(fd);
    check(bbp_barrier() == BBP_OK, "bbp_barrier");
    dp_close(fd);
    check(gamma_exit() == 0, "gamma_exit");
    FM_finalize();
    check(bbp_finalize() == BBP_OK, "bbp_finalize");
    printf("six systems\n");
    return 0;
}
