// SPDX-License-Identifier: Apache-2.0
// The matcher beside a naive one that scans two vectors: they are told the same and must answer the
// same.
#include "mpi_channel/device/matching.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <ostream>
#include <random>
#include <string>
#include <vector>

namespace mpi_channel {
namespace {

constexpr int kNone = -1;
constexpr unsigned kSources = 6;  ///< 1 to 5 are used
constexpr int kPool = 512;  ///< receives, and messages: reused when they are out of the matcher
constexpr int kStepsPerSeed = 20'000;

enum class Kind { arrive, post, cancel, peek, claim, claim_peeked, take_hopeless };

/// What both sides are told. Receives and messages are numbers in a pool.
struct Operation {
    Kind kind = Kind::arrive;
    int receive = kNone;
    int message = kNone;
    Envelope envelope;
    Wanted wanted;
    std::size_t capacity = 0;
    std::size_t least = 0;
};

/// A receive and a message that found each other, or what else an operation gives.
struct Outcome {
    int number = kNone;  ///< of the receive or message given; for cancel() 1 and 0
    std::size_t at = 0;
    std::size_t bytes = 0;
    bool cut = false;
    bool last = false;
    std::size_t used = 0;
    bool operator==(const Outcome&) const = default;
};

Outcome outcome(int number, const Placement& placement, std::size_t used) {
    return {number, placement.at, placement.bytes, placement.cut, placement.last, used};
}

struct Told {
    std::vector<Outcome> outcomes;
    std::size_t posted = 0;
    std::size_t unexpected = 0;
    bool operator==(const Told&) const = default;
};

std::ostream& operator<<(std::ostream& out, const Told& told) {
    for (const Outcome& each : told.outcomes)
        out << "number " << each.number << ": " << each.bytes << " bytes at " << each.at
            << (each.cut ? ", cut" : "") << (each.last ? ", last" : "") << ", used " << each.used
            << "; ";
    return out << told.posted << " posted, " << told.unexpected << " unexpected";
}

/// The rules, as they are written: the first that fits, in the order of two vectors.
class Naive {
public:
    bool is_posted(int receive) const { return place_of(receive) != posted_.end(); }
    bool is_unexpected(int message) const { return place_among(message) != unexpected_.end(); }
    std::size_t posted() const { return posted_.size(); }
    std::size_t unexpected() const { return unexpected_.size(); }

    Outcome arrive(const Operation& op) {
        for (auto it = posted_.begin(); it != posted_.end(); ++it) {
            if (!fits(it->wanted, op.envelope)) continue;
            const Placement placement = place(*it, op.envelope.size);
            const Outcome found = outcome(it->receive, placement, it->used);
            if (placement.last) posted_.erase(it);
            return found;
        }
        unexpected_.push_back(op);
        return {};
    }

    void post(const Operation& op, std::vector<Outcome>& outcomes) {
        Waiting receive{op.receive, op.wanted, op.capacity, op.least, 0};
        while (true) {
            const auto it = first_that(op.wanted);
            if (it == unexpected_.end()) break;
            const Placement placement = place(receive, it->envelope.size);
            outcomes.push_back(outcome(it->message, placement, receive.used));
            unexpected_.erase(it);
            if (placement.last) return;
        }
        posted_.push_back(receive);
    }

    bool cancel(int receive) {
        const auto it = place_of(receive);
        if (it == posted_.end()) return false;
        posted_.erase(it);
        return true;
    }

    int peek(const Wanted& wanted) {
        const auto it = first_that(wanted);
        return it == unexpected_.end() ? kNone : it->message;
    }

    int claim(const Wanted& wanted) {
        const int message = peek(wanted);
        if (message != kNone) claim_peeked(message);
        return message;
    }

    void claim_peeked(int message) { unexpected_.erase(place_among(message)); }

    int take_hopeless(Source source) {
        for (const Waiting& each : posted_) {
            if (each.wanted.source != source) continue;
            const int receive = each.receive;
            cancel(receive);
            return receive;
        }
        return kNone;
    }

private:
    struct Waiting {
        int receive;
        Wanted wanted;
        std::size_t capacity;
        std::size_t least;
        std::size_t used;
    };

    static bool fits(const Wanted& wanted, const Envelope& envelope) {
        if (wanted.source != kAnySource && wanted.source != envelope.source) return false;
        return (wanted.tag & ~wanted.ignore) == (envelope.tag & ~wanted.ignore);
    }

    static Placement place(Waiting& receive, std::size_t size) {
        const std::size_t free = receive.capacity - receive.used;
        Placement placement;
        placement.at = receive.used;
        placement.bytes = size > free ? free : size;
        placement.cut = size > free;
        receive.used += placement.bytes;
        placement.last = receive.least == 0 || receive.capacity - receive.used < receive.least;
        return placement;
    }

    std::vector<Operation>::iterator first_that(const Wanted& wanted) {
        return std::ranges::find_if(
            unexpected_, [&](const Operation& each) { return fits(wanted, each.envelope); });
    }
    std::vector<Waiting>::const_iterator place_of(int receive) const {
        return std::ranges::find(posted_, receive, &Waiting::receive);
    }
    std::vector<Operation>::const_iterator place_among(int message) const {
        return std::ranges::find(unexpected_, message, &Operation::message);
    }

    std::vector<Waiting> posted_;
    std::vector<Operation> unexpected_;  ///< those that brought them
};

/// The matcher, told by numbers.
class Real {
public:
    std::size_t posted() const { return matcher_.posted(); }
    std::size_t unexpected() const { return matcher_.unexpected(); }

    Outcome arrive(const Operation& op) {
        if (const auto match = matcher_.arrive(op.envelope))
            return outcome(number_of(match->receive), match->placement, match->receive->used);
        Message& message = messages_[static_cast<std::size_t>(op.message)];
        message.envelope = op.envelope;
        matcher_.keep(message);
        return {};
    }

    void post(const Operation& op, std::vector<Outcome>& outcomes) {
        Receive& receive = receives_[static_cast<std::size_t>(op.receive)];
        receive.wanted = op.wanted;
        receive.capacity = op.capacity;
        receive.least = op.least;
        receive.used = 0;
        Placement placement;
        while (Message* message = matcher_.post(receive, placement)) {
            outcomes.push_back(outcome(number_of(message), placement, receive.used));
            if (placement.last) return;
        }
    }

    bool cancel(int receive) {
        return matcher_.cancel(receives_[static_cast<std::size_t>(receive)]);
    }
    int peek(const Wanted& wanted) { return number_of(matcher_.peek(wanted)); }
    int claim(const Wanted& wanted) { return number_of(matcher_.claim(wanted)); }
    void claim_peeked(int message) { matcher_.claim(messages_[static_cast<std::size_t>(message)]); }
    int take_hopeless(Source source) { return number_of(matcher_.take_hopeless(source)); }

private:
    int number_of(const Receive* receive) const {
        return receive == nullptr ? kNone : static_cast<int>(receive - receives_.data());
    }
    int number_of(const Message* message) const {
        return message == nullptr ? kNone : static_cast<int>(message - messages_.data());
    }

    std::vector<Receive> receives_{kPool};
    std::vector<Message> messages_{kPool};
    Matcher matcher_{kSources};
};

template <class Side>
Told tell(Side& side, const Operation& op) {
    Told told;
    const auto gives = [&](int number) { told.outcomes.push_back({.number = number}); };
    switch (op.kind) {
        case Kind::arrive: told.outcomes.push_back(side.arrive(op)); break;
        case Kind::post: side.post(op, told.outcomes); break;
        case Kind::cancel: gives(side.cancel(op.receive)); break;
        case Kind::peek: gives(side.peek(op.wanted)); break;
        case Kind::claim: gives(side.claim(op.wanted)); break;
        case Kind::claim_peeked: side.claim_peeked(op.message); break;
        case Kind::take_hopeless: gives(side.take_hopeless(op.wanted.source)); break;
    }
    told.posted = side.posted();
    told.unexpected = side.unexpected();
    return told;
}

/// Draws operations that the contract allows in the naive side's present state.
class Dice {
public:
    explicit Dice(std::uint64_t seed) : random_(seed) {}

    std::uint64_t below(std::uint64_t bound) { return random_() % bound; }

    /// Messages prevail for a while, then receives: both queues grow long and empty again.
    Operation draw(const Naive& state, int step) {
        const bool more_messages = step / 500 % 2 == 0;
        const std::uint64_t chance = below(100);
        Operation op;
        op.wanted = wanted();
        if (chance < 70)
            op.kind = chance < (more_messages ? 50U : 20U) ? Kind::arrive : Kind::post;
        else if (chance < 80)
            op.kind = Kind::cancel;
        else if (chance < 90)
            op.kind = Kind::peek;
        else if (chance < 94)
            op.kind = Kind::claim;
        else if (chance < 98)
            op.kind = Kind::claim_peeked;
        else
            op.kind = Kind::take_hopeless;
        if (state.posted() == kPool) op.kind = Kind::cancel;
        if (state.unexpected() == kPool) op.kind = Kind::claim;
        fill(op, state);
        return op;
    }

    void remember(const Operation& op, const Told& told) {
        if (op.kind == Kind::peek && told.outcomes.front().number != kNone)
            peeked_ = told.outcomes.front().number;
        // From here on that number may stand for a message that peek() has not given.
        if (op.kind == Kind::arrive && op.message == peeked_) peeked_ = kNone;
    }

private:
    void fill(Operation& op, const Naive& state) {
        op.receive = static_cast<int>(below(kPool));
        op.message = static_cast<int>(below(kPool));
        if (op.kind == Kind::claim_peeked && state.is_unexpected(peeked_)) {
            op.message = peeked_;
        } else if (op.kind == Kind::claim_peeked) {
            op.kind = Kind::peek;
        } else if (op.kind == Kind::take_hopeless) {
            op.wanted.source = source();
        } else if (op.kind == Kind::post) {
            while (state.is_posted(op.receive)) op.receive = (op.receive + 1) % kPool;
            op.capacity = below(60);
            op.least = below(8) == 0 ? 1 + below(70) : 0;
        } else if (op.kind == Kind::arrive) {
            while (state.is_unexpected(op.message)) op.message = (op.message + 1) % kPool;
            op.envelope = {source(), tag(), below(4) == 0 ? 0 : below(40)};
        }
    }

    Source source() { return static_cast<Source>(1 + below(5)); }

    /// Of three bits: the lowest two and the highest.
    std::uint64_t tag() { return below(4) | below(2) << 63; }

    Wanted wanted() {
        Wanted wanted{below(4) == 0 ? kAnySource : source(), tag(), 0};
        const std::uint64_t chance = below(8);
        if (chance == 0) wanted.ignore = ~std::uint64_t{0};
        if (chance == 1) wanted.ignore = tag();
        if (chance == 2) wanted.ignore = random_();
        return wanted;
    }

    std::mt19937_64 random_;
    int peeked_ = kNone;
};

/// How often the interesting things happened: else the comparison would say nothing.
struct Seen {
    int found_receive = 0;
    int found_message = 0;
    int several = 0;
    int cut = 0;
    int cancelled = 0;
    int claimed = 0;
    int claimed_peeked = 0;
    int hopeless = 0;
    std::size_t most_posted = 0;
    std::size_t most_unexpected = 0;

    void count(const Operation& op, const Told& told) {
        most_posted = std::max(most_posted, told.posted);
        most_unexpected = std::max(most_unexpected, told.unexpected);
        claimed_peeked += op.kind == Kind::claim_peeked;
        for (const Outcome& each : told.outcomes) {
            found_receive += op.kind == Kind::arrive && each.number != kNone;
            found_message += op.kind == Kind::post;
            several += each.at > 0;
            cut += each.cut;
            cancelled += op.kind == Kind::cancel && each.number == 1;
            claimed += op.kind == Kind::claim && each.number != kNone;
            hopeless += op.kind == Kind::take_hopeless && each.number != kNone;
        }
    }
};

class MatchingModelTest : public ::testing::TestWithParam<std::uint64_t> {};

TEST_P(MatchingModelTest, the_matcher_answers_as_one_that_scans_two_vectors) {
    const std::uint64_t seed = GetParam();
    Dice dice{seed};
    Naive naive;
    Real real;
    Seen seen;
    for (int step = 0; step < kStepsPerSeed; ++step) {
        const Operation op = dice.draw(naive, step);
        const Told expected = tell(naive, op);
        ASSERT_EQ(tell(real, op), expected)
            << "seed " << seed << ", step " << step << ", operation " << static_cast<int>(op.kind);
        dice.remember(op, expected);
        seen.count(op, expected);
    }
    for (const int times : {seen.found_receive, seen.found_message, seen.several, seen.cut,
                            seen.cancelled, seen.claimed, seen.claimed_peeked, seen.hopeless})
        EXPECT_GT(times, 50);
    EXPECT_GT(seen.most_posted, 30U);
    EXPECT_GT(seen.most_unexpected, 30U);
}

INSTANTIATE_TEST_SUITE_P(Seeds, MatchingModelTest, ::testing::Range<std::uint64_t>(1, 13));

}  // namespace
}  // namespace mpi_channel
