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

#include "tests/support/programs/lab_node.hpp"

#include <chrono>
#include <thread>
#include <vector>

namespace {

using namespace rmem;

constexpr std::uint32_t kCircle = 250;
constexpr std::size_t kShareWords = 256;
constexpr std::size_t kNumber = 0, kDone = 1, kFirst = 2;  // words of a share
constexpr std::uint32_t kWritesALook = 64;

/// What the number-th write of a node writes, and where.
std::uint32_t value_of(unsigned node, std::uint32_t number) {
    return number * 2'654'435'761U + node;
}
std::size_t place_of(std::uint32_t number) {
    return kFirst + number % kCircle;
}

class Writer : test::LabNode {
public:
    Writer(std::uint32_t writes, unsigned seconds)
        : writes_(writes),
          least_ns_(std::int64_t{seconds} * 1'000'000'000 / writes),
          seen_(node_.config().nodes) {}

    void run() {
        const std::uint32_t first = load(node_.id(), kNumber);
        const std::int64_t begin = now_ns();
        std::uint32_t number = first;
        while (number < writes_) {
            ++number;
            write(offset(node_.id(), place_of(number)), value_of(node_.id(), number));
            write(offset(node_.id(), kNumber), number);
            if (number % kWritesALook != 0) continue;
            look_at_others();
            keep_pace(begin + least_ns_ * (number - first));
        }
        for (unsigned other = 0; other < seen_.size(); ++other)
            await(offset(other, kNumber), writes_);
        check_all();
        fmt::print("node {}: all equal\n", node_.id());
        std::fflush(stdout);
        write(offset(node_.id(), kDone), 1);
        for (unsigned other = 0; other < seen_.size(); ++other) await(offset(other, kDone), 1);
        flush();
    }

private:
    static std::size_t offset(unsigned node, std::size_t word) {
        return (node * kShareWords + word) * kWordBytes;
    }
    std::uint32_t load(unsigned node, std::size_t word) { return node_.load(offset(node, word)); }

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
        if (!node_.is_member()) throw test::Dropped();
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
    const std::int64_t least_ns_;      ///< from one write to the next
    std::vector<std::uint32_t> seen_;  ///< the newest number of each
};

}  // namespace

int main(int argc, char** argv) {
    return test::run_lab_program(
        argc, argv, "lab-writers WRITES SECONDS", [](auto writes, auto seconds, unsigned) {
            Writer(static_cast<std::uint32_t>(writes), static_cast<unsigned>(seconds)).run();
        });
}
