// SPDX-License-Identifier: Apache-2.0
// ctest: check
// The row of each property for MU-Net, from munet/munet.h, munet(7) and rmem-node(1) alone;
// docs/design/ports.md has the table. Endpoints are made by `rmem node --munet`, on each link that
// it has: on `sim` there are no programs of several users.
#include "tests/support/munet_daemon.hpp"
#include "tests/support/own_network.hpp"
#include "tests/support/patterns.hpp"
#include "tests/support/tool.hpp"

#include <algorithm>
#include <fstream>
#include <functional>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace rmem::test {
namespace {

struct Link {
    const char* name;
    std::vector<std::string> options;  ///< of rmem node
    unsigned nodes = 2;
};
void PrintTo(const Link& link, std::ostream* out) {
    *out << link.name;
}

std::vector<Link> links() {
    return {{"one_node", {}, 1},
            {"direct", {"--link", "direct"}},
            {"ring", {"--link", "ring"}},
            {"udp", {"--link", "udp", "--interface", "lo"}},
            {"udp_5_percent_loss",
             {"--link", "udp", "--interface", "lo", "--faults", "seed=1; drop:share=5%"}}};
}

constexpr std::size_t kReceive = 65536;  // bytes of a receive buffer
constexpr unsigned kSenders = 16;        // that the daemon admits, as it does by default
constexpr std::size_t kLine = 48;        // bytes of a message of these tests
constexpr std::int64_t kSoon = 50'000'000;

/// An endpoint at node 0 and one at the other node.
class MuNet : public ::testing::TestWithParam<Link> {
protected:
    void SetUp() override {
        for (unsigned node = 0; node < GetParam().nodes; ++node) start(node);
        there_ = create(GetParam().nodes - 1);
        here_ = create(0);
    }
    void TearDown() override {
        for (mu_endpoint_t* ep : all_) EXPECT_EQ(mu_destroy_endpoint(ep), 0) << mu_last_error();
    }
    mu_endpoint_t* create(unsigned node, std::size_t send = 65536) {
        use(node);
        all_.push_back(mu_create(send, kReceive));
        return all_.back();
    }
    /// Calls that create endpoints go to this node from now on.
    void use(unsigned node) const {
        ::setenv("RMEM_MUNET", socket(node).c_str(), 1);  // NOLINT(concurrency-mt-unsafe)
    }
    /// As rmem info --munet tells it.
    std::uint64_t counted(const mu_endpoint_t* ep, const std::string& counter) const {
        const mu_addr_t own = mu_own(ep);
        const Ran ran =
            run_tool({"info", "--munet", "--json", name_.get() + "@" + std::to_string(own.node)});
        const nlohmann::json report = ran.json();
        for (const auto& endpoint : report["endpoints"]) {
            if (endpoint["number"] != own.ep) continue;
            for (const auto& one : endpoint["counters"]) {
                if (one["name"] == counter) return one["value"];
            }
            ADD_FAILURE() << "no counter " << counter;
        }
        return 0;  // those that have counted nothing are not told of
    }

    const Tool& daemon(unsigned node) const { return *daemons_.at(node); }

    mu_endpoint_t *here_ = nullptr, *there_ = nullptr;

private:
    std::string socket(unsigned node) const {
        return "/tmp/" + name_.get() + "-" + std::to_string(node) + ".sock";
    }
    void start(unsigned node) {
        std::vector<std::string> words = {
            "node",           "--munet",    "--ring", name_.get(), "--node", std::to_string(node),
            "--munet-socket", socket(node), "--size", "64K"};
        const Link& link = GetParam();
        if (link.nodes > 1) {
            for (const auto& word : {std::string("--nodes"), std::to_string(link.nodes),
                                     std::string("--group"), own_group(name_.get())}) {
                words.push_back(word);
            }
        }
        words.insert(words.end(), link.options.begin(), link.options.end());
        daemons_.push_back(std::make_unique<Tool>(words));
        ASSERT_TRUE(daemons_.back()->prints("MU-Net at ")) << daemons_.back()->err();
    }

    RingName name_;
    std::vector<std::unique_ptr<Tool>> daemons_;
    std::vector<mu_endpoint_t*> all_;
};
INSTANTIATE_TEST_SUITE_P(On, MuNet, ::testing::ValuesIn(links()),
                         [](const auto& link) { return std::string(link.param.name); });

/// A message of a line, which begins with its number.
int send_line(mu_endpoint_t* from, mu_addr_t to, std::uint32_t number) {
    std::byte bytes[kLine] = {};
    std::memcpy(bytes, &number, sizeof number);
    return mu_send(from, to, bytes, sizeof bytes);
}
/// How many more are taken, of messages with the numbers from `first` on, while nobody receives.
std::uint32_t send_until_refused(mu_endpoint_t* from, const mu_endpoint_t* to,
                                 std::uint32_t first = 0) {
    mu_set_timeout(from, kSoon);
    std::uint32_t sent = 0;
    int result = 0;
    while (sent < 100'000 && (result = send_line(from, mu_own(to), first + sent)) == 0) ++sent;
    EXPECT_EQ(result, -ETIMEDOUT) << mu_last_error();
    return sent;
}
void receive_line(mu_endpoint_t* ep, std::uint32_t number, mu_addr_t* from = nullptr) {
    std::byte bytes[2 * kLine];
    ASSERT_EQ(mu_await(ep, bytes, sizeof bytes, from), static_cast<int>(kLine)) << mu_last_error();
    std::uint32_t found = 0;
    std::memcpy(&found, bytes, sizeof found);
    ASSERT_EQ(found, number);
}

// ---- Reliable: yes, by credits

TEST_P(MuNet, is_reliable) {
    std::uint32_t sent = 0, received = 0;
    for (int full = 0; full < 5;) {  // times that the share was used up
        const std::uint32_t more = send_until_refused(here_, there_, sent);
        if (more > 0) ++full;
        for (sent += more; received < sent; ++received) receive_line(there_, received);
        ASSERT_FALSE(HasFailure());
    }
    EXPECT_EQ(mu_recv(there_, nullptr, 0, nullptr), -EAGAIN) << "further messages";
    EXPECT_EQ(counted(there_, "received"), sent);
    EXPECT_EQ(counted(here_, "undelivered") + counted(here_, "over_credit"), 0U);
}

// ---- Ordered: yes

TEST_P(MuNet, is_ordered_whatever_the_sizes_and_by_whichever_send) {
    const auto longest = static_cast<std::size_t>(mu_max_message(here_, mu_own(there_)));
    std::vector<std::byte> found(longest);
    mu_set_timeout(here_, 0);
    std::uint64_t sent = 0, received = 0;
    const auto is_moved = [](std::uint64_t i) { return i % 3 != 0; };
    const auto size_of = [&](std::uint64_t i) { return i * 37 % (is_moved(i) ? longest : 600); };
    ASSERT_TRUE(eventually([&] {
        while (sent < 200) {  // as many as there is room for
            auto bytes = pattern(size_of(sent), sent);
            const auto send = is_moved(sent) ? mu_send_DMA : mu_send;
            const int result = send(here_, mu_own(there_), bytes.data(), bytes.size());
            if (result == -ETIMEDOUT) break;
            EXPECT_EQ(result, 0) << mu_last_error();
            ++sent;
        }
        while (received < sent) {
            const int size = mu_recv(there_, found.data(), found.size(), nullptr);
            if (size == -EAGAIN) break;
            EXPECT_EQ(size, static_cast<int>(size_of(received))) << "the next in order";
            const std::span bytes(found.data(), size_of(received));
            EXPECT_EQ(first_difference(bytes, received), bytes.size());
            ++received;
        }
        return received == 200 || HasFailure();
    }));
    EXPECT_GT(counted(here_, "moved"), 0U) << "some were moved by the daemon";
}

// ---- Flow control: credits

TEST_P(MuNet, flow_control_is_credits_of_a_share_for_each_sender) {
    mu_endpoint_t* other = create(0);
    const std::uint32_t first = send_until_refused(here_, there_);
    EXPECT_GT(first, 0U);
    EXPECT_LE(first * kLine, kReceive / kSenders) << "no more than a share";
    const std::uint32_t second = send_until_refused(other, there_);
    EXPECT_GT(second, 0U) << "a share is each sender's own";
    EXPECT_LE(second * kLine, kReceive / kSenders);
    for (std::uint32_t i = 0; i < first; ++i) {
        mu_addr_t from{};
        receive_line(there_, i, &from);
        EXPECT_EQ(from.ep, mu_own(here_).ep);
    }
    // Nothing goes back but credit, in messages of no length.
    EXPECT_TRUE(eventually([&] { return send_line(here_, mu_own(there_), first) == 0; }));
    EXPECT_GT(counted(there_, "credits"), 0U);
    EXPECT_EQ(counted(there_, "sent"), 0U);
    for (std::uint32_t i = 0; i < second; ++i) receive_line(there_, i);
    receive_line(there_, first);
}

// ---- Max message: three quarters of a share

TEST_P(MuNet, max_message_is_three_quarters_of_a_share_of_the_receive_buffer) {
    const std::int64_t longest = mu_max_message(here_, mu_own(there_));
    ASSERT_GT(longest, MU_INLINE_BYTES);
    EXPECT_LE(longest, kReceive / kSenders * 3 / 4);
    const auto size = static_cast<std::size_t>(longest);
    auto bytes = pattern(size + 1, 5);
    std::vector<std::byte> found(size + 1);
    for (const auto send : {mu_send, mu_send_DMA}) {
        EXPECT_EQ(send(here_, mu_own(there_), bytes.data(), size + 1), -EMSGSIZE);
        // Its parts may need more room than it does as a whole: the receiver takes them in
        // meanwhile.
        const mu_addr_t there = mu_own(there_);
        Child sender([&] {
            mu_endpoint_t* ep = create(0);
            EXPECT_EQ(send(ep, there, bytes.data(), size), 0) << mu_last_error();
            mu_destroy_endpoint(ep);
        });
        EXPECT_EQ(mu_await(there_, found.data(), found.size()), longest);
        EXPECT_TRUE(std::equal(found.begin(), found.end() - 1, bytes.begin()));
        EXPECT_EQ(sender.wait(), 0);
    }
    mu_endpoint_t* small = create(0, 1024);
    EXPECT_EQ(mu_send_DMA(small, mu_own(there_), bytes.data(), 1025), -EMSGSIZE);
    EXPECT_EQ(mu_send_DMA(small, mu_own(there_), bytes.data(), 1024), 0) << mu_last_error();
    EXPECT_EQ(mu_await(there_, found.data(), found.size()), 1024);
}

// ---- Receive style: explicit, one copy

TEST_P(MuNet, receives_explicitly_by_one_copy) {
    std::byte bytes[2][100];
    EXPECT_EQ(mu_recv(there_, bytes[0], sizeof bytes[0], nullptr), -EAGAIN) << "does not wait";
    EXPECT_EQ(mu_wait(there_, 0), -ETIMEDOUT);
    for (std::uint64_t i = 0; i < 2; ++i) {
        const auto message = pattern(60, i);
        ASSERT_EQ(mu_send(here_, mu_own(there_), message.data(), message.size()), 0);
    }
    ASSERT_EQ(mu_wait(there_, 30'000'000'000), 0);
    mu_addr_t from{};
    EXPECT_EQ(mu_probe(there_, &from), 60);
    EXPECT_EQ(mu_probe(there_, nullptr), 60) << "it stays until it is received";
    EXPECT_EQ(from.ep, mu_own(here_).ep);
    EXPECT_EQ(mu_recv(there_, bytes[0], 59, nullptr), -EMSGSIZE) << "and where it does not fit";
    for (auto& place : bytes) ASSERT_EQ(mu_await(there_, place, sizeof place), 60);
    for (std::uint64_t i = 0; i < 2; ++i) {
        EXPECT_EQ(first_difference(std::span(bytes[i], 60), i), 60U) << "the receiver's own copy";
    }
}

// ---- Broadcast: no

TEST_P(MuNet, has_no_broadcast) {
    mu_endpoint_t* neighbour = create(GetParam().nodes - 1);
    for (const int nobody : {-1, 0xff, 0xffff}) {
        EXPECT_EQ(mu_send(here_, {nobody, 0}, "x", 1), -ENETUNREACH);
    }
    EXPECT_EQ(mu_send(here_, {0, 255}, "x", 1), -ECONNREFUSED) << "an endpoint as any other";
    ASSERT_EQ(send_line(here_, mu_own(there_), 7), 0);
    receive_line(there_, 7);
    for (mu_endpoint_t* ep : {there_, neighbour, here_}) {
        EXPECT_EQ(mu_recv(ep, nullptr, 0, nullptr), -EAGAIN);
    }
    EXPECT_EQ(counted(there_, "received"), 1U);
    EXPECT_EQ(counted(neighbour, "received") + counted(here_, "received"), 0U);
}

// ---- Protection: virtual memory

/// The objects that a process can write and shares with others, by device and inode.
std::set<std::string> shared_memory_of(pid_t pid) {
    std::ifstream maps("/proc/" + std::to_string(pid) + "/maps");
    std::set<std::string> objects;
    std::string range, permissions, offset, device, inode, line;
    while (maps >> range >> permissions >> offset >> device >> inode && std::getline(maps, line)) {
        if (permissions == "rw-s") objects.insert(device + " " + inode);
    }
    return objects;
}

/// What `make` adds to that of this process, which is one.
std::string shared_memory_made_by(const std::function<void()>& make) {
    const auto before = shared_memory_of(::getpid());
    make();
    std::vector<std::string> made;
    for (const auto& object : shared_memory_of(::getpid())) {
        if (!before.contains(object)) made.push_back(object);
    }
    EXPECT_EQ(made.size(), 1U) << "an endpoint is one piece of memory";
    return made.empty() ? "" : made.front();
}

TEST_P(MuNet, protection_is_by_virtual_memory) {
    struct Told {
        std::atomic<std::uint32_t> endpoint, received;
        char memory[64];
    };
    const SharedValue<Told> told;
    const unsigned there = GetParam().nodes - 1;
    mu_endpoint_t* ep = nullptr;
    const std::string mine = shared_memory_made_by([&] { ep = create(0); });
    Child other([&] {
        mu_endpoint_t* own = nullptr;
        const std::string memory = shared_memory_made_by([&] { own = create(there); });
        memory.copy(told->memory, sizeof told->memory - 1);
        told->endpoint = 1U + mu_own(own).ep;
        receive_line(own, 3);
        told->received = 1;
        receive_line(own, 4);
        mu_destroy_endpoint(own);
    });
    ASSERT_TRUE(eventually([&] { return told->endpoint != 0; }));
    const mu_addr_t to{static_cast<int>(there), static_cast<unsigned char>(told->endpoint - 1)};
    std::byte bytes[kLine] = {std::byte{3}};
    ASSERT_EQ(mu_send(ep, to, bytes, sizeof bytes), 0) << mu_last_error();
    ASSERT_TRUE(eventually([&] { return told->received == 1; }));
    // They have spoken, and each has its own endpoint's memory alone: the daemon of its node has
    // it, too.
    const std::string theirs = told->memory;
    EXPECT_FALSE(shared_memory_of(other.pid()).contains(mine));
    EXPECT_FALSE(shared_memory_of(::getpid()).contains(theirs));
    EXPECT_TRUE(shared_memory_of(daemon(0).pid()).contains(mine));
    EXPECT_TRUE(shared_memory_of(daemon(there).pid()).contains(theirs));
    bytes[0] = std::byte{4};
    ASSERT_EQ(mu_send(ep, to, bytes, sizeof bytes), 0) << mu_last_error();
    EXPECT_EQ(other.wait(), 0);
}

// ---- Send can block: yes, on credit

TEST_P(MuNet, send_can_block_on_credit) {
    constexpr std::uint32_t kMessages = 300;
    const Word sent;
    const mu_addr_t there = mu_own(there_);
    Child sender([&] {
        mu_endpoint_t* ep = create(0);
        for (std::uint32_t i = 0; i < kMessages; ++i) {
            ASSERT_EQ(send_line(ep, there, i), 0) << mu_last_error();
            ++*sent;
        }
        mu_destroy_endpoint(ep);
    });
    await_word(sent);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    EXPECT_LE(*sent * kLine, kReceive / kSenders) << "it waits for credit";
    for (std::uint32_t i = 0; i < kMessages; ++i) receive_line(there_, i);
    EXPECT_EQ(sender.wait(), 0);
    EXPECT_EQ(*sent, kMessages);
}

}  // namespace
}  // namespace rmem::test
