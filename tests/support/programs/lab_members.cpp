// SPDX-License-Identifier: Apache-2.0

/// A node on a host of the lab, which joins, writes, and waits until it has what all have written.
///
///     scripts/lab run -- lab-members BEGUN_NS WRITES
///
/// BEGUN_NS: when the whole was begun, in nanoseconds of the wall clock (date +%s%N). Each node
/// writes words of its own, and waits for those of all others; then node 0 writes WRITES words
/// more, some milliseconds apart, whose propagation each other node measures. One JSON line of
/// each: `joined_ms`, when it was a member, and `whole_ms`, when it had all that all had written,
/// both since BEGUN_NS; `p50_ns` and `p99_ns` of node 0's writes; `hash` of the bank at the end,
/// which is the same everywhere; and from then on to the end of the writes, `again` (batches sent
/// again) and `datagrams` (sent). A node that the others drop, as one that has formed a ring of
/// its own when they meet, begins again; `begun_again` counts that. Exit status 1, with a
/// sentence, when that takes longer than two minutes.

#include "rmem/base/hash.hpp"
#include "rmem/ring/node_board.hpp"
#include "tests/support/programs/lab_node.hpp"

#include <array>
#include <chrono>
#include <span>
#include <thread>

namespace {

using namespace rmem;
using udp::UdpCounter;

constexpr std::size_t kOwnWords = 16;  // of each node: how far it is, and values
constexpr auto kBetweenWrites = std::chrono::milliseconds(5);

enum Stage : std::uint32_t { kWritten = 1, kWhole, kHasAll };

/// Also says which node wrote it.
std::uint32_t value_of(unsigned node, std::size_t word) {
    return (node + 1) << 16U | static_cast<std::uint32_t>(word);
}

class Joiner : test::LabNode {
public:
    Joiner(std::int64_t begun_ns, unsigned begun_again)
        : begun_ns_(begun_ns), begun_again_(begun_again), joined_ms_(since_begun_ms()) {}

    void run(std::uint32_t writes) {
        for (std::size_t word = 1; word < kOwnWords; ++word) {
            write(own_offset(node_.id()) + word * kWordBytes, value_of(node_.id(), word));
        }
        reach(kWritten);
        check_values();
        const double whole_ms = since_begun_ms();

        const auto before = buckets();
        const std::uint64_t again = sent_again(), datagrams = count(UdpCounter::datagrams_sent);
        reach(kWhole);
        const std::size_t counted = nodes() * kOwnWords * kWordBytes;
        if (node_.id() == 0) {
            for (std::uint32_t i = 1; i <= writes; ++i) {
                std::this_thread::sleep_for(kBetweenWrites);
                write(counted, i);
            }
        } else {
            await(counted, writes);
        }
        const auto after = buckets();
        reach(kHasAll);
        const std::uint64_t hash =
            Fnv1a().add(std::span(node_.bank(), counted + kWordBytes)).value();
        fmt::print(
            "{{\"node\": {}, \"nodes\": {}, \"joined_ms\": {:.1f}, \"whole_ms\": {:.1f}, "
            "\"p50_ns\": {}, \"p99_ns\": {}, \"again\": {}, \"datagrams\": {}, \"begun_again\": "
            "{}, "
            "\"hash\": \"{:016x}\"}}\n",
            node_.id(), nodes(), joined_ms_, whole_ms, quantile(before, after, 0.5),
            quantile(before, after, 0.99), sent_again() - again,
            count(UdpCounter::datagrams_sent) - datagrams, begun_again_, hash);
        flush();
    }

private:
    using Buckets = std::array<std::uint64_t, Histogram::kBuckets>;

    static std::size_t own_offset(unsigned node) { return node * kOwnWords * kWordBytes; }

    double since_begun_ms() const {
        const auto now = std::chrono::system_clock::now().time_since_epoch();
        const auto ns = std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
        return static_cast<double>(ns - begun_ns_) * 1e-6;
    }

    /// All are as far.
    void reach(Stage stage) {
        write(own_offset(node_.id()), stage);
        for (unsigned other = 0; other < nodes(); ++other) await(own_offset(other), stage);
    }

    void check_values() {
        for (unsigned other = 0; other < nodes(); ++other) {
            for (std::size_t word = 1; word < kOwnWords; ++word) {
                const std::uint32_t found = node_.load(own_offset(other) + word * kWordBytes);
                if (found == value_of(other, word)) continue;
                fail(fmt::format("word {} of node {} is {:#x}", word, other, found));
            }
        }
    }

    std::uint64_t count(UdpCounter id) const {
        return node_.ring().board().counters.get(static_cast<std::size_t>(id));
    }
    std::uint64_t sent_again() const {
        return count(UdpCounter::retransmissions_sent) + count(UdpCounter::probes_sent);
    }

    Buckets buckets() const {
        Buckets all{};
        for (std::size_t i = 0; i < all.size(); ++i) all[i] = node_.propagation().values_in(i);
        return all;
    }
    static std::uint64_t quantile(const Buckets& before, const Buckets& after, double share) {
        std::uint64_t total = 0, seen = 0;
        for (std::size_t i = 0; i < after.size(); ++i) total += after[i] - before[i];
        for (std::size_t i = 0; i < after.size(); ++i) {
            seen += after[i] - before[i];
            if (seen > 0 && static_cast<double>(seen) >= share * static_cast<double>(total)) {
                return Histogram::upper_bound_of(i);
            }
        }
        return 0;
    }

    const std::int64_t begun_ns_;
    const unsigned begun_again_;
    const double joined_ms_;
};

}  // namespace

int main(int argc, char** argv) {
    return test::run_lab_program(
        argc, argv, "lab-members BEGUN_NS WRITES",
        [](std::int64_t begun_ns, std::int64_t writes, unsigned dropped) {
            Joiner(begun_ns, dropped).run(static_cast<std::uint32_t>(writes));
        });
}
