// SPDX-License-Identifier: Apache-2.0
// ctest: apart
//
// What Fast Messages do with frames that no node of the library sends: drop them, count them, go
// on.
#include "ports/fm/frame.hpp"
#include "tests/ports/fm/fm_support.hpp"

namespace rmem::test {
namespace {

using namespace ports::fm;

int seen_by[kMaxTestRanks];
void note(int, int, int, int) {
    ++seen_by[FM_nodeid];
}
int note2(FM_stream*, unsigned) {
    ++seen_by[FM_nodeid];
    return FM_CONTINUE;
}

using Frames = std::vector<std::vector<std::byte>>;

template <class... Parts>
std::vector<std::byte> frame(const Parts&... parts) {
    std::vector<std::byte> bytes;
    (bytes.insert(bytes.end(), bytes_of(parts).begin(), bytes_of(parts).end()), ...);
    return bytes;
}

class FmHostile : public Conformance {
protected:
    /// Rank 0 posts the frames by hand and then sends by the library's rules; rank 1 counts
    /// `corrupt` of them as such, `invalid` as for handlers that do not exist, and gets what
    /// follows.
    static void comes_through(const Frames& frames, long long corrupt, long long invalid) {
        run(2, [&](Rank& me) {
            FM_set_parameter(FM_QUIET);
            FmSession session;
            seen_by[me.rank] = 0;
            FM_register_handler(0, note2);
            if (me.rank == 0) {
                for (const auto& each : frames) send_frame(1, each);
                FM_send_4(1, note, 1, 2, 3, 4);
                return;
            }
            extract_both_until([] { return seen_by[FM_nodeid] == 1; }, "what follows");
            check_equal(count_of(FM_CORRUPT), corrupt, "corrupt frames");
            check_equal(count_of(FM_INVALID_HANDLERS), invalid, "invalid handlers");
        });
    }
};
RMEM_ON_ALL_RINGS(FmHostile);

TEST_P(FmHostile, frames_of_no_kind_or_of_a_wrong_size_are_counted) {
    Frames frames = {{}, {std::byte{0}}, {std::byte{0xff}}};
    frames.push_back(frame(Kind::hello));                             // cut
    frames.push_back(frame(Hello{.version = 9}));                     // of another version
    frames.push_back(frame(Kind::four));                              // cut
    frames.push_back(frame(Fm1Header{.ack = kFirstCount}, 1, 2, 3));  // three words
    frames.push_back(frame(Fm1Header{.kind = Kind::buffer}, std::array<char, 129>{}));
    frames.push_back(frame(Kind::returned));                       // cut
    frames.push_back(frame(ReturnedHeader{.count = 3}, 'a'));      // says three, names one
    frames.push_back(frame(Kind::credit));                         // cut
    frames.push_back(std::vector<std::byte>(5000, std::byte{4}));  // larger than any
    comes_through(frames, static_cast<long long>(frames.size()), 0);
}

TEST_P(FmHostile, acknowledgements_of_what_was_not_sent_are_counted) {
    const Frames frames = {
        frame(ReturnedHeader{.ack = static_cast<std::uint16_t>(kFirstCount + 5)}),
        frame(ReturnedHeader{.count = 1, .ack = kFirstCount}, 'z'),  // a slot that is free
        frame(ReturnedHeader{.count = 1, .ack = kFirstCount},
              static_cast<unsigned char>(0xff))};  // a slot that there is not
    comes_through(frames, 3, 0);
}

TEST_P(FmHostile, packets_out_of_sequence_beyond_credit_or_of_no_stream_are_counted) {
    constexpr auto kWhole =
        static_cast<std::uint8_t>(static_cast<unsigned>(Kind::packet) | kFirstPacket | kLastPacket);
    constexpr auto kMiddle = static_cast<std::uint8_t>(Kind::packet);
    const Frames frames = {
        frame(Fm2Header{.kind = kWhole, .limit = kFirstCount, .number = 7}),
        frame(Fm2Header{.kind = kWhole, .stream = 16, .limit = kFirstCount, .number = kFirstCount}),
        frame(Fm2Header{.kind = kMiddle, .limit = kFirstCount, .number = kFirstCount}),
        frame(Credit{.limit = static_cast<std::uint16_t>(kFirstCount + 30'000)})};
    comes_through(frames, 4, 0);
}

TEST_P(FmHostile, packets_beyond_the_credit_are_counted_and_those_within_it_have_a_place) {
    run(2, [](Rank& me) {
        FM_set_parameter(FM_QUIET);
        FM_register_handler(0, note2);
        FmSession session;
        seen_by[me.rank] = 0;
        constexpr int kPackets = 70, kCredit = 64;  // half of 256, for each of two nodes
        if (me.rank == 0) {
            const auto whole = static_cast<std::uint8_t>(static_cast<unsigned>(Kind::packet) |
                                                         kFirstPacket | kLastPacket);
            for (int i = 0; i < kPackets; ++i) {
                send_frame(1,
                           frame(Fm2Header{.kind = whole,
                                           .limit = kFirstCount,
                                           .number = static_cast<std::uint16_t>(kFirstCount + i)}));
            }
            return;
        }
        extract1_until([] { return count_of(FM_CORRUPT) == kPackets - kCredit; },
                       "packets beyond the credit");
        check_equal(seen_by[1], 0, "handlers called");
        FM_extract(~0UL);
        check_equal(seen_by[1], kCredit, "packets that had a place");
    });
}

TEST_P(FmHostile, pointers_that_are_no_code_are_told) {
    const Frames frames = {
        frame(Fm1Header{.ack = kFirstCount, .module = 0xffffffff}, 1, 2, 3, 4),
        frame(Fm1Header{.slot = 1, .ack = kFirstCount, .offset = 0xffffffff}, 1, 2, 3, 4)};
    comes_through(frames, 0, 2);
}

TEST_P(FmHostile, a_node_that_runs_another_binary_is_told_and_refused) {
    run(2, [](Rank& me) {
        FM_set_parameter(FM_QUIET);
        FmSession session;
        seen_by[me.rank] = 0;
        if (me.rank == 0) {
            send_frame(1, frame(Hello{.program = 1, .modules = 2}));
            FM_send_4(1, note, 1, 2, 3, 4);
            me.await_word(0);
            return;
        }
        extract1_until([] { return count_of(FM_INVALID_HANDLERS) == 1; },
                       "a message of the other binary");
        check_equal(count_of(FM_FOREIGN_BINARIES), 1LL, "other binaries");
        check_equal(seen_by[1], 0, "handlers called");
        check_errno(ENOEXEC, [] { FM_send_4(0, note, 1, 2, 3, 4); });
        me.raise(0);
    });
}

TEST_P(FmHostile, random_frames_do_no_harm) {
    Frames frames;
    std::uint64_t state = 42;
    for (int i = 0; i < thrifty(400); ++i) {
        std::vector<std::byte> bytes(next_random(state) % 40);
        fill(bytes, next_random(state));
        // None that would reach a function of this program: those are as good as sent by it.
        if (!bytes.empty()) bytes[0] = std::byte(next_random(state) % 12);
        if (bytes.size() >= 8 && bytes[0] <= std::byte{4}) bytes[4] = std::byte{0xff};
        if (!bytes.empty() && bytes[0] == std::byte{2}) bytes[0] = std::byte{0};
        frames.push_back(std::move(bytes));
    }
    run(2, [&](Rank& me) {
        FM_set_parameter(FM_QUIET);
        FmSession session;
        if (me.rank == 0) {
            for (const auto& each : frames) send_frame(1, each);
            return me.raise(0);
        }
        extract_both_until([&] { return me.shared[0] != 0 && count_of(FM_CORRUPT) > 0; },
                           "the end, and corrupt frames");
    });
}

}  // namespace
}  // namespace rmem::test
