// SPDX-License-Identifier: Apache-2.0

/// Two ends of a bridge on a simulated line that is cut, with limits, a target without room, ends
/// that start again, writes that were missed and regions that are refused for a while, beside a
/// model: what each origin has written last. Each seed is a run.

#include "bridge/end.hpp"

#include "rmem/base/check.hpp"
#include "tests/support/cut_line.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>

namespace simulator {
namespace {

using bridge::Delivery;
using bridge::End;
using bridge::Sender;

constexpr unsigned kOrigins = 3;
constexpr unsigned kDataWords = 5;  ///< of an origin, before its flag
constexpr unsigned kOriginWords = 8;
constexpr std::size_t kSmallWords = kOrigins * kOriginWords;
constexpr std::size_t kBulkWords = 4096;  ///< written at once, so that the window fills
constexpr std::size_t kWords = kSmallWords + kBulkWords;
constexpr std::size_t kAt = 128;  ///< words of the target before it

/// Each write of an origin has a greater value than those before it, so a memory says how far it
/// is.
class BridgeRun {
public:
    explicit BridgeRun(std::uint64_t seed)
        : random_(seed), line_(seed, seed % 2 == 0 ? 0 : 3), limit_(seed % 3 == 0 ? 400 : 0) {
        start(0);
        start(1);
    }

    void run() {
        for (unsigned step = 0; step < 3000 && !::testing::Test::HasFailure(); ++step) {
            now_ns_ += static_cast<std::int64_t>(random_.below(100'000));
            write(static_cast<unsigned>(random_.below(kOrigins)));
            if (random_.one_in(20)) write_bulk();
            if (random_.one_in(150)) fault();
            if (random_.one_in(3)) exchange();
        }
        settle();
    }
    std::uint64_t faults = 0, conflated = 0, cuts = 0;

private:
    void start(unsigned side) {
        const std::uint64_t bytes = kSmallWords * 4, bulk = kBulkWords * 4;
        if (side == 1) {
            ends_[1] = std::make_unique<End>(
                std::vector<bridge::SentRegion>{},
                std::vector<bridge::ReceivedRegion>{{"bulk", kAt * 4 + bytes, bulk},
                                                    {"small", kAt * 4, bytes}});
        } else {
            std::vector<rmem::WordRange> flags;
            for (unsigned o = 0; o < kOrigins; ++o)
                flags.push_back({(o * kOriginWords + kDataWords) * 4, 4});
            ends_[0] = std::make_unique<End>(
                std::vector<bridge::SentRegion>{{"small", 0, bytes, flags, 0, limit_},
                                                {"bulk", bytes, bulk, {}, 0, 0}},
                std::vector<bridge::ReceivedRegion>{});
            look_anew();
        }
    }
    /// What the source's memory has, as after writes that were missed.
    void look_anew() {
        Sender& sender = ends_[0]->sender();
        conflated += sender.counts().conflated;
        sender.begin_anew(now_ns_);
        sender.take_seen({0, now_ns_, 0, std::as_bytes(std::span(source_)), false, false}, now_ns_);
    }

    // ---- The source
    void put(unsigned origin, std::size_t word, std::span<const std::uint32_t> values,
             bool has_more) {
        std::copy(values.begin(), values.end(), source_.begin() + static_cast<long>(word));
        ends_[0]->sender().take({origin, now_ns_, word * 4, std::as_bytes(values), false, has_more},
                                now_ns_);
    }
    /// Data, data … flag, each step the next: commits of several origins are under way.
    void write(unsigned origin) {
        std::uint32_t& at = next_[origin];
        const std::uint32_t value = at / (kDataWords + 1) + 1;
        const std::size_t word = at % (kDataWords + 1);
        ++at;
        const bool has_more = word < kDataWords && random_.one_in(2);
        put(origin, origin * kOriginWords + word, std::span(&value, 1), has_more);
    }
    void write_bulk() {
        ++bulk_;
        put(kOrigins, kSmallWords, std::vector<std::uint32_t>(kBulkWords, bulk_), false);
    }

    // ---- The line
    void fault() {
        ++faults;
        switch (random_.below(6)) {
            case 0: return line_.cut(now_ns_);
            case 1: room_ns_ = now_ns_ + random_.between(0, 200'000'000); return;
            case 2: return look_anew();
            case 3: is_admitted_ = !is_admitted_; return;
            default: break;
        }
        const unsigned side = static_cast<unsigned>(random_.below(2));
        line_.cut(now_ns_);
        start(side);
    }
    void exchange() {
        line_.run(now_ns_);
        for (unsigned side = 0; side < 2; ++side) {
            End& end = *ends_[side];
            const auto came = line_.take(side, now_ns_);
            if (line_.number(side) != known_[side] && end.is_connected()) end.disconnect();
            if (!end.is_connected()) pending_[side].clear();
            // An end that was started again has no use for the connection of the one before.
            if (line_.number(side) > known_[side]) {
                end.connect(now_ns_);
                known_[side] = line_.number(side);
            }
            if (end.is_connected())
                pending_[side].insert(pending_[side].end(), came.begin(), came.end());
            if (end.wants_input() && !pending_[side].empty())
                end.receive(std::exchange(pending_[side], {}), now_ns_);
            deliver(end);
            for (std::size_t r = 0; r < end.receiver().regions(); ++r) {
                if (is_admitted_ || r == 0)
                    end.admit(r);
                else
                    end.refuse(r, "it would go in a circle");
            }
            end.run(now_ns_);
            EXPECT_FALSE(end.is_broken()) << end.problem();
            if (end.is_connected()) line_.send(side, end.out(), now_ns_);
        }
    }

    // ---- The target
    void deliver(End& end) {
        while (now_ns_ >= room_ns_ && end.delivery() != nullptr) {
            for (const Delivery::Write& write : end.delivery()->writes) take(write);
            end.delivered(now_ns_);
        }
    }
    void take(const Delivery::Write& write) {
        ASSERT_GE(write.offset, kAt * 4);
        ASSERT_LE(write.offset + write.words.size(), (kAt + kWords) * 4);
        std::uint32_t* const at = target_.data() + write.offset / 4;
        const std::vector<std::uint32_t> before(at, at + write.words.size() / 4);
        std::memcpy(at, write.words.data(), write.words.size());
        for (std::size_t i = 0; i < before.size(); ++i)
            ASSERT_GE(at[i], before[i]) << "an older write came after a later one";
        for (unsigned o = 0; o < kOrigins; ++o) {
            const auto* const words = target_.data() + kAt + o * kOriginWords;
            ASSERT_LE(words[kDataWords], *std::min_element(words, words + kDataWords))
                << "a flag was shown before its data";
        }
    }
    void settle() {
        is_admitted_ = true;
        room_ns_ = 0;
        for (unsigned o = 0; o < kOrigins; ++o) {
            do write(o);
            while (next_[o] % (kDataWords + 1) != 0);
        }
        const auto has_all = [this] {
            return std::equal(source_.begin(), source_.end(), target_.begin() + kAt);
        };
        const std::int64_t end_ns = now_ns_ + 5'000'000'000;
        for (; now_ns_ < end_ns && !(has_all() && ends_[0]->sender().lag_ns(now_ns_) == 0);
             now_ns_ += 1'000'000)
            exchange();
        EXPECT_TRUE(has_all()) << "the memories differ";
        conflated += ends_[0]->sender().counts().conflated;
        cuts = line_.cuts();
    }

    rmem::Random random_;
    rmem::test::CutLine line_;
    const std::uint64_t limit_;
    std::int64_t now_ns_ = 1'000'000'000, room_ns_ = 0;
    std::array<std::uint32_t, kWords> source_{};
    std::array<std::uint32_t, kAt + kWords + kAt> target_{};
    std::array<std::uint32_t, kOrigins> next_{};
    std::uint32_t bulk_ = 0;
    bool is_admitted_ = true;
    std::array<std::unique_ptr<End>, 2> ends_;
    std::array<std::uint64_t, 2> known_{};  ///< connection, at last
    std::array<std::vector<std::byte>, 2> pending_;
};

TEST(BridgeHunt, a_hunt_of_some_dozens_of_seeds_finds_nothing) {
    rmem::check_from_now_on();
    std::uint64_t faults = 0, conflated = 0, cuts = 0;
    for (std::uint64_t seed = 1; seed <= 60 && !HasFailure(); ++seed) {
        SCOPED_TRACE(seed);
        BridgeRun run(seed);
        run.run();
        faults += run.faults;
        conflated += run.conflated;
        cuts += run.cuts;
    }
    EXPECT_GT(faults, 500U);
    EXPECT_GT(conflated, 1000U);
    EXPECT_GT(cuts, 500U);
}

}  // namespace
}  // namespace simulator
