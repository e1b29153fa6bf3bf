// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Traffic of every kind among three ranks, during which one, the victim, may die.
///
/// Each round sends every kind of message from everybody to everybody, and checks who got what: a
/// rank that has been told of the victim's death goes on with the other survivor.
/// Thread safety: one thread per rank. Errors: `CheckFailed`.

#include "tests/support/conformance.hpp"

#include <algorithm>
#include <iterator>

namespace rmem::test {

inline constexpr int kTalkers = 3;
inline constexpr int kVictim = 1;
inline constexpr std::size_t kPlace =
    98304;  ///< data partition: room for one message that is filled

enum KillWord : std::size_t {
    kBorn,      ///< survivors that have come out of bbp_init
    kSurvived,  ///< survivors that have gone on alone
    kDead,      ///< incarnations of the victim that have ended
    kUp,        ///< the victim is back for good
    kSettled,   ///< survivors that have heard of all incarnations that ended
    kDone,      ///< talkers that need the others no more
    kTakenBack  ///< from here on: one word per message that its sender took back
};

enum class How { send, mcast, post, post_mcast, taken_back };
enum class Take { recv, probe, view };
struct Stage {
    How how;
    std::size_t size;
    Take take;
};
/// The messages of each rank in turn to the others in one round: each way a message can go.
inline constexpr Stage kStages[] = {
    {How::taken_back, 400000, Take::recv},  // first: then there is room for its beginning
    {How::send, 24, Take::recv},           {How::send, 0, Take::probe},
    {How::send, 600, Take::recv},          {How::send, 3000, Take::view},
    {How::send, 70000, Take::recv},        {How::send, 300000, Take::recv},
    {How::mcast, 40, Take::probe},         {How::mcast, 900, Take::recv},
    {How::mcast, 70000, Take::view},       {How::mcast, 200000, Take::recv},
    {How::post, 500, Take::recv},          {How::post_mcast, 2000, Take::view},
    {How::send, 30, Take::recv},           {How::send, 31, Take::probe},
    {How::send, 32, Take::view},           {How::send, 33, Take::recv},
    {How::send, 34, Take::recv},
};

/// One rank's part of the traffic. Ranks take turns, so that nobody has to guess what comes next
/// and no two wait for each other.
class Talker {
public:
    explicit Talker(Rank& me) : me_(me), buffer_(500000) {}

    bool victim_is_gone() const { return gone_; }
    void victim_is_back() { gone_ = false; }

    /// A round; `phase` and `round` make its messages differ from all others.
    void round(unsigned phase, unsigned round, bool victim_may_die) {
        phase_ = phase;
        round_ = round;
        may_die_ = victim_may_die;
        for (int turn = 0; turn < kTalkers; ++turn) take_turn(turn);
        if (me_.ranks > kTalkers) return;
        note(bbp_barrier(), BBP_OK, "bbp_barrier");
        const int all[] = {0, 1, 2};
        note(bbp_barrier_group(all, 3, 3), BBP_OK, "bbp_barrier_group");
        for (const char* name : {"team", "crew"}) check_ok(bbp_group_join(name));
        for (const char* name : {"team", "crew"}) check_ok(bbp_group_leave(name));
        if (gone_) {
            const int survivors[] = {0, 2};
            check_ok(bbp_barrier_group(survivors, 2, 4), "the survivors' barrier");
        }
    }

private:
    void take_turn(int turn) {
        turn_ = turn;
        for (std::size_t i = 0; i < std::size(kStages); ++i) {
            stage_ = i;
            if (turn == me_.rank) {
                send_stage(kStages[i]);
            } else if (turn != kVictim || !gone_) {
                receive_stage(kStages[i]);
            }
        }
    }
    std::uint64_t seed() const {
        return ((phase_ * 10 + round_) * kTalkers + static_cast<unsigned>(turn_)) * 100 + stage_;
    }
    std::size_t taken_back_word() const {
        return kTakenBack + (phase_ * 10 + round_) * 3 + static_cast<std::size_t>(turn_);
    }

    /// `code` is what was expected, or tells for the first time that the victim is dead.
    bool note(int code, int expected, std::string_view what) {
        if (code == BBP_EPEER && (may_die_ || gone_) && me_.rank != kVictim) {
            gone_ = true;
            return false;
        }
        check_code(code, expected,
                   fmt::format("{} (phase {}, round {}, turn {}, stage {})", what, phase_, round_,
                               turn_, stage_));
        return true;
    }
    std::vector<int> listeners() const {
        std::vector<int> list = everyone_but(me_.rank, kTalkers);
        if (gone_) std::erase(list, kVictim);
        return list;
    }

    void send_stage(const Stage& stage) {
        const auto bytes = pattern(stage.size, seed());
        const auto listening = listeners();
        const int n = static_cast<int>(listening.size());
        switch (stage.how) {
            case How::send:
                for (const int d : listening) {
                    note(bbp_send(d, bytes.data(), bytes.size()), BBP_OK, "bbp_send");
                }
                break;
            case How::mcast:
                note(bbp_mcast(listening.data(), n, bytes.data(), bytes.size()), BBP_OK,
                     "bbp_mcast");
                break;
            case How::post:
                for (const int d : listening)
                    note(bbp_post(d, composed(), stage.size), 0, "bbp_post");
                break;
            case How::post_mcast:
                note(bbp_post_mcast(listening.data(), n, composed(), stage.size), BBP_OK,
                     "bbp_post_mcast");
                break;
            case How::taken_back:
                // Nobody reads until the word is raised, and the message is larger than a
                // partition.
                note(bbp_mcast_for(listening.data(), n, bytes.data(), bytes.size(), 1),
                     BBP_ETIMEDOUT, "bbp_mcast_for");
                me_.shared[taken_back_word()] = 1;
                break;
        }
    }
    void* composed() {
        const std::size_t size = kStages[stage_].size;
        void* to = nullptr;
        await(
            [&] {
                const int code = bbp_compose(size, &to);
                if (code != BBP_EAGAIN) check_ok(code, "bbp_compose");
                return code == BBP_OK;
            },
            "room to compose in");
        fill({static_cast<std::byte*>(to), size}, seed());
        return to;
    }

    void receive_stage(const Stage& stage) {
        if (stage.how == How::taken_back) {
            await(
                [&] {
                    return me_.shared[taken_back_word()] != 0 ||
                           (turn_ == kVictim && me_.shared[kDead] != 0 && may_die_);
                },
                "a message to be taken back");
            return;
        }
        std::size_t size = 0;
        const void* data = buffer_.data();
        int code = BBP_EAGAIN;
        if (stage.take == Take::view) {
            code = bbp_view(turn_, &data, &size);
        } else {
            // Another may be ahead by a turn, so the waiting rank cannot be told.
            if (stage.take == Take::probe) code = bbp_probe(BBP_ANY, &size);
            check(code >= 0 || code == BBP_EAGAIN, "bbp_probe told " + code_name(code));
            code = bbp_recv(turn_, buffer_.data(), buffer_.size(), &size);
        }
        if (!note(code, turn_, "receiving")) {
            // Its messages came before: nothing else may come now.
            const int again = bbp_tryrecv(turn_, buffer_.data(), buffer_.size(), &size);
            check_code(again, BBP_EPEER, "receiving from the dead once more");
            return;
        }
        check_equal(size, stage.size, "size");
        check_bytes(data, size, seed());
        if (stage.take == Take::view) check_ok(bbp_release(data));
    }

    Rank& me_;
    std::vector<std::byte> buffer_;
    bool gone_ = false;
    bool may_die_ = false;
    unsigned phase_ = 0, round_ = 0;
    int turn_ = 0;
    std::size_t stage_ = 0;
};

}  // namespace rmem::test
