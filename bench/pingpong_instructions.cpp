// SPDX-License-Identifier: Apache-2.0

/// How many instructions a round of ping-pong takes on link direct where nobody has to wait: a
/// figure without noise, to compare two builds by.
///
///     valgrind --tool=callgrind --toggle-collect='*counted(*' pingpong-instructions WAY [ROUNDS
///     [BYTES]]
///
/// Callgrind prints what it counted as "Collected", for each process. Divide by ROUNDS (1000), or
/// subtract two runs to remove the work that only the first rounds do. A message has BYTES (4). The
/// ways:
///
///   endpoints  both ranks in this process, by Endpoint's functions: each sends, and each receives
///   self       the C functions: a message to oneself, its receipt, and a look for another
///   processes  the C functions between two processes that take turns, so that each finds what it
///              receives: a round is a message there and one back, and each process has its own
///              count

#include "billboard/bbp.h"
#include "tests/support/endpoint_pair.hpp"
#include "tools/measure/rank_group.hpp"

#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <exception>
#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace {

constexpr unsigned kTurn = 4;  ///< messages of one turn: neither sends more than there is room for
constexpr double kMostSeconds = 1e6;  ///< as many rounds as one asks for

/// Callgrind counts what is in here.
[[gnu::noinline]] void counted(const std::function<void()>& round, unsigned rounds) {
    for (unsigned i = 0; i < rounds; ++i) round();
}

void check(int result) {
    if (result < 0) throw std::runtime_error(bbp_last_error());
}

void between_endpoints(unsigned rounds, std::size_t bytes) {
    const auto pair =
        billboard::test::open_pair(fmt::format("pingpong-{}", ::getpid()), std::size_t{1} << 20);
    std::vector<std::byte> message(bytes), received(bytes);
    const auto one_way = [&](billboard::Endpoint& from, billboard::Endpoint& to) {
        check(from.send(static_cast<int>(to.rank()), message.data(), bytes));
        check(to.recv(static_cast<int>(from.rank()), received.data(), bytes, nullptr));
    };
    counted(
        [&] {
            one_way(*pair.sender, *pair.receiver);
            one_way(*pair.receiver, *pair.sender);
        },
        rounds);
}

/// In processes that have joined, and end by themselves.
void in_ranks(unsigned ranks, const std::function<void(bench::RankContext&)>& body) {
    bench::GroupOptions options;
    options.ranks = ranks;
    options.deadline_s = kMostSeconds;
    bench::Results results;
    run_ranks(options, results, body);
}

void to_oneself(unsigned rounds, std::size_t bytes) {
    in_ranks(1, [=](bench::RankContext&) {
        std::vector<std::byte> message(bytes), received(bytes);
        counted(
            [&] {
                check(bbp_send(0, message.data(), bytes));
                check(bbp_recv(0, received.data(), bytes, nullptr));
                check(bbp_msgavail(BBP_ANY));
            },
            rounds);
    });
}

/// One process's end of what the turn is handed through.
class Turn {
public:
    explicit Turn(int end) : end_(end) {}
    void give() { pass(::write(end_, "", 1)); }
    void take() {
        char nothing;
        pass(::read(end_, &nothing, 1));
    }

private:
    static void pass(ssize_t bytes) {
        if (bytes != 1) throw std::runtime_error("the other process has gone");
    }
    int end_;
};

/// Rank 0 sends, rank 1 sends, rank 0 receives, rank 1 receives, and again.
void take_turns(Turn turn, unsigned rank, unsigned rounds, std::size_t bytes) {
    const int other = rank == 0 ? 1 : 0;
    std::vector<std::byte> message(bytes), received(bytes);
    if (rank == 1) turn.give();
    counted(
        [&] {
            turn.take();
            for (unsigned i = 0; i < kTurn; ++i) check(bbp_send(other, message.data(), bytes));
            turn.give();
            turn.take();
            for (unsigned i = 0; i < kTurn; ++i) {
                check(bbp_recv(other, received.data(), bytes, nullptr));
            }
            turn.give();
        },
        std::max(rounds / kTurn, 1U));
}

void between_processes(unsigned rounds, std::size_t bytes) {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) throw std::runtime_error("no sockets");
    in_ranks(2, [&](bench::RankContext& rank) {
        take_turns(Turn(ends[rank.rank]), rank.rank, rounds, bytes);
    });
}

unsigned number(int argc, char** argv, int index, unsigned otherwise) {
    if (index >= argc) return otherwise;
    const std::string_view text = argv[index];
    unsigned value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size()) {
        throw std::runtime_error(fmt::format("'{}' is no number", text));
    }
    return value;
}

void run(int argc, char** argv) {
    const std::string_view way = argc > 1 ? argv[1] : "";
    const unsigned rounds = number(argc, argv, 2, 1000);
    const std::size_t bytes = number(argc, argv, 3, 4);
    if (way == "endpoints") return between_endpoints(rounds, bytes);
    if (way == "self") return to_oneself(rounds, bytes);
    if (way == "processes") return between_processes(rounds, bytes);
    throw std::runtime_error("give endpoints, self or processes, then rounds and bytes");
}

}  // namespace

int main(int argc, char** argv) {
    try {
        run(argc, argv);
        return 0;
    } catch (const std::exception& e) {
        fmt::print(stderr, "pingpong-instructions: {}\n", e.what());
        return 1;
    }
}
