// SPDX-License-Identifier: Apache-2.0
// ctest: check

/// Conformance: calls with invalid arguments, or at the wrong time, return their code and one
/// sentence, lose nothing and never crash. (billboard/bbp.h: codes, bbp_strerror, bbp_last_error;
/// refusals of bbp_init: joining_test.cpp.)

#include "tests/billboard/calls_of_rank.hpp"
#include "tests/support/child.hpp"
#include "tests/support/conformance.hpp"

#include <climits>
#include <set>

namespace rmem::test {
namespace {

class Errors : public Conformance {};
RMEM_ON_ALL_RINGS(Errors);

constexpr int kCodes[] = {BBP_EAGAIN,   BBP_EINVAL,    BBP_ERANK,  BBP_ESIZE,
                          BBP_EPEER,    BBP_ETIMEDOUT, BBP_ENOMEM, BBP_ESYS,
                          BBP_ECORRUPT, BBP_EVERSION,  BBP_EBUSY};

/// Every call is refused with `code` and a sentence.
void check_all_refused(int code) {
    std::byte buffer[16] = {};
    void* composed = nullptr;
    const int rank = 0;
    const auto refused = [code](int found, const char* call) {
        check_code(found, code, call);
        check_refused(found, call);
    };
    for (const auto& [name, asks, call] : calls_of_rank()) {
        refused(call(rank), name);
        if (asks) refused(call(BBP_ANY), name);
    }
    refused(bbp_compose(8, &composed), "bbp_compose");
    refused(bbp_post(0, buffer, 8), "bbp_post");
    refused(bbp_post_mcast(&rank, 1, buffer, 8), "bbp_post_mcast");
    refused(bbp_trypost(0, buffer, 8), "bbp_trypost");
    refused(bbp_trypost_mcast(&rank, 1, buffer, 8), "bbp_trypost_mcast");
    refused(bbp_post_for(0, buffer, 8, 1), "bbp_post_for");
    refused(bbp_post_mcast_for(&rank, 1, buffer, 8, 1), "bbp_post_mcast_for");
    refused(bbp_discard(buffer), "bbp_discard");
    refused(bbp_release(buffer), "bbp_release");
    refused(bbp_barrier(), "bbp_barrier");
    refused(bbp_barrier_for(1), "bbp_barrier_for");
    refused(bbp_barrier_group(&rank, 1, 0), "bbp_barrier_group");
    refused(bbp_barrier_group_for(&rank, 1, 0, 1), "bbp_barrier_group_for");
    refused(bbp_group_join("g"), "bbp_group_join");
    refused(bbp_group_leave("g"), "bbp_group_leave");
    refused(bbp_mcast_group("g", buffer, 8), "bbp_mcast_group");
    refused(bbp_fd(), "bbp_fd");
    refused(bbp_finalize(), "bbp_finalize");
}

TEST_P(Errors, tell_of_calls_before_init) {
    run_ranks(setup(1), [](Rank&) { check_all_refused(BBP_EINVAL); });
}

TEST_P(Errors, tell_of_calls_after_finalize) {
    run(2, [](Rank& me) {
        check_ok(bbp_barrier());
        me.leave();
        check_all_refused(BBP_EINVAL);
    });
}

TEST_P(Errors, tell_a_forked_child_that_it_is_not_on_the_ring_and_leave_its_parent_there) {
    RMEM_SKIP_IF_SIMULATED("its processes cannot fork");
    run(2, [](Rank& me) {
        if (me.rank == 0) {
            check(bbp_fd() >= 0, "bbp_fd");
            Child child([] {
                check_all_refused(BBP_EINVAL);
                check_said("fork()ed child");
            });
            check_equal(child.wait(), 0, "how the child ends");
        }
        for (const std::size_t size : {std::size_t{8}, 2 * kPartition}) {
            if (me.rank == 0) send(1, size, 1);
            if (me.rank == 1) receive(0, size, 1);  // and nothing of the child's before it
            if (me.rank == 1) send(0, size, 2);
            if (me.rank == 0) receive(1, size, 2);
        }
        check_ok(bbp_barrier());
    });
}

TEST_P(Errors, leave_the_sentence_where_it_was) {
    run(1, [](Rank&) {
        check_code(bbp_send(7, "x", 1), BBP_ERANK);
        const char* const sentence = bbp_last_error();
        check_code(bbp_send(0, nullptr, 1), BBP_EINVAL);
        check(bbp_last_error() == sentence, "the address is another after another failure");
        check_said("null pointer");
    });
}

TEST_P(Errors, tell_of_a_second_init_and_leave_the_first_alone) {
    run(2, [](Rank& me) {
        int rank = 77;
        int ranks = 77;
        check_code(bbp_init(&rank, &ranks), BBP_EINVAL);
        check_code(bbp_init(nullptr, nullptr), BBP_EINVAL);
        if (me.rank == 0) send(1, 5, 5);
        if (me.rank == 1) receive(0, 5, 5);
        check_ok(bbp_barrier());
    });
}

TEST_P(Errors, tell_of_ranks_that_do_not_exist) {
    run(3, [](Rank&) {
        for (const int rank : {3, 4, 255, 256, 1 << 20, INT_MAX, -2, -100, INT_MIN}) {
            for (const auto& [name, asks, call] : calls_of_rank())
                check_code(call(rank), BBP_ERANK, name);
            void* composed = nullptr;
            check_ok(bbp_compose(8, &composed));
            check_code(bbp_post(rank, composed, 8), BBP_ERANK, "bbp_post");
            check_ok(bbp_discard(composed));
        }
        // Anyone is no receiver.
        for (const auto& [name, asks, call] : calls_of_rank()) {
            if (!asks) check_code(call(BBP_ANY), BBP_ERANK, name);
        }
        check_ok(bbp_barrier());
        nothing_waits(BBP_ANY);
    });
}

TEST_P(Errors, tell_of_null_pointers_and_of_messages_larger_than_can_be_sent) {
    run(2, [](Rank& me) {
        const int other = 1 - me.rank;
        const std::byte byte{};
        const auto refused = [&](const auto& send, const char* name) {
            check_code(send(nullptr, std::size_t{1}), BBP_EINVAL, name);
            // Nothing of such a size exists, so nobody may look at the bytes.
            check_code(send(&byte, SIZE_MAX), BBP_ESIZE, name);
        };
        refused([=](auto at, auto size) { return bbp_send(other, at, size); }, "bbp_send");
        refused([=](auto at, auto size) { return bbp_trysend(other, at, size); }, "bbp_trysend");
        refused([=](auto at, auto size) { return bbp_send_for(other, at, size, kLong); },
                "bbp_send_for");
        refused([=](auto at, auto size) { return bbp_mcast(&other, 1, at, size); }, "bbp_mcast");
        check_code(bbp_recv(other, nullptr, 1, nullptr), BBP_EINVAL, "bbp_recv");
        check_code(bbp_tryrecv(other, nullptr, 1, nullptr), BBP_EINVAL, "bbp_tryrecv");
        check_code(bbp_recv_for(other, nullptr, 1, nullptr, kLong), BBP_EINVAL, "bbp_recv_for");
        check_ok(bbp_barrier());
        nothing_waits(BBP_ANY);
    });
}

TEST_P(Errors, come_with_a_sentence_that_names_what_was_found) {
    run(3, [](Rank& me) {
        std::byte buffer[16] = {};
        check_code(bbp_send(17, buffer, 1), BBP_ERANK);
        check_said("17");
        check_said("2");
        const int twice[] = {1, 2, 1};
        check_code(bbp_mcast(twice, 3, buffer, 1), BBP_EINVAL);
        check_said("1");
        const auto large = pattern(kPartition + 1, 0);
        check_code(bbp_trysend(1, large.data(), large.size()), BBP_ESIZE);
        check_said(std::to_string(kPartition + 1));
        check_said(std::to_string(kPartition));
        const int members[] = {0, 1, 2};
        check_code(bbp_barrier_group(members, 3, 1000), BBP_EINVAL);
        check_said("1000");
        send(me.rank, 345, 1);
        check_code(bbp_recv(me.rank, buffer, 12, nullptr), BBP_ESIZE);
        check_said("345");
        check_said("12");
        receive(me.rank, 345, 1);
        check_ok(bbp_barrier());
    });
}

TEST(ErrorCodes, each_have_a_text_of_their_own) {
    std::set<std::string> texts;
    for (const int code : kCodes) {
        const char* text = bbp_strerror(code);
        ASSERT_NE(text, nullptr);
        EXPECT_GT(std::string(text).size(), 3U) << code;
        EXPECT_TRUE(texts.insert(text).second) << code << " shares its text: " << text;
    }
    ASSERT_NE(bbp_strerror(BBP_OK), nullptr);
    EXPECT_FALSE(texts.contains(bbp_strerror(BBP_OK)));
}

TEST(ErrorCodes, codes_that_do_not_exist_have_a_text_too) {
    for (const int code : {1, 1000, -12, -13, -1000, INT_MAX, INT_MIN}) {
        const char* text = bbp_strerror(code);
        ASSERT_NE(text, nullptr) << code;
        EXPECT_FALSE(std::string(text).empty()) << code;
    }
}

TEST(ErrorCodes, are_negative_and_distinct) {
    const std::set<int> codes(std::begin(kCodes), std::end(kCodes));
    EXPECT_EQ(codes.size(), std::size(kCodes));
    for (const int code : codes) EXPECT_LT(code, 0);
}

}  // namespace
}  // namespace rmem::test
