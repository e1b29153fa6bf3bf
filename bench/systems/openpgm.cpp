// SPDX-License-Identifier: Apache-2.0
//
// OpenPGM: PGM (RFC 3208) in UDP, each rank a source and a receiver of the group.
#include "bench/harness/harness.hpp"

// Its C headers name parameters `restrict`.
#define restrict __restrict
#include <pgm/pgm.h>
#undef restrict

#include <netinet/in.h>

#include <array>

namespace {

using namespace bench;

constexpr const char* group = "239.1.2.11";

/// PGM's message is there only after the call, hence a reference.
void check(bool fine, const char* what, pgm_error_t* const& error) {
    require(fine, what, [&] {
        return error != nullptr && error->message != nullptr ? error->message : "no reason given";
    });
}
void check(bool fine, const char* what) {
    require(fine, what, [] { return "failed"; });
}

class PgmChannel : Unique {
public:
    PgmChannel(int rank, const Setup& setup, std::uint16_t port) {
        pgm_error_t* error = nullptr;
        check(pgm_init(&error), "pgm_init", error);
        const std::string network = setup.addresses[std::size_t(rank)] + ";" + group;
        pgm_addrinfo_t* places = nullptr;
        check(pgm_getaddrinfo(network.c_str(), nullptr, &places, &error), "pgm_getaddrinfo", error);
        check(pgm_socket(&socket_, AF_INET, SOCK_SEQPACKET, IPPROTO_UDP, &error), "pgm_socket",
              error);
        set_up(port);
        bind_to(rank, port, *places);
        pgm_freeaddrinfo(places);
    }
    ~PgmChannel() {
        pgm_close(socket_, false);
        pgm_shutdown();
    }

    void send(const void* data, std::size_t size) {
        int status;
        do {
            status = pgm_send(socket_, data, size, nullptr);
        } while (status == PGM_IO_STATUS_WOULD_BLOCK || status == PGM_IO_STATUS_RATE_LIMITED);
        check(status == PGM_IO_STATUS_NORMAL, "pgm_send");
    }
    void receive(void* data, std::size_t size) {
        std::size_t got = 0;
        while (got == 0) {
            pgm_error_t* error = nullptr;
            const int status = pgm_recv(socket_, data, size, 0, &got, &error);
            check(status != PGM_IO_STATUS_ERROR && status != PGM_IO_STATUS_RESET, "pgm_recv",
                  error);
            if (status != PGM_IO_STATUS_NORMAL) got = 0;
            if (got == 0) cpu_relax();
        }
        require(got == size, "a message of another size");
    }

private:
    template <class Value>
    void set(int option, const Value& value) {
        require(pgm_setsockopt(socket_, IPPROTO_PGM, option, &value, sizeof value),
                "pgm_setsockopt", [&] { return "refuses option " + std::to_string(option); });
    }

    /// Times in microseconds; its examples' are 50 ms to 2 s.
    void set_up(std::uint16_t port) {
        set<int>(PGM_UDP_ENCAP_UCAST_PORT, port);
        set<int>(PGM_UDP_ENCAP_MCAST_PORT, port);
        set<int>(PGM_MTU, 1500);
        set<int>(PGM_TXW_SQNS, 4096);
        set<int>(PGM_RXW_SQNS, 4096);
        set<int>(PGM_AMBIENT_SPM, 1'000'000);
        set(PGM_HEARTBEAT_SPM, std::array<int, 6>{1000, 1000, 2000, 4000, 10'000, 100'000});
        set<int>(PGM_PEER_EXPIRY, 300'000'000);
        set<int>(PGM_SPMR_EXPIRY, 250'000);
        set<int>(PGM_NAK_BO_IVL, 1000);
        set<int>(PGM_NAK_RPT_IVL, 2000);
        set<int>(PGM_NAK_RDATA_IVL, 2000);
        set<int>(PGM_NAK_DATA_RETRIES, 250);
        set<int>(PGM_NAK_NCF_RETRIES, 250);
    }

    void bind_to(int rank, std::uint16_t port, const pgm_addrinfo_t& places) {
        pgm_error_t* error = nullptr;
        pgm_sockaddr_t address{};
        address.sa_port = port;
        address.sa_addr.sport = std::uint16_t(rank + 1);
        check(pgm_gsi_create_from_string(&address.sa_addr.gsi, rank == 0 ? "rank 0" : "rank 1", -1),
              "pgm_gsi_create_from_string");
        pgm_interface_req_t card{};
        card.ir_interface = places.ai_recv_addrs[0].gsr_interface;
        check(pgm_bind3(socket_, &address, sizeof address, &card, sizeof card, &card, sizeof card,
                        &error),
              "pgm_bind3", error);
        for (unsigned i = 0; i < places.ai_recv_addrs_len; ++i)
            set(PGM_JOIN_GROUP, places.ai_recv_addrs[i]);
        set(PGM_SEND_GROUP, places.ai_send_addrs[0]);
        set<int>(PGM_MULTICAST_LOOP, 0);  // else it takes its own messages for the other's
        set<int>(PGM_NOBLOCK, 1);
        check(pgm_connect(socket_, &error), "pgm_connect", error);
    }

    pgm_sock_t* socket_ = nullptr;
};

}  // namespace

int bench::measure(const Setup& setup) {
    if (setup.interface == "lo")
        throw Unavailable("it refuses loop-back; measure it in the lab (--losses 0)");
    const std::uint16_t port = Setup::some_port();
    return measure_ranks(setup, [&](int rank, Meeting&) { return PgmChannel(rank, setup, port); });
}
