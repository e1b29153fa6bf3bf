// SPDX-License-Identifier: Apache-2.0
// ctest: check
//
// Random traffic between devices, over pipes that are short and refuse, against what MPI promises:
// each message is received once, whole, by a receive that fits it; of one sender those that fit the
// same receives in their order; and all ends.
#include "mpi_channel/device/device.hpp"

#include "tests/support/pipes.hpp"
#include "tests/support/sanitizers.hpp"

#include <gtest/gtest.h>

#include <array>
#include <deque>
#include <map>
#include <memory>
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
    explicit Traffic(unsigned seed) : random_(seed), pipes_(kRanks, seed, 1 + seed % 9) {
        pipes_.refuse_one_in(seed % 3 == 0 ? 0 : 3);
        for (unsigned r = 0; r < kRanks; ++r) {
            devices_.push_back(std::make_unique<Device<Pipe>>(pipes_.of(r), ends_));
        }
    }

    void run() {
        for (unsigned step = 0; step < 1500; ++step) {
            const auto what = random_() % 4;
            if (what == 0) send();
            if (what == 1) receive();
            devices_[random_() % kRanks]->progress();
        }
        receive_the_rest();
        settle();
        check();
    }

private:
    /// Notes down what is told.
    struct Ends final : Completions {
        void completed(const Completion& completion) override {
            if (completion.of == Completion::Of::send) {
                ++static_cast<Sent*>(completion.context)->ended;
            } else {
                auto& waiting = *static_cast<Waiting*>(completion.context);
                ++waiting.ended;
                waiting.told = completion;
            }
        }
    };

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
        sent.bytes.resize(sizeof(Mark) + some_size());
        for (std::size_t i = 0; i < sent.bytes.size(); ++i) {
            sent.bytes[i] = static_cast<std::byte>(sent.number * 31 + i);
        }
        const Mark mark{sent.from, sent.number};
        std::memcpy(sent.bytes.data(), &mark, sizeof mark);
        SendOrder order;
        order.to = sent.to;
        order.tag = sent.tag;
        order.parts = {{sent.bytes.data(), sent.bytes.size()}};
        order.after_match = random_() % 16 == 0;
        order.context = &sent;
        devices_[sent.from]->send(order);
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
        ReceiveOrder order;
        order.from = wanted.source;
        order.tag = wanted.tag;
        order.ignore = wanted.ignore;
        order.parts = {{waiting.bytes.data(), waiting.bytes.size()}};
        order.context = &waiting;
        devices_[at]->receive(order);
    }

    /// For each message one that takes anything.
    void receive_the_rest() {
        for (const Sent& sent : sent_) post(sent.to, {kAnySource, 0, ~std::uint64_t{0}});
    }

    void settle() {
        for (unsigned quiet = 0; quiet < 300;) {
            bool any = false;
            for (auto& device : devices_) any |= device->progress();
            quiet = any ? 0 : quiet + 1;
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
        EXPECT_TRUE(pipes_.empty());
        for (auto& device : devices_) EXPECT_EQ(device->counters().broken, 0U);
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
    Pipes pipes_;
    Ends ends_;
    std::vector<std::unique_ptr<Device<Pipe>>> devices_;
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
