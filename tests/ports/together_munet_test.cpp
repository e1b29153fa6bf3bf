// SPDX-License-Identifier: Apache-2.0
// ctest: check
// Programs on a ring that MU-Net's daemons are on, too: on each of two nodes a rank is the daemon,
// and another a program that speaks by the billboard, Fast Messages, GAMMA, Directed Point and,
// through its daemon, MU-Net. (gamma_init waits for all ranks of a ring; a daemon does not call it,
// and says so.)
#include "billboard/bbp.h"
#include "billboard/process/process_endpoint.hpp"
#include "ports/common/port_block.hpp"
#include "ports/dp/dp.h"
#include "ports/gamma/libgamma.h"
#include "ports/munet/daemon.hpp"
#include "ports/munet/munet.h"
#include "tests/support/conformance.hpp"

#include <fm/fm1.h>
#include <fm/fm2.h>

#include <cerrno>
#include <cstring>
#include <random>
#include <utility>

namespace rmem::test {
namespace {

constexpr unsigned kNodes = 2, kRanks = 4;  // the first of each node's is its daemon
constexpr int kDpid = 7, kRounds = 60;
constexpr unsigned kSystems = 6, kGammaPort = 5;
enum Words : std::size_t { kDaemons, kPrograms };

std::string socket_of(const std::string& ring, unsigned node) {
    return "/tmp/" + ring + "-" + std::to_string(node) + ".sock";
}

void be_daemon(Rank& me, const std::string& ring) {
    auto settings = billboard::Settings::read();
    settings.awaits_others = false;
    const unsigned node = static_cast<unsigned>(me.rank) * kNodes / kRanks;
    ports::munet::Daemon daemon(
        {.driver = {.path = socket_of(ring, node), .node = node, .nodes = kNodes}},
        [&] { return billboard::Endpoint::open(settings); });
    me.raise(kDaemons);
    while (me.shared[kPrograms] < kNodes) daemon.run_for(kMillisecond);
}

// One process is one program, so what its handlers have got may stand here.
int from_fm1 = -1, from_fm2 = -1, from_gamma = -1;
void take_fm1(int number, int, int, int) {
    from_fm1 = number;
}
int take_fm2(FM_stream* stream, unsigned) {
    FM_receive(&from_fm2, stream, sizeof from_fm2);
    return FM_CONTINUE;
}

/// One number at a time, to the other program and back.
class Program {
public:
    explicit Program(Rank& me) : other_(4 - me.rank) {
        me.await_word(kDaemons, kNodes);
        check_ok(bbp_init(nullptr, nullptr), "bbp_init");
        FM_initialize();
        check_equal(FM_numnodes, ULONG{kRanks}, "FM_initialize");
        handler_ = FM_register_handler(FM_ANY_ID, take_fm2);
        check_equal(gamma_init(kNodes, 0, nullptr), 0, "gamma_init");
        check_equal(gamma_my_node(), me.rank / 2, "the daemons are in no group");
        check_equal(
            gamma_set_passive_port(kGammaPort, static_cast<unsigned short>(1 - gamma_my_node()), 0,
                                   kGammaPort, kGammaPort, GO_BACK, &from_gamma, sizeof from_gamma),
            0, "gamma_set_passive_port");
        fd_ = dp_open(kDpid);
        check(fd_ >= 0, dp_last_error());
        dp_target(fd_, other_, kDpid);
        check_equal(mu_create_endpoint(&ep_, 65536, 65536), 0, mu_last_error());
        mu_addr_t own{};
        mu_address(ep_, &own);
        // What is sent before an endpoint is there is lost, so all of it is there before this.
        check_ok(bbp_send(other_, &own, sizeof own), "bbp_send");
        check_equal(bbp_recv(other_, &to_, sizeof to_, nullptr), other_, "bbp_recv");
        check(to_.node != own.node, "the other's daemon is another");
    }
    ~Program() {
        mu_destroy_endpoint(ep_);
        dp_close(fd_);
        gamma_exit();
        if (FM_numnodes != 0) FM_finalize();
        bbp_finalize();
    }
    Program(const Program&) = delete;
    Program& operator=(const Program&) = delete;

    void send(unsigned system, int number) {
        switch (system) {
            case 0: return check_ok(bbp_send(other_, &number, sizeof number), "bbp_send");
            case 1: return FM_send_4(other_, take_fm1, number, 0, 0, 0);
            case 2: {
                FM_stream* stream =
                    FM_begin_message(static_cast<ULONG>(other_), sizeof number, handler_);
                check(stream != nullptr, "FM_begin_message");
                FM_send_piece(stream, &number, sizeof number);
                return FM_end_message(stream);
            }
            case 3: return check_equal(dp_write(fd_, &number, sizeof number), 4, "dp_write");
            case 4:
                return check_equal(gamma_send_flowctl(kGammaPort, &number, sizeof number), 0,
                                   "gamma_send_flowctl");
            default: check_equal(mu_send(ep_, to_, &number, sizeof number), 0, mu_last_error());
        }
    }
    int receive(unsigned system) {
        int number = -1;
        char* at = nullptr;
        switch (system) {
            case 0:
                check_equal(bbp_recv(other_, &number, sizeof number, nullptr), other_, "bbp_recv");
                break;
            case 1:
                await([] { return FM_extract(), from_fm1 >= 0; }, "FM 1.0");
                return std::exchange(from_fm1, -1);
            case 2:
                await([] { return FM_extract(~0UL), from_fm2 >= 0; }, "FM 2.x");
                return std::exchange(from_fm2, -1);
            case 3:
                check_equal(dp_read(fd_, &at), 4, "dp_read");
                std::memcpy(&number, at, sizeof number);
                dp_fsync(fd_, 1);
                break;
            case 4: check_equal(gamma_wait(kGammaPort, 1), 0, "gamma_wait"); return from_gamma;
            default:
                while (mu_recv(ep_, &number, sizeof number, nullptr) == -EAGAIN)
                    check_equal(mu_wait(ep_, kLong), 0, "mu_wait");
        }
        return number;
    }

private:
    int other_, fd_ = -1;
    ULONG handler_ = 0;
    mu_endpoint_t* ep_ = nullptr;
    mu_addr_t to_{};
};

void talk(Rank& me) {
    Program program(me);
    std::mt19937 random(20261122);
    for (int round = 0; round < kRounds; ++round) {
        const auto there = static_cast<unsigned>(random() % kSystems);
        const auto back = static_cast<unsigned>(random() % kSystems);
        if (me.rank == 1) program.send(there, round);
        if (me.rank == 3) {
            check_equal(program.receive(there), round, "a number");
            program.send(back, round + 1);
        }
        if (me.rank == 1) check_equal(program.receive(back), round + 1, "an answer");
    }
    // The daemon of this node shows what its endpoints have done where the ports' counters are.
    const auto process = billboard::ProcessEndpoint::open();
    const auto& slot = process->endpoint().ring()->rank(static_cast<unsigned>(me.rank) - 1);
    const auto& block = slot.ports[ports::port_block(billboard::Class::munet)];
    await([&] { return block.get(ports::munet::Counter::sent) > 0; }, "the daemon's counters");
    me.raise(kPrograms);
    me.await_word(kPrograms, kNodes);
}

class TogetherWithDaemons : public Conformance {};
RMEM_ON_ALL_RINGS(TogetherWithDaemons);

TEST_P(TogetherWithDaemons, programs_speak_by_all_systems) {
    RMEM_SKIP_IF_SIMULATED("its ranks have no daemons");
    RingSetup four = setup(kRanks);
    four.extra["RMEM_NODES"] = std::to_string(kNodes);
    RankProcesses ring(four);
    for (const unsigned node : {0U, 1U}) {
        ring.start_bare(2 * node, [&](Rank& me) { be_daemon(me, ring.name()); });
        ring.start_bare(2 * node + 1, talk, {{"RMEM_MUNET", socket_of(ring.name(), node)}});
    }
    ring.finish();
}

}  // namespace
}  // namespace rmem::test
