// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The common part of the tests of GAMMA: the handlers' observations, for each process, and the
/// usual bindings.
///
/// Handlers have no arguments, and simulated processes share the variables of the test: so the
/// process that they run in finds their notes.

#include "ports/gamma/libgamma.h"
#include "tests/support/conformance.hpp"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <optional>
#include <vector>

namespace rmem::test::gamma {

/// The observations of one process's handlers. Atomic, since the progress thread runs them too.
struct Seen {
    std::atomic<int> messages{0}, errors{0}, last_error{0}, last_port{-1};
    std::atomic<long> last_length{-1};
    std::vector<std::uint32_t> numbers;  ///< that messages begin with, as they came
    std::array<std::byte, 65536> buffer{};
};

using Sizes = std::vector<std::size_t>;

/// Of the calling process.
inline Seen& seen() {
    static std::array<Seen, 8> all;
    return all.at(static_cast<std::size_t>(gamma_my_par_pid() * 4 + gamma_my_node()));
}

inline void start(unsigned nodes, Place place = Place::here()) {
    check_ok(gamma_init(static_cast<unsigned char>(nodes), 0, nullptr), "gamma_init", place);
    Seen& mine = seen();
    mine.messages = mine.errors = mine.last_error = 0;
    mine.last_port = -1;
    mine.last_length = -1;
    mine.numbers.clear();
}

inline void note_message() {
    Seen& mine = seen();
    mine.last_port = gamma_active_port;
    mine.last_length = gamma_msglen;
    ++mine.messages;
}
inline void count_and_signal() {
    note_message();
    gamma_signal(gamma_active_port);
}
inline void note_error() {
    Seen& mine = seen();
    mine.last_error = gamma_errno;
    mine.last_port = gamma_active_port;
    ++mine.errors;
}
inline void note_error_and_signal() {
    note_error();
    gamma_sigerr(gamma_active_port);
}

struct Bound {
    unsigned short port = 5;
    unsigned short to_port = 5;
    void (*on_message)() = count_and_signal;
    void (*on_error)() = note_error_and_signal;
    unsigned long size = sizeof(Seen::buffer);
    int par_pid = -1;  ///< -1: the own
};

/// Binds a port to a node, with the process's own buffer of Seen.
inline void bind_to(int node, const Bound& b = {}, Place place = Place::here()) {
    const int par_pid = b.par_pid < 0 ? gamma_my_par_pid() : b.par_pid;
    check_ok(gamma_set_active_port(b.port, static_cast<unsigned short>(node),
                                   static_cast<unsigned char>(par_pid), b.to_port, b.on_message,
                                   b.port, GO_BACK, seen().buffer.data(), b.size),
             "gamma_set_active_port", place);
    check_ok(gamma_set_error_handler(b.port, b.on_error), "gamma_set_error_handler", place);
}

/// How the processes of a test begin.
struct Begin {
    /// The node that port 5 is bound to, by `bound`; else of two nodes the other, or none.
    std::optional<int> to{};
    Bound bound{};
    const char* gamma = "";  ///< RMEM_GAMMA; by progress=off nothing is taken in but in calls
    unsigned ranks = 0;      ///< of the ring, in several groups; 0: one group
};

/// The processes of one group, which begin and end together.
class GammaTest : public Conformance {
protected:
    /// Runs the body in each of the nodes, once all have bound what they bind and none is in a call
    /// any more.
    static void run_group(unsigned nodes, const Begin& begin, const Body& body) {
        run(begin.ranks == 0 ? nodes : begin.ranks, [&](Rank& me) {
            constexpr std::size_t kBound = 899;
            set_variable("RMEM_GAMMA", begin.gamma);
            start(nodes);
            const auto to = nodes == 2 && !begin.to ? 1 - gamma_my_node() : begin.to;
            if (to) bind_to(*to, begin.bound);
            check_ok(gamma_sync(), "gamma_sync");
            me.raise(kBound);
            me.await_word(kBound, static_cast<std::uint32_t>(me.ranks));
            body(me);
            check_ok(gamma_sync(), "gamma_sync");
            check_ok(gamma_exit(), "gamma_exit");
        });
    }
    static void run_group(unsigned nodes, const Body& body) { run_group(nodes, {}, body); }
};

/// Takes in what comes, by a semaphore that nobody signals.
inline void take_in_until(const std::function<bool()>& holds, const char* what,
                          Place place = Place::here()) {
    await([&] { return gamma_test(200, 1) == 0 && holds(); }, what, place);
}
inline void serve_until(Rank& me, std::size_t word, std::uint32_t value,
                        Place place = Place::here()) {
    take_in_until([&] { return me.shared[word] >= value; }, "the others", place);
}

inline int send_pattern(unsigned short port, std::size_t size, std::uint64_t seed,
                        bool flow_controlled = true) {
    auto bytes = pattern(size, seed);
    return flow_controlled ? gamma_send_flowctl(port, bytes.data(), size)
                           : gamma_send(port, bytes.data(), size);
}

/// The last message has this size, and the seed's bytes.
inline void check_came(std::size_t size, std::uint64_t seed, Place place = Place::here()) {
    check_equal(seen().last_length.load(), static_cast<long>(size), "the message's length", place);
    check_bytes(seen().buffer.data(), size, seed, place);
}

inline long long counted(const char* name, Place place = Place::here()) {
    const long long value = gamma_counter(static_cast<unsigned char>(gamma_my_par_pid()),
                                          static_cast<unsigned short>(gamma_my_node()), name);
    check(value >= 0, std::string("the counter ") + name, place);
    return value;
}

}  // namespace rmem::test::gamma
