// SPDX-License-Identifier: Apache-2.0
// ctest: check
// The row of each property for Fast Messages 1.0, from fm/fm1.h alone; docs/design/ports.md has the
// table.
#include "tests/ports/fm/fm_support.hpp"

#include <algorithm>
#include <cerrno>
#include <vector>

namespace rmem::test {
namespace {

class Fm1 : public Conformance {};
RMEM_ON_ALL_RINGS_AND_LOSS(Fm1);

struct Seen {
    std::vector<int> numbers;  ///< of messages, as they came
    int damaged = 0;           ///< messages that are not as they were sent
};
Seen& seen() {
    return seen_by_node<Seen>();
}

/// A node with queues of these lengths.
struct Node : FmSession {
    Node(int receive_queue, int reject_queue) : FmSession(set(receive_queue, reject_queue)) {
        seen() = {};
    }

private:
    static Place set(int receive_queue, int reject_queue) {
        FM_set_parameter(FM_HOST_RECEIVE_QUEUE, receive_queue);
        FM_set_parameter(FM_REJECT_QUEUE, reject_queue);
        return Place::here();
    }
};

constexpr int kManyFrames = 128;
constexpr int kNumber = 4;  // bytes of a message's number

/// A message of 4 to 128 bytes: its number, and bytes that follow from it.
void on_bytes(void* buffer, int size) {
    const std::span bytes(static_cast<const std::byte*>(buffer), static_cast<std::size_t>(size));
    int number = -1;
    if (size >= kNumber) std::memcpy(&number, buffer, kNumber);
    seen().numbers.push_back(number);
    const auto rest = bytes.subspan(std::min<std::size_t>(kNumber, bytes.size()));
    const bool intact = size == kNumber + number % (FM_MAX_SIZE - kNumber + 1) &&
                        first_difference(rest, static_cast<std::uint64_t>(number)) == rest.size();
    if (!intact) ++seen().damaged;
}
void send_bytes(int dest, int number) {
    auto bytes = pattern(static_cast<std::size_t>(number % (FM_MAX_SIZE - kNumber + 1)),
                         static_cast<std::uint64_t>(number));
    const auto* head = reinterpret_cast<const std::byte*>(&number);
    bytes.insert(bytes.begin(), head, head + kNumber);
    check_errno(0, [&] { FM_send(dest, on_bytes, bytes.data(), static_cast<int>(bytes.size())); });
}

void on_number(int number, int, int, int) {
    seen().numbers.push_back(number);
}
void send_number(int dest, int number) {
    check_errno(0, [&] { FM_send_4(dest, on_number, number, 0, 0, 0); });
}

void extract_until(std::size_t messages, Place place = Place::here()) {
    extract1_until([&] { return seen().numbers.size() >= messages; }, "messages", place);
}
/// For a sender: takes back and sends again what was returned, until the other says so.
void serve_until(Rank& me, std::size_t word, std::uint32_t value, Place place = Place::here()) {
    extract1_until([&] { return me.shared[word] >= value; }, "the other node", place);
}

/// Once each, whatever their order.
void check_all_once(int messages, Place place = Place::here()) {
    std::vector<int> sorted = seen().numbers;
    std::sort(sorted.begin(), sorted.end());
    check_equal(sorted.size(), static_cast<std::size_t>(messages), "messages", place);
    for (int i = 0; i < messages; ++i)
        check_equal(sorted[static_cast<std::size_t>(i)], i, "", place);
    check_equal(seen().damaged, 0, "damaged messages", place);
}
bool overtaken() {
    return !std::is_sorted(seen().numbers.begin(), seen().numbers.end());
}

// ---- Reliable: yes

TEST_P(Fm1, is_reliable) {
    run(2, [](Rank& me) {
        enum { sent_bursts, sent, taken, done };
        const Node node(1, kManyFrames);
        constexpr int kBurst = 4;  // fits into any network, so that no send waits
        if (me.rank == 0) {
            int number = 0;
            for (std::uint32_t burst = 1; me.shared[done] == 0; ++burst) {
                for (int i = 0; i < kBurst; ++i) send_bytes(1, number++);
                me.shared[sent] = static_cast<std::uint32_t>(number);
                me.raise(sent_bursts);
                serve_until(me, taken, static_cast<std::uint32_t>(number));
            }
            check(count_of(FM_FRAMES_RETURNED) > 0, "frames came back");
            check_equal(count_of(FM_FRAMES_RESENT), count_of(FM_FRAMES_RETURNED), "sent again");
            return;
        }
        for (std::uint32_t burst = 1; me.shared[done] == 0; ++burst) {
            me.await_word(sent_bursts, burst);  // without taking anything over
            extract_until(me.shared[sent]);
            if (count_of(FM_FRAMES_REJECTED) > 0) me.shared[done] = 1;
            me.shared[taken] = static_cast<std::uint32_t>(seen().numbers.size());
        }
        check_all_once(static_cast<int>(me.shared[sent]));
    });
}

// ---- Ordered: no

/// Keeps its place in the receive queue until that number of frames has found none.
void hold_the_queue(int number, int rejects, int, int) {
    on_number(number, 0, 0, 0);
    extract1_until([&] { return count_of(FM_FRAMES_REJECTED) >= rejects; }, "frames without room");
}

TEST_P(Fm1, is_not_ordered_where_frames_were_returned) {
    run(2, [](Rank& me) {
        enum { taken, processed, done };
        const Node node(2, kManyFrames);
        constexpr int kSingly = 10, kReturned = 3;
        if (me.rank == 0) {
            int number = 0;
            while (number < kSingly) {
                send_number(1, number++);
                serve_until(me, taken, static_cast<std::uint32_t>(number));
            }
            check_errno(0, [&] { FM_send_4(1, hold_the_queue, number, kReturned, 0, 0); });
            for (int i = 0; i < 1 + kReturned; ++i) send_number(1, ++number);
            // No call meanwhile: what was returned is sent again by a later one.
            me.await_word(processed);
            send_number(1, ++number);
            serve_until(me, done, 1);
            check(count_of(FM_FRAMES_RETURNED) >= kReturned, "frames returned");
            return check_equal(count_of(FM_FRAMES_RESENT), count_of(FM_FRAMES_RETURNED), "again");
        }
        // As long as the queue has room nothing is returned, and nothing overtaken.
        for (std::uint32_t i = 1; i <= kSingly; ++i) {
            extract_until(i);
            me.shared[taken] = i;
        }
        check_equal(count_of(FM_FRAMES_REJECTED), 0, "frames rejected");
        extract_until(kSingly + 2);
        check(!overtaken(), "what found room, in order");
        me.raise(processed);
        extract_until(kSingly + 3);
        check_equal(seen().numbers.at(kSingly + 2), kSingly + 2 + kReturned,
                    "the last comes first");
        extract_until(kSingly + 3 + kReturned);
        check_all_once(kSingly + 3 + kReturned);
        me.raise(done);
    });
}

// ---- Flow control: return to sender

std::atomic<std::uint32_t>* raised_by_handler = nullptr;  // the same in all processes
void raise_word(int, int, int, int) {
    ++*raised_by_handler;
}

TEST_P(Fm1, flow_control_is_return_to_sender_with_one_window_for_all_destinations) {
    run(3, [](Rank& me) {
        enum { window_used_up, waits, extracted };
        constexpr int kWindow = 6, kQueue = 2;
        const Node node(kQueue, kWindow);
        raised_by_handler = &me.shared[waits];
        if (me.rank == 0) {
            for (int i = 0; i < kWindow; ++i) send_number(1 + i % 2, i / 2);
            check_equal(count_of(FM_SENDS_WAITING), 0, "sends that waited for a slot");
            me.raise(window_used_up);
            send_number(1, kWindow / 2);
            check_equal(count_of(FM_SENDS_WAITING), 1, "sends that waited for a slot");
            serve_until(me, extracted, 2);
            check_equal(count_of(FM_FRAMES_RESENT), count_of(FM_FRAMES_RETURNED), "sent again");
            return;
        }
        me.await_word(window_used_up);
        // Its handler runs in the send that waits, for nothing was taken over here: all slots are
        // held, whosever they are for.
        if (me.rank == 1) check_errno(0, [] { FM_send_4(0, raise_word, 0, 0, 0, 0); });
        me.await_word(waits);
        extract_until(kWindow / 2 + (me.rank == 1 ? 1 : 0));
        check_all_once(kWindow / 2 + (me.rank == 1 ? 1 : 0));
        me.raise(extracted);
    });
}

// ---- Max message: 128 bytes

TEST_P(Fm1, max_message_is_128_bytes) {
    run(2, [](Rank& me) {
        const Node node(kManyFrames, kManyFrames);
        check_equal(FM_MAX_SIZE, 128, "FM_MAX_SIZE");
        constexpr int kLongest = FM_MAX_SIZE - kNumber;  // its number is its length without number
        if (me.rank == 0) {
            std::byte bytes[FM_MAX_SIZE + 1] = {};
            check_errno(EMSGSIZE, [&] { FM_send(1, on_bytes, bytes, FM_MAX_SIZE + 1); });
            send_bytes(1, kLongest);
            serve_until(me, 0, 1);
            return;
        }
        extract_until(1);
        check_equal(seen().numbers.front(), kLongest, "the longest message");
        check_equal(seen().damaged, 0, "damaged messages");
        me.raise(0);
    });
}

// ---- Receive style: handler on poll

TEST_P(Fm1, receives_by_handlers_on_poll) {
    run(2, [](Rank& me) {
        enum { sent, received };
        const Node node(kManyFrames, kManyFrames);
        constexpr int kMessages = 5;
        if (me.rank == 0) {
            // Polling is not required to take messages off the network.
            for (int i = 0; i < kMessages; ++i) send_number(1, i);
            check_equal(count_of(FM_SENDS_WAITING), 0, "sends that waited");
            me.raise(sent);
            serve_until(me, received, 1);
            return;
        }
        me.await_word(sent);
        rest(std::chrono::milliseconds(5));
        check_equal(count_of(FM_HANDLERS_ENTERED), 0, "handlers called without FM_extract");
        int processed = 0;
        await(
            [&] {
                const std::size_t before = seen().numbers.size();
                const int now = FM_extract();
                check_equal(now, seen().numbers.size() - before, "FM_extract's result");
                return (processed += now) == kMessages;
            },
            "messages");
        check_equal(count_of(FM_HANDLERS_LEFT), kMessages, "handlers that have returned");
        me.raise(received);
    });
}

// ---- Broadcast: no

TEST_P(Fm1, has_no_broadcast) {
    run(3, [](Rank& me) {
        const Node node(kManyFrames, kManyFrames);
        for (const int nobody : {-1, 3, 255, 0xffff}) {
            check_errno(EINVAL, [&] { FM_send_4(nobody, on_number, 0, 0, 0, 0); });
            std::byte byte{};
            check_errno(EINVAL, [&] { FM_send(nobody, on_bytes, &byte, 1); });
        }
        send_number((me.rank + 1) % 3, me.rank);
        extract_until(1);
        me.raise(0);
        serve_until(me, 0, 3);
        check_equal(seen().numbers, std::vector{(me.rank + 2) % 3}, "the one that was sent here");
    });
}

// ---- Protection: none

int victim_of[kMaxTestRanks];
void overwrite(int value, int, int, int) {
    victim_of[FM_nodeid] = value;
}

TEST_P(Fm1, has_no_protection_since_a_sender_names_any_function) {
    run(2, [](Rank& me) {
        const Node node(kManyFrames, kManyFrames);
        victim_of[FM_nodeid] = 1;
        if (me.rank == 0) {
            check_errno(0, [] { FM_send_4(1, overwrite, 2, 0, 0, 0); });
            return serve_until(me, 0, 1);
        }
        // Nothing was registered, bound or allowed here.
        await([] { return FM_extract() >= 0 && victim_of[FM_nodeid] == 2; }, "the handler");
        me.raise(0);
    });
}

// ---- Send can block: implementation

TEST_P(Fm1, send_can_block_until_a_slot_is_free_and_processes_messages_meanwhile) {
    run(2, [](Rank& me) {
        const Node node(4, 4);
        const int messages = 4 * std::max(thrifty(100), 10);
        // Neither calls FM_extract before it has sent all.
        for (int i = 0; i < messages; ++i) send_number(1 - me.rank, i);
        check(count_of(FM_SENDS_WAITING) > 0, "sends waited");
        check(count_of(FM_HANDLERS_LEFT) > 0, "and handlers ran within them");
        extract_until(static_cast<std::size_t>(messages));
        me.raise(0);
        serve_until(me, 0, 2);
        check_all_once(messages);
    });
}

}  // namespace
}  // namespace rmem::test
