// SPDX-License-Identifier: Apache-2.0
// ctest: check
//
// Long messages between nodes that go through the fabric: by libfabric's own interface, on the
// loop-back interface.
#include "rmem/link/udp/key_file.hpp"
#include "tests/support/own_network.hpp"
#include "tests/support/provider_rank.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <sstream>
#include <string>

namespace rmem::test {
namespace {

constexpr std::size_t kMax = 20 << 20;

/// What two ranks have written into libfabric's log.
class Log {
public:
    Log() : path_(testing::TempDir() + fmt::format("far-{}.log", ::getpid())) {}
    ~Log() { std::filesystem::remove(path_); }
    Log(const Log&) = delete;
    Log& operator=(const Log&) = delete;

    /// Of the calling rank, from here on: whole lines, since another rank writes into it, too.
    void begin() const {
        check(std::freopen(path_.c_str(), "a", stderr) != nullptr, "the log");
        check(std::setvbuf(stderr, nullptr, _IOLBF, BUFSIZ) == 0, "lines of the log");
    }
    [[nodiscard]] std::string text() const {
        std::ostringstream all;
        all << std::ifstream(path_).rdbuf();
        return all.str();
    }
    /// By rank, messages that have gone through the fabric.
    [[nodiscard]] std::map<unsigned, unsigned> far_sent() const {
        const std::regex wanted("rank ([0-9]+): .* ([0-9]+) of these through the fabric");
        std::map<unsigned, unsigned> found;
        std::istringstream lines(text());
        for (std::string line; std::getline(lines, line);) {
            std::smatch match;
            if (std::regex_search(line, match, wanted))
                found[static_cast<unsigned>(std::stoul(match[1]))] =
                    static_cast<unsigned>(std::stoul(match[2]));
        }
        return found;
    }

private:
    std::string path_;
};

RingSetup ring_on(const std::string& link) {
    RingSetup ring = provider_ring();
    ring.link = link;
    ring.extra.erase("FI_PROVIDER");
    ring.extra["RMEM_BULK"] = "fabric";
    ring.extra["FI_LOG_LEVEL"] = "info";
    ring.extra["FI_LOG_PROV"] = "bbp";
    return ring;
}

/// `count` messages each way at once; of every second one the receive comes when the message is
/// there already.
void exchange(ProviderRank& fabric, Rank& me, std::size_t size, unsigned count) {
    std::vector<std::vector<char>> out, in;
    for (unsigned i = 0; i < count; ++i) {
        out.push_back(some_bytes(size + i, i + static_cast<unsigned>(me.rank)));
        in.emplace_back(size + i + 3);
    }
    unsigned over = 0;
    const auto take = [&] {
        fi_cq_tagged_entry entry{};
        const ssize_t result = fi_cq_read(fabric.queue, &entry, 1);
        if (result == 1) ++over;
        if (result != 1) check_call(result, "fi_cq_read", -FI_EAGAIN);
    };
    const auto receive = [&](unsigned i) { fabric.receive(in[i].data() + 3, size + i, i, &in[i]); };
    for (unsigned i = 0; i < count; i += 2) receive(i);
    for (unsigned i = 0; i < count; ++i) fabric.send(out[i].data(), size + i, i, &out[i]);
    for (unsigned i = 1; i < count; i += 2) {
        fi_cq_tagged_entry entry{};
        const fi_msg_tagged wanted = fabric.tagged(i, &in[i]);
        await(
            [&] {
                check_call(fi_trecvmsg(fabric.ep, &wanted, FI_PEEK), "a peek");
                ssize_t result = 0;
                while ((result = fi_cq_read(fabric.queue, &entry, 1)) == 1) {
                    if (entry.op_context == &in[i] && (entry.flags & FI_RECV) != 0) return true;
                    ++over;
                }
                check_call(result, "fi_cq_read", -FI_EAVAIL);
                fi_cq_err_entry error{};
                check_call(fi_cq_readerr(fabric.queue, &error, 0), "fi_cq_readerr", 1);
                check_equal(error.err, FI_ENOMSG, "the error of a peek");
                return false;
            },
            "a message that nobody waits for");
        receive(i);
    }
    await([&] { return take(), over == 2 * count; }, "the ends of all");
    for (unsigned i = 0; i < count; ++i) {
        const auto sent = some_bytes(size + i, i + static_cast<unsigned>(1 - me.rank));
        check(std::equal(sent.begin(), sent.end(), in[i].begin() + 3),
              fmt::format("message {} of {} bytes differs", i, size + i));
    }
    fabric.meet_in_progress();
}

void exchange_all(const RingSetup& ring, const Log& log) {
    run_ranks(ring, [&log](Rank& me) {
        log.begin();
        ProviderRank fabric(me);
        fabric.enable();
        exchange(fabric, me, 60'000, 2);
        exchange(fabric, me, 65'537, 20);
        exchange(fabric, me, 1 << 20, 5);
        exchange(fabric, me, kMax, 1);
        fabric.close();
    });
}

const std::map<unsigned, unsigned> kAllFar{{0, 26}, {1, 26}}, kNoneFar{{0, 0}, {1, 0}};

class FarOnLinks : public testing::TestWithParam<const char*> {};

TEST_P(FarOnLinks, messages_go_through_the_fabric_both_ways_at_once_awaited_or_not) {
    const Log log;
    RingSetup ring = ring_on(GetParam());
    // Of its own: tests' common one loads libfabric here, before ranks say where the provider is.
    const OwnDirectory meeting_place;
    if (ring.link == "fabric") {
        ring.extra["RMEM_GROUP"] = meeting_place.path();
        ring.extra["RMEM_PROVIDER"] = "tcp";
    }
    exchange_all(ring, log);
    EXPECT_EQ(log.far_sent(), kAllFar) << log.text();
}

INSTANTIATE_TEST_SUITE_P(ProviderFar, FarOnLinks, testing::Values("udp", "fabric"),
                         [](const auto& link) { return std::string(link.param); });

TEST(ProviderFar, messages_go_over_the_ring_where_no_provider_reads_and_it_is_said_once) {
    const Log log;
    RingSetup ring = ring_on("udp");
    ring.extra["FI_PROVIDER"] = "bbp";
    exchange_all(ring, log);
    EXPECT_EQ(log.far_sent(), kNoneFar) << log.text();
    std::size_t said = 0;
    for (std::size_t at = 0; (at = log.text().find("go over the ring: ", at)) != std::string::npos;
         ++at)
        ++said;
    EXPECT_EQ(said, 2U) << log.text();
}

TEST(ProviderFar, messages_of_a_ring_with_a_key_go_over_it_unless_the_fabric_is_asked_for) {
    RingSetup ring = ring_on("udp");
    ring.extra.erase("RMEM_BULK");
    {
        const Log log;
        exchange_all(ring, log);
        EXPECT_EQ(log.far_sent(), kAllFar) << log.text();
    }
    const Descriptor key = udp::new_key_without_name();
    ring.extra["RMEM_KEY_FILE"] = fmt::format("/proc/{}/fd/{}", ::getpid(), key.get());
    const Log log;
    exchange_all(ring, log);
    EXPECT_EQ(log.far_sent(), kNoneFar) << log.text();
}

TEST(ProviderFar, a_receive_whose_sender_is_killed_in_the_middle_ends_with_an_error) {
    const Log log;
    run_while_one_dies(0, ring_on("udp"), [&log](Rank& me) {
        log.begin();
        ProviderRank fabric(me);
        fabric.enable();
        auto bytes = some_bytes(kMax, 1);
        if (me.rank == 0) {
            fabric.send(bytes.data(), kMax, 7, &me);
            // Progress until the other one reads, and then no more.
            await(
                [&] {
                    fi_cq_read(fabric.queue, nullptr, 0);
                    return me.shared[0] != 0;
                },
                "the receiver");
            me.raise(0);
            me.await_word(5);  // never
        }
        fabric.receive(bytes.data(), kMax, 7, &me);
        fi_cq_read(fabric.queue, nullptr, 0);
        me.raise(0);
        fabric.expect_error(&me, FI_ECONNABORTED);
        const auto at_the_end = bytes;
        for (int i = 0; i < 1000; ++i) fabric.expect_nothing();
        check(bytes == at_the_end, "something writes into a receive that is over");
        fabric.close();
    });
}

}  // namespace
}  // namespace rmem::test
