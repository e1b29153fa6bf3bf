// SPDX-License-Identifier: Apache-2.0
// The cost of a store for its writer, and a word's time on the way.
#include "tools/measure/floor.hpp"
#include "tools/measure/memory_case.hpp"

#include "rmem/base/clock.hpp"
#include "rmem/base/time.hpp"
#include "rmem/wire/model.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <condition_variable>
#include <functional>
#include <mutex>

namespace tools {

namespace {

using rmem::Deadline;
using rmem::now_ns;

constexpr std::int64_t kSettleNs = 3'000'000;  // until a waiter sleeps or spins for good
constexpr std::size_t kStoresInBatch = 64;
constexpr in_addr_t kGroup = 0xefff4d4d;  // 239.255.77.77

std::uint32_t plain(const std::byte* bank, std::size_t offset) {
    return *reinterpret_cast<const volatile std::uint32_t*>(bank + offset);
}

// ---- The cost of a store

/// The other node's program while node 0 stores into kPing.
struct Other {
    const char* name;
    void (*run)(Case&);
};

void is_away(Case&) {}

void loads_elsewhere(Case& it) {
    const std::byte* bank = it.node.bank();
    while (plain(bank, kEnd) == 0) {
    }
}

void polls_elsewhere(Case& it) {
    while (it.node.load(kEnd) == 0) {
    }
}

void waits_elsewhere(Case& it) {
    while (it.node.wait_change(kEnd, 0, Deadline::in(kPatienceNs)) == 0) {
    }
}

void waits_here(Case& it) {
    std::uint32_t seen = 0;
    while (it.node.load(kEnd) == 0) {
        seen = it.node.wait_change(kPing, seen, Deadline::in(kPatienceNs / 100));
    }
}

void watches(Case& it) {
    it.node.watch(kPing, 4);
    while (it.node.load(kEnd) == 0) it.node.next_interrupt(Deadline::in(kPatienceNs / 100));
}

constexpr Other kOthers[] = {
    {"the other does nothing", is_away},
    {"the other loads another word plainly", loads_elsewhere},
    {"the other polls another word by load", polls_elsewhere},
    {"the other is in wait_change for another word", waits_elsewhere},
    {"the other is in wait_change for this word", waits_here},
    {"the other takes interrupts of this word", watches},
};

/// A batch of stores that nothing holds up, then a flush that is not timed.
void store(Case& it, const char* name) {
    sleep_ns(kSettleNs);
    Sampling ours(it.plan), floor(it.plan);
    std::uint32_t value = 0;
    std::atomic<std::uint32_t>& other = it.shared.other;
    while (ours.goes_on()) {
        // relaxed is enough: the store's cost is what is asked for
        floor.add(time_of(kStoresInBatch, [&] { other.store(1, std::memory_order_relaxed); }) /
                  kStoresInBatch);
        ours.add(time_of(kStoresInBatch, [&] { it.put(kPing, ++value); }) / kStoresInBatch);
        it.flush();
    }
    it.put(kEnd, 1);
    it.results.put(fmt::format("store: {}", name), ours.values());
    it.results.put("store: floor, a plain store", floor.values());
}

// ---- A word to and fro

/// Waits until the word has this value; it has not had it before.
using Way = std::function<void(std::uint32_t value)>;

Way by_plain_loads(Case& it, std::size_t word) {
    return [bank = it.node.bank(), word](std::uint32_t value) {
        while (plain(bank, word) != value) {
        }
    };
}

Way by_load(Case& it, std::size_t word) {
    return [&it, word](std::uint32_t value) {
        while (it.node.load(word) != value) {
        }
    };
}

Way by_wait_change(Case& it, std::size_t word) {
    return [&it, word, seen = std::uint32_t{0}](std::uint32_t value) mutable {
        while (seen != value) seen = it.node.wait_change(word, seen, Deadline::in(kPatienceNs));
    };
}

enum class How { looks, blocks, descriptor };

/// `next_interrupt` in a loop of looks, or waiting in it, or after poll() of the descriptor.
template <How how>
Way by_interrupt(Case& it, std::size_t word) {
    it.node.watch(word, 4);
    return [&it, fd = how == How::descriptor ? it.node.interrupt_fd() : -1](std::uint32_t value) {
        for (;;) {
            if (how == How::descriptor) {
                pollfd ready{fd, POLLIN, 0};
                ::poll(&ready, 1, static_cast<int>(kPatienceNs / 1'000'000));
            }
            const Deadline deadline =
                how == How::blocks ? Deadline::in(kPatienceNs) : Deadline::now();
            while (const auto interrupt = it.node.next_interrupt(deadline)) {
                if (interrupt->value == value) return;
            }
        }
    };
}

struct NamedWay {
    const char* name;
    Way (*make)(Case& it, std::size_t word);
};

constexpr NamedWay kWays[] = {
    {"plain loads", by_plain_loads},
    {"load", by_load},
    {"wait_change", by_wait_change},
};

constexpr NamedWay kInterruptWays[] = {
    {"next_interrupt, spinning", by_interrupt<How::looks>},
    {"next_interrupt, waiting", by_interrupt<How::blocks>},
    {"interrupt_fd and poll", by_interrupt<How::descriptor>},
};

/// Node 0 sends a number, node 1 sends it back.
void to_and_fro(Case& it, const std::string& series, const NamedWay& named) {
    const Way await = named.make(it, it.me == 0 ? kPong : kPing);
    it.meeting.meet();  // both watch
    const std::atomic<std::int64_t>& last = it.shared.counts[0];
    if (it.me == 1) {
        for (std::uint32_t value = 1;; ++value) {
            await(value);
            it.put(kPong, value);
            // relaxed is enough: the word that comes after it orders it
            if (last.load(std::memory_order_relaxed) == value) return;
        }
    }
    Sampling samples(it.plan);
    for (std::uint32_t value = 1;; ++value) {
        const bool is_last = !samples.goes_on();
        // relaxed is enough: the word that comes after it orders it
        if (is_last) it.shared.counts[0].store(value, std::memory_order_relaxed);
        const std::int64_t start = now_ns();
        it.put(kPing, value);
        await(value);
        if (is_last) break;
        samples.add(static_cast<double>(now_ns() - start) / 2);
    }
    it.results.put(series, samples.values());
}

/// The answer is written by the callback; the program's own thread does nothing.
void by_callback(Case& it, const std::string& series) {
    std::mutex mutex;
    std::condition_variable over;
    bool is_over = false;
    Sampling samples(it.plan);
    std::uint32_t value = 0;
    std::int64_t start = 0;
    const auto end = [&] {
        const std::lock_guard lock(mutex);
        is_over = true;
        over.notify_one();
    };
    const auto answer = [&](const rmem::Interrupt& interrupt) {
        if (it.me == 1) {
            it.put(kPong, interrupt.value);
            if (interrupt.value == kOver) end();
            return;
        }
        if (interrupt.value == kOver) return end();
        samples.add(static_cast<double>(now_ns() - start) / 2);
        value = samples.goes_on() ? value + 1 : kOver;
        start = now_ns();
        it.put(kPing, value);
    };
    it.node.watch(it.me == 0 ? kPong : kPing, 4);
    it.node.on_interrupt(answer);
    it.meeting.meet();
    if (it.me == 0) {
        start = now_ns();
        it.put(kPing, ++value);
    }
    {
        std::unique_lock lock(mutex);
        over.wait(lock, [&] { return is_over; });
    }
    it.node.on_interrupt({});
    if (it.me == 0) it.results.put(series, samples.values());
}

// ---- Floors

void line_to_and_fro(Case& it, const std::string& series) {
    Floor floor(reinterpret_cast<std::byte*>(&it.shared.line), it.me);
    constexpr std::size_t kBounces = 2'000;
    std::vector<double> hops;
    for (std::size_t i = 0; i < kBounces; ++i)
        hops.push_back(time_of(1, [&] { floor.bounce(); }) / 2);
    if (it.me == 0) it.results.put(series, hops);
}

void futex_to_and_fro(Case& it, const std::string& series) {
    std::atomic<std::uint32_t>& word = it.shared.line;
    constexpr std::uint32_t kBounces = 1'000;
    std::vector<double> hops;
    for (std::uint32_t i = 0; i < kBounces; ++i) {
        const std::int64_t start = now_ns();
        for (std::uint32_t side = 0; side < 2; ++side) {
            const std::uint32_t turn = 2 * i + side;
            if (side == it.me) {
                // (1) - this release-store synchronizes-with the acquire-load (2)
                word.store(turn + 1, std::memory_order_release);
                futex_wake(&word);
            } else {
                // (2) - this acquire-load synchronizes-with the release-store (1)
                while (word.load(std::memory_order_acquire) != turn + 1) futex_wait(&word, turn);
            }
        }
        hops.push_back(static_cast<double>(now_ns() - start) / 2);
    }
    if (it.me == 0) it.results.put(series, hops);
}

/// A datagram of a word; `waits`: in the kernel, or looking.
void datagram_to_and_fro(Case& it, const std::string& series, bool waits) {
    const int own = datagram_socket(it);
    std::uint32_t word = 0;
    const auto receive = [&] {
        while (::recv(own, &word, sizeof word, waits ? 0 : MSG_DONTWAIT) < 0) {
        }
    };
    constexpr std::size_t kBounces = 2'000;
    std::vector<double> hops;
    for (std::size_t i = 0; i < kBounces; ++i) {
        const std::int64_t start = now_ns();
        if (it.me == 1) receive();
        ::send(own, &word, sizeof word, 0);
        if (it.me == 0) receive();
        hops.push_back(static_cast<double>(now_ns() - start) / 2);
    }
    ::close(own);
    if (it.me == 0) it.results.put(series, hops);
}

/// A socket of this process in a multicast group that all of the case are in, on this host, and the
/// group's address.
struct Member {
    int socket;
    sockaddr_in group;
};
Member multicast_socket(Case& it) {
    const int own = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    const int on = 1, hops = 0;
    ::setsockopt(own, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    const ip_mreq group{{htonl(kGroup)}, {htonl(INADDR_LOOPBACK)}};
    auto& port = it.shared.counts[0];
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr = group.imr_multiaddr;
    socklen_t length = sizeof address;
    if (it.me == 0) {
        ::bind(own, reinterpret_cast<sockaddr*>(&address), sizeof address);
        ::getsockname(own, reinterpret_cast<sockaddr*>(&address), &length);
        port.store(address.sin_port, std::memory_order_relaxed);  // relaxed is enough: meet()
    }
    it.meeting.meet();
    // relaxed is enough: meet()
    address.sin_port = static_cast<in_port_t>(port.load(std::memory_order_relaxed));
    if (it.me != 0) ::bind(own, reinterpret_cast<sockaddr*>(&address), sizeof address);
    ::setsockopt(own, IPPROTO_IP, IP_ADD_MEMBERSHIP, &group, sizeof group);
    ::setsockopt(own, IPPROTO_IP, IP_MULTICAST_IF, &group.imr_interface,
                 sizeof group.imr_interface);
    ::setsockopt(own, IPPROTO_IP, IP_MULTICAST_TTL, &hops, sizeof hops);
    const timeval longest{.tv_sec = 0, .tv_usec = 50'000};
    ::setsockopt(own, SOL_SOCKET, SO_RCVTIMEO, &longest, sizeof longest);
    it.meeting.meet();
    return {own, address};
}

/// A datagram of a word to all, between two that look; all others wait for each in the kernel.
void multicast_to_and_fro(Case& it, const std::string& series) {
    const auto [own, group] = multicast_socket(it);
    constexpr std::uint32_t kLast = 4'000;
    std::atomic<std::uint32_t>& is_over = it.shared.other;
    std::vector<double> hops;
    std::uint32_t word = 0;
    // relaxed is enough: nothing is read behind it
    while (it.me >= 2 && is_over.load(std::memory_order_relaxed) == 0) {
        ::recv(own, &word, sizeof word, 0);
    }
    for (std::uint32_t turn = 1; it.me < 2 && turn <= kLast; turn += 2) {
        const auto await = [&, own = own](std::uint32_t value) {
            while (::recv(own, &word, sizeof word, MSG_DONTWAIT) < 0 || word != value) {
            }
        };
        const std::uint32_t mine = turn + it.me;
        const std::int64_t start = now_ns();
        if (it.me == 1) await(turn);
        ::sendto(own, &mine, sizeof mine, 0, reinterpret_cast<const sockaddr*>(&group),
                 sizeof group);
        if (it.me == 0) await(turn + 1);
        hops.push_back(static_cast<double>(now_ns() - start) / 2);
    }
    is_over.store(1, std::memory_order_relaxed);  // relaxed is enough: as above
    ::close(own);
    if (it.me == 0) it.results.put(series, hops);
}

/// What the wire model says that a word needs from node 0 to node 1; nothing on an instant wire.
std::vector<double> wire_times(const GroupOptions& options) {
    if (options.link != "ring" || options.timing.empty()) return {};
    const rmem::TimingProfile profile = rmem::parse_timing(options.timing);
    if (profile.instant != 0) return {};
    rmem::WireModel model(profile, options.ranks);
    rmem::WireWrite write;
    write.offset = kPing;
    model.submit(write);
    std::vector<double> times;
    while (times.empty() && model.next_time_ns() != rmem::kNever) {
        model.advance(model.next_time_ns(), [&](const rmem::WireOutcome& outcome) {
            if (outcome.kind == rmem::WireOutcomeKind::arrived && outcome.node == 1)
                times.push_back(static_cast<double>(outcome.time_ns));
        });
    }
    return times;
}

// ---- A rig's rhythm

constexpr std::int64_t kBeatNs = 1'000'000;

/// How node 1 looks at the word; `bank` is null except for plain loads.
struct Look {
    const char* name;
    bool is_plain;
    std::uint32_t (*look)(Case& it, const std::byte* bank, std::uint32_t seen);
};

constexpr Look kLooks[] = {
    {"plain loads", true,
     [](Case&, const std::byte* bank, std::uint32_t) { return plain(bank, kPing); }},
    {"load", false, [](Case& it, const std::byte*, std::uint32_t) { return it.node.load(kPing); }},
    {"wait_change", false,
     [](Case& it, const std::byte*, std::uint32_t seen) {
         return it.node.wait_change(kPing, seen, Deadline::in(kPatienceNs));
     }},
};

/// Not 0, which a reader that is put aside for long takes for what was there before.
constexpr std::uint32_t kEndOfBeats = 2;

/// Node 0 gives the time away each millisecond and sleeps; times are odd, and the end is not.
template <class Put>
void beats(Case& it, Put&& put) {
    Sampling beats(it.plan);
    for (std::int64_t next = now_ns() + kBeatNs; beats.goes_on(); next += kBeatNs) {
        const timespec at{next / rmem::kNsPerSecond, next % rmem::kNsPerSecond};
        ::clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, nullptr);
        put(static_cast<std::uint32_t>(now_ns()) | 1);
        beats.add(0);
    }
    sleep_ns(kBeatNs);
    put(kEndOfBeats);
}

/// Node 1 says how old the time is when `look` shows it.
template <class Look>
std::vector<double> ages_of(Look&& look) {
    std::vector<double> ages;
    for (std::uint32_t seen = 0;;) {
        const std::uint32_t word = look(seen);
        if (word == seen) continue;
        if (word == kEndOfBeats) return ages;
        ages.push_back(static_cast<std::uint32_t>(now_ns()) - word);
        seen = word;
    }
}

/// The same by datagrams of a word.
void datagram_rhythm(Case& it) {
    const int own = datagram_socket(it);
    if (it.me == 0) {
        beats(it, [&](std::uint32_t word) { ::send(own, &word, sizeof word, 0); });
    } else {
        const auto ages = ages_of([&](std::uint32_t seen) {
            std::uint32_t word = seen;
            return ::recv(own, &word, sizeof word, MSG_DONTWAIT) < 0 ? seen : word;
        });
        it.results.put("rhythm: floor, a datagram", ages);
    }
    ::close(own);
}

void rhythm(Case& it, const Look& look) {
    const std::byte* bank = it.me == 1 && look.is_plain ? it.node.bank() : nullptr;
    it.meeting.meet();
    if (it.me == 0) return beats(it, [&](std::uint32_t word) { it.put(kPing, word); });
    it.results.put(fmt::format("rhythm: {}", look.name),
                   ages_of([&](std::uint32_t seen) { return look.look(it, bank, seen); }));
}

}  // namespace

void measure_floors(const GroupOptions& options, const MemoryPlan& plan, Results& results,
                    const std::string& quantity, Sleeps sleeps) {
    if (const auto wire = wire_times(options); !wire.empty())
        results.put(quantity + ": floor, the wire", wire);
    run_case(options, plan, results, Who::two, [&](Case& it) {
        if (sleeps == Sleeps::yes) {
            futex_to_and_fro(it, quantity + ": floor, a futex");
        } else {
            line_to_and_fro(it, quantity + ": floor, a line");
        }
    });
    if (options.link != "udp") return;
    run_case(options, plan, results, Who::two, [&](Case& it) {
        datagram_to_and_fro(it, quantity + ": floor, a datagram", sleeps == Sleeps::yes);
    });
}

void measure_multicast(const GroupOptions& options, const MemoryPlan& plan, Results& results,
                       const std::string& series) {
    if (options.link != "udp") return;
    run_case(options, plan, results, Who::all, [&](Case& it) { multicast_to_and_fro(it, series); });
}

void measure_store(const GroupOptions& options, const MemoryPlan& plan, Results& results) {
    for (const Other& other : kOthers) {
        run_case(options, plan, results, Who::two, [&](Case& it) {
            if (it.me == 0) return store(it, other.name);
            other.run(it);
        });
    }
}

void measure_hop(const GroupOptions& options, const MemoryPlan& plan, Results& results) {
    measure_floors(options, plan, results, "hop", Sleeps::no);
    for (const NamedWay& way : kWays) {
        run_case(options, plan, results, Who::two,
                 [&](Case& it) { to_and_fro(it, fmt::format("hop: {}", way.name), way); });
    }
}

void measure_interrupt(const GroupOptions& options, const MemoryPlan& plan, Results& results) {
    measure_floors(options, plan, results, "interrupt", Sleeps::yes);
    for (const NamedWay& way : kInterruptWays) {
        run_case(options, plan, results, Who::two,
                 [&](Case& it) { to_and_fro(it, fmt::format("interrupt: {}", way.name), way); });
    }
    run_case(options, plan, results, Who::two,
             [](Case& it) { by_callback(it, "interrupt: on_interrupt"); });
}

void measure_rhythm(const GroupOptions& options, const MemoryPlan& plan, Results& results) {
    if (options.link == "udp") run_case(options, plan, results, Who::two, datagram_rhythm);
    for (const Look& look : kLooks) {
        run_case(options, plan, results, Who::two, [&](Case& it) { rhythm(it, look); });
    }
}

}  // namespace tools
