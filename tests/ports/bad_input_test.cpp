// SPDX-License-Identifier: Apache-2.0
// What the headers of the ports say of programs that do what they should not. Most of it is tested
// beside each port's own tests; here is what is not.
#include "tests/ports/dp/points.hpp"
#include "tests/ports/fm/fm_support.hpp"
#include "tests/support/gamma_ranks.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstring>

namespace rmem::test {
namespace {

class BadInput : public Conformance {};
RMEM_ON_ALL_RINGS_AND_LOSS(BadInput);

// ---- Fast Messages 2.x

int short_messages = 0;  // at node 0
int wait_for_more(FM_stream* stream, unsigned) {
    std::byte bytes[2 * 8192];
    FM_receive(bytes, stream, sizeof bytes);
    return FM_CONTINUE;
}
int count_short(FM_stream*, unsigned) {
    ++short_messages;
    return FM_CONTINUE;
}

TEST_P(BadInput, a_handler_of_fm2_whose_message_never_ends_is_counted_and_others_go_on) {
    run(3, [](Rank& me) {
        enum { entered, others_done, ended };
        const FmSession session;
        constexpr int kMessages = 30;
        FM_register_handler(1, wait_for_more);
        FM_register_handler(2, count_short);
        if (me.rank == 0) {
            short_messages = 0;
            extract2_until([] { return count_of(FM_HANDLERS_SUSPENDED) > 0; });
            me.raise(entered);
            extract2_until([&] { return short_messages == kMessages; });
            check_equal(count_of(FM_HANDLERS_ENTERED), kMessages + 1, "handlers entered");
            check_equal(count_of(FM_HANDLERS_LEFT), kMessages, "handlers that have returned");
            me.raise(others_done);
            extract2_until([] { return count_of(FM_HANDLERS_LEFT) == kMessages + 1; });
            return me.raise(ended);
        }
        if (me.rank == 1) {
            std::array<std::byte, 8192> bytes{};
            FM_stream* s = FM_begin_message(0, 2 * bytes.size(), 1);
            check(s != nullptr, "FM_begin_message");
            FM_send_piece(s, bytes.data(), bytes.size());
            me.await_word(others_done);
            FM_send_piece(s, bytes.data(), bytes.size());
            FM_end_message(s);
        } else {
            me.await_word(entered);
            for (int i = 0; i < kMessages; ++i) FM_end_message(FM_begin_message(0, 0, 2));
        }
        extract2_until([&] { return me.shared[ended] == 1; });
    });
}

// ---- GAMMA

std::array<int, 3> refusals{};
void call_what_no_handler_may() {
    refusals = {gamma_sync(), gamma_exit(), gamma_init(1, 0, nullptr)};
    gamma::count_and_signal();
}

TEST_P(BadInput, a_handler_of_gamma_that_calls_what_it_may_not_is_refused) {
    run(1, [](Rank&) {
        gamma::start(1);
        gamma::bind_to(0, {.on_message = call_what_no_handler_may});
        refusals = {};
        check_ok(gamma::send_pattern(5, 8, 1));
        check_ok(gamma_wait(5, 1), "gamma_wait");
        for (const int refusal : refusals) check_code(refusal, GAMMA_EINVAL, "in a handler");
        check_ok(gamma_sync(), "and the program goes on");
        check_ok(gamma_exit());
    });
}

// ---- Directed Point

/// A descriptor, or room for one, and a byte that goes with it.
struct Handed {
    char byte = 0;
    iovec bytes{&byte, 1};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
    msghdr message{nullptr, 0, &bytes, 1, control, sizeof control, 0};
};
void hand_over(int socket, int fd) {
    Handed handed;
    cmsghdr* const head = CMSG_FIRSTHDR(&handed.message);
    *head = {CMSG_LEN(sizeof fd), SOL_SOCKET, SCM_RIGHTS};
    std::memcpy(CMSG_DATA(head), &fd, sizeof fd);
    check_equal(::sendmsg(socket, &handed.message, 0), 1, "sendmsg");
}
int take_over(int socket) {
    Handed handed;
    check_equal(::recvmsg(socket, &handed.message, 0), 1, "recvmsg");
    int fd = -1;
    std::memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&handed.message)), sizeof fd);
    return fd;
}

TEST_P(BadInput, a_descriptor_of_directed_point_that_was_handed_over_serves_read_and_write_alone) {
    RMEM_SKIP_IF_SIMULATED("nobody serves descriptors");
    int sockets[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, sockets), 0);
    run(2, [&](Rank& me) {
        Point point(1);
        all_are_open(me);
        if (me.rank == 0) {
            point.to(1, 1);
            hand_over(sockets[0], point.fd());
            await([&] { return point.stat().served_writes == 1; }, "the other's write");
            return me.await_word(0);
        }
        // It is an endpoint of the other, also where this process has endpoints of its own.
        const int theirs = take_over(sockets[1]);
        check_is_no_endpoint(theirs);
        check_equal(::write(theirs, "a message", 9), 9, "write(2)");
        char* at = nullptr;
        check_equal(dp_read(point.fd(), &at), 9, "what it has sent to the endpoint's target");
        check(std::memcmp(at, "a message", 9) == 0, "its bytes");
        ::close(theirs);
        me.raise(0);
    });
    for (const int fd : sockets) ::close(fd);
}

}  // namespace
}  // namespace rmem::test
