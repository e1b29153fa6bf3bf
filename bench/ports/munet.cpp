// SPDX-License-Identifier: Apache-2.0

/// MU-Net measured: a message through the daemon beside a bare relay over two cache lines, the cost
/// of mu_send_DMA for its caller, and the anatomy of a message as in the paper's Table 2.
///
///     munet-bench                    everything
///     munet-bench --rounds 500       for longer
///     munet-bench --json             for programs
///
/// Method. Floor and ours are taken in turn, batch by batch, in the same processes between the same
/// processors; medians. *Two ends on one processor*: one process has the sending and the receiving
/// endpoint and polls; daemon (or bare relay) is another process on another processor. So each
/// message makes its two hops between processors, and none of the three has to share one. *Three
/// processes*: sender, receiver and daemon each a process of its own, all yielding between polls,
/// floor and ours alike; with two processors these are figures of the scheduler more than of
/// anything else.
/// Anatomy: two nodes on a ring of link direct; both relays are run by one thread, both programs by
/// another. Each row is measured in rounds of its own, in which nothing else looks at a clock, so
/// that the rows do not pay for each other.

#include "ports/munet/munet.h"
#include "bench/ports/progress.hpp"
#include "bench/ports/rounds.hpp"
#include "billboard/endpoint.hpp"
#include "billboard/environment.hpp"
#include "ports/munet/daemon.hpp"
#include "ports/munet/network.hpp"
#include "ports/munet/program.hpp"
#include "ports/munet/relay.hpp"
#include "rmem/base/clock.hpp"
#include "rmem/ring/waiting.hpp"
#include "tools/measure/floor.hpp"

#include <fmt/format.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace ports::munet;

struct Plan {
    unsigned rounds = 200, batch = 1000;
};

constexpr double kMostOfRelay = 1.3, kMostOfCopy = 1.2;  // what is asked for
constexpr double kPaperRatio = 22.5 / 19.5;              ///< of 4 endpoints to 1

/// To the first or the second of the processors that there are before anybody is pinned: a process
/// inherits its parent's.
void pin(unsigned number) {
    static const std::array processors{bench::processor_of({}, 0), bench::processor_of({}, 1)};
    bench::pin_to(processors.at(number));
}

[[noreturn]] void end(const std::string& why) {
    fmt::print(stderr, "munet-bench: {}\n", why);
    std::exit(1);  // NOLINT(concurrency-mt-unsafe): nobody else cleans up
}
void check(int result) {
    if (result < 0) end(mu_last_error());
}

// ---- A bare relay

struct alignas(64) Line {
    std::atomic<std::uint64_t> word{0};
};
constexpr std::size_t kLongBytes = 65536;

enum Mode : std::uint32_t { kFloor, kOurs };
struct Shared {
    Line there, arrived, back, returned;
    alignas(64) std::atomic<std::uint32_t> mode{kFloor};
    alignas(64) std::atomic<std::uint32_t> seen{kOurs};  ///< mode that the relay is in
    alignas(64) std::atomic<std::uint32_t> ready{0}, peer{0};
    Line asked, read;  ///< a copy that the relay is to read, counting on from 1
    std::array<std::array<char, kLongBytes>, 4> copies;
};

/// Copies one line to another.
struct Mover {
    Line& from;
    Line& to;
    std::uint64_t last = 0;
    bool move() {
        // (1) pairs with (3): the bare relay's message; (2) pairs with (4)
        const std::uint64_t word = from.word.load(std::memory_order_acquire);
        if (word == last) return false;
        last = word;
        to.word.store(word, std::memory_order_release);
        return true;
    }
};
void put(Line& line, std::uint64_t word) {
    line.word.store(word, std::memory_order_release);  // (3) pairs with (1)
}
void await(Line& line, std::uint64_t word, bool yields) {
    while (line.word.load(std::memory_order_acquire) != word) {  // (4) pairs with (2)
        if (yields) {
            ::sched_yield();
        } else {
            rmem::cpu_relax();
        }
    }
}

/// The shared words, and a process that is bare relay and daemon by turns.
class Stage1 {
public:
    explicit Stage1(bool crowded)
        : path_("/tmp/munet-bench-" + std::to_string(::getpid()) + ".sock") {
        ::unlink(path_.c_str());
        ::setenv("RMEM_MUNET", path_.c_str(), 1);  // NOLINT(concurrency-mt-unsafe): one thread
        relay_ = std::make_unique<bench::Companion>([this, crowded] { relay(crowded); });
        while (shared->ready == 0) ::sched_yield();
    }
    ~Stage1() {
        relay_.reset();
        ::unlink(path_.c_str());
    }
    Stage1(const Stage1&) = delete;
    Stage1& operator=(const Stage1&) = delete;

    void enter(Mode mode) const {
        shared->mode = mode;
        while (shared->seen != mode) ::sched_yield();
    }

    const bench::Common<Shared> shared;

private:
    void relay(bool crowded) {
        if (!crowded) pin(1);
        DaemonConfig config;
        config.driver.path = path_;
        config.spin = !crowded;
        Daemon daemon(config, nullptr);
        Mover there{shared->there, shared->arrived}, back{shared->back, shared->returned};
        std::vector<char> mine(kLongBytes);
        shared->ready = 1;
        while (true) {
            const std::uint32_t mode = shared->mode;
            shared->seen = mode;
            if (mode == kOurs) {
                daemon.run_for(0);
                continue;
            }
            for (unsigned i = 0; i < 1000; ++i) {
                if (const std::uint64_t copy = shared->asked.word; copy != shared->read.word) {
                    std::memcpy(mine.data(), shared->copies[copy % 4].data(), kLongBytes);
                    shared->read.word = copy;
                }
                // Two ends on one processor use one direction alone.
                const bool moved = there.move() || (crowded && back.move());
                if (moved) continue;
                if (crowded) {
                    ::sched_yield();
                } else {
                    rmem::cpu_relax();
                }
            }
        }
    }

    std::string path_;
    std::unique_ptr<bench::Companion> relay_;
};

/// A row of ratios, taken round by round; `asked`, if not 0, is their upper limit.
void add_ratio(bench::Table& table, const std::string& name, double asked,
               std::vector<double> floor, std::vector<double> ours) {
    const bench::Spread ratio = bench::spread_of(bench::quotients(ours, floor));
    bench::Row row = {{"message", name},
                      {"floor_ns", bench::median(std::move(floor))},
                      {"ours_ns", bench::median(std::move(ours))}};
    put(row, "ratio", ratio);
    row["asked"] = asked == 0 ? bench::Row() : bench::Row(asked);
    row["met"] = asked == 0 ? bench::Row() : bench::Row(ratio.p50 <= asked);
    table.add(std::move(row));
}

/// mu_send of 8 bytes, with `further` further endpoints open that nobody uses.
void two_ends(const Plan& plan, unsigned further, bench::Table& table) {
    const Stage1 stage(false);
    pin(0);
    stage.enter(kOurs);
    mu_endpoint_t *a = nullptr, *b = nullptr;
    check(mu_create_endpoint(&a, 4096, 65536));
    check(mu_create_endpoint(&b, 4096, 65536));
    std::vector<mu_endpoint_t*> others(further);
    for (auto& ep : others) check(mu_create_endpoint(&ep, 0, 65536));
    mu_addr_t to{};
    check(mu_address(b, &to));
    std::uint64_t number = 0;
    const auto message = [&] {
        ++number;
        check(mu_send(a, to, &number, sizeof number));
        std::uint64_t found = 0;
        while (mu_recv(b, &found, sizeof found, nullptr) == -EAGAIN) rmem::cpu_relax();
        if (found != number) end("a message came out of order");
    };
    std::uint64_t thrown = 0;
    const auto bounce = [&] {
        put(stage.shared->there, ++thrown);
        await(stage.shared->arrived, thrown, false);
    };
    std::vector<double> floor, ours;
    for (unsigned round = 0; round < plan.rounds; ++round) {
        const auto batch = [&](const auto& one) {
            bench::time_of(plan.batch / 10, one);
            return bench::time_of(plan.batch, one) / plan.batch;
        };
        stage.enter(kFloor);
        floor.push_back(batch(bounce));
        stage.enter(kOurs);
        ours.push_back(batch(message));
    }
    const std::string name = further == 0
                                 ? "8 B, two ends on one processor"
                                 : fmt::format("8 B, and {} further endpoints, idle", further);
    add_ratio(table, name, further == 0 ? kMostOfRelay : 0, floor, ours);
    for (auto* ep : others) mu_destroy_endpoint(ep);
    mu_destroy_endpoint(a);
    mu_destroy_endpoint(b);
}

void three_processes(const Plan& plan, bench::Table& table) {
    const Stage1 stage(true);
    Shared& shared = *stage.shared;
    stage.enter(kOurs);
    const auto number_of = [](mu_endpoint_t* ep) {
        std::uint64_t found = 0;
        while (mu_recv(ep, &found, sizeof found, nullptr) == -EAGAIN) ::sched_yield();
        return found;
    };
    const bench::Companion echo([&] {
        mu_endpoint_t* ep = nullptr;
        mu_addr_t own{}, from{};
        check(mu_create_endpoint(&ep, 4096, 65536));
        check(mu_address(ep, &own));
        shared.peer = 1U + own.ep;
        for (std::uint64_t next = 1;;) {
            if (shared.arrived.word == next) {
                put(shared.back, next++);
                continue;
            }
            std::uint64_t found = 0;
            if (mu_recv(ep, &found, sizeof found, &from) == -EAGAIN) {
                ::sched_yield();
            } else {
                check(mu_send(ep, from, &found, sizeof found));
            }
        }
    });
    while (shared.peer == 0) ::sched_yield();
    mu_endpoint_t* ep = nullptr;
    check(mu_create_endpoint(&ep, 4096, 65536));
    const mu_addr_t to{0, static_cast<unsigned char>(shared.peer - 1)};
    std::vector<double> floor, ours;
    std::uint64_t thrown = 0, number = 0;
    const unsigned batch = plan.batch / 10;
    for (unsigned round = 0; round < plan.rounds / 4; ++round) {
        stage.enter(kFloor);
        floor.push_back(bench::time_of(batch,
                                       [&] {
                                           put(shared.there, ++thrown);
                                           await(shared.returned, thrown, true);
                                       }) /
                        batch / 2);
        stage.enter(kOurs);
        ours.push_back(bench::time_of(batch,
                                      [&] {
                                          ++number;
                                          check(mu_send(ep, to, &number, sizeof number));
                                          if (number_of(ep) != number) end("out of order");
                                      }) /
                       batch / 2);
    }
    add_ratio(table, "8 B, three processes that yield", 0, floor, ours);
    mu_destroy_endpoint(ep);
}

void dma(const Plan& plan, bench::Table& table) {
    const Stage1 stage(false);
    pin(0);
    stage.enter(kOurs);
    mu_endpoint_t *a = nullptr, *b = nullptr;
    check(mu_create_endpoint(&a, 4 * kLongBytes, std::size_t{4} << 20));
    check(mu_create_endpoint(&b, 4096, std::size_t{4} << 20));
    mu_addr_t to{};
    check(mu_address(b, &to));
    std::vector<char> text(kLongBytes, 'x'), found(kLongBytes);
    std::vector<double> memcpys, calls;
    Shared& shared = *stage.shared;
    for (std::uint64_t i = 1; i <= plan.rounds * 10; ++i) {
        // A copy as the call makes it: into memory that another processor has read since it was
        // written.
        stage.enter(kFloor);
        memcpys.push_back(bench::time_of(
            1, [&] { std::memcpy(shared.copies[i % 4].data(), text.data(), kLongBytes); }));
        shared.asked.word = i;
        while (shared.read.word != i) rmem::cpu_relax();
        stage.enter(kOurs);
        calls.push_back(
            bench::time_of(1, [&] { check(mu_send_DMA(a, to, text.data(), kLongBytes)); }));
        while (mu_recv(b, found.data(), kLongBytes, nullptr) == -EAGAIN) rmem::cpu_relax();
    }
    add_ratio(table, "mu_send_DMA of 64 KiB, the call", kMostOfCopy, memcpys, calls);
    mu_destroy_endpoint(a);
    mu_destroy_endpoint(b);
}

// ---- Anatomy

std::int64_t ticks() noexcept {
#if defined(__x86_64__)
    return static_cast<std::int64_t>(__builtin_ia32_rdtsc());
#else
    return rmem::now_ns();
#endif
}
double ns_per_tick() {
    const std::int64_t t0 = ticks(), n0 = rmem::now_ns();
    while (rmem::now_ns() - n0 < 20'000'000) {
    }
    return static_cast<double>(rmem::now_ns() - n0) / static_cast<double>(ticks() - t0);
}

/// Notes when one stage is passed first since it was cleared.
class Stamp final : public Trace {
public:
    void passes(Stage stage) noexcept override {
        // relaxed is enough, thrice: the message's own way orders them
        if (static_cast<int>(stage) != watched.load(std::memory_order_relaxed)) return;
        if (at.load(std::memory_order_relaxed) == 0) at.store(ticks(), std::memory_order_relaxed);
    }
    alignas(64) std::atomic<int> watched{-1};
    alignas(64) std::atomic<std::int64_t> at{0};
};

class Polling final : public Surroundings {
public:
    void ring() noexcept override {}
    void begin_wait() noexcept override {}
    int pause(rmem::Deadline) override {
        rmem::cpu_relax();
        return 0;
    }
    void end_wait() noexcept override {}
};

/// A node of the two: relay and network, run by the relays' thread.
class Node final : public Edge {
public:
    Node(std::shared_ptr<rmem::Ring> ring, unsigned node, Trace* trace)
        : endpoint_(billboard::Endpoint::open(std::move(ring), {node, node}, settings(),
                                              rmem::Deadline::in(5'000'000'000))),
          network_(*endpoint_, 2),
          relay({.node = node, .nodes = 2, .chunk = network_.chunk()}, *this) {
        relay.trace(trace);
    }
    static billboard::Settings settings() {
        billboard::Settings s = billboard::Settings::read();
        s.awaits_others = false;
        return s;
    }
    bool turn() {
        const bool moved = network_.deliver_to(relay);
        return relay.turn() || moved;
    }
    Sent send(unsigned node, std::span<const std::byte> head,
              std::span<const std::byte> data) override {
        return network_.send(node, head, data);
    }
    void wake(unsigned) noexcept override {}

private:
    std::unique_ptr<billboard::Endpoint> endpoint_;
    Network network_;

public:
    Relay relay;
};

struct Host {
    Host(Node& node, unsigned number, const Geometry& g, unsigned endpoints) {
        for (unsigned i = 0; i < endpoints; ++i) {
            auto* at = static_cast<std::byte*>(::mmap(nullptr, g.bytes(), PROT_READ | PROT_WRITE,
                                                      MAP_SHARED | MAP_ANONYMOUS, -1, 0));
            const std::span memory(at, g.bytes());
            counters.push_back(std::make_unique<rmem::Counters>());
            node.relay.open(memory, g, 0, {counters.back().get(), 1});
            programs.push_back(std::make_unique<Program>(
                memory, g,
                Address{static_cast<std::uint16_t>(number), static_cast<std::uint8_t>(i)},
                polling));
        }
    }
    Polling polling;
    std::vector<std::unique_ptr<rmem::Counters>> counters;
    std::vector<std::unique_ptr<Program>> programs;
};

constexpr std::array<const char*, 6> kRows = {"Detected in send queue", "Header sent on network",
                                              "Data sent on network",   "Data at the other node",
                                              "Message in host memory", "Message received by host"};

/// Each row's time since the call of send, ns: medians.
std::array<double, kRows.size()> anatomy_of(std::size_t bytes, unsigned endpoints, unsigned count,
                                            double ns) {
    rmem::RingConfig config;
    config.name = "munet-bench-" + std::to_string(::getpid());
    config.nodes = config.ranks = 2;
    const billboard::Settings settings = Node::settings();
    const billboard::Geometry board(config, settings.board);
    config.system_bytes = board.region_bytes();
    config.system_hash = board.hash();
    const auto ring = rmem::Ring::open(config, rmem::Deadline::in(5'000'000'000));
    Stamp stamp;
    Node near(ring, 0, &stamp), far(ring, 1, &stamp);
    const Geometry g{.send_bytes = 65536, .receive_lines = 4096, .senders = 4};
    Host a(near, 0, g, endpoints), b(far, 1, g, endpoints);
    std::atomic<bool> stop{false};
    std::thread relays([&] {
        pin(1);
        // relaxed is enough: nothing else is told by it
        while (!stop.load(std::memory_order_relaxed)) {
            for (unsigned i = 0; i < 256; ++i) {
                const bool moved = near.turn();
                if (!far.turn() && !moved) rmem::cpu_relax();
            }
        }
    });
    std::vector<char> text(bytes, 'x'), found(bytes);
    std::array<double, kRows.size()> rows{};
    for (std::size_t row = 0; row < kRows.size(); ++row) {
        std::vector<double> times;
        // relaxed is enough, always: the message's own way orders the stamps
        stamp.watched.store(static_cast<int>(row), std::memory_order_relaxed);
        for (unsigned i = 0; i < count; ++i) {
            stamp.at.store(0, std::memory_order_relaxed);
            const std::int64_t start = ticks();
            static_cast<void>(
                a.programs[0]->send_dma({1, 0}, text.data(), bytes, rmem::Deadline::never()));
            while (b.programs[0]->recv(found.data(), bytes, nullptr) < 0) rmem::cpu_relax();
            const std::int64_t received = ticks();
            const std::int64_t at =
                row + 1 == kRows.size() ? received : stamp.at.load(std::memory_order_relaxed);
            if (i >= count / 10) times.push_back(static_cast<double>(at - start) * ns);
        }
        rows[row] = bench::median(std::move(times));
    }
    stop.store(true, std::memory_order_relaxed);  // relaxed is enough, as above
    relays.join();
    return rows;
}

bench::Table anatomy(const Plan& plan, bench::Progress& progress) {
    pin(0);
    struct Column {
        std::size_t bytes;
        unsigned endpoints;
        std::array<double, kRows.size()> rows;
    };
    std::vector<Column> columns = {{8, 1, {}}, {8, 2, {}},    {8, 4, {}},
                                   {8, 8, {}}, {1024, 1, {}}, {4096, 1, {}}};
    const double ns = ns_per_tick();
    for (auto& column : columns) {
        progress.tell(fmt::format("anatomy of {} bytes", column.bytes));
        column.rows = anatomy_of(column.bytes, column.endpoints, plan.rounds * 20, ns);
    }
    const double ratio = columns[2].rows.back() / columns[0].rows.back();
    bench::Table table(
        "munet-anatomy",
        fmt::format("ns since the call, link direct, as in the paper's Table 2. 4 endpoints to 1: "
                    "{:.2f} (paper: 22.5 to 19.5 us, {:.2f}).\n",
                    ratio, kPaperRatio));
    for (std::size_t row = 0; row < kRows.size(); ++row) {
        bench::Row line = {{"step", kRows[row]}};
        for (const auto& column : columns)
            line[fmt::format("{} B, {} ep", column.bytes, column.endpoints)] = column.rows[row];
        table.add(std::move(line));
    }
    table.add({{"step", "received, 4 endpoints to 1"},
               {"ratio", ratio},
               {"asked", kPaperRatio},
               {"met", ratio <= kPaperRatio}});
    return table;
}

bench::Table ratios(const Plan& plan, bench::Progress& progress) {
    bench::Table table("munet",
                       "Medians of rounds. floor: a bare relay over two cache lines; of "
                       "mu_send_DMA a memcpy to where another processor has read.\n");
    for (const unsigned further : {0U, 2U, 6U, 14U}) {
        progress.tell(fmt::format("two ends, {} further endpoints", further));
        two_ends(plan, further, table);
    }
    progress.tell("three processes");
    three_processes(plan, table);
    progress.tell("mu_send_DMA");
    dma(plan, table);
    return table;
}

}  // namespace

int main(int argc, char** argv) {
    Plan plan;
    CLI::App app("Measures MU-Net beside a bare relay, and the anatomy of its messages.");
    app.add_option("--rounds", plan.rounds, "Rounds of floor and ours in turn")
        ->check(CLI::Range(8U, 100'000U))
        ->capture_default_str();
    app.add_option("--batch", plan.batch, "Messages in each half of a round")
        ->check(CLI::Range(20U, 1'000'000U))
        ->capture_default_str();
    bool json = false;
    app.add_flag("--json", json, "A line of JSON for each row");
    CLI11_PARSE(app, argc, argv);
    bench::Progress progress("munet-bench");
    const bench::Table all[] = {ratios(plan, progress), anatomy(plan, progress)};
    for (const bench::Table& table : all) table.print(json);
    return 0;
}
