// SPDX-License-Identifier: Apache-2.0
#include "tests/support/conformance.hpp"

#include "rmem/base/link_kind.hpp"
#include "tests/support/sanitizers.hpp"

#include <algorithm>
#include <string_view>

namespace rmem::test {

namespace {

std::string label(int peer, std::size_t size, std::uint64_t seed) {
    return fmt::format("rank {}, {} bytes, seed {}", peer, size, seed);
}

}  // namespace

std::vector<Variant> variants() {
    std::vector<Variant> all = {{"direct_inline", "direct", "none", "inline", 1},
                                {"direct_paper", "direct", "none", "paper", 1},
                                {"ring_inline", "ring", "none", "inline", 4},
                                {"ring_paper", "ring", "none", "paper", 4},
                                {"udp_inline", "udp", "none", "inline", 8},
                                {"udp_paper", "udp", "none", "paper", 8},
                                {"fabric_inline", "fabric", "none", "inline", 8},
                                {"sim_inline", "sim", "none", "inline", 4},
                                {"sim_paper", "sim", "none", "paper", 4}};
    if (kSanitized) return all;  // a card's timing changes when words come, not what code runs
    constexpr const char* kCard = "scramnet-burst-plus-1k";
    all.push_back({"scramnet_inline", "ring", kCard, "inline", 20});
    all.push_back({"scramnet_paper", "ring", kCard, "paper", 20});
    all.push_back({"sim_scramnet_inline", "sim", kCard, "inline", 20});
    all.push_back({"sim_scramnet_paper", "sim", kCard, "paper", 20});
    return all;
}

std::vector<Variant> variants_and_loss() {
    std::vector<Variant> all = variants();
    constexpr const char* kLoss = "seed=1; drop:share=5%";
    all.push_back({"udp_5_percent_loss_inline", "udp", "none", "inline", 8, kLoss});
    all.push_back({"udp_5_percent_loss_paper", "udp", "none", "paper", 8, kLoss});
    return all;
}

std::string variant_name(const ::testing::TestParamInfo<Variant>& info) {
    return info.param.name;
}

RingSetup Conformance::setup(unsigned ranks) {
    RingSetup setup;
    setup.ranks = ranks;
    setup.link = GetParam().link;
    setup.timing = GetParam().timing;
    setup.layout = GetParam().layout;
    setup.partition = kPartition;
    if (*GetParam().faults != '\0') setup.extra["RMEM_FAULTS"] = GetParam().faults;
    return setup;
}

unsigned Conformance::many(unsigned ranks) {
    return is_remote(parse_link(GetParam().link)) ? std::min(ranks, 8U) : ranks;
}

void Conformance::run(unsigned ranks, const Body& body) {
    run_members(setup(ranks), body);
}

void Conformance::run(std::initializer_list<Body> bodies, const End& end) {
    RankProcesses ring(setup(static_cast<unsigned>(bodies.size())));
    unsigned rank = 0;
    for (const Body& body : bodies) ring.start(rank++, body);
    if (end.posted == 0) ring.await_all_joined();
    ring.await_word(0, end.posted);
    if (end.waits) ring.let_pass(std::chrono::milliseconds(20));
    if (end.is_killed) ring.kill(end.rank);
    if (!end.is_killed) ring.wait(end.rank);
    if (end.next) ring.start(end.rank, end.next);
    if (!end.next) ++ring.shared()[1];
    ring.finish();
}

bool Conformance::is_simulated() {
    return std::string_view(GetParam().link) == "sim";
}

int Conformance::thrifty(int loops) {
    return std::max(loops / static_cast<int>(GetParam().thrift), 1);
}

void send(int dest, std::size_t size, std::uint64_t seed, Place place) {
    const auto bytes = pattern(size, seed);
    check_code(bbp_send(dest, bytes.data(), size), BBP_OK, "bbp_send to " + label(dest, size, seed),
               place);
}

void multicast(const std::vector<int>& dests, std::size_t size, std::uint64_t seed, Place place) {
    const auto bytes = pattern(size, seed);
    check_code(bbp_mcast(dests.data(), static_cast<int>(dests.size()), bytes.data(), size), BBP_OK,
               fmt::format("bbp_mcast to {} ranks, {} bytes, seed {}", dests.size(), size, seed),
               place);
}

int try_send(int dest, std::size_t size, std::uint64_t seed, Place place) {
    const auto bytes = pattern(size, seed);
    const int code = bbp_trysend(dest, bytes.data(), size);
    if (code != BBP_EAGAIN) {
        check_code(code, BBP_OK, "bbp_trysend to " + label(dest, size, seed), place);
    }
    return code;
}

int send_until_full(int dest, std::size_t size, std::uint64_t first, int limit, Place place) {
    // A link that is busy for the moment says BBP_EAGAIN too: full is what stays full.
    for (int sent = 0; sent < limit; ++sent) {
        const auto bytes = pattern(size, first + static_cast<std::uint64_t>(sent));
        const int code = bbp_send_for(dest, bytes.data(), size, 100 * kMillisecond);
        if (code == BBP_ETIMEDOUT) return sent;
        check_code(code, BBP_OK, "bbp_send_for to " + label(dest, size, first), place);
    }
    fail(fmt::format("{} messages of {} bytes were taken, though nobody read", limit, size), place);
}

int receive(int source, std::size_t size, std::uint64_t seed, Place place) {
    // Room to spare, so that a message that is too long shows as such.
    std::vector<std::byte> buffer(size + 64);
    std::size_t found = ~std::size_t{0};
    const int sender = bbp_recv(source, buffer.data(), buffer.size(), &found);
    if (source == BBP_ANY) {
        if (sender < 0) check_code(sender, 0, "bbp_recv of anyone", place);
    } else {
        check_code(sender, source, "bbp_recv from " + label(source, size, seed), place);
    }
    check_equal(found, size, "size of the message from " + label(sender, size, seed), place);
    check_bytes(buffer.data(), size, seed, place);
    return sender;
}

void receive_what_both_posted(Rank& me, std::size_t size, std::uint64_t posted, std::size_t words,
                              Place place) {
    const int other = 1 - me.rank;
    me.shared[words + static_cast<std::size_t>(me.rank)] = static_cast<std::uint32_t>(posted);
    me.raise(words + 2);
    me.await_word(words + 2, 2, place);
    const std::uint64_t theirs = me.shared[words + static_cast<std::size_t>(other)];
    for (std::uint64_t i = 0; i < theirs; ++i) receive(other, size, i, place);
    nothing_waits(BBP_ANY, place);
}

void nothing_waits(int source, Place place) {
    // The others may have left by now, which is no message either.
    const auto is_nothing = [](int code) { return code == BBP_EAGAIN || code == BBP_EPEER; };
    std::byte buffer[256];
    std::size_t size = 0;
    const int available = bbp_msgavail(source);
    check(available == 0 || available == BBP_EPEER, "bbp_msgavail: " + code_name(available), place);
    const int probed = bbp_probe(source, &size);
    check(is_nothing(probed), "bbp_probe: " + code_name(probed), place);
    const int received = bbp_tryrecv(source, buffer, sizeof buffer, &size);
    check(is_nothing(received), "bbp_tryrecv: " + code_name(received), place);
}

void check_bytes(const void* found, std::size_t size, std::uint64_t seed, Place place) {
    passing(place);
    const std::span bytes(static_cast<const std::byte*>(found), size);
    const std::size_t at = first_difference(bytes, seed);
    if (at != size) {
        fail(fmt::format("message of seed {}, {} bytes: byte {} is not what was sent", seed, size,
                         at),
             place);
    }
}

int drain_until_error(int source, Place place) {
    std::vector<std::byte> buffer(8 * kPartition);
    int code = BBP_EAGAIN;
    await(
        [&] {
            code = bbp_tryrecv(source, buffer.data(), buffer.size(), nullptr);
            return code < 0 && code != BBP_EAGAIN;
        },
        "bbp_tryrecv to fail", place);
    return code;
}

std::vector<int> everyone_but(int except, int ranks) {
    std::vector<int> list;
    for (int rank = 0; rank < ranks; ++rank) {
        if (rank != except) list.push_back(rank);
    }
    return list;
}

}  // namespace rmem::test
