// SPDX-License-Identifier: Apache-2.0
// ctest: check marked

/// A process is killed (SIGKILL) at each RMEM_MARK of Directed Point's library, at its first pass
/// and at a later one. What it had sent arrives whole, in order and once, the partner of its
/// endpoints is told, and two others go on.

#include "tests/ports/dp/points.hpp"
#include "tests/support/marks.hpp"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <array>

namespace rmem::test {
namespace {

std::vector<Death> deaths() {
    return deaths_at_marks(RMEM_SOURCE_DIR, sources_of(RMEM_SOURCE_DIR, "ports/dp"), {1, 5});
}

class DpKilled : public ::testing::TestWithParam<Death> {};

constexpr int kRaw = 1, kReliable = 2, kBeside = 3;  // DPIDs; the answerer has them all
constexpr std::uint32_t kRawFirst =
    24;  ///< messages without the Go-Back-N layer, which has other ways
constexpr std::array<std::size_t, 3> kSizes{8, 40, 1600};

/// A number, and bytes that follow from it.
std::vector<char> message_of(std::uint32_t number) {
    std::vector<char> bytes(kSizes[number % kSizes.size()], static_cast<char>(number));
    std::memcpy(bytes.data(), &number, sizeof number);
    return bytes;
}
void check_message(const char* at, int length, std::uint32_t number) {
    const std::vector<char> expected = message_of(number);
    check_equal(length, static_cast<int>(expected.size()), fmt::format("length of {}", number));
    check(std::memcmp(at, expected.data(), expected.size()) == 0,
          fmt::format("message {} is whole, in order and there once", number));
}
void write_message(int fd, std::uint32_t number) {
    std::vector<char> bytes = message_of(number);
    check_equal(dp_write(fd, bytes.data(), static_cast<int>(bytes.size())),
                static_cast<int>(bytes.size()), "dp_write");
}
void read_message(int fd, std::uint32_t number) {
    char* at = nullptr;
    const int length = dp_read(fd, &at);
    check_message(at, length, number);
    dp_fsync(fd, 1);
}

/// Exchanges messages by all ways, forever.
void talk(Rank& me) {
    Point raw(kRaw), reliable(kReliable), own(kBeside);
    raw.to(0, kRaw);
    reliable.to(0, kReliable);
    own.to(me.rank, kBeside);
    me.raise(0);
    me.await_word(0, 3);
    std::array<char, 2048> bytes;
    std::uint32_t number = 0;  // of the reliable ones, which have their own
    for (std::uint32_t i = 0;; ++i) {
        if (i % 4 == 1) {  // by the descriptor
            std::vector<char> out = message_of(i);
            check_equal(::write(raw.fd(), out.data(), out.size()), static_cast<ssize_t>(out.size()),
                        "write");
            pollfd end{raw.fd(), POLLIN, 0};
            check_equal(::poll(&end, 1, 10'000), 1, "poll");
            check_message(bytes.data(),
                          static_cast<int>(::read(raw.fd(), bytes.data(), bytes.size())), i);
        } else {
            write_message(raw.fd(), i);
            read_message(raw.fd(), i);
        }
        if (i < kRawFirst) {
            write_message(own.fd(), 0);  // there before it is read
            read_message(own.fd(), 0);
            continue;
        }
        if (i == kRawFirst) dp_reliable(reliable.fd(), 1);
        write_message(reliable.fd(), number);
        read_message(reliable.fd(), number++);
    }
}

/// A network that is full is waited for. Whether the partner is still there.
bool sends(const Point& point, std::vector<char>& message) {
    const auto length = static_cast<int>(message.size());
    int written = 0;
    do written = dp_write(point.fd(), message.data(), length);
    while (written < 0 && (errno == EAGAIN || errno == ENOBUFS));
    return written == length;
}

/// Answers what comes at one endpoint. Whether the partner is still there.
bool answer(Point& point, std::uint32_t& next) {
    char* at = nullptr;
    const int length = dp_read(point.fd(), &at);
    if (at == nullptr) return true;
    check_message(at, length, next);
    std::vector<char> back(at, at + length);
    dp_fsync(point.fd(), 1);
    ++next;
    return sends(point, back);
}

void answer_until_the_end(Rank& me) {
    Point raw(kRaw), reliable(kReliable), beside(kBeside);
    raw.to(1, kRaw);
    reliable.to(1, kReliable);
    dp_reliable(reliable.fd(), 1);
    beside.to(2, kBeside);
    Point probe(kBeside + 1);
    probe.to(1, kBeside + 1);  // to no endpoint: only whether it can be sent
    for (const Point* point : {&raw, &reliable}) fcntl(point->fd(), F_SETFL, O_NONBLOCK);
    me.raise(0);
    me.await_word(0, 3);
    std::uint32_t next_raw = 0, next_reliable = 0, number = 0;
    bool is_there = true;
    await(
        [&] {
            is_there = is_there && answer(raw, next_raw);
            is_there = is_there && answer(reliable, next_reliable);
            std::vector<char> byte(1);
            is_there = is_there && sends(probe, byte);
            write_message(beside.fd(), number);
            read_message(beside.fd(), number++);
            return !is_there;
        },
        "word of the death");
    check(errno == EHOSTDOWN || errno == ETIMEDOUT, fmt::format("errno is {}", errno));
    for (int i = 0; i < 20; ++i) {  // the others go on
        write_message(beside.fd(), number);
        read_message(beside.fd(), number++);
    }
    char end = 0;
    dp_write(beside.fd(), &end, 1);
}

void echo(Rank& me) {
    Point beside(kBeside);
    beside.to(0, kBeside);
    me.raise(0);
    me.await_word(0, 3);
    for (;;) {
        char* at = nullptr;
        const int length = dp_read(beside.fd(), &at);
        if (length == 1) return;
        check_equal(dp_write(beside.fd(), at, length), length, "dp_write");
        dp_fsync(beside.fd(), 1);
    }
}

TEST_P(DpKilled, harms_nobody_else) {
    RingSetup setup;
    setup.ranks = 3;
    RankProcesses ring(setup);
    ring.start_bare(0, answer_until_the_end);
    ring.start_bare(2, echo);
    ring.start_doomed(1, talk, fmt::format("{}:{}", GetParam().mark, GetParam().pass));
    ring.finish();
}

INSTANTIATE_TEST_SUITE_P(At, DpKilled, ::testing::ValuesIn(deaths()), name_of_death);

}  // namespace
}  // namespace rmem::test
