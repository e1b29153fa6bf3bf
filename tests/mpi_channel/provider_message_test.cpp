// SPDX-License-Identifier: Apache-2.0
// ctest: check
//
// Messages, addresses and the lifetime of objects, through libfabric.
#include "tests/support/provider_rank.hpp"

#include <gtest/gtest.h>

namespace rmem::test {
namespace {

constexpr std::uint64_t kTag = 0x77;

/// Asks until the message is here.
Entry peek(ProviderRank& fabric, std::uint64_t flags, void* context) {
    for (;;) {
        const fi_msg_tagged message = fabric.tagged(kTag, context);
        check_call(fi_trecvmsg(fabric.ep, &message, FI_PEEK | flags), "peeking");
        Entry entry = fabric.next();
        if (entry.error.err == 0) return entry;
        check_equal(entry.error.err, FI_ENOMSG, "of a message that has not come");
        check(entry.error.op_context == context, "the context");
    }
}

TEST(ProviderMessage, is_peeked_claimed_received_or_discarded) {
    for (const std::size_t size : {8UL, 50'000UL, 500'000UL}) {
        with_fabric(2, {}, [size](Rank& me, ProviderRank& fabric) {
            if (me.rank == 0) {
                std::vector<std::vector<char>> all;
                for (unsigned i = 0; i < 4; ++i) all.push_back(some_bytes(size, i));
                for (auto& bytes : all) fabric.send_with_word(bytes.data(), size, 5, kTag, &me);
                for (int i = 0; i < 4; ++i) fabric.expect(&me, FI_SEND);
            } else {
                fi_context first{}, second{};
                const Entry seen = peek(fabric, 0, &first);
                check_equal(seen.told.len, size, "the length");
                check_equal(seen.told.data, 5U, "the word");
                check_equal(seen.told.tag, kTag, "the tag");
                peek(fabric, FI_CLAIM, &first);    // the first
                peek(fabric, FI_DISCARD, &first);  // the second
                peek(fabric, FI_CLAIM, &second);   // the third
                fi_msg_tagged message = fabric.tagged(kTag, &second);
                check_call(fi_trecvmsg(fabric.ep, &message, FI_CLAIM | FI_DISCARD), "discarding");
                fabric.expect(&second, FI_RECV);
                std::vector<char> in(size);
                const iovec part{in.data(), size};
                message = fabric.tagged(kTag, &first, &part);
                check_call(fi_trecvmsg(fabric.ep, &message, FI_CLAIM), "receiving the first");
                check_equal(fabric.expect(&first, FI_RECV).told.len, size, "the length");
                check(in == some_bytes(size, 0), "bytes of the first");
                check_call(fi_trecvmsg(fabric.ep, &message, FI_CLAIM), "a second time", -FI_EINVAL);
                fabric.receive(in.data(), size, kTag, &in);
                fabric.expect(&in, FI_RECV);
                check(in == some_bytes(size, 3), "bytes of the last");
            }
        });
    }
}

TEST(ProviderMessage, a_message_that_is_cut_tells_how_much_there_was) {
    with_fabric(2, {}, [](Rank& me, ProviderRank& fabric) {
        std::vector<char> bytes(300'000, 'x');
        for (const std::size_t size : {100UL, 50'000UL, 300'000UL}) {
            if (me.rank == 0) {
                fabric.send_with_word(bytes.data(), size, 9, kTag, &me);
                fabric.expect(&me, FI_SEND);
                continue;
            }
            check_call(fi_trecv(fabric.ep, bytes.data(), 60, nullptr, fabric.of[0], 0,
                                ~std::uint64_t{0}, &me),
                       "fi_trecv");
            const fi_cq_err_entry error = fabric.expect_error(&me, FI_ETRUNC);
            check_equal(error.len, 60U, "what was received");
            check_equal(error.olen, size - 60, "what was not");
            check_equal(error.tag, kTag, "the tag");
            check_equal(error.data, 9U, "the word");
            check_equal(error.flags & (FI_RECV | FI_TAGGED), FI_RECV | FI_TAGGED, "flags");
        }
    });
}

TEST(ProviderMessage, several_share_a_buffer_until_it_is_full) {
    with_fabric(2, {}, [](Rank& me, ProviderRank& fabric) {
        if (me.rank == 0) {
            for (unsigned i = 0; i < 6; ++i) {
                const auto bytes = some_bytes(1000, i);
                check_call(fi_send(fabric.ep, bytes.data(), 1000, nullptr, fabric.of[1], &me), "");
                fabric.expect(&me, FI_SEND | FI_MSG);
            }
        } else {
            std::vector<char> buffers[2] = {std::vector<char>(3500), std::vector<char>(3500)};
            std::size_t least = 600;
            check_call(fi_setopt(&fabric.ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &least,
                                 sizeof least),
                       "FI_OPT_MIN_MULTI_RECV");
            for (auto& buffer : buffers) {
                const iovec part{buffer.data(), buffer.size()};
                fi_msg message{};
                message.msg_iov = &part;
                message.iov_count = 1;
                message.addr = FI_ADDR_UNSPEC;
                message.context = &buffer;
                check_call(fi_recvmsg(fabric.ep, &message, FI_MULTI_RECV | FI_COMPLETION), "");
            }
            for (unsigned i = 0; i < 6; ++i) {
                auto& buffer = buffers[i / 3];
                const Entry entry = fabric.expect(&buffer, FI_RECV | FI_MSG);
                check(entry.told.buf == buffer.data() + i % 3 * 1000, "its place");
                check_equal(entry.told.len, 1000U, "its length");
                check(std::memcmp(entry.told.buf, some_bytes(1000, i).data(), 1000) == 0, "bytes");
                const bool is_last = (entry.told.flags & FI_MULTI_RECV) != 0;
                check(is_last == (i % 3 == 2), "whether the buffer is free again");
            }
        }
    });
}

TEST(ProviderMessage, a_receive_is_cancelled_once) {
    with_fabric(1, {}, [](Rank& me, ProviderRank& fabric) {
        char text[8];
        check_call(fi_trecv(fabric.ep, text, 8, nullptr, FI_ADDR_UNSPEC, kTag, 0, &me), "fi_trecv");
        check_call(fi_cancel(&fabric.ep->fid, text), "another", -FI_ENOENT);
        check_call(fi_cancel(&fabric.ep->fid, &me), "fi_cancel");
        fabric.expect_error(&me, FI_ECANCELED);
        check_call(fi_cancel(&fabric.ep->fid, &me), "again", -FI_ENOENT);
    });
}

TEST(ProviderMessage, one_that_waits_for_its_match_ends_with_it) {
    with_fabric(2, {}, [](Rank& me, ProviderRank& fabric) {
        char text[8] = "seven";
        if (me.rank == 0) {
            const iovec part{text, 8};
            const fi_msg_tagged message = fabric.tagged(kTag, &me, &part);
            check_call(fi_tsendmsg(fabric.ep, &message, FI_MATCH_COMPLETE | FI_COMPLETION), "");
            for (int i = 0; i < 1000; ++i) fabric.expect_nothing();
            me.raise(0);
            fabric.expect(&me, FI_SEND);
        } else {
            me.await_word(0);
            fabric.receive(text, 8, kTag, &me);
            fabric.expect(&me, FI_RECV);
        }
    });
}

TEST(ProviderMessage, what_cannot_be_is_refused_at_once) {
    run_ranks(provider_ring(1), [](Rank& me) {
        ProviderRank fabric(me);
        std::vector<char> bytes(10'000);
        check_call(fi_tsend(fabric.ep, bytes.data(), 8, nullptr, 0, kTag, nullptr),
                   "before it is enabled", -FI_EOPBADSTATE);
        check_call(fi_read(fabric.ep, bytes.data(), 8, nullptr, 0, 0, 0, nullptr), "the same",
                   -FI_EOPBADSTATE);
        check_call(fi_ep_bind(fabric.ep, &fabric.queue->fid, FI_RECV), "a second queue",
                   -FI_EINVAL);
        fabric.enable();
        check_call(fi_tinject(fabric.ep, bytes.data(), fabric.info->tx_attr->inject_size + 1,
                              fabric.of[0], kTag),
                   "too much to inject", -FI_EMSGSIZE);
        check_call(fi_tsend(fabric.ep, bytes.data(), 8, nullptr, 17, kTag, nullptr), "to nobody",
                   -FI_EINVAL);
        const std::vector<iovec> parts(fabric.info->tx_attr->iov_limit + 1, {bytes.data(), 1});
        check_call(
            fi_tsendv(fabric.ep, parts.data(), nullptr, parts.size(), fabric.of[0], kTag, nullptr),
            "too many parts", -FI_EINVAL);
        check_call(fi_trecvv(fabric.ep, parts.data(), nullptr, parts.size(), fabric.of[0], kTag, 0,
                             nullptr),
                   "too many parts", -FI_EINVAL);
        fabric.close();
    });
}

TEST(ProviderAddresses, are_inserted_looked_up_described_and_removed) {
    for (const fi_av_type type : {FI_AV_TABLE, FI_AV_MAP}) {
        with_fabric(1, {.vector = type}, [](Rank&, ProviderRank& fabric) {
            std::uint32_t own[4], found[4] = {};
            std::size_t size = sizeof own;
            check_call(fi_getname(&fabric.ep->fid, own, &size), "fi_getname");
            size = 4;
            check_call(fi_getname(&fabric.ep->fid, found, &size), "too little room", -FI_ETOOSMALL);
            check_equal(size, sizeof own, "what it takes");
            std::uint32_t three[12] = {};
            std::memcpy(three, own, sizeof own);
            std::memset(three + 4, 0xff, sizeof own);
            std::memcpy(three + 8, own, sizeof own);
            fi_addr_t indices[3] = {};
            int errors[3] = {-1, -1, -1};
            check_call(fi_av_insert(fabric.vector, three, 3, indices, FI_SYNC_ERR, errors),
                       "fi_av_insert", 2);
            check_equal(indices[1], FI_ADDR_NOTAVAIL, "of none");
            check_equal(indices[2], indices[0] + 1, "of the next");
            check(errors[0] == 0 && errors[1] == FI_EINVAL && errors[2] == 0, "errors");
            size = sizeof found;
            check_call(fi_av_lookup(fabric.vector, indices[2], found, &size), "fi_av_lookup");
            check(std::memcmp(found, own, sizeof own) == 0, "what was inserted");
            char text[64] = {}, begin[8] = {};
            size = sizeof text;
            fi_av_straddr(fabric.vector, own, text, &size);
            check(std::string(text).starts_with("bbp://") && std::string(text).ends_with("/0"),
                  text);
            check_equal(size, std::strlen(text) + 1, "the length of the text");
            size = sizeof begin;
            fi_av_straddr(fabric.vector, own, begin, &size);
            check(std::string(begin) == std::string(text).substr(0, 7), "a text cut");
            check_call(fi_av_remove(fabric.vector, &indices[2], 1, 0), "fi_av_remove");
            check_call(fi_av_remove(fabric.vector, &indices[2], 1, 0), "again", -FI_EINVAL);
            check_call(fi_av_lookup(fabric.vector, indices[2], found, &size), "then", -FI_EINVAL);
            check_call(fi_tinject(fabric.ep, own, 4, indices[2], kTag), "to it", -FI_EINVAL);
            check_call(fi_tinject(fabric.ep, own, 4, fabric.of[0], kTag), "to another");
        });
    }
}

TEST(ProviderRestart, what_is_used_is_not_closed) {
    with_fabric(1, {}, [](Rank&, ProviderRank& fabric) {
        for (struct fid* used :
             {&fabric.queue->fid, &fabric.vector->fid, &fabric.domain->fid, &fabric.fabric->fid})
            check_call(fi_close(used), "closing what is used", -FI_EBUSY);
    });
}

TEST(ProviderRestart, what_was_injected_last_arrives_though_the_sender_closes) {
    run_ranks(provider_ring(), [](Rank& me) {
        ProviderRank fabric(me);
        fabric.enable();
        constexpr unsigned kMessages = 500;  // more than the ring has room for
        std::vector<char> bytes(2000);
        if (me.rank == 0) {
            for (unsigned i = 0; i < kMessages; ++i) {
                std::memcpy(bytes.data(), &i, sizeof i);
                fabric.inject(bytes.data(), bytes.size(), kTag);
            }
            me.raise(0);
            return fabric.close();
        }
        me.await_word(0);
        rest(std::chrono::milliseconds(50));
        for (unsigned i = 0; i < kMessages; ++i) {
            fabric.receive(bytes.data(), bytes.size(), kTag, &me);
            fabric.expect(&me, FI_RECV);
            unsigned number = 0;
            std::memcpy(&number, bytes.data(), sizeof number);
            check_equal(number, i, "the message's number");
        }
        fabric.close();
    });
}

/// Rank 0 injects until nothing more is taken, then rank 1 is killed, which rank 0 learns of by
/// itself. MPIs that are told of an error look into its context, and what is injected has none.
TEST(ProviderRestart, what_is_injected_to_a_rank_that_dies_is_an_error_for_counters_alone) {
    for (const bool counts : {false, true}) {
        const auto body = [counts](Rank& me) {
            ProviderSetup setup;
            if (counts) setup.counters = {FI_SEND};
            ProviderRank fabric(me, setup);
            fabric.enable();
            if (me.rank == 1) {
                me.raise(0);
                me.await_word(5);  // never
            }
            std::vector<char> bytes(2000);
            ssize_t result = 0;
            const auto inject = [&] {
                result = fi_tinject(fabric.ep, bytes.data(), bytes.size(), fabric.of[1], kTag);
                return result;
            };
            await([&] { return inject() != 0; }, "a backlog that is full");
            check_call(result, "fi_tinject", -FI_EAGAIN);
            me.raise(0);
            me.await_word(1);
            await([&] { return inject() == 0; }, "the end of what nobody will take");
            // That may have been room which the dead had still made; this is known to be the end.
            fabric.receive(bytes.data(), 8, kTag, &me);
            fabric.expect_error(&me, FI_ECONNABORTED);
            check_call(inject(), "fi_tinject to a rank that is known as dead");
            check_call(fi_inject(fabric.ep, bytes.data(), bytes.size(), fabric.of[1]), "fi_inject");
            for (int i = 0; i < 1000; ++i) fabric.expect_nothing();
            if (counts) check(fi_cntr_readerr(fabric.counters[0]) > 2, "errors are counted");
            fabric.close();
        };
        run_while_one_dies(1, provider_ring(), body);
    }
}

TEST(ProviderInfo, is_what_was_asked_for_or_nothing) {
    run_ranks(provider_ring(1), [](Rank&) {
        const auto ask = [](const std::function<void(fi_info&)>& change,
                            const std::function<void(const fi_info&)>& look = {}) {
            fi_info* hints = fi_allocinfo();
            hints->fabric_attr->prov_name = ::strdup("bbp");
            hints->mode = FI_CONTEXT;
            change(*hints);
            fi_info* info = nullptr;
            const int result = fi_getinfo(FI_VERSION(1, 17), nullptr, nullptr, 0, hints, &info);
            if (result == 0 && look) look(*info);
            fi_freeinfo(info);
            fi_freeinfo(hints);
            return result;
        };
        check_call(ask([](fi_info&) {}), "anything");
        check_call(ask([](fi_info& h) { h.caps = FI_RMA; },
                       [](const fi_info& info) {
                           const std::uint64_t all =
                               FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;
                           check_equal(info.caps & all, all, "the directions");
                           check_equal(info.tx_attr->caps & FI_REMOTE_READ, 0U, "of a sender");
                           check_equal(info.domain_attr->mr_mode, 0, "the mode");
                           check(info.tx_attr->rma_iov_limit >= 1, "places");
                       }),
                   "access");
        check_call(ask([](fi_info& h) { h.caps = FI_ATOMIC; }), "atomics", -FI_ENODATA);
        check_call(ask([](fi_info& h) { h.ep_attr->type = FI_EP_MSG; }), "streams", -FI_ENODATA);
        check_call(ask([](fi_info& h) { h.tx_attr->msg_order = FI_ORDER_SAW; }),
                   "an order that is not kept", -FI_ENODATA);
        check_call(
            ask([](fi_info& h) { h.tx_attr->msg_order = FI_ORDER_SAS | FI_ORDER_ATOMIC_WAW; },
                [](const fi_info& info) {
                    check_equal(info.tx_attr->msg_order & FI_ORDER_SAS, FI_ORDER_SAS, "");
                }),
            "an order of what is not offered");
        check_call(ask([](fi_info& h) { h.domain_attr->threading = FI_THREAD_DOMAIN; },
                       [](const fi_info& info) {
                           check_equal(int{info.domain_attr->threading}, int{FI_THREAD_DOMAIN},
                                       "threads");
                       }),
                   "threads");
    });
}

}  // namespace
}  // namespace rmem::test
