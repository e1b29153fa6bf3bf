// SPDX-License-Identifier: Apache-2.0
// ctest: check
//
// Random traffic between devices, over pipes that are short and refuse, against what MPI promises:
// each message is received once, whole, by a receive that fits it; of one sender those that fit the
// same receives in their order; and all ends.
#include "tests/support/device_ranks.hpp"
#include "tests/support/sanitizers.hpp"

#include <gtest/gtest.h>

#include <array>
#include <deque>
#include <map>
#include <tuple>

namespace mpi_channel {
namespace {

constexpr unsigned kRanks = 3, kTags = 3;

/// What a message begins with, as far as it is long enough.
struct Mark {
    std::uint32_t from, number;
};

struct Sent {
    unsigned from, to;
    std::uint64_t tag;
    std::uint32_t number;  ///< among those of `from`
    std::vector<std::byte> bytes;
    unsigned received = 0;
    unsigned ended = 0;
};

struct Waiting {
    unsigned at;
    Wanted wanted;
    std::vector<std::byte> bytes;
    unsigned ended = 0;
    Completion told;
};

class Traffic {
public:
    explicit Traffic(unsigned seed) : random_(seed), ranks_(kRanks, seed, 1 + seed % 9) {
        ranks_.pipes.refuse_one_in(seed % 3 == 0 ? 0 : 3);
    }

    void run() {
        for (unsigned step = 0; step < 1500; ++step) {
            const auto what = random_() % 4;
            if (what == 0) send();
            if (what == 1) receive();
            ranks_[static_cast<unsigned>(random_() % kRanks)].device.progress();
        }
        receive_the_rest();
        ranks_.run();
        note_ends();
        check();
    }

private:
    std::size_t some_size() {
        static constexpr std::size_t kKinds[] = {0, 8, 40, 493, 3000, kEagerMost, 200'000};
        return kKinds[random_() % std::size(kKinds)] + (random_() % 2 == 0 ? 0 : random_() % 9);
    }

    void send() {
        Sent& sent = sent_.emplace_back();
        sent.from = static_cast<unsigned>(random_() % kRanks);
        sent.to = static_cast<unsigned>(random_() % kRanks);
        sent.tag = random_() % kTags;
        sent.number = numbers_[sent.from]++;
        sent.bytes = pattern(sizeof(Mark) + some_size(), sent.number);
        const Mark mark{sent.from, sent.number};
        std::memcpy(sent.bytes.data(), &mark, sizeof mark);
        ranks_[sent.from].device.send({.to = sent.to,
                                       .tag = sent.tag,
                                       .parts = parts_of(sent.bytes),
                                       .after_match = random_() % 16 == 0,
                                       .context = &sent});
    }

    void receive() {
        post(static_cast<unsigned>(random_() % kRanks),
             {random_() % 3 == 0 ? kAnySource : static_cast<Source>(random_() % kRanks),
              random_() % kTags, random_() % 4 == 0 ? ~std::uint64_t{0} : 0});
    }

    void post(unsigned at, const Wanted& wanted) {
        Waiting& waiting = waiting_.emplace_back();
        waiting.at = at;
        waiting.wanted = wanted;
        waiting.bytes.resize(300'000);
        ranks_[at].device.receive({.from = wanted.source,
                                   .tag = wanted.tag,
                                   .ignore = wanted.ignore,
                                   .parts = parts_of(waiting.bytes),
                                   .context = &waiting});
    }

    /// For each message one that takes anything.
    void receive_the_rest() {
        for (const Sent& sent : sent_) post(sent.to, {kAnySource, 0, ~std::uint64_t{0}});
    }

    void note_ends() {
        for (unsigned r = 0; r < kRanks; ++r) {
            for (const Completion& told : ranks_[r].told) {
                if (told.of == Completion::Of::send) {
                    ++static_cast<Sent*>(told.context)->ended;
                } else {
                    auto& waiting = *static_cast<Waiting*>(told.context);
                    ++waiting.ended;
                    waiting.told = told;
                }
            }
        }
    }

    void check() {
        for (Waiting& waiting : waiting_) {
            if (waiting.ended != 0) check_received(waiting);
        }
        for (const Sent& sent : sent_) {
            EXPECT_EQ(sent.ended, 1U) << "message " << sent.number << " of " << sent.from;
            EXPECT_EQ(sent.received, 1U) << "message " << sent.number << " of " << sent.from;
        }
        EXPECT_TRUE(ranks_.pipes.empty());
        for (unsigned r = 0; r < kRanks; ++r) EXPECT_EQ(ranks_[r].device.counters().broken, 0U);
    }

    void check_received(const Waiting& waiting) {
        ASSERT_EQ(waiting.ended, 1U);
        ASSERT_EQ(waiting.told.status, Status::ok);
        Mark mark{};
        std::memcpy(&mark, waiting.bytes.data(), sizeof mark);
        for (Sent& sent : sent_) {
            if (sent.from != mark.from || sent.number != mark.number) continue;
            ++sent.received;
            ASSERT_EQ(sent.to, waiting.at);
            ASSERT_TRUE(waiting.wanted.fits({sent.from, sent.tag, 0}));
            ASSERT_EQ(waiting.told.bytes, sent.bytes.size());
            ASSERT_TRUE(std::equal(sent.bytes.begin(), sent.bytes.end(), waiting.bytes.begin()));
            // Receives were posted in the order of the list: an equal one before this got an
            // earlier message.
            std::int64_t& newest = newest_[{waiting.at, waiting.wanted.source, waiting.wanted.tag,
                                            waiting.wanted.ignore, sent.from, sent.tag}];
            ASSERT_GT(std::int64_t{sent.number} + 1, newest) << "of " << sent.from;
            newest = std::int64_t{sent.number} + 1;
            return;
        }
        FAIL() << "nobody has sent what was received";
    }

    std::mt19937 random_;
    DeviceRanks ranks_;
    std::deque<Sent> sent_;
    std::deque<Waiting> waiting_;
    std::array<std::uint32_t, kRanks> numbers_{};
    std::map<std::tuple<unsigned, Source, std::uint64_t, std::uint64_t, unsigned, std::uint64_t>,
             std::int64_t>
        newest_;
};

TEST(DeviceTraffic, is_received_once_whole_and_in_order) {
    for (unsigned seed = 0; seed < (rmem::test::kSanitized ? 9U : 30U); ++seed) {
        SCOPED_TRACE(seed);
        Traffic(seed).run();
        if (testing::Test::HasFailure()) return;
    }
}

}  // namespace
}  // namespace mpi_channel
