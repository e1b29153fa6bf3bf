// SPDX-License-Identifier: Apache-2.0
// ctest: check
#include "rmem/link/fabric/endpoint.hpp"

#include "rmem/base/clock.hpp"
#include "rmem/base/little_endian.hpp"
#include "tests/rmem/link/free_port.hpp"
#include "tests/support/own_network.hpp"
#include "tests/support/refused.hpp"

#include <gmock/gmock.h>
#include <poll.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace rmem::fabric {
namespace {

using ::testing::HasSubstr;

constexpr std::int64_t kPatienceNs = 20'000'000'000;
constexpr std::uint32_t kMeeting = 1'000'000;  // and above: datagrams by which nodes met

bool has(const std::string& provider) {
    for (const Offer& offer : offers(provider)) {
        if (offer.lack.empty()) return true;
    }
    return false;
}

/// A datagram that says its number and is as long as that.
std::vector<std::byte> datagram(std::uint32_t number, std::size_t bytes) {
    std::vector<std::byte> all(bytes, static_cast<std::byte>(number));
    store(all.data(), number);
    return all;
}

class Endpoints : public ::testing::TestWithParam<const char*> {
protected:
    void SetUp() override {
        if (!has(GetParam())) GTEST_SKIP() << "libfabric has no provider " << GetParam() << " here";
    }
    EndpointSettings settings(unsigned node) const {
        EndpointSettings settings;
        settings.fabric.provider = GetParam();
        settings.fabric.directory = directory_.path();
        settings.fabric.interface = "lo";
        settings.fabric.topology = topology_;
        settings.ring = "rig";
        settings.node = node;
        settings.nodes = nodes_;
        return settings;
    }
    void start(unsigned nodes) {
        nodes_ = nodes;
        nodes_here_.resize(nodes);
        got_.assign(nodes, {});
        for (unsigned n = 0; n < nodes; ++n) start_one(n);
    }
    void start_one(unsigned node) {
        nodes_here_[node] = std::make_unique<Endpoint>(settings(node));
    }
    Endpoint& node(unsigned n) { return *nodes_here_[n]; }

    /// Takes what has come at all that run but those that are deaf.
    void look() {
        for (unsigned n = 0; n < nodes_; ++n) {
            if (!nodes_here_[n] || n == deaf_) continue;
            for (const auto bytes : node(n).receive()) {
                got_[n].push_back(load<std::uint32_t>(bytes.data()));
                for (const std::byte byte : bytes.subspan(4))
                    ASSERT_EQ(byte, static_cast<std::byte>(got_[n].back()));
                if (takes_) node(n).has_taken(bytes.first(4));  // which has no header
            }
        }
        std::this_thread::yield();
    }
    [[nodiscard]] bool await(const std::function<bool()>& holds) {
        for (const std::int64_t begin = now_ns(); now_ns() - begin < kPatienceNs; look()) {
            if (holds()) return true;
        }
        return false;
    }
    /// Datagrams 0 to `count` - 1, and takes what comes meanwhile.
    std::vector<std::uint32_t> send_many(unsigned from, std::uint32_t count, std::size_t bytes) {
        std::vector<std::uint32_t> numbers;
        for (std::uint32_t i = 0; i < count; ++i) {
            node(from).send(datagram(i, bytes));
            numbers.push_back(i);
            look();
        }
        return numbers;
    }
    bool has_number(unsigned n, std::uint32_t number) const {
        return std::count(got_[n].begin(), got_[n].end(), number) != 0;
    }
    /// Sends again until each of them has heard from `from`, as the protocol does.
    void meet(unsigned from, const std::vector<unsigned>& others) {
        std::uint32_t number = kMeeting;
        for (const unsigned other : others) {
            const std::size_t before = got_[other].size();
            ASSERT_TRUE(await([&] {
                if (got_[other].size() > before) return true;
                node(from).send(datagram(++number, 64));
                return false;
            })) << from
                << " reaches " << other;
        }
    }
    void start_and_meet(unsigned nodes) {
        start(nodes);
        meet_all();
    }
    void meet_all() {
        std::vector<unsigned> all;
        for (unsigned n = 0; n < nodes_; ++n) all.push_back(n);
        for (unsigned n = 0; n < nodes_; ++n) {
            auto others = all;
            others.erase(others.begin() + n);
            meet(n, others);
        }
        forget(200);
    }
    /// What comes in that many looks, and what has come.
    void forget(unsigned looks) {
        for (; looks > 0; --looks) look();
        for (auto& numbers : got_) numbers.clear();
    }

    test::OwnDirectory directory_;
    std::optional<Topology> topology_;
    unsigned nodes_ = 0, deaf_ = ~0U;
    bool takes_ = true;  ///< the protocol's part
    std::vector<std::unique_ptr<Endpoint>> nodes_here_;
    std::vector<std::vector<std::uint32_t>> got_;
};

TEST_P(Endpoints, carry_datagrams_of_any_length_to_all_others) {
    start_and_meet(3);
    constexpr std::uint32_t kMany = 400;
    std::vector<std::uint32_t> expected;
    const auto before = node(1).counters();
    for (std::uint32_t i = 0; i < kMany; ++i) {
        node(1).send(datagram(i, i % 7 == 0 ? udp::kMaxPayload : 8 + i * 4));
        expected.push_back(i);
        if (i % 4 == 0) look();
    }
    EXPECT_TRUE(await([&] { return got_[0].size() >= kMany && got_[2].size() >= kMany; }))
        << got_[0].size() << " and " << got_[2].size() << " came";
    for (const unsigned n : {0U, 2U}) {
        // Each kind keeps its order; what is long may come later than what is short and was sent
        // after it, which the protocol puts right.
        const auto is_long = [](std::uint32_t number) { return number % 7 == 0; };
        std::stable_partition(got_[n].begin(), got_[n].end(), is_long);
        std::stable_partition(expected.begin(), expected.end(), is_long);
        EXPECT_EQ(got_[n], expected);
    }
    EXPECT_EQ(node(1).counters().refused, before.refused);
    EXPECT_EQ(node(1).counters().no_room, before.no_room);
}

TEST_P(Endpoints, reach_a_node_that_comes_back_elsewhere) {
    start_and_meet(3);
    for (int times = 0; times < 3; ++times) {
        nodes_here_[2].reset();
        send_many(0, 20, 200);
        start_one(2);
        meet(0, {2});
        meet(2, {0, 1});
        got_[1].clear();
        node(0).send(datagram(77, 64));
        EXPECT_TRUE(await([&] { return has_number(1, 77); })) << "the others go on";
    }
}

TEST_P(Endpoints, wait_for_no_node_that_takes_nothing) {
    start_and_meet(3);
    deaf_ = 2;
    constexpr std::uint32_t kMany = 500;
    const auto sent = send_many(0, kMany, 8000);
    EXPECT_TRUE(await([&] { return got_[1].size() >= kMany; })) << got_[1].size() << " came";
    deaf_ = ~0U;
    EXPECT_TRUE(await([&] { return got_[2].size() >= kMany; })) << got_[2].size() << " came";
    EXPECT_EQ(got_[2], sent);
}

TEST_P(Endpoints, wake_who_sleeps_on_the_descriptor) {
    start_and_meet(2);
    for (std::uint32_t i = 0; i < 30; ++i) {
        const std::int64_t begin = now_ns();
        std::thread sender([&, i] {
            std::this_thread::sleep_for(std::chrono::milliseconds(2));
            node(0).send(datagram(i, 100));
            for (const std::int64_t sent = now_ns(); now_ns() - sent < 5'000'000;)
                node(0).receive();  // lets the provider go on
        });
        bool has_come = false;
        while (!has_come && now_ns() - begin < kPatienceNs) {
            if (node(1).may_sleep()) {
                pollfd polled{node(1).handle(), POLLIN, 0};
                ASSERT_EQ(::poll(&polled, 1, 10'000), 1) << "asleep for ten seconds";
            }
            for (const auto bytes : node(1).receive())
                has_come = has_come || load<std::uint32_t>(bytes.data()) == i;
        }
        sender.join();
        ASSERT_TRUE(has_come);
    }
}

TEST_P(Endpoints, let_a_thread_sleep_until_something_comes) {
    if (!is_over_tcp(GetParam())) GTEST_SKIP() << "it is looked at now and then";
    start(2);
    const auto wakes_within = [this](int ms) {
        if (!node(1).may_sleep()) return true;
        pollfd polled{node(1).handle(), POLLIN, 0};
        return ::poll(&polled, 1, ms) != 0;
    };
    for (const bool is_back : {false, true}) {
        if (is_back) {
            nodes_here_[0].reset();
            start_one(0);
        }
        meet_all();
        // Once the connections are known nothing but them wakes it.
        EXPECT_TRUE(await([&] { return !wakes_within(20); })) << "it never sleeps";
        for (std::uint32_t i = 0; i < 20; ++i) {
            EXPECT_FALSE(wakes_within(1)) << "nothing has come";
            node(0).send(datagram(i, 100));
            EXPECT_TRUE(wakes_within(10'000)) << "asleep for ten seconds";
            EXPECT_TRUE(await([&] { return has_number(1, i); }));
        }
    }
}

TEST_P(Endpoints, pass_on_what_comes_from_another_rack) {
    for (const char* way : {"tree", "chain"}) {
        topology_ = Topology::parse(std::string("rack 0 1\nrack 2 3 4\nrack 5\nfan-out ") + way,
                                    "racks", 6);
        start_and_meet(6);
        const std::uint64_t sent_before = node(1).counters().sent;
        constexpr std::uint32_t kMany = 100;
        const auto expected = send_many(1, kMany, 40);
        const std::vector<unsigned> others = {0, 2, 3, 4, 5};
        EXPECT_TRUE(await([&] {
            return std::all_of(others.begin(), others.end(), [&](unsigned n) {
                // What they met by is passed on, too, and may be late.
                std::erase_if(got_[n], [](std::uint32_t number) { return number >= kMeeting; });
                return got_[n].size() >= kMany;
            });
        }));
        for (const unsigned n : others) EXPECT_EQ(got_[n], expected) << way << ", node " << n;
        EXPECT_TRUE(await([&] {
            return node(1).counters().sent - sent_before ==
                   kMany * (std::strcmp(way, "tree") == 0 ? 3 : 2);
        })) << "node 0 and a head each, or one";
        nodes_here_.clear();
    }
}

TEST_P(Endpoints, pass_on_nothing_that_is_not_taken_and_nothing_where_there_are_no_racks) {
    for (const bool has_racks : {true, false}) {
        const auto racks = Topology::parse("rack 0 1\nrack 2 3 4\n", "racks", 5);
        topology_ = racks;
        takes_ = true;
        start_and_meet(5);
        for (unsigned n = 2; n < 5 && !has_racks; ++n) {
            nodes_here_[n].reset();
            topology_.reset();
            start_one(n);
        }
        // The sender meets one of them once more.
        EXPECT_TRUE(await([&] {
            node(1).send(datagram(1'000'000, 64));
            return has_racks || !got_[2].empty() || !got_[3].empty() || !got_[4].empty();
        }));
        takes_ = !has_racks;
        forget(400);
        constexpr std::uint32_t kMany = 50;
        send_many(1, kMany, 40);
        const auto heads = [&] { return got_[2].size() + got_[3].size() + got_[4].size(); };
        EXPECT_TRUE(await([&] { return heads() >= kMany; }));
        for (int i = 0; i < 400; ++i) look();
        EXPECT_EQ(heads(), kMany) << "one of the rack gets each, and keeps it to itself";
        nodes_here_.clear();
    }
}

INSTANTIATE_TEST_SUITE_P(By, Endpoints, ::testing::Values("tcp", "net", "udp;ofi_rxd"),
                         [](const auto& of) {
                             std::string name = of.param;
                             std::replace(name.begin(), name.end(), ';', '_');
                             return name;
                         });

class EndpointList : public ::testing::TestWithParam<const char*> {
protected:
    void SetUp() override {
        if (!has(GetParam())) GTEST_SKIP() << "libfabric has no provider " << GetParam() << " here";
        while (settings_.fabric.nodes.size() < 2)
            settings_.fabric.nodes.push_back({INADDR_LOOPBACK, test::free_port(SOCK_STREAM)});
        settings_.fabric.provider = GetParam();
        settings_.ring = "rig";
        settings_.nodes = 2;
    }
    EndpointSettings at(unsigned node) const {
        EndpointSettings settings = settings_;
        settings.node = node;
        return settings;
    }
    static bool reaches(Endpoint& from, Endpoint& to, std::uint32_t number) {
        for (const std::int64_t begin = now_ns(); now_ns() - begin < kPatienceNs;) {
            from.send(datagram(number, 100));
            for (int i = 0; i < 20; ++i) {
                from.receive();
                for (const auto bytes : to.receive()) {
                    if (load<std::uint32_t>(bytes.data()) == number) return true;
                }
                std::this_thread::yield();
            }
        }
        return false;
    }
    EndpointSettings settings_;
};

TEST_P(EndpointList, reaches_a_node_that_comes_back_at_its_address) {
    Endpoint first(at(0));
    for (std::uint32_t times = 1; times < 6; ++times) {
        Endpoint second(at(1));
        EXPECT_TRUE(reaches(first, second, times)) << "time " << times;
        EXPECT_TRUE(reaches(second, first, times)) << "time " << times;
    }
}

TEST_P(EndpointList, says_that_an_address_is_taken) {
    const Endpoint first(at(0));
    EXPECT_THAT(test::refused(Errc::bad_environment, [&] { const Endpoint again(at(0)); }),
                HasSubstr("is the node running already?"));
}

TEST_P(EndpointList, says_what_is_missing_and_what_is_here) {
    settings_.fabric.provider = "verbs;ofi_rxm";
    if (has(settings_.fabric.provider)) GTEST_SKIP() << "this host has it";
    EXPECT_THAT(test::refused(Errc::no_fabric, [&] { const Endpoint none(at(0)); }),
                ::testing::AllOf(HasSubstr("RMEM_PROVIDER is 'verbs;ofi_rxm'"), HasSubstr("tcp")));
}

INSTANTIATE_TEST_SUITE_P(By, EndpointList, ::testing::Values("tcp", "net"));

TEST(Provider, over_tcp_is_the_one_without_a_layer_unless_another_is_named) {
    if (!has("tcp") || !has("net")) GTEST_SKIP() << "libfabric has not both tcp and net here";
    const test::OwnDirectory directory;
    Settings settings;
    settings.directory = directory.path();
    settings.interface = "lo";
    const auto chosen = [&] {
        return std::string(choose_provider(settings, 0)->fabric_attr->prov_name);
    };
    EXPECT_EQ(chosen(), "net");
    settings.provider = "tcp";
    EXPECT_THAT(chosen(), ::testing::StartsWith("tcp"));
    settings.provider.clear();
    settings.nodes = {{INADDR_LOOPBACK, test::free_port(SOCK_STREAM)}};
    EXPECT_EQ(chosen(), "net") << "at an address";
}

TEST(Provider, is_refused_for_what_it_does_not_promise) {
    const Info info(library().dupinfo(nullptr));
    const auto lack = [&] { return lack_of(*info); };
    info->ep_attr->type = FI_EP_DGRAM;
    EXPECT_THAT(lack(), HasSubstr("RDM"));
    info->ep_attr->type = FI_EP_RDM;
    EXPECT_THAT(lack(), HasSubstr("no messages"));
    info->caps = FI_MSG;
    EXPECT_THAT(lack(), HasSubstr("FI_ORDER_SAS"));
    info->tx_attr->msg_order = FI_ORDER_SAS;
    EXPECT_THAT(lack(), HasSubstr("FI_ORDER_SAS")) << "both directions";
    info->rx_attr->msg_order = FI_ORDER_SAS;
    EXPECT_THAT(lack(), HasSubstr("FI_MULTI_RECV"));
    info->caps |= FI_MULTI_RECV;
    info->domain_attr->resource_mgmt = FI_RM_DISABLED;
    EXPECT_THAT(lack(), HasSubstr("FI_RM_ENABLED"));
    info->domain_attr->resource_mgmt = FI_RM_ENABLED;
    EXPECT_EQ(lack(), "");
}

}  // namespace
}  // namespace rmem::fabric
