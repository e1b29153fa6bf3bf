// SPDX-License-Identifier: Apache-2.0
// ctest: check

/// What a program sees that looks at its bank as at a card's memory: acquire loads of a flag, plain
/// loads of the data, and no call of the library while it waits.
///
/// An ordinary run ends after some rounds, or when it has had its time; with RMEM_ORDER_ROUNDS it
/// makes that many, and a tenth of them on udp and where a timing profile is kept.

#include "rmem/base/random.hpp"
#include "rmem/wire/timing.hpp"
#include "tests/support/checks.hpp"
#include "tests/support/link_nodes.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

namespace rmem::test {
namespace {

constexpr std::size_t kFailed = 0;  ///< shared word: a node has failed
constexpr std::size_t kLast = 1;    ///< and the next: the last values of the nodes' streams
constexpr std::int64_t kTimeNs = 40'000'000;
constexpr std::int64_t kSpinNs = 20'000'000'000;

/// Rounds of one run.
class Rounds {
public:
    Rounds(const LinkCase& of, std::uint32_t least, std::uint32_t most)
        : least_(least), most_(most) {
        const char* text = std::getenv("RMEM_ORDER_ROUNDS");
        if (text == nullptr) return;
        const bool fast = !is_remote(of.link) && of.timing == "none";
        most_ = static_cast<std::uint32_t>(std::stoul(text) / (fast ? 1 : 10));
        end_ = Deadline::never();
    }
    bool is_last(std::uint32_t round) const {
        return round >= most_ || (round >= least_ && end_.passed(now_ns()));
    }

private:
    std::uint32_t least_, most_;
    Deadline end_ = Deadline::in(kTimeNs);
};

class NodeOrder : public LinkConformance {
protected:
    NodeOrder() { bytes_ = 16384; }

    /// Runs a body of two nodes, each of which hears of the other's failure while it spins.
    void run_pair(const Body& body) {
        run(2, [&](Self& self) {
            try {
                body(self);
            } catch (...) {
                self.shared.words[kFailed] = 1;
                throw;
            }
        });
    }

    /// Waits by looking alone.
    template <class Holds, class What>
    static void spin(const Self& self, Holds holds, What what) {
        constexpr unsigned kLooks = 1000;
        const Deadline deadline = Deadline::in(kSpinNs);
        for (;;) {
            for (unsigned look = 0; look < kLooks; ++look) {
                if (holds()) return;
            }
            if (self.shared.words[kFailed] != 0) throw std::runtime_error("the other has failed");
            if (deadline.passed(now_ns())) {
                fail(fmt::format("spun too long for {}, as {} member", what(),
                                 self.node.is_member() ? "a" : "no"));
            }
        }
    }

    void a_flag_comes_after_its_data(const Rounds& rounds);
    void streams_keep_their_order();
    static void one_stream(Self& self, const std::byte* bank, std::size_t number,
                           const Rounds& rounds);
};

// ---- A flag after its data

/// One node's half of the memory.
constexpr std::size_t kHalfWords = 2048;
constexpr std::uint32_t kLastRound = 0x4000'0000;  ///< the bit of a flag that says so

/// What a node writes in a round: a block, and then the flag that lies beside it or far from it.
struct Round {
    std::uint32_t number;
    unsigned node;
    std::size_t begin, words, flag;  ///< words of the memory

    Round(std::uint32_t round, unsigned writer) : number(round), node(writer) {
        std::uint64_t state = 2 * std::uint64_t{round} + writer;
        const auto choose = [&](std::uint64_t of) { return next_random(state) % of; };
        words = 1 + choose(std::uint64_t{1} << choose(11));  // to 1024, mostly few
        const std::size_t first = 1 + choose(kHalfWords - 2 - words);
        const std::size_t half = writer * kHalfWords;
        begin = half + first;
        const std::size_t flags[] = {begin - 1, begin + words, half + kHalfWords - 1};
        flag = flags[choose(3)];
    }
    /// Never a flag.
    std::uint32_t content(std::size_t i) const {
        return (number * 0x9e37'79b1U + static_cast<std::uint32_t>(i) * 0x85eb'ca6bU + node) |
               0x8000'0000U;
    }
};

void NodeOrder::a_flag_comes_after_its_data(const Rounds& rounds) {
    run_pair([&](Self& self) {
        const std::byte* bank = self.node.bank();
        const auto write = [&](const Round& round, bool is_last) {
            std::vector<std::uint32_t> block(round.words);
            for (std::size_t i = 0; i < block.size(); ++i) block[i] = round.content(i);
            self.write(4 * round.begin, block.data(), 4 * block.size());
            self.write_word(4 * round.flag, round.number | (is_last ? kLastRound : 0));
        };
        const auto see = [&](const Round& round) {
            std::uint32_t flag = 0;
            spin(
                self,
                [&] {
                    flag = self.raw(4 * round.flag);
                    return (flag & ~kLastRound) == round.number;
                },
                [&] { return fmt::format("the flag of round {}", round.number); });
            const auto* block = reinterpret_cast<const std::uint32_t*>(bank) + round.begin;
            for (std::size_t i = 0; i < round.words; ++i) {
                if (block[i] == round.content(i)) continue;
                fail(fmt::format("round {} of node {}: word {} of {} at word {} is not yet there",
                                 round.number, round.node, i, round.words, round.begin));
            }
            return (flag & kLastRound) != 0;
        };
        bool is_last = false;
        for (std::uint32_t number = 1; !is_last; ++number) {
            const Round question(number, 0);
            const Round answer(number, 1);
            if (self.id == 0) {
                is_last = rounds.is_last(number);
                write(question, is_last);
                see(answer);
            } else {
                is_last = see(question);
                write(answer, is_last);
            }
        }
    });
}

TEST_P(NodeOrder, a_flag_that_a_program_spins_on_comes_after_its_data) {
    a_flag_comes_after_its_data(Rounds(GetParam(), 20, 3000));
}

// ---- Streams of words

/// A stream writes its i-th word, the value i, at a place of its own cycle.
struct Stream {
    std::uint32_t words;   ///< a power of two
    std::uint32_t stride;  ///< odd
    std::size_t begin;     ///< in the half of the node that writes

    std::uint32_t place(std::uint32_t value) const { return value * stride % words; }
    /// The value that this place has at least, once `seen` has been seen.
    std::uint32_t least(std::uint32_t at, std::uint32_t seen) const {
        for (std::uint32_t back = 0; back < words && back < seen; ++back) {
            if (place(seen - back) == at) return seen - back;
        }
        return 0;
    }
};

/// Sequential, scattered, and always the same word.
constexpr std::array<Stream, 3> kStreams = {{{256, 1, 0}, {256, 77, 512}, {1, 1, 1024}}};

/// Looks at another node's stream.
class Watcher {
public:
    Watcher(const Stream& stream, const std::byte* bank, std::size_t half)
        : stream_(stream),
          words_(reinterpret_cast<const std::uint32_t*>(bank) + half + stream.begin),
          state_(half + stream.words) {}

    std::uint32_t newest() const { return newest_; }
    /// At that place with acquire, and then at others by plain loads.
    void look(std::uint32_t at) {
        const std::uint32_t value = reinterpret_cast<const std::atomic<std::uint32_t>*>(words_ + at)
                                        ->load(std::memory_order_acquire);
        expect(at, value);
        newest_ = std::max(newest_, value);
        for (unsigned i = 0; i < 4; ++i) {
            const std::uint32_t other = anywhere();
            expect(other, words_[other]);
        }
    }
    void look() { look(anywhere()); }

private:
    std::uint32_t anywhere() {
        return static_cast<std::uint32_t>(next_random(state_) % stream_.words);
    }
    void expect(std::uint32_t at, std::uint32_t value) const {
        const std::uint32_t least = stream_.least(at, newest_);
        if (value < least || (value != 0 && stream_.place(value) != at)) {
            fail(fmt::format("place {} of {} holds {}, after {} was seen: at least {} is due", at,
                             stream_.words, value, newest_, least));
        }
    }

    const Stream& stream_;
    const std::uint32_t* words_;
    std::uint64_t state_;
    std::uint32_t newest_ = 0;
};

void NodeOrder::streams_keep_their_order() {
    run_pair([&](Self& self) {
        const std::byte* bank = self.node.bank();
        for (std::size_t s = 0; s < kStreams.size(); ++s) {
            one_stream(self, bank, s, Rounds(GetParam(), 2000, 50'000));
        }
    });
}

void NodeOrder::one_stream(Self& self, const std::byte* bank, std::size_t number,
                           const Rounds& rounds) {
    constexpr std::uint32_t kBurst = 16;
    const Stream& stream = kStreams.at(number);
    const unsigned other = 1 - self.id;
    const auto last_of = [&](unsigned node) -> auto& {
        return self.shared.words[kLast + 2 * number + node];
    };
    Watcher watcher(stream, bank, other * kHalfWords);
    for (std::uint32_t value = 1; last_of(self.id) == 0; ++value) {
        const std::size_t at = self.id * kHalfWords + stream.begin + stream.place(value);
        self.write_word(4 * at, value);
        if (value % kBurst == 0) watcher.look();
        if (rounds.is_last(value)) last_of(self.id) = value;
    }
    std::uint32_t last = 0;
    spin(
        self,
        [&] {
            last = last_of(other);
            last == 0 ? watcher.look() : watcher.look(stream.place(last));
            return last != 0 && watcher.newest() == last;
        },
        [&] {
            return fmt::format("the end of a stream of {} words, {}, seen up to {}", stream.words,
                               last, watcher.newest());
        });
}

TEST_P(NodeOrder, two_streams_keep_their_orders_for_the_programs_that_write_them) {
    streams_keep_their_order();
}

// ---- With datagrams lost

class NodeOrderWithLoss : public NodeOrder {
protected:
    void SetUp() override {
        NodeOrder::SetUp();
        ::setenv("RMEM_FAULTS", "seed=7;drop:share=5%;hold:by=200us,share=5%", 1);
    }
    void TearDown() override {
        ::unsetenv("RMEM_FAULTS");
        NodeOrder::TearDown();
    }
};

TEST_P(NodeOrderWithLoss, a_flag_that_a_program_spins_on_comes_after_its_data) {
    a_flag_comes_after_its_data(Rounds(GetParam(), 100, 3000));
}

TEST_P(NodeOrderWithLoss, two_streams_keep_their_orders_for_the_programs_that_write_them) {
    streams_keep_their_order();
}

// ---- Where

std::vector<LinkCase> all_links() {
    std::vector<LinkCase> cases;
    const auto add = [&](LinkKind link, const std::string& timing) {
        cases.push_back({link, timing, LinkHost::processes});
    };
    add(LinkKind::direct, "none");
    for (const std::string& timing : timing_profile_names()) add(LinkKind::ring, timing);
    add(LinkKind::fabric, "none");
    add(LinkKind::udp, "none");
    add(LinkKind::udp, "scramnet-burst-plus");
    return cases;
}

INSTANTIATE_TEST_SUITE_P(EachLink, NodeOrder, ::testing::ValuesIn(all_links()),
                         conformance_case_name);
INSTANTIATE_TEST_SUITE_P(Udp, NodeOrderWithLoss,
                         ::testing::Values(LinkCase{LinkKind::udp, "none", LinkHost::processes}),
                         conformance_case_name);

}  // namespace
}  // namespace rmem::test
