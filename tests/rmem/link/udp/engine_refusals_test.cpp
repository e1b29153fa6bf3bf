// SPDX-License-Identifier: Apache-2.0
#include "rmem/link/fabric/make_endpoint.hpp"
#include "rmem/link/udp/engine.hpp"
#include "rmem/link/udp/protocol/datagram_writer.hpp"
#include "tests/rmem/link/udp/engine_program.hpp"
#include "tests/support/child.hpp"
#include "tests/support/own_network.hpp"

#include <gmock/gmock.h>

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>

namespace rmem::udp {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr std::int64_t kRefusalNs = 30'000'000'000;

/// Two nodes of a ring that refuse each other, on links udp and fabric.
class Refusals : public ::testing::TestWithParam<LinkKind> {
protected:
    Refusals() {
        test::stay_on_this_host(name_.get(), GetParam());
        for (unsigned n = 0; n < 2; ++n) open(n, config_);
    }
    void SetUp() override {
        if (GetParam() == LinkKind::fabric && fabric::offers().empty())
            GTEST_SKIP() << "libfabric has no provider here";
    }

    void open(unsigned node, const RingConfig& config) {
        engines_[node].reset();
        rings_[node].reset();
        configs_[node] = config;
        rings_[node] = Ring::open(config, Deadline::in(kRefusalNs), node);
    }
    void start(unsigned node, std::optional<std::byte> key = std::nullopt) {
        engines_[node].reset();
        EngineSettings settings = EngineSettings::read(configs_[node]);
        std::array<std::byte, MasterKey::kBytes> bytes{};
        if (key) {
            bytes.fill(*key);
            settings.key = MasterKey(bytes);
        }
        engines_[node] =
            std::make_unique<Engine>(*rings_[node], std::move(settings), EngineKind::program, node);
    }
    /// The way to node 0 of one that is no engine, in the place of node 1.
    std::unique_ptr<Carrier> stranger() {
        return EngineSettings::read(config_).make_carrier(*rings_[1]);
    }
    [[nodiscard]] bool eventually(const std::function<bool()>& holds) {
        const Deadline deadline = Deadline::in(kRefusalNs);
        while (!holds()) {
            if (deadline.passed(now_ns())) return false;
            for (const auto& engine : engines_) {
                if (engine) engine->run();
            }
            std::this_thread::yield();
        }
        return true;
    }
    std::string notice(unsigned node) const { return rings_[node]->board().notice.text(); }
    [[nodiscard]] bool tells(unsigned node, const std::string& sentence) {
        return eventually([&] { return notice(node).find(sentence) != std::string::npos; });
    }
    /// Whether node 0 has node 1's rank on its roster.
    bool has_met() const {
        const auto state = static_cast<RankState>(rings_[0]->rank(1).state.load());
        return state == RankState::elsewhere;
    }
    /// Once both can.
    [[nodiscard]] bool meet() {
        const bool are_members =
            eventually([&] { return engines_[0]->is_member() && engines_[1]->is_member(); });
        if (!are_members) return false;
        if (!program_) program_.emplace(rings_[1], 1, 1, *engines_[1]);
        return eventually([&] { return has_met(); });
    }

    test::RingName name_;
    RingConfig config_ = name_.config(2, GetParam(), 65536);
    std::array<RingConfig, 2> configs_;
    std::array<std::shared_ptr<Ring>, 2> rings_;
    std::array<std::unique_ptr<Engine>, 2> engines_;
    std::optional<EngineProgram> program_;
};

TEST_P(Refusals, of_another_key_are_told_at_both_until_the_keys_are_the_same) {
    start(0, std::byte{1});
    start(1, std::byte{2});
    // A socket knows where a datagram comes from, and is asked for it.
    const std::string where = GetParam() == LinkKind::udp ? "127.0.0.1 " : "";
    EXPECT_TRUE(tells(0, where + "speaks with another key as node 1")) << notice(0);
    EXPECT_TRUE(tells(1, "speaks with another key as node 0")) << notice(1);
    EXPECT_FALSE(has_met());
    start(1, std::byte{1});
    EXPECT_TRUE(meet());
}

TEST_P(Refusals, of_no_key_say_who_is_to_have_one) {
    start(0, std::byte{1});
    start(1);
    EXPECT_TRUE(tells(0, "speaks without a key as node 1, and this node has one")) << notice(0);
    EXPECT_TRUE(tells(1, "speaks with a key as node 0, and this node has none")) << notice(1);
    EXPECT_FALSE(has_met());
    start(1, std::byte{1});
    EXPECT_TRUE(meet());
}

TEST_P(Refusals, of_other_settings_show_those_of_both) {
    RingConfig wider = config_;
    wider.user_bytes = 8192;
    open(1, wider);
    start(0);
    start(1);
    EXPECT_TRUE(eventually([&] {
        return ::testing::Matches(AllOf(HasSubstr("8192 bytes"), HasSubstr("65536 bytes")))(
            notice(0));
    })) << notice(0);
    EXPECT_FALSE(has_met());
}

TEST_P(Refusals, of_another_version_say_what_to_install_and_it_may_come_back_with_ours) {
    start(0);
    for (const int difference : {-1, 1}) {
        const auto carrier = stranger();
        std::array<std::byte, kMaxPayload> buffer{};
        DatagramWriter writer(buffer);
        Header header;
        header.origin = 1;
        header.ring = ring_id(config_);
        header.incarnation = header.salt = 5;
        EXPECT_TRUE(eventually([&] {
            ++header.number;
            header.sent_ns = now_ns();
            writer.begin(header);
            const auto datagram = writer.finish();
            buffer[kVersionAt] = static_cast<std::byte>(kVersion + difference);
            carrier->send(datagram);
            carrier->receive();  // lets a provider go on
            return notice(0).find("speaks another version of this link; install one on all") !=
                   std::string::npos;
        })) << notice(0);
        EXPECT_FALSE(has_met());
        open(0, config_);  // forgets the notice
        start(0);
    }
    start(1);
    EXPECT_TRUE(meet());
}

INSTANTIATE_TEST_SUITE_P(Udp, Refusals, ::testing::Values(LinkKind::udp));
INSTANTIATE_TEST_SUITE_P(Fabric, Refusals, ::testing::Values(LinkKind::fabric));

}  // namespace
}  // namespace rmem::udp
