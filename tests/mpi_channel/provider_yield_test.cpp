// SPDX-License-Identifier: Apache-2.0
//
// Where ranks share a processor, a rank whose polls find nothing gives it away; where each has its
// own, nobody does. What yields is counted: the provider's sched_yield is this program's.
#include "mpi_channel/collectives/bbp_collectives.h"
#include "tests/support/provider_rank.hpp"

#include <dlfcn.h>
#include <gtest/gtest.h>
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

/// Two ranks of one processor, the first of which waits for the other, which never comes.
TEST(ProviderYield,
     a_rank_that_waits_gives_a_shared_processor_away_and_keeps_one_it_need_not_share) {
    struct {
        const char *what, *spin;
        void (*wait_for_nothing)(ProviderRank&);
        unsigned least, most;  ///< yields
    } const waits[] = {
        {"a queue that is empty: not at each read", "", read_nothing, kReads / 16, kReads - 1},
        {"a queue", "1000", read_nothing, 0, 0},
        {"a collective: between its tries", "", gather_nothing, 16, ~0U},
        {"a collective", "1000", gather_nothing, 0, 0},
    };
    for (const auto& wait : waits) {
        RingSetup setup = provider_ring();
        if (*wait.spin != '\0') setup.extra["RMEM_SPIN"] = wait.spin;
        run_ranks(setup, [&](Rank& me) {
            share_a_processor();
            ProviderRank fabric(me);
            fabric.enable();
            if (me.rank == 0) {
                yields = 0;
                wait.wait_for_nothing(fabric);
                check(yields >= wait.least && yields <= wait.most,
                      fmt::format("{}, spinning '{}': {} yields", wait.what, wait.spin, yields));
            }
            fabric.meet();
            fabric.close();
        });
    }
}

}  // namespace
}  // namespace rmem::test
