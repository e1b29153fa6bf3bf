// SPDX-License-Identifier: Apache-2.0

/// Whatever peers write, a rank's calls end with a documented code and touch only what they may. The
/// runs are seeded; RMEM_FUZZ_SEEDS sets how many. fuzz/fuzz_partition.cpp searches further.

#include "tests/support/child.hpp"
#include "tests/support/hostile_run.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

namespace rmem::test {
namespace {

constexpr unsigned kSteps = 400;

std::uint64_t seeds() {
    const char* text = std::getenv("RMEM_FUZZ_SEEDS");
    return text == nullptr ? 300 : std::strtoull(text, nullptr, 10);
}

template <bool Replicated, template <class> class Board>
void run_seeds(billboard::Layout layout) {
    const RingName name;
    const auto ring = hostile_ring(name.get());
    for (std::uint64_t seed = 0; seed < seeds(); ++seed) {
        Choices choices(seed);
        ASSERT_EQ((run_among_hostile_peers<Replicated, Board>(ring, layout, choices, kSteps)), "")
            << "seed " << seed;
    }
}

TEST(HostilePeers, harm_nobody_on_direct_inline) {
    run_seeds<false, billboard::InlineBoard>(billboard::Layout::inline_slots);
}
TEST(HostilePeers, harm_nobody_on_direct_paper) {
    run_seeds<false, billboard::PaperBoard>(billboard::Layout::paper);
}
TEST(HostilePeers, harm_nobody_on_replicated_inline) {
    run_seeds<true, billboard::InlineBoard>(billboard::Layout::inline_slots);
}
TEST(HostilePeers, harm_nobody_on_replicated_paper) {
    run_seeds<true, billboard::PaperBoard>(billboard::Layout::paper);
}

/// A reader that believes what it reads.
template <class M>
class TrustingBoard : public billboard::InlineBoard<M> {
public:
    using billboard::InlineBoard<M>::InlineBoard;
    bool peek(unsigned s, billboard::Arrival& a) {
        const bool found = billboard::InlineBoard<M>::peek(s, a);
        a.corrupt = false;
        return found;
    }
};

/// The runs are worth something only if they find a reader's faults.
TEST(HostilePeers, harm_a_reader_that_trusts_them) {
    RingName name;
    name.may_be_left();  // its maker dies
    Child child([&name] {
        const auto ring = hostile_ring(name.get());
        for (std::uint64_t seed = 0; seed < 300; ++seed) {
            Choices choices(seed);
            if (!run_among_hostile_peers<false, TrustingBoard>(
                     ring, billboard::Layout::inline_slots, choices, kSteps)
                     .empty()) {
                ::_exit(3);
            }
        }
    });
    EXPECT_NE(child.wait(), 0) << "a reader without bounds checks went unnoticed";
}

}  // namespace
}  // namespace rmem::test
