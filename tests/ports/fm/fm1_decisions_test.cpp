// SPDX-License-Identifier: Apache-2.0
// How a node of FM 1.0 tells its decisions, frame by frame, seen by a peer that speaks by hand: no
// count covers a frame that is to be returned before its slot was named.
#include "ports/fm/frame.hpp"
#include "tests/ports/fm/fm_support.hpp"

#include <deque>
#include <set>

namespace rmem::test {
namespace {

using ports::fm::Fm1Header;
using ports::fm::Hello;
using ports::fm::kFirstCount;
using ports::fm::kFm1Header;
using ports::fm::Kind;
using ports::fm::kReturnedHeader;
using ports::fm::kReturnedSlots;
using ports::fm::read_as;
using ports::fm::ReturnedHeader;

class Fm1Decisions : public Conformance {};
RMEM_ON_ALL_RINGS(Fm1Decisions);

constexpr unsigned kFrames =
    150;  ///< so many that their slots fill more than two frames of returned ones
enum Words : std::size_t { kIsFull, kHasDecided, kPosted, kIsDone };

/// A peer that reads and writes frames of class fm by itself.
class ByHand {
public:
    std::vector<std::byte> next() {
        std::array<std::byte, 256> bytes;
        std::size_t size = 0;
        const int from = billboard::ProcessEndpoint::open()->endpoint().recv(
            1, bytes.data(), bytes.size(), &size, {}, billboard::Class::fm);
        check_equal(from, 1, "who sends a frame");
        return {bytes.data(), bytes.data() + size};
    }
    /// Becomes known, and learns where the handler of the first message is.
    void meet() {
        const auto hello = read_as<Hello>(next().data());
        send_frame(
            1, bytes_of(Hello{.window = 256, .program = hello.program, .modules = hello.modules}));
        handler_ = read_as<Fm1Header>(next().data());
        check(handler_.kind == Kind::four, "a message of the other's");
    }
    void send(unsigned slot) {
        struct {
            Fm1Header head;
            std::array<int, 4> words;
        } frame{handler_, {static_cast<int>(slot), 0, 0, 0}};
        frame.head.slot = static_cast<std::uint8_t>(slot);
        frame.head.ack = static_cast<std::uint16_t>(kFirstCount + 1);  // of that message
        static_assert(sizeof frame == kFm1Header + 16);
        send_frame(1, bytes_of(frame));
        undecided_.push_back(slot);
    }
    /// Takes a frame that tells decisions.
    void hear() {
        const auto frame = next();
        const auto head = read_as<ReturnedHeader>(frame.data());
        check(head.kind == Kind::returned && frame.size() == kReturnedHeader + head.count,
              "a frame of returned slots, or an acknowledgement");
        for (unsigned i = 0; i < head.count; ++i)
            named_.insert(std::to_integer<unsigned>(frame[kReturnedHeader + i]));
        most_named_ = std::max<std::size_t>(most_named_, head.count);
        for (; acked_ != head.ack; ++acked_) {
            check(!undecided_.empty(), "a decision on a frame that was sent");
            const unsigned slot = undecided_.front();
            undecided_.pop_front();
            (named_.erase(slot) != 0 ? returned : accepted).push_back(slot);
        }
    }
    bool has_heard_all() const { return undecided_.empty(); }
    std::size_t most_named() const { return most_named_; }

    std::vector<unsigned> accepted, returned;

private:
    Fm1Header handler_{};
    std::deque<unsigned> undecided_;  ///< slots, in the order sent
    std::set<unsigned> named_;        ///< and not covered by a count yet
    std::uint16_t acked_ = kFirstCount;
    std::size_t most_named_ = 0;
};

/// Occupies the receive queue until all others have found it full.
int runs_by[kMaxTestRanks];
void occupy(int, int, int, int) {
    ++runs_by[FM_nodeid];
    extract1_until([] { return count_of(FM_FRAMES_REJECTED) == kFrames - 1; },
                   "frames that find no room");
}

void be_the_peer(Rank& me) {
    ByHand peer;
    peer.meet();
    me.await_word(kIsFull);
    for (unsigned slot = 0; slot < kFrames; ++slot) peer.send(slot);
    me.await_word(kHasDecided);
    for (unsigned i = 0; i < me.shared[kPosted]; ++i) receive(1, 8, i);
    while (!peer.has_heard_all()) peer.hear();
    check_equal(peer.accepted, std::vector<unsigned>{0}, "what found room");
    check_equal(peer.returned.size(), std::size_t{kFrames - 1}, "frames returned");
    check_equal(peer.most_named(), kReturnedSlots, "slots named by one frame");
    me.raise(kIsDone);
}

TEST_P(Fm1Decisions, a_count_covers_no_frame_that_is_returned_before_its_slot_is_named) {
    run(2, [](Rank& me) {
        if (me.rank == 0) return be_the_peer(me);
        FM_set_parameter(FM_HOST_RECEIVE_QUEUE, 1);
        FmSession session;
        runs_by[me.rank] = 0;
        FM_send_4(0, occupy, 0, 0, 0, 0);
        // With the way back full, what is decided on from here on is told later, all of it
        // together.
        me.shared[kPosted] = static_cast<std::uint32_t>(send_until_full(0, 8, 0));
        me.raise(kIsFull);
        await([&] { return FM_extract() != 0; }, "the first frame");
        me.raise(kHasDecided);
        extract1_until([&] { return me.shared[kIsDone] != 0; }, "the peer");
        check_equal(runs_by[me.rank], 1, "handlers run");
    });
}

}  // namespace
}  // namespace rmem::test
