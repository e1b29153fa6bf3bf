// SPDX-License-Identifier: Apache-2.0
// ctest: check

/// Whatever peers write, a rank's calls end with a documented code and touch only what they may.
/// The runs are seeded; RMEM_FUZZ_SEEDS sets how many. fuzz/fuzz_partition.cpp searches further.

#include "tests/support/child.hpp"
#include "tests/support/hostile_run.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

namespace rmem::test {
namespace {

constexpr unsigned kSteps = 400;

template <bool Replicated, template <class> class Board>
void run_seeds(billboard::Layout layout, LinkKind link = LinkKind::direct) {
    const RingName name;
    const auto ring = hostile_ring(name.get(), link);
    for (std::uint64_t seed = 0; seed < fuzz_seeds(); ++seed) {
        Choices choices(seed);
        ASSERT_EQ((run_among_hostile_peers<Replicated, Board>(ring, layout, choices, kSteps)), "")
            << "seed " << seed;
    }
}

TEST(HostilePeers, harm_nobody_on_direct_inline) {
    run_seeds<false, billboard::LineBoard>(billboard::Layout::lines);
}
TEST(HostilePeers, harm_nobody_on_direct_paper) {
    run_seeds<false, billboard::PaperBoard>(billboard::Layout::paper);
}
TEST(HostilePeers, harm_nobody_on_replicated_inline) {
    run_seeds<true, billboard::LineBoard>(billboard::Layout::lines, LinkKind::ring);
}
TEST(HostilePeers, harm_nobody_on_replicated_paper) {
    run_seeds<true, billboard::PaperBoard>(billboard::Layout::paper);
}

/// Rank 0 among peers of which rank 1 only posts: whenever a message was read, one more.
struct BesideATirelessPoster {
    using Core = billboard::EndpointCore<HostileMemory<false>, billboard::PaperBoard>;

    RingName name;
    std::shared_ptr<Ring> ring = hostile_ring(name.get());
    billboard::Settings settings{{billboard::Layout::paper, kHostilePlace}};
    billboard::Geometry geometry{ring->config(), settings.board};
    Choices choices{std::uint64_t{1}};
    HostileBank bank{geometry, ring->config().user_bytes + geometry.region_bytes(), choices};
    std::unique_ptr<Core> endpoint;

    explicit BesideATirelessPoster(billboard::Class cls, bool in_parts = false) {
        bank.post_without_end(1, cls, in_parts);
        endpoint = std::make_unique<Core>(ring, Member{0, 0}, settings, Deadline{0},
                                          HostileMemory<false>::Options{&bank});
        bank.begin_call();
    }
};

TEST(HostilePeers, peers_that_post_without_end_do_not_keep_a_receiver_from_its_deadline) {
    BesideATirelessPoster me(billboard::Class::mpi);
    std::byte buffer[64];
    EXPECT_EQ(me.endpoint->recv(1, buffer, sizeof buffer, nullptr, Deadline{0}), BBP_ETIMEDOUT);
    EXPECT_EQ(me.bank.violation(), "");
}

TEST(HostilePeers, peers_that_post_empty_parts_without_end_do_not_keep_a_receiver) {
    BesideATirelessPoster me(billboard::Class::user, true);
    std::vector<std::byte> buffer(1000);
    EXPECT_EQ(me.endpoint->recv(1, buffer.data(), buffer.size(), nullptr, Deadline{0}),
              BBP_ETIMEDOUT);
    EXPECT_EQ(me.bank.violation(), "");
}

TEST(HostilePeers, peers_that_post_without_end_do_not_detain_a_rank_that_takes_over_from_them) {
    BesideATirelessPoster me(billboard::Class::mpi);
    me.bank.begin_incarnation(1, 2);
    std::byte buffer[64];
    EXPECT_EQ(me.endpoint->recv(2, buffer, sizeof buffer, nullptr, Deadline{0}), BBP_ETIMEDOUT);
    EXPECT_EQ(me.bank.violation(), "");
}

/// A reader that believes what it reads.
template <class M>
class TrustingBoard : public billboard::LineBoard<M> {
public:
    using Base = billboard::LineBoard<M>;
    using Base::Base;
    bool peek(unsigned s, billboard::Arrival& a) {
        const bool found = Base::peek(s, a);
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
            if (!run_among_hostile_peers<false, TrustingBoard>(ring, billboard::Layout::lines,
                                                               choices, kSteps)
                     .empty()) {
                ::_exit(3);
            }
        }
    });
    EXPECT_NE(child.wait(), 0) << "a reader without bounds checks went unnoticed";
}

}  // namespace
}  // namespace rmem::test
