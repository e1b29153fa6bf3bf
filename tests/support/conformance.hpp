// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The common part of the billboard's conformance suite: the rings they run on, and the calls of
/// billboard/bbp.h with a message's bytes filled in and checked.
///
/// The suite is written from billboard/bbp.h and the design alone. It knows nothing of how the
/// protocol works, so that it holds for every link and layout alike.

#include "billboard/bbp.h"
#include "tests/support/checks.hpp"
#include "tests/support/patterns.hpp"
#include "tests/support/rank_processes.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <ostream>
#include <string>
#include <vector>

namespace rmem::test {

/// A kind of ring that must behave as all the others.
struct Variant {
    const char* name;
    const char* link;
    const char* timing;
    const char* layout;
    unsigned thrift;          ///< the divisor of loops: keeping 1990s time takes time
    const char* faults = "";  ///< RMEM_FAULTS
};

inline std::ostream& operator<<(std::ostream& out, const Variant& v) {
    return out << v.name;
}

/// All kinds; sanitized, those whose code differs.
std::vector<Variant> variants();
/// The same, and `udp` where one datagram in twenty is lost.
std::vector<Variant> variants_and_loss();
std::string variant_name(const ::testing::TestParamInfo<Variant>& info);

inline constexpr std::size_t kPartition = 16384;
inline constexpr std::int64_t kMillisecond = 1'000'000;
inline constexpr std::int64_t kLong =
    20'000 * kMillisecond;  ///< for calls that must not take as long

/// A test on a ring of the variant's kind.
class Conformance : public ::testing::TestWithParam<Variant> {
protected:
    static RingSetup setup(unsigned ranks);

    /// Starts the ranks, and waits until they have ended.
    static void run(unsigned ranks, const Body& body);

    /// How a rank's first incarnation ends.
    struct End {
        unsigned rank;
        unsigned posted = 1;    ///< others and itself have raised word 0 before; 0: have joined
        bool is_killed = true;  ///< or ends by itself
        Body next = nullptr;    ///< the next incarnation's; without one word 1 is raised
        bool waits = false;     ///< a while before, so that others sleep in a call; as a rule
    };
    /// The same, each with its own body, and one of the ranks ends.
    static void run(std::initializer_list<Body> bodies, const End& end);

    static bool is_simulated();

    /// `ranks`, or fewer where each is a node of its own, to which all datagrams of all others go.
    static unsigned many(unsigned ranks);

    /// `loops`, or fewer on rings that keep time.
    static int thrifty(int loops);
};

/// Skips a test that cannot mean anything where ranks are no processes of the system.
#define RMEM_SKIP_IF_SIMULATED(reason) \
    if (is_simulated()) GTEST_SKIP() << "simulated: " << (reason)

#define RMEM_ON_ALL_RINGS(suite)                                                       \
    INSTANTIATE_TEST_SUITE_P(On, suite, ::testing::ValuesIn(::rmem::test::variants()), \
                             ::rmem::test::variant_name)

#define RMEM_ON_ALL_RINGS_AND_LOSS(suite)                                                       \
    INSTANTIATE_TEST_SUITE_P(On, suite, ::testing::ValuesIn(::rmem::test::variants_and_loss()), \
                             ::rmem::test::variant_name)

// ---- Messages whose bytes follow from a seed

void send(int dest, std::size_t size, std::uint64_t seed, Place place = Place::here());
void multicast(const std::vector<int>& dests, std::size_t size, std::uint64_t seed,
               Place place = Place::here());
/// The code of bbp_trysend of such a message; anything but success and BBP_EAGAIN fails.
int try_send(int dest, std::size_t size, std::uint64_t seed, Place place = Place::here());
/// How many such messages, with the seeds first, first + 1, …, fit until nobody reads.
int send_until_full(int dest, std::size_t size, std::uint64_t first, int limit = 100'000,
                    Place place = Place::here());

/// Receives the next message of `source` and checks its sender (unless `source` is BBP_ANY), size
/// and bytes. Returns the sender.
int receive(int source, std::size_t size, std::uint64_t seed, Place place = Place::here());

/// For the two ranks of a ring that have posted this many messages to each other, with the seeds
/// from 0 on, before either receives: receives the other's. Uses three shared words, from `words`
/// on.
void receive_what_both_posted(Rank& me, std::size_t size, std::uint64_t posted, std::size_t words,
                              Place place = Place::here());

/// Fails when a message of `source` (or BBP_ANY) waits. Whether it may still come is not looked at.
void nothing_waits(int source, Place place = Place::here());

/// The bytes of `found` are those of the seed.
void check_bytes(const void* found, std::size_t size, std::uint64_t seed,
                 Place place = Place::here());

/// Calls bbp_tryrecv(source) until it fails with something other than BBP_EAGAIN, which it must;
/// returns that code.
int drain_until_error(int source, Place place = Place::here());

/// {0, 1, … ranks - 1} without `except`.
std::vector<int> everyone_but(int except, int ranks);

}  // namespace rmem::test
