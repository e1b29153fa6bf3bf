// SPDX-License-Identifier: Apache-2.0
// ctest: check
//
// FI_RMA through libfabric: rank 1 registers memory, rank 0 reads and writes it.
#include "tests/support/provider_rank.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace rmem::test {
namespace {

constexpr std::size_t kBytes = 4 << 20;
constexpr std::uint64_t kKey = 77;
constexpr std::uint64_t kAll = FI_REMOTE_READ | FI_REMOTE_WRITE;

/// Rank 1's memory, and how rank 0 names it.
struct Target {
    Target(Rank& me, ProviderRank& fabric, std::uint64_t access = kAll) : memory(kBytes) {
        if (me.rank == 1) {
            region = fabric.region(memory.data(), memory.size(), access, kKey);
            const auto address = reinterpret_cast<std::uintptr_t>(memory.data());
            const bool is_virtual =
                (fabric.info->domain_attr->mr_mode & (FI_MR_BASIC | FI_MR_VIRT_ADDR)) != 0;
            put(me, 0, fi_mr_key(region));
            put(me, 2, is_virtual ? address : 0);
        }
        fabric.meet();
        key = get(me, 0);
        base = get(me, 2);
    }
    static void put(Rank& me, std::size_t word, std::uint64_t value) {
        me.shared[word] = static_cast<std::uint32_t>(value);
        me.shared[word + 1] = static_cast<std::uint32_t>(value >> 32);
    }
    static std::uint64_t get(Rank& me, std::size_t word) {
        return me.shared[word] | std::uint64_t{me.shared[word + 1]} << 32;
    }
    void close(ProviderRank& fabric) {
        if (region == nullptr) return;
        check_call(fi_close(&fabric.domain->fid), "closing a domain that has a region", -FI_EBUSY);
        check_call(fi_close(&region->fid), "closing the region");
    }

    std::vector<char> memory;
    fid_mr* region = nullptr;
    std::uint64_t key = 0, base = 0;
};

/// Opens all, lets rank 0 do `initiate` while rank 1 makes progress, and then rank 1 look at what
/// it has.
void with_target(const RingSetup& ring, const ProviderSetup& setup, std::uint64_t access,
                 const std::function<void(ProviderRank&, Target&)>& initiate,
                 const std::function<void(ProviderRank&, Target&)>& look = {}) {
    with_fabric(ring, setup, [&](Rank& me, ProviderRank& fabric) {
        Target target(me, fabric, access);
        if (me.rank == 0) initiate(fabric, target);
        fabric.meet_in_progress();
        if (me.rank == 1 && look) look(fabric, target);
        fabric.meet_in_progress();
        target.close(fabric);
    });
}

void write_and_read(ProviderRank& fabric, Target& target) {
    for (const std::size_t size : {0UL, 1UL, 8UL, 4096UL, 20'000UL, 65'537UL, 3'000'000UL}) {
        auto out = some_bytes(size, static_cast<unsigned>(size)), in = some_bytes(size, 1);
        const std::uint64_t at = target.base + 13;
        fabric.write(out.data(), size, at, target.key, &out);
        fabric.expect(&out, FI_RMA | FI_WRITE);
        fabric.read(in.data(), size, at, target.key, &in);
        fabric.expect(&in, FI_RMA | FI_READ);
        check(in == out, fmt::format("{} bytes differ", size));
    }
}

class OnLinks : public testing::TestWithParam<const char*> {};

TEST_P(OnLinks, what_is_written_is_read_by_offset_and_own_key) {
    RingSetup ring = provider_ring();
    ring.link = GetParam();
    with_target(ring, {}, kAll, write_and_read);
}

INSTANTIATE_TEST_SUITE_P(ProviderAccess, OnLinks, testing::Values("direct", "ring", "udp"),
                         [](const auto& link) { return std::string(link.param); });

TEST(ProviderAccess, goes_by_address_and_the_provider_s_key_if_that_is_asked_for) {
    for (const int mode : {int{FI_MR_BASIC}, FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY}) {
        with_target(provider_ring(), {.mr_mode = mode}, kAll,
                    [mode](ProviderRank& fabric, Target& target) {
                        check_equal(fabric.info->domain_attr->mr_mode, mode, "the mode");
                        check(target.key != kKey, "the key is the program's");
                        write_and_read(fabric, target);
                    });
    }
}

TEST(ProviderAccess, works_by_reading_the_other_s_memory) {
    RingSetup ring = provider_ring();
    ring.extra["RMEM_MPI"] = "get=16K-2M";
    with_target(ring, {}, kAll, write_and_read);
}

TEST(ProviderAccess, what_may_not_be_touched_is_an_error_and_stays_as_it_is) {
    with_target(
        provider_ring(), {}, FI_REMOTE_READ,
        [](ProviderRank& fabric, Target& target) {
            auto bytes = some_bytes(300'000, 1);
            fabric.write(bytes.data(), 8, 0, kKey, &bytes);
            check_equal(fabric.expect_error(&bytes, FI_EACCES).flags & (FI_RMA | FI_WRITE),
                        FI_RMA | FI_WRITE, "the flags");
            struct {
                std::size_t size;
                std::uint64_t at, key;
                int error;
            } const reads[] = {{8, kBytes - 7, kKey, FI_EACCES},  // beyond the end
                               {300'000, kBytes - 299'999, kKey, FI_EACCES},
                               {8, ~0UL - 3, kKey, FI_EACCES},  // before the beginning
                               {8, 0, kKey + 1, FI_EKEYREJECTED}};
            for (const auto& read : reads) {
                fabric.read(bytes.data(), read.size, read.at, read.key, &bytes);
                fabric.expect_error(&bytes, read.error);
            }
            check(bytes == some_bytes(300'000, 1), "a failed read has left something");
            fabric.read(bytes.data(), 8, kBytes - 8, target.key, &bytes);
            fabric.expect(&bytes, FI_READ);
        },
        [](ProviderRank&, Target& target) {
            check(target.memory == std::vector<char>(kBytes), "memory has changed");
        });
}

TEST(ProviderAccess, the_initiator_s_word_comes_when_its_bytes_are_there) {
    with_fabric(2, {}, [](Rank& me, ProviderRank& fabric) {
        Target target(me, fabric);
        const auto small = some_bytes(100, 1), large = some_bytes(1 << 20, 2);
        if (me.rank == 0) {
            check_call(
                fi_inject_writedata(fabric.ep, small.data(), 100, 0xcafe, fabric.of[1], 0, kKey),
                "fi_inject_writedata");
            check_call(fi_writedata(fabric.ep, large.data(), large.size(), nullptr, 0xbeef,
                                    fabric.of[1], 1000, kKey, nullptr),
                       "fi_writedata");
            fabric.expect(nullptr, FI_WRITE);
        } else {
            const std::uint64_t flags = FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA;
            Entry entry = fabric.expect(nullptr, flags);
            check_equal(entry.told.data, 0xcafeU, "the word");
            check_equal(entry.told.len, 100U, "the length");
            check_equal(entry.source, fabric.of[0], "the source");
            check(std::equal(small.begin(), small.end(), target.memory.begin()), "bytes");
            entry = fabric.expect(nullptr, flags);
            check_equal(entry.told.data, 0xbeefU, "the second word");
            check(std::equal(large.begin(), large.end(), target.memory.begin() + 1000), "bytes");
        }
        fabric.meet_in_progress();
        target.close(fabric);
    });
}

TEST(ProviderAccess, counters_count_at_both_ends) {
    const ProviderSetup setup{.caps = FI_MSG | FI_RMA | FI_RMA_EVENT,
                              .counters = {FI_READ | FI_WRITE, FI_REMOTE_WRITE}};
    with_fabric(2, setup, [](Rank& me, ProviderRank& fabric) {
        fid_cntr *own = fabric.counters[0], *others = fabric.counters[1];
        Target target(me, fabric);
        if (me.rank == 0) {
            const auto bytes = some_bytes(100'000, 1);
            for (int i = 0; i < 10; ++i) {
                check_call(fi_inject_write(fabric.ep, bytes.data(), 100, fabric.of[1], 0, kKey),
                           "fi_inject_write");
            }
            fabric.write(bytes.data(), bytes.size(), 0, kKey, nullptr);
            check_call(fi_cntr_wait(own, 11, 20'000), "fi_cntr_wait");
            check_call(fi_cntr_wait(own, 12, 20), "a wait for more", -FI_ETIMEDOUT);
            check_call(fi_inject_write(fabric.ep, bytes.data(), 100, fabric.of[1], 0, kKey + 1),
                       "one that is refused");
            check_call(fi_cntr_wait(own, 12, 20'000), "a wait that fails", -FI_EAVAIL);
            check_equal(fi_cntr_readerr(own), 1U, "errors");
            check_equal(fi_cntr_read(own), 11U, "those without");
        } else {
            check_call(fi_cntr_wait(others, 11, 20'000), "fi_cntr_wait");
        }
        fabric.meet_in_progress();
        target.close(fabric);
    });
}

TEST(ProviderAccess, parts_and_places_need_not_agree_but_their_sum_must) {
    with_target(provider_ring(), {}, kAll, [](ProviderRank& fabric, Target&) {
        auto out = some_bytes(100'000, 1), in = some_bytes(100'000, 2);
        const iovec parts[] = {{out.data(), 10}, {out.data() + 10, 99'990}};
        const iovec read_parts[] = {{in.data(), 70'000}, {in.data() + 70'000, 30'000}};
        const fi_rma_iov places[] = {
            {500'000, 1, kKey}, {10, 60'000, kKey}, {1'000'000, 39'999, kKey}};
        fi_msg_rma message{};
        message.msg_iov = parts;
        message.iov_count = 2;
        message.addr = fabric.of[1];
        message.rma_iov = places;
        message.rma_iov_count = 3;
        message.context = &out;
        check_call(fi_writemsg(fabric.ep, &message, FI_COMPLETION | FI_DELIVERY_COMPLETE),
                   "fi_writemsg");
        fabric.expect(&out, FI_WRITE);
        message.msg_iov = read_parts;
        check_call(fi_readmsg(fabric.ep, &message, FI_COMPLETION), "fi_readmsg");
        fabric.expect(&out, FI_READ);
        check(in == out, "bytes");
        message.rma_iov_count = 2;
        check_call(fi_readmsg(fabric.ep, &message, 0), "too few places", -FI_EINVAL);
        message.rma_iov_count = 0;
        check_call(fi_readmsg(fabric.ep, &message, 0), "no place", -FI_EINVAL);
        check_call(fi_inject_write(fabric.ep, out.data(), fabric.info->tx_attr->inject_size + 1,
                                   fabric.of[1], 0, kKey),
                   "too much to inject", -FI_EMSGSIZE);
        check_call(fi_readv(fabric.ep, read_parts, nullptr, 2, fabric.of[1], 5, kKey, &in),
                   "fi_readv");
        fabric.expect(&in, FI_READ);
        check_call(fi_writev(fabric.ep, parts, nullptr, 2, fabric.of[1], 5, kKey, &in),
                   "fi_writev");
        fabric.expect(&in, FI_WRITE);
        check_call(fi_read(fabric.ep, in.data(), 8, nullptr, 1234, 5, kKey, &in),
                   "of nobody's memory", -FI_EINVAL);
    });
}

TEST(ProviderAccess, a_key_is_one_region_s_until_that_is_closed) {
    with_fabric(2, {}, [](Rank& me, ProviderRank& fabric) {
        char memory[64] = {};
        fid_mr* region = me.rank == 1 ? fabric.region(memory, 64, kAll, kKey) : nullptr;
        fabric.meet();
        if (me.rank == 0) {
            fabric.write("abc", 3, 0, kKey, &me);
            fabric.expect(&me, FI_WRITE);
        }
        fabric.meet_in_progress();
        if (region != nullptr) {
            check(std::string(memory) == "abc", "bytes");
            fid_mr* again = nullptr;
            check_call(fi_mr_reg(fabric.domain, memory, 64, kAll, 0, kKey, 0, &again, nullptr),
                       "the key again", -FI_ENOKEY);
            check_call(fi_close(&region->fid), "closing it");
        }
        fabric.meet();
        if (me.rank == 0) {
            fabric.write("xyz", 3, 0, kKey, &me);
            fabric.expect_error(&me, FI_EKEYREJECTED);
        }
        fabric.meet_in_progress();
        check(me.rank == 0 || std::string(memory) == "abc", "bytes of a closed region");
    });
}

TEST(ProviderAccess, a_region_has_counters_of_its_own) {
    const ProviderSetup events{.caps = FI_MSG | FI_RMA | FI_RMA_EVENT};
    with_fabric(2, events, [](Rank& me, ProviderRank& fabric) {
        char memory[64] = {};
        fid_cntr* count = nullptr;
        fid_mr* region = nullptr;
        if (me.rank == 1) {
            fi_cntr_attr attributes{};
            check_call(fi_cntr_open(fabric.domain, &attributes, &count, nullptr), "fi_cntr_open");
            region = fabric.region(memory, 64, kAll, kKey);
            check_call(fi_mr_bind(region, &count->fid, FI_REMOTE_WRITE), "fi_mr_bind");
            check_call(fi_close(&count->fid), "closing what counts", -FI_EBUSY);
        }
        fabric.meet();
        if (me.rank == 0) {
            for (int i = 0; i < 3; ++i) {
                fabric.write("abc", 3, 0, kKey, &me);
                fabric.expect(&me, FI_WRITE);
            }
        }
        fabric.meet_in_progress();
        if (me.rank == 1) {
            check_equal(fi_cntr_read(count), 3U, "writes");
            check_call(fi_close(&region->fid), "closing the region");
            check_call(fi_close(&count->fid), "closing the counter");
        }
    });
}

TEST(ProviderAccess, an_access_of_a_rank_that_dies_ends_with_an_error) {
    run_while_one_dies(1, provider_ring(), [](Rank& me) {
        ProviderRank fabric(me);
        fabric.enable();
        static std::vector<char> memory(100);
        if (me.rank == 1) fabric.region(memory.data(), memory.size(), kAll, kKey);
        me.raise(0);
        if (me.rank == 1) me.await_word(5);  // never
        me.await_word(1);
        char bytes[8];
        fabric.read(bytes, 8, 0, kKey, &me);
        fabric.expect_error(&me, FI_ECONNABORTED);
        fabric.close();
    });
}

}  // namespace
}  // namespace rmem::test
