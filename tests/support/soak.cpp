// SPDX-License-Identifier: Apache-2.0
#include "tests/support/soak.hpp"

#include "billboard/bbp.h"
#include "tests/support/patterns.hpp"
#include "tests/support/sanitizers.hpp"

#include <gtest/gtest.h>

#include <sched.h>
#include <algorithm>
#include <cstdlib>
#include <string>

namespace rmem::test {

namespace {

constexpr std::size_t kMaxViews = 3;
constexpr std::int64_t kPatienceNs = 1'000'000;
constexpr std::int64_t kMaxPatienceNs = 64'000'000;

std::size_t random_size(std::uint64_t random, std::size_t largest) {
    const std::uint64_t kind = random % 100;
    const std::uint64_t rest = random / 100;
    if (kind < 60) return rest % 61;
    if (kind < 90) return rest % 1000 % (largest + 1);
    if (kind < 99) return rest % (largest / 4 + 1);
    return rest % (largest + 1);
}

/// One rank's part of the run.
class SoakRank {
public:
    SoakRank(Rank& me, std::uint64_t messages, std::uint64_t seed, std::size_t largest)
        : me_(me),
          own_(seed, me.rank, me.ranks, largest, messages),
          state_(seed ^ static_cast<std::uint64_t>(me.rank)),
          buffer_(largest) {
        theirs_.reserve(static_cast<std::size_t>(me.ranks));  // expected_ points into them
        for (int sender = 0; sender < me.ranks; ++sender) {
            theirs_.emplace_back(seed, sender, me.ranks, largest, messages);
            expected_.push_back(theirs_.back().next_for(me.rank));
        }
    }

    void run() {
        while (!own_.done()) {
            const PlannedMessage& message = own_.next();
            while (!sent(message)) {
                if (!receive_one()) pause();
            }
            // Not only when there is no room, so that queues are found at all levels.
            if (next_random(state_) % 4 != 0) receive_one();
        }
        while (anything_expected()) {
            if (!receive_one()) pause();
        }
        while (!views_.empty()) release_one();
        check(posted_ > 0 || own_.planned() < 1000, "no composed message was ever posted");
        check_ok(bbp_barrier());
        const int code = bbp_tryrecv(BBP_ANY, buffer_.data(), buffer_.size(), nullptr);
        check(code == BBP_EAGAIN || code == BBP_EPEER,
              "when all had been received: " + code_name(code));
    }

private:
    struct View {
        const void* data;
        std::size_t size;
        std::uint64_t seed;
        int sender;
    };

    bool sent(const PlannedMessage& message) {
        if (message.size > me_.partition) return sent_in_parts(message);
        if (message.discarded) compose_and_discard(message.size);
        if (message.composed) return posted(message);
        outgoing_.resize(message.size);
        fill(outgoing_, message.seed);
        const int count = static_cast<int>(message.dests.size());
        const int code =
            count == 1 ? bbp_trysend(message.dests[0], outgoing_.data(), message.size)
                       : bbp_trymcast(message.dests.data(), count, outgoing_.data(), message.size);
        if (code != BBP_EAGAIN) check_ok(code, "sending");
        return code == BBP_OK;
    }
    /// Its receivers must drop the parts that came by the deadline, or there is one too many.
    bool sent_in_parts(const PlannedMessage& message) {
        if (clock_ns() < only_receiving_until_) return false;
        outgoing_.resize(message.size);
        fill(outgoing_, message.seed);
        const int code = bbp_mcast_for(message.dests.data(), static_cast<int>(message.dests.size()),
                                       outgoing_.data(), message.size, patience_ns_);
        if (code == BBP_OK) {
            patience_ns_ = kPatienceNs;
            return true;
        }
        check_code(code, BBP_ETIMEDOUT, "sending in parts");
        // Others may be sending as well: a rank that receives for long enough lets them through.
        patience_ns_ = std::min(2 * patience_ns_, kMaxPatienceNs);
        const auto longest = static_cast<std::uint64_t>(8 * patience_ns_);
        only_receiving_until_ =
            clock_ns() + static_cast<std::int64_t>(next_random(state_) % longest);
        return false;
    }
    bool posted(const PlannedMessage& message) {
        if (composed_ == nullptr) {
            const int code = bbp_compose(message.size, &composed_);
            if (code == BBP_EAGAIN) return false;
            check_ok(code, "bbp_compose");
            fill({static_cast<std::byte*>(composed_), message.size}, message.seed);
        }
        // It stays composed, as it was filled, while there is no room for its announcement.
        const int count = static_cast<int>(message.dests.size());
        const int code =
            count == 1 ? bbp_trypost(message.dests[0], composed_, message.size)
                       : bbp_trypost_mcast(message.dests.data(), count, composed_, message.size);
        if (code == BBP_EAGAIN) return false;
        check_ok(code, "posting");
        composed_ = nullptr;
        ++posted_;
        return true;
    }

    /// Takes room and gives it back: messages around it must not change.
    static void compose_and_discard(std::size_t size) {
        void* buffer = nullptr;
        const int code = bbp_compose(size, &buffer);
        if (code == BBP_EAGAIN) return;
        check_ok(code, "bbp_compose");
        std::memset(buffer, 0xee, size);
        check_ok(bbp_discard(buffer), "bbp_discard");
    }

    /// Takes one message, if any waits, and checks that it is its sender's next one.
    bool receive_one() {
        if (!views_.empty() && next_random(state_) % 2 == 0) release_one();
        std::size_t size = ~std::size_t{0};
        const void* data = buffer_.data();
        bool as_view = next_random(state_) % 4 == 0;
        int sender = as_view ? bbp_tryview(BBP_ANY, &data, &size) : BBP_ESIZE;
        if (sender == BBP_ESIZE) {  // a message in parts cannot be viewed
            as_view = false;
            data = buffer_.data();
            sender = bbp_tryrecv(BBP_ANY, buffer_.data(), buffer_.size(), &size);
        }
        if (sender == BBP_EAGAIN) {
            if (!views_.empty()) release_one();
            return false;
        }
        if (sender < 0) check_code(sender, 0, "receiving");
        check(sender < me_.ranks, fmt::format("a message came from rank {}", sender));
        const auto from = static_cast<std::size_t>(sender);
        check(expected_[from] != nullptr, fmt::format("one message too many of rank {}", sender));
        const PlannedMessage& expected = *expected_[from];
        check_equal(size, expected.size, fmt::format("size of a message of rank {}", sender));
        check_intact(data, size, expected.seed, sender, "differs");
        if (as_view) {
            views_.push_back({data, size, expected.seed, sender});
            if (views_.size() >= kMaxViews) release_one();
        }
        expected_[from] = theirs_[from].next_for(me_.rank);
        return true;
    }

    void release_one() {
        const auto which = static_cast<std::ptrdiff_t>(next_random(state_) % views_.size());
        const View view = views_[static_cast<std::size_t>(which)];
        check_intact(view.data, view.size, view.seed, view.sender, "changed while it was viewed");
        check_ok(bbp_release(view.data), "bbp_release");
        views_.erase(views_.begin() + which);
    }

    void check_intact(const void* data, std::size_t size, std::uint64_t seed, int sender,
                      std::string_view what) const {
        const std::span bytes(static_cast<const std::byte*>(data), size);
        const std::size_t at = first_difference(bytes, seed);
        if (at == size) return;
        fail(fmt::format("byte {} of {} of a message of rank {}{} {}", at, size, sender,
                         sender == me_.rank ? " (itself)" : "", what));
    }

    bool anything_expected() const {
        for (const PlannedMessage* each : expected_) {
            if (each != nullptr) return true;
        }
        return false;
    }

    /// Lets the others go on: on a processor that is shared, or in virtual time.
    static void pause() {
        if (is_simulated()) return rest(std::chrono::microseconds(10));
        ::sched_yield();
    }

    Rank& me_;
    SoakPlan own_;
    std::vector<SoakPlan> theirs_;
    std::vector<const PlannedMessage*> expected_;
    std::vector<View> views_;
    std::uint64_t state_;
    std::vector<std::byte> buffer_;
    std::vector<std::byte> outgoing_;
    void* composed_ = nullptr;  ///< the message that is to be posted
    std::uint64_t posted_ = 0;
    std::int64_t patience_ns_ = kPatienceNs;  ///< of the next send in parts
    std::int64_t only_receiving_until_ = 0;
};

std::uint64_t number_from(const char* variable, std::uint64_t by_default) {
    const char* text = std::getenv(variable);
    return text == nullptr ? by_default : std::stoull(text);
}

}  // namespace

SoakPlan::SoakPlan(std::uint64_t seed, int sender, int ranks, std::size_t largest,
                   std::uint64_t messages)
    : state_(seed * 1000 + static_cast<std::uint64_t>(sender)),
      ranks_(ranks),
      largest_(largest),
      messages_(messages) {}

const PlannedMessage& SoakPlan::next() {
    ++made_;
    const std::uint64_t random = next_random(state_);
    message_.dests.clear();
    if (random % 5 == 0) {
        // Any set of ranks, in any rotation.
        const std::uint64_t mask = random / 5 % ((1U << static_cast<unsigned>(ranks_)) - 1) + 1;
        const int first = static_cast<int>(random / 5000 % static_cast<unsigned>(ranks_));
        for (int i = 0; i < ranks_; ++i) {
            const int rank = (first + i) % ranks_;
            if ((mask >> static_cast<unsigned>(rank) & 1U) != 0) message_.dests.push_back(rank);
        }
    } else {
        message_.dests.push_back(static_cast<int>(random / 5 % static_cast<unsigned>(ranks_)));
    }
    message_.size = random_size(next_random(state_), largest_);
    message_.seed = next_random(state_);
    message_.composed = message_.seed % 8 == 0;
    message_.discarded = message_.seed % 16 == 1;
    return message_;
}

const PlannedMessage* SoakPlan::next_for(int receiver) {
    while (!done()) {
        const PlannedMessage& message = next();
        for (const int dest : message.dests) {
            if (dest == receiver) return &message;
        }
    }
    return nullptr;
}

void soak(Rank& me, std::uint64_t messages_each, std::uint64_t seed, std::size_t largest) {
    SoakRank(me, messages_each, seed, largest).run();
}

void run_soak(const RingSetup& setup, std::uint64_t messages, std::uint64_t seed,
              std::size_t largest) {
    if (largest == 0) largest = setup.partition;
    SCOPED_TRACE(fmt::format("RMEM_SOAK_SEED={} RMEM_SOAK_MESSAGES={}", seed, messages));
    run_members(setup, [&](Rank& me) { soak(me, messages / setup.ranks, seed, largest); });
}

std::uint64_t soak_messages(std::uint64_t by_default) {
    return number_from("RMEM_SOAK_MESSAGES", kSanitized ? by_default / 10 : by_default);
}

std::uint64_t soak_seed() {
    return number_from("RMEM_SOAK_SEED", 1999);
}

}  // namespace rmem::test
