// SPDX-License-Identifier: Apache-2.0
#include "bench/ports/systems.hpp"

#include "rmem/error.hpp"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>

namespace bench {

namespace {

constexpr std::size_t kLineBytes = 64;

/// A word of each line.
inline void look(const char* bytes, std::size_t size) {
    for (std::size_t at = 0; at < size; at += kLineBytes) {
        const char word = bytes[at];
        asm volatile("" : : "r"(word));
    }
}

template <std::size_t number>
void on_words(int, int, int, int) {
    asm volatile("" : : "i"(number));  // no two have the same code, which linkers would fold
    ++FastMessages::received;
}
template <std::size_t number>
int on_stream(FM_stream* stream, unsigned) {
    asm volatile("" : : "i"(number));
    return Fm2::take(stream);
}

template <std::size_t... numbers>
constexpr auto all_of_fm1(std::index_sequence<numbers...>) {
    return std::array<FM_handler4, sizeof...(numbers)>{on_words<numbers>...};
}
template <std::size_t... numbers>
constexpr auto all_of_fm2(std::index_sequence<numbers...>) {
    return std::array<FM_handler*, sizeof...(numbers)>{on_stream<numbers>...};
}
constexpr auto kOfFm1 = all_of_fm1(std::make_index_sequence<kMostHandlers>{});
constexpr auto kOfFm2 = all_of_fm2(std::make_index_sequence<kMostHandlers>{});

}  // namespace

void fail(const char* call, const char* why) {
    throw rmem::Error(rmem::Errc::system, std::string(call) + ": " + why);
}

int FastMessages::received;
unsigned Fm2::size_;

FastMessages::FastMessages(const RankContext& rank) : peer(peer_of(rank)) {
    FM_initialize();
    if (FM_numnodes == 0) fail("FM_initialize", bbp_last_error());
}
FastMessages::~FastMessages() {
    FM_finalize();
}

void Fm1::on_buffer(void* bytes, int size) {
    look(static_cast<const char*>(bytes), static_cast<std::size_t>(size));
    ++received;
}

int Fm2::take(FM_stream* stream) {
    alignas(kLineBytes) static std::array<char, kMostBytes> into;
    FM_receive(into.data(), stream, size_);
    ++received;
    return FM_CONTINUE;
}
FM_handler* Fm2::handler(std::size_t number) {
    return kOfFm2.at(number);
}
FM_handler4 fm1_handler(std::size_t number) {
    return kOfFm1.at(number);
}

Gamma::Gamma(const RankContext& rank) {
    // The host may take the receiver away for longer than gamma_send waits by default.
    ::setenv("RMEM_GAMMA_PATIENCE", "10s", 0);  // NOLINT(concurrency-mt-unsafe): one thread
    if (gamma_init(static_cast<unsigned char>(rank.ranks), 0, nullptr) < 0 ||
        gamma_setport(kPort, 0, peer_of(rank), kPort, on_arrival, on_error, landing_.data(),
                      static_cast<int>(landing_.size())) < 0 ||
        gamma_sync() < 0) {
        fail("gamma_init", gamma_last_error());
    }
}
void Gamma::on_error() {
    gamma_sigerr(kPort);  // a waiting caller hears of a message that was lost
}

Dp::Dp(const RankContext& rank) : fd_(dp_open(1)) {
    if (fd_ < 0) fail("dp_open", dp_last_error());
    dp_target(fd_, peer_of(rank), 1);
}
void Dp::take_pool(std::size_t bytes) {
    dpmmap_t pool{nullptr, bytes};
    if (dp_mmap(fd_, &pool) < 0) fail_by_errno("dp_mmap");
}
void Dp::fail_by_errno(const char* call) {
    fail(call, std::strerror(errno));  // NOLINT(concurrency-mt-unsafe): one thread asks
}
void Dp::look_at(const char* bytes, std::size_t size) {
    look(bytes, size);
}

}  // namespace bench
