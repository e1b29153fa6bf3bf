// SPDX-License-Identifier: Apache-2.0
// ctest: check apart
// The billboard, Fast Messages 1.0 and 2.x, GAMMA, Directed Point and MU-Net in one program, on one
// ring, at the same time: what each rank sends by which of them is drawn from a seed, and all of it
// arrives as its own system promises.
//
// Each rank is MU-Net's node by itself, so that this runs where processes are simulated too;
// together_munet_test.cpp has its daemons.
#include "billboard/bbp.h"
#include "ports/dp/dp.h"
#include "ports/gamma/libgamma.h"
#include "rmem/ring/ring.hpp"
#include "tests/support/conformance.hpp"
#include "tests/support/munet_ring_node.hpp"
#include "tools/watch/port_counters.hpp"

#include <fcntl.h>
#include <fm/fm1.h>
#include <fm/fm2.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <mutex>
#include <random>
#include <set>

namespace rmem::test {
namespace {

enum System : std::uint8_t { kBbp, kFm1, kFm2, kGamma, kDp, kMunet, kSystems };
constexpr std::array kNames = {"billboard", "FM 1.0", "FM 2.x", "GAMMA", "DP", "MU-Net"};
constexpr std::array<std::size_t, kSystems> kMaxBytes = {3000, FM_MAX_SIZE, 3000, 4000, 3000, 1500};
constexpr unsigned kRanks = 3;
constexpr int kGammaPort = 20;  ///< plus the node that it is bound to, or that sends to it
constexpr int kDpSink = 1, kDpSource = 10;
constexpr std::uint64_t kSeed = 20261122;

/// How a message begins.
struct Head {
    std::uint32_t sequence;  ///< of its system, from this rank to that
    std::uint16_t size;
    std::uint8_t from, system;
};

std::vector<std::byte> message(System system, unsigned from, unsigned to, std::uint32_t sequence) {
    const std::uint64_t seed = ((system * 16U + from) * 16U + to) * std::uint64_t{1000} + sequence;
    std::mt19937_64 random(seed);
    const std::size_t most = random() % 2 == 0 ? 40 : kMaxBytes[system];
    const std::size_t size = sizeof(Head) + random() % (most - sizeof(Head) + 1);
    auto bytes = pattern(size, seed);
    const Head head{sequence, static_cast<std::uint16_t>(size), static_cast<std::uint8_t>(from),
                    system};
    std::memcpy(bytes.data(), &head, sizeof head);
    return bytes;
}

/// What a rank sends in a round, in this order. All ranks know all plans, and so what they have to
/// wait for.
using Plan = std::vector<std::pair<System, unsigned>>;
Plan plan_of(unsigned rank, unsigned round) {
    std::mt19937_64 random(kSeed + rank * 1000 + round);
    Plan plan(6 + random() % 12);
    for (auto& [system, to] : plan) {
        system = static_cast<System>(random() % kSystems);
        to = (rank + 1 + static_cast<unsigned>(random() % (kRanks - 1))) % kRanks;
    }
    return plan;
}

// ---- What handlers have taken in, of the process whose turn it is: simulated ones share these
// variables

class Inbox {
public:
    void put(std::span<const std::byte> bytes) {
        const std::lock_guard lock(mutex_);  // GAMMA's handlers run in another thread, too
        messages_.emplace_back(bytes.begin(), bytes.end());
    }
    std::vector<std::vector<std::byte>> take() {
        const std::lock_guard lock(mutex_);
        return std::exchange(messages_, {});
    }

private:
    std::mutex mutex_;
    std::vector<std::vector<std::byte>> messages_;
};
std::array<std::array<Inbox, kRanks>, kSystems> inboxes;

struct GammaBuffers {
    std::array<std::array<std::byte, 4096>, kRanks> of;
};
std::array<GammaBuffers, kRanks> gamma_buffers;

void take_fm1(void* bytes, int size) {
    inboxes[kFm1][FM_nodeid].put(
        {static_cast<const std::byte*>(bytes), static_cast<std::size_t>(size)});
}
int take_fm2(FM_stream* stream, unsigned) {
    std::array<std::byte, 4096> bytes;
    FM_receive(bytes.data(), stream, sizeof(Head));
    Head head;
    std::memcpy(&head, bytes.data(), sizeof head);
    const std::size_t size = std::clamp<std::size_t>(head.size, sizeof head, bytes.size());
    FM_receive(bytes.data() + sizeof head, stream, static_cast<unsigned>(size - sizeof head));
    inboxes[kFm2][FM_nodeid].put({bytes.data(), size});
    return FM_CONTINUE;
}
void take_gamma() {
    const auto me = static_cast<std::size_t>(gamma_my_node());
    const auto& buffer =
        gamma_buffers[me].of[static_cast<std::size_t>(gamma_active_port - kGammaPort)];
    inboxes[kGamma][me].put({buffer.data(), static_cast<std::size_t>(gamma_msglen)});
}

// ---- A rank

/// All systems of a process, from start to end.
class Station {
public:
    explicit Station(Rank& me) : me_(static_cast<unsigned>(me.rank)), rank_(me) {
        FM_initialize();
        check_equal(FM_numnodes, ULONG{kRanks}, "FM_initialize");
        handler_ = FM_register_handler(FM_ANY_ID, take_fm2);
        check_equal(gamma_init(kRanks, 0, nullptr), 0, "gamma_init");
        sink_ = dp_open(kDpSink);
        check(sink_ >= 0, dp_last_error());
        check_equal(::fcntl(sink_, F_SETFL, O_NONBLOCK), 0, "fcntl");
        for (unsigned to = 0; to < kRanks; ++to) {
            if (to != me_) open(to);
        }
        node_ = std::make_unique<RingNode>(me);
        endpoint_ = &node_->create();
        all_come_to(1000);
    }
    ~Station() {
        for (const int fd : sources_) dp_close(fd);
        dp_close(sink_);
        node_.reset();
        gamma_exit();
        if (FM_numnodes != 0) FM_finalize();
    }
    Station(const Station&) = delete;
    Station& operator=(const Station&) = delete;

    void send(System system, unsigned to) {
        auto bytes = message(system, me_, to, sent_[system][to]++);
        const auto size = bytes.size();
        switch (system) {
            case kBbp: return send_bbp(to, bytes);
            case kFm1:
                return FM_send(static_cast<int>(to), take_fm1, bytes.data(),
                               static_cast<int>(size));
            case kFm2: return send_fm2(to, bytes);
            case kGamma:
                return check_equal(gamma_send_flowctl(gamma_port(to), bytes.data(), size), 0,
                                   "gamma_send_flowctl");
            case kDp:
                return check_equal(dp_write(sources_[to], bytes.data(), static_cast<int>(size)),
                                   static_cast<int>(size), "dp_write");
            default:
                check_equal(endpoint_->program().send({static_cast<std::uint16_t>(to), 0},
                                                      bytes.data(), size, Deadline::in(kLong)),
                            0, "MU-Net's send");
        }
    }

    /// Takes in what has come by each system, without waiting.
    void poll() {
        std::array<std::byte, 4096> bytes;
        std::size_t size = 0;
        while (bbp_tryrecv(BBP_ANY, bytes.data(), bytes.size(), &size) >= 0)
            has_come(kBbp, {bytes.data(), size});
        FM_extract();
        FM_extract(~0UL);
        gamma_test(kGammaPort, 1);
        char* at = nullptr;
        for (int length = 0; (length = dp_read(sink_, &at)) >= 0 && at != nullptr;
             dp_fsync(sink_, 1))
            has_come(kDp, std::as_bytes(std::span(at, static_cast<std::size_t>(length))));
        node_->step();
        for (int length = 0;
             (length = endpoint_->program().recv(bytes.data(), bytes.size(), nullptr)) >= 0;)
            has_come(kMunet, {bytes.data(), static_cast<std::size_t>(length)});
        for (const System system : {kFm1, kFm2, kGamma}) {
            for (const auto& each : inboxes[system][me_].take()) has_come(system, each);
        }
    }

    void expect(const Plan& plan) {
        for (const auto& [system, to] : plan) expected_[system] += to == me_ ? 1 : 0;
    }
    /// Some ranks may be in the next round already.
    void await_what_is_expected() {
        const std::int64_t end = clock_ns() + kLong;
        for (std::size_t system = 0; system < kSystems;) {
            if (arrived_[system] >= expected_[system]) {
                ++system;
                continue;
            }
            poll();
            check(clock_ns() < end, fmt::format("{}: {} of {} messages have come", kNames[system],
                                                arrived_[system], expected_[system]));
        }
    }
    /// Until all ranks are here; takes in meanwhile, since others may wait for acknowledgements.
    void all_come_to(std::size_t word) {
        rank_.raise(word);
        await(
            [&] {
                poll();
                return rank_.shared[word] >= kRanks;
            },
            "the others");
    }

    void check_counters() {
        using ports::munet::Counter;
        check(arrived_ == expected_, "each message once");
        check_equal(FM_count(FM_nodeid, FM_HANDLERS_LEFT),
                    static_cast<long long>(arrived_[kFm1] + arrived_[kFm2]), "FM's handlers");
        check_equal(gamma_counter(0, static_cast<unsigned short>(me_), "messages_received"),
                    static_cast<long long>(arrived_[kGamma]), "GAMMA's messages");
        dp_stat_t stat{};
        dp_stat(sink_, &stat);
        check_equal(stat.arrived, std::uint64_t{arrived_[kDp]}, "DP's messages");
        check(endpoint_->count(Counter::sent) >= sent_by(kMunet), "MU-Net's messages sent");
        check(endpoint_->count(Counter::received) >= arrived_[kMunet], "MU-Net's received");
        const rmem::Ring* ring = billboard::ProcessEndpoint::open()->endpoint().ring();
        if (ring == nullptr) return;  // a simulated rank has no slot
        for (const auto port :
             {billboard::Class::fm, billboard::Class::gamma, billboard::Class::dp}) {
            const std::size_t block = ports::port_block(port);
            std::uint64_t sum = 0;
            for (std::size_t i = 0; i < ports::kPortNames[block].counters.size(); ++i)
                sum += ring->rank(me_).ports[block].get(i);
            check(sum > 0, fmt::format("{} in the rank slot", ports::kPortNames[block].port));
        }
    }

    unsigned sent_by(System system) const {
        unsigned sum = 0;
        for (const unsigned each : sent_[system]) sum += each;
        return sum;
    }

private:
    static unsigned short gamma_port(unsigned node) {
        return static_cast<unsigned short>(kGammaPort + static_cast<int>(node));
    }

    /// What leads to another rank.
    void open(unsigned to) {
        auto& buffer = gamma_buffers[me_].of[to];
        check_equal(
            gamma_setport(static_cast<unsigned char>(gamma_port(to)), 0, static_cast<int>(to),
                          static_cast<unsigned char>(gamma_port(me_)), take_gamma, nullptr,
                          buffer.data(), static_cast<int>(buffer.size())),
            0, "gamma_setport");
        sources_[to] = dp_open(kDpSource + static_cast<int>(to));
        check(sources_[to] >= 0, dp_last_error());
        dp_target(sources_[to], static_cast<int>(to), kDpSink);
        check_equal(dp_reliable(sources_[to], 1), 0, "dp_reliable");
    }

    void send_bbp(unsigned to, const std::vector<std::byte>& bytes) {
        int code = BBP_EAGAIN;
        await(
            [&] {
                code = bbp_trysend(static_cast<int>(to), bytes.data(), bytes.size());
                if (code == BBP_EAGAIN) poll();
                return code != BBP_EAGAIN;
            },
            "room for bbp_trysend");
        check_code(code, BBP_OK, "bbp_trysend");
    }
    void send_fm2(unsigned to, std::vector<std::byte>& bytes) {
        FM_stream* stream = FM_begin_message(to, bytes.size(), handler_);
        check(stream != nullptr, "FM_begin_message");
        const std::size_t half = bytes.size() / 2;
        FM_send_piece(stream, bytes.data(), half);
        FM_send_piece(stream, bytes.data() + half, bytes.size() - half);
        FM_end_message(stream);
    }

    /// Whole, by the system that it was sent by, once; in order, except for FM 1.0.
    void has_come(System system, std::span<const std::byte> bytes) {
        Head head{};
        check(bytes.size() >= sizeof head, fmt::format("{}: a head", kNames[system]));
        std::memcpy(&head, bytes.data(), sizeof head);
        check_equal(unsigned{head.system}, unsigned{system}, "the system of a message");
        check(head.from < kRanks && head.from != me_, "who has sent it");
        const auto sent = message(system, head.from, me_, head.sequence);
        check(std::equal(bytes.begin(), bytes.end(), sent.begin(), sent.end()),
              fmt::format("{}: message {} of {} is not what was sent", kNames[system],
                          head.sequence, head.from));
        auto& seen = seen_[system][head.from];
        if (system != kFm1)
            check_equal(std::size_t{head.sequence}, seen.size(),
                        fmt::format("{}: the order of {}", kNames[system], head.from));
        check(seen.insert(head.sequence).second, fmt::format("{}: once", kNames[system]));
        ++arrived_[system];
    }

    unsigned me_;
    Rank& rank_;
    ULONG handler_ = 0;
    int sink_ = -1;
    std::array<int, kRanks> sources_{-1, -1, -1};
    std::unique_ptr<RingNode> node_;
    MunetEndpoint* endpoint_ = nullptr;
    std::array<std::array<unsigned, kRanks>, kSystems> sent_{};
    std::array<std::array<std::set<std::uint32_t>, kRanks>, kSystems> seen_;
    std::array<unsigned, kSystems> arrived_{}, expected_{};
};

class Together : public Conformance {};
RMEM_ON_ALL_RINGS(Together);

TEST_P(Together, all_systems_of_one_program_share_a_ring_and_each_keeps_its_promises) {
    run(kRanks, [](Rank& me) {
        Station station(me);
        const auto rounds = std::max(8U, static_cast<unsigned>(thrifty(300)));
        for (unsigned round = 0; round < rounds; ++round) {
            for (unsigned rank = 0; rank < kRanks; ++rank) station.expect(plan_of(rank, round));
            std::mt19937_64 random(kSeed + round);
            for (const auto& [system, to] : plan_of(static_cast<unsigned>(me.rank), round)) {
                station.send(system, to);
                if (random() % 3 == 0) station.poll();
            }
            station.await_what_is_expected();
        }
        station.check_counters();
        station.all_come_to(1001);
    });
}

}  // namespace
}  // namespace rmem::test
