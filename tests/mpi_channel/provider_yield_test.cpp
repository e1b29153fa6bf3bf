// SPDX-License-Identifier: Apache-2.0
//
// Where ranks share a processor, a rank whose polls find nothing gives it away; where each has its
// own, nobody does. What yields is counted: the provider's sched_yield is this program's.
#include <gtest/gtest.h>

#ifdef BBP_PROVIDER_PATH

#include "mpi_channel/collectives/bbp_collectives.h"
#include "tests/support/provider_rank.hpp"

#include <dlfcn.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace {

unsigned yields = 0;

}  // namespace

extern "C" __attribute__((visibility("default"))) int sched_yield() noexcept {
    ++yields;
    return static_cast<int>(::syscall(SYS_sched_yield));
}

namespace rmem::test {
namespace {

constexpr unsigned kReads = 64;

/// This process, on one processor that its parent may use.
void share_a_processor() {
    cpu_set_t all, one;
    check_equal(::sched_getaffinity(0, sizeof all, &all), 0, "sched_getaffinity");
    std::size_t first = 0;
    while (!CPU_ISSET(first, &all)) ++first;
    CPU_ZERO(&one);
    CPU_SET(first, &one);
    check_equal(::sched_setaffinity(0, sizeof one, &one), 0, "sched_setaffinity");
}

const bbp_collectives& table() {
    void* const library = ::dlopen(BBP_PROVIDER_PATH "/libbbp-fi.so", RTLD_NOW | RTLD_NOLOAD);
    check(library != nullptr, "libfabric has loaded the provider");
    auto* const get =
        reinterpret_cast<const bbp_collectives* (*)()>(::dlsym(library, BBP_COLLECTIVES_SYMBOL));
    check(get != nullptr, "its table of collectives");
    return *get();
}

/// Two ranks of one processor, the first of which waits for the other, which never comes: how often
/// it yields.
void run_shared(const std::string& spin,
                const std::function<void(ProviderRank&)>& wait_for_nothing) {
    RingSetup setup;
    if (!spin.empty()) setup.extra["RMEM_SPIN"] = spin;
    run_ranks(setup, [&](Rank& me) {
        share_a_processor();
        ProviderRank fabric(me);
        fabric.enable();
        if (me.rank == 0) {
            yields = 0;
            wait_for_nothing(fabric);
        }
        fabric.meet();
        fabric.close();
    });
}

void read_nothing(ProviderRank& fabric) {
    for (unsigned i = 0; i < kReads; ++i) fabric.expect_nothing();
}

/// One call of go_on.
void gather_nothing(ProviderRank&) {
    const bbp_collectives& calls = table();
    constexpr int kMembers[] = {0, 1};
    bbp_group* const group = calls.open(calls.new_id(), kMembers, 2, BBP_NO_BARRIER);
    check(group != nullptr, "a group");
    check_equal(calls.barrier(group), BBP_COLLECTIVES_AGAIN, "the other member is not there");
    yields = 0;
    check_equal(calls.go_on(group), BBP_COLLECTIVES_AGAIN, "nor is it later");
    calls.close(group);
}

TEST(ProviderYield, a_queue_that_is_read_and_empty_gives_a_shared_processor_away) {
    run_shared("", [](ProviderRank& fabric) {
        read_nothing(fabric);
        check(yields >= kReads / 16 && yields < kReads, "it yields, but not at each read");
    });
}

TEST(ProviderYield, a_queue_keeps_a_processor_that_it_need_not_share) {
    run_shared("1000", [](ProviderRank& fabric) {
        read_nothing(fabric);
        check_equal(yields, 0U, "yields");
    });
}

TEST(ProviderYield, a_rank_that_waits_in_a_collective_gives_a_shared_processor_away) {
    run_shared("", [](ProviderRank& fabric) {
        gather_nothing(fabric);
        check(yields >= 16, "it yields between its tries");
    });
}

TEST(ProviderYield, a_rank_that_waits_in_a_collective_keeps_a_processor_that_it_need_not_share) {
    run_shared("1000", [](ProviderRank& fabric) {
        gather_nothing(fabric);
        check_equal(yields, 0U, "yields");
    });
}

}  // namespace
}  // namespace rmem::test

#else

TEST(ProviderYield, is_tested) {
    GTEST_SKIP() << "built without libfabric";
}

#endif
