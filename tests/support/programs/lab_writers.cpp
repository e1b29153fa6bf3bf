// SPDX-License-Identifier: Apache-2.0

/// A node on a host of the lab that writes its share of the memory, and may be killed and started
/// again meanwhile.
///
///     scripts/lab exec 0 -- lab-writers WRITES SECONDS
///
/// Each node writes words of its own in a circle, and after each the number of writes in one more.
/// A node that is started again goes on behind the number that the others' bank has. All WRITES
/// take SECONDS at least. Each also looks at the others: a number never goes back within a
/// membership, and the word written before a number is there when the number is. When all have
/// written WRITES, the banks must be what that makes, word by word; then it prints `node N: all
/// equal`, and waits for the others. Exit status 1, with a sentence, when something is not so, or
/// takes longer than two minutes.

#include "rmem/node.hpp"
#include "rmem/ring/ring.hpp"

#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <exception>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace rmem;

constexpr std::int64_t kPatienceNs = 120'000'000'000;
constexpr std::uint32_t kCircle = 250;
constexpr std::size_t kShareWords = 256;
constexpr std::size_t kNumber = 0, kDone = 1, kFirst = 2;  // words of a share
constexpr std::uint32_t kWritesALook = 64;

/// The others have dropped this node: it begins again.
struct Dropped {};

/// What the number-th write of a node writes, and where.
std::uint32_t value_of(unsigned node, std::uint32_t number) {
    return number * 2'654'435'761U + node;
}
std::size_t place_of(std::uint32_t number) {
    return kFirst + number % kCircle;
}

class Writer {
public:
    Writer(std::uint32_t writes, unsigned seconds)
        : writes_(writes),
          least_ns_(std::int64_t{seconds} * 1'000'000'000 / writes),
          deadline_(Deadline::in(kPatienceNs)),
          node_(Node::open()),
          seen_(node_.config().nodes) {}

    void run() {
        const std::uint32_t first = load(node_.id(), kNumber);
        const std::int64_t begin = now_ns();
        std::uint32_t number = first;
        while (number < writes_) {
            ++number;
            write(place_of(number), value_of(node_.id(), number));
            write(kNumber, number);
            if (number % kWritesALook != 0) continue;
            look_at_others();
            keep_pace(begin + least_ns_ * (number - first));
        }
        for (unsigned other = 0; other < seen_.size(); ++other) await(other, kNumber, writes_);
        check_all();
        fmt::print("node {}: all equal\n", node_.id());
        std::fflush(stdout);
        write(kDone, 1);
        for (unsigned other = 0; other < seen_.size(); ++other) await(other, kDone, 1);
        if (!node_.flush(deadline_)) fail("the others do not have all in time");
    }

private:
    [[noreturn]] void fail(const std::string& what) const {
        throw Error(Errc::timed_out, fmt::format("node {}: {}", node_.id(), what));
    }
    static std::size_t offset(unsigned node, std::size_t word) {
        return (node * kShareWords + word) * kWordBytes;
    }
    std::uint32_t load(unsigned node, std::size_t word) { return node_.load(offset(node, word)); }

    void write(std::size_t word, std::uint32_t value) {
        for (;;) {
            const WriteResult result = node_.write_word(offset(node_.id(), word), value);
            if (result == WriteResult::ok) return;
            if (result == WriteResult::dropped) throw Dropped();
            if (deadline_.passed(now_ns())) fail("no room for a write in time");
            node_.poll();
        }
    }

    void keep_pace(std::int64_t until_ns) {
        const std::int64_t ahead = until_ns - now_ns();
        if (ahead > 1'000'000) std::this_thread::sleep_for(std::chrono::nanoseconds(ahead));
    }

    void look_at_others() {
        for (unsigned other = 0; other < seen_.size(); ++other) {
            if (other == node_.id()) continue;
            const std::uint32_t number = load(other, kNumber);
            // One that was killed goes on behind what all had of it, so here nothing goes back.
            if (number < seen_[other])
                fail(fmt::format("node {}'s number went back from {} to {}", other, seen_[other],
                                 number));
            seen_[other] = number;
            if (number == 0) continue;
            // Later writes may be there too, but none of an earlier turn of the circle.
            const std::uint32_t found = load(other, place_of(number));
            const std::uint32_t newer = load(other, kNumber);
            bool is_possible = false;
            for (std::uint32_t n = number; n <= newer + kCircle && !is_possible; n += kCircle)
                is_possible = found == value_of(other, n);
            if (!is_possible && node_.is_member())
                fail(fmt::format("write {} of node {} is not there, but its number is", number,
                                 other));
        }
        if (!node_.is_member()) throw Dropped();
    }

    void await(unsigned other, std::size_t word, std::uint32_t least) {
        constexpr std::int64_t kLookNs = 100'000'000;
        for (std::uint32_t found = load(other, word); found < least;) {
            found = node_.wait_change(offset(other, word), found, Deadline::in(kLookNs));
            if (!node_.is_member()) throw Dropped();
            if (deadline_.passed(now_ns()) && found < least)
                fail(fmt::format("word {} of node {} is {} instead of {}", word, other, found,
                                 least));
        }
    }

    void check_all() {
        for (unsigned other = 0; other < seen_.size(); ++other) {
            for (std::uint32_t back = 0; back < kCircle && back < writes_; ++back) {
                const std::uint32_t number = writes_ - back;
                const std::uint32_t found = load(other, place_of(number));
                if (found != value_of(other, number))
                    fail(fmt::format("write {} of node {} is {:#x} instead of {:#x}", number, other,
                                     found, value_of(other, number)));
            }
        }
    }

    const std::uint32_t writes_;
    const std::int64_t least_ns_;  ///< from one write to the next
    const Deadline deadline_;
    Node node_;
    std::vector<std::uint32_t> seen_;  ///< the newest number of each
};

}  // namespace

int main(int argc, char** argv) {
    if (argc != 3) {
        std::fprintf(stderr, "usage: lab-writers WRITES SECONDS\n");
        return 2;
    }
    try {
        const auto writes = static_cast<std::uint32_t>(std::stoul(argv[1]));
        const auto seconds = static_cast<unsigned>(std::stoul(argv[2]));
        for (;;) {
            try {
                Writer(writes, seconds).run();
                return 0;
            } catch (const Dropped&) {
                // it joins again, with the others' bank
            }
        }
    } catch (const std::exception& error) {
        std::fprintf(stderr, "lab-writers: %s\n", error.what());
        return 1;
    }
}
