// SPDX-License-Identifier: Apache-2.0
// Streams of words, blocks, reads, flushes, frames; and what nodes cost that do nothing.
#include "tools/measure/floor.hpp"
#include "tools/measure/memory_case.hpp"

#include "rmem/base/clock.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

namespace tools {

namespace {

using rmem::Deadline;
using rmem::now_ns;

constexpr std::size_t kWord = 4;
constexpr std::size_t kSpan = std::size_t{1} << 20;  ///< of a stream of words
constexpr std::uint32_t kWordsInStream = 10'000;
constexpr std::size_t kStreamBytes = std::size_t{4} << 20;  ///< of blocks between two flushes

/// Node 1 waits for the word that ends a stream, each stream again.
void await_ends(Case& it) {
    std::uint32_t seen = 0;
    while (seen != kOver) seen = it.node.wait_change(kEnd, seen, Deadline::in(kPatienceNs));
}

/// ns of an operation in streams of `count`, each with the word that ends it and a flush.
template <class Operation>
std::vector<double> streams(Case& it, std::size_t count, Operation&& operation) {
    Sampling samples(it.plan);
    std::uint32_t end = 0;
    while (samples.goes_on()) {
        const std::int64_t start = now_ns();
        for (std::size_t i = 0; i < count; ++i) operation(i);
        it.put(kEnd, ++end);
        it.flush();
        samples.add(static_cast<double>(now_ns() - start) / static_cast<double>(count));
    }
    it.put(kEnd, kOver);
    return samples.values();
}

// ---- Words

struct Pattern {
    const char* name;
    std::size_t (*offset)(std::size_t i);
};

constexpr Pattern kPatterns[] = {
    {"one behind the other", [](std::size_t i) { return kBlock + i * kWord % kSpan; }},
    {"scattered",
     [](std::size_t i) { return kBlock + i * 2'654'435'761U % kSpan / kWord * kWord; }},
    {"the same word", [](std::size_t) { return kBlock; }},
};

// ---- Blocks

std::string size_name(std::size_t bytes) {
    if (bytes < 1024) return fmt::format("{} B", bytes);
    if (bytes < kSpan) return fmt::format("{} KiB", bytes / 1024);
    return fmt::format("{} MiB", bytes / kSpan);
}

std::vector<std::size_t> block_sizes(const MemoryPlan& plan) {
    std::vector<std::size_t> sizes;
    for (const std::size_t bytes : std::initializer_list<std::size_t>{4, 16, 64, 256, 1024, 4096,
                                                                      8192, 16384, 65536, 262144}) {
        if (bytes <= plan.most_block) sizes.push_back(bytes);
    }
    for (std::size_t bytes = kSpan; bytes <= plan.most_block; bytes *= 4) sizes.push_back(bytes);
    return sizes;
}

void blocks(Case& it, std::size_t bytes) {
    if (it.me == 1) return await_ends(it);
    const std::size_t count = std::max<std::size_t>(1, kStreamBytes / bytes);
    const std::size_t in_bank = (it.node.size() - kBlock) / bytes;
    std::vector<std::byte> from(bytes, std::byte{1}), to(kStreamBytes + bytes);
    const auto times =
        streams(it, std::min<std::size_t>(count, kWordsInStream),
                [&](std::size_t i) { it.write(kBlock + i % in_bank * bytes, from.data(), bytes); });
    it.results.put(fmt::format("blocks: {}", size_name(bytes)), times);
    Sampling floor(it.plan);
    while (floor.goes_on()) {
        std::size_t at = 0;
        const auto copy = [&] {
            copy_memory(to.data() + at, from.data(), bytes);
            at = (at + bytes) % kStreamBytes;
        };
        const std::size_t copies = std::max<std::size_t>(1, kSpan / bytes);
        floor.add(time_of(copies, copy) / static_cast<double>(copies));
    }
    it.results.put(fmt::format("blocks: floor, memcpy of {}", size_name(bytes)), floor.values());
}

/// Datagrams of the largest payload, as many as one call takes, to a socket that is read meanwhile.
void datagrams(Case& it) {
    constexpr std::size_t kBytes = 8000, kInCall = 16, kCalls = 64;
    const int own = datagram_socket(it);
    const int room = 8 << 20;
    ::setsockopt(own, SOL_SOCKET, SO_RCVBUF, &room, sizeof room);
    std::vector<std::byte> bytes(kBytes);
    iovec piece{bytes.data(), kBytes};
    mmsghdr messages[kInCall] = {};
    for (mmsghdr& message : messages) message.msg_hdr.msg_iov = &piece;
    for (mmsghdr& message : messages) message.msg_hdr.msg_iovlen = 1;
    if (it.me == 1) {
        while (::recv(own, bytes.data(), kBytes, 0) != 1) {
        }
        ::close(own);
        return;
    }
    Sampling samples(it.plan);
    while (samples.goes_on()) {
        samples.add(time_of(kCalls, [&] { ::sendmmsg(own, messages, kInCall, 0); }) /
                    (kCalls * kInCall));
    }
    // What the receiver has no room for is lost, the end perhaps, too.
    for (int i = 0; i < 100; ++i) {
        ::send(own, bytes.data(), 1, 0);
        sleep_ns(kPatienceNs / 1000);
    }
    ::close(own);
    it.results.put("blocks: floor, sendmmsg of 8000 B", samples.values());
}

void reads(Case& it, std::size_t bytes) {
    if (it.me == 1) return;
    std::vector<std::byte> to(bytes);
    const std::byte* bank = it.node.bank();
    Sampling ours(it.plan), floor(it.plan);
    const std::size_t copies = std::max<std::size_t>(1, kSpan / bytes);
    while (ours.goes_on()) {
        std::size_t at = kBlock;
        const auto next = [&] {
            const std::size_t now = at;
            at = kBlock + (at - kBlock + bytes) % kSpan;
            return bytes > kSpan ? kBlock : now;
        };
        const auto count = static_cast<double>(copies);
        ours.add(time_of(copies, [&] { it.node.read(next(), to.data(), bytes); }) / count);
        floor.add(time_of(copies, [&] { copy_memory(to.data(), bank + next(), bytes); }) / count);
    }
    it.results.put(fmt::format("reads: {}", size_name(bytes)), ours.values());
    it.results.put(fmt::format("reads: floor, memcpy of {}", size_name(bytes)), floor.values());
}

// ---- Frames

constexpr std::int64_t kFrameNs = 1'000'000;
constexpr std::size_t kFrameBytes = 1024;

std::size_t flag_of(unsigned node) {
    return kFlags + node * rmem::kLineBytes;
}

/// Of each frame the largest that a node has; node 0's alone are right. One after the other, the
/// nodes add theirs.
std::vector<double> largest(Case& it, const std::vector<double>& own) {
    static constexpr std::size_t kTogether = rmem::kMaxNodes;
    std::atomic<std::int64_t>* times = it.shared.times;
    std::vector<double> all(own.size());
    for (std::size_t from = 0; from < own.size(); from += kTogether) {
        const std::size_t count = std::min(kTogether, own.size() - from);
        for (unsigned node = 0; node < it.nodes; ++node) {
            for (std::size_t i = 0; node == it.me && i < count; ++i) {
                // relaxed is enough, here and below: meet() orders it
                const auto known = node == 0 ? 0 : times[i].load(std::memory_order_relaxed);
                times[i].store(std::max(known, static_cast<std::int64_t>(own[from + i])),
                               std::memory_order_relaxed);  // relaxed is enough: as above
            }
            it.meeting.meet();
        }
        for (std::size_t i = 0; it.me == 0 && i < count; ++i) {
            // relaxed is enough: as above
            all[from + i] = static_cast<double>(times[i].load(std::memory_order_relaxed));
        }
        it.meeting.meet();
    }
    return all;
}

/// Which of the frames are later than the next one's beginning: since a node began late, as the
/// host had not woken it or the frame before was late; or since its waits took so long.
void attribute(Case& it, const std::vector<double>& begun, const std::vector<double>& seen) {
    double late_begin = 0, late_wait = 0;
    for (std::size_t i = 0; i < seen.size(); ++i) {
        if (seen[i] <= kFrameNs) continue;
        ++(begun[i] > seen[i] / 2 ? late_begin : late_wait);
    }
    it.results.put("frame: later than 1 ms, begun late (number)", {late_begin});
    it.results.put("frame: later than 1 ms, waited long (number)", {late_wait});
}

/// Each millisecond every node writes a block and a flag, and waits for all flags: its time is
/// taken from the millisecond's beginning. The last node's is the frame's. As a rig's program does,
/// it asks the host to wake it in time.
void frames(Case& it) {
    ::prctl(PR_SET_TIMERSLACK, 1UL);
    std::atomic<std::int64_t>& start = it.shared.start_ns;
    // relaxed is enough: meet() orders it
    if (it.me == 0) start.store(now_ns() + 10 * kFrameNs, std::memory_order_relaxed);
    it.meeting.meet();
    const std::int64_t first =
        start.load(std::memory_order_relaxed);  // relaxed is enough: as above
    const auto frames = static_cast<std::uint32_t>(std::min<std::int64_t>(
        static_cast<std::int64_t>(it.plan.samples), it.plan.case_ns / kFrameNs));
    std::vector<std::byte> block(kFrameBytes, std::byte{1});
    std::vector<double> begun, seen_all;
    for (std::uint32_t frame = 1; frame <= frames; ++frame) {
        const std::int64_t begin = first + frame * kFrameNs;
        const timespec at{begin / rmem::kNsPerSecond, begin % rmem::kNsPerSecond};
        ::clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, nullptr);
        begun.push_back(static_cast<double>(now_ns() - begin));
        it.write(kBlock + it.me * kFrameBytes, block.data(), block.size());
        it.put(flag_of(it.me), frame);
        for (unsigned node = 0; node < it.nodes; ++node) {
            std::uint32_t seen = it.node.load(flag_of(node));
            while (static_cast<std::int32_t>(seen - frame) < 0) {
                seen = it.node.wait_change(flag_of(node), seen, Deadline::in(kPatienceNs));
            }
        }
        seen_all.push_back(static_cast<double>(now_ns() - begin));
    }
    const auto last_begun = largest(it, begun), last_seen = largest(it, seen_all);
    if (it.me != 0) return;
    it.results.put("frame: until the last node has begun", last_begun);
    it.results.put("frame: until the last node has seen all flags", last_seen);
    attribute(it, last_begun, last_seen);
}

// ---- Start and idleness

/// A process's use: processor time, and how often it was switched in.
struct Used {
    std::int64_t ns, switches;
    static Used now() {
        rusage usage{};
        ::getrusage(RUSAGE_SELF, &usage);
        const auto time = [](const timeval& t) {
            return t.tv_sec * rmem::kNsPerSecond + t.tv_usec * 1'000;
        };
        return {time(usage.ru_utime) + time(usage.ru_stime), usage.ru_nvcsw + usage.ru_nivcsw};
    }
};

void idle(Case& it) {
    Shared& shared = it.shared;
    const std::int64_t joined = now_ns();
    constexpr std::int64_t kIdleNs = rmem::kNsPerSecond;
    sleep_ns(kIdleNs / 10);  // what follows a start is over
    const Used before = Used::now();
    sleep_ns(kIdleNs);
    const Used after = Used::now();
    // relaxed is enough, here and below: meet() orders it
    shared.times[it.me].store(after.ns - before.ns, std::memory_order_relaxed);
    shared.counts[it.me].store(after.switches - before.switches,
                               std::memory_order_relaxed);  // enough: as above
    it.meeting.meet();
    if (it.me != 0) return;
    std::vector<double> times, switches;
    for (unsigned node = 0; node < it.nodes; ++node) {
        times.push_back(static_cast<double>(
            shared.times[node].load(std::memory_order_relaxed)));  // enough: as above
        switches.push_back(static_cast<double>(
            shared.counts[node].load(std::memory_order_relaxed)));  // enough: as above
    }
    it.results.put(
        "idle: start of all nodes",
        {static_cast<double>(
            joined - shared.start_ns.load(std::memory_order_relaxed))});  // enough: as above
    it.results.put("idle: processor time of a process in a second", times);
    it.results.put("idle: switches of a process in a second (number)", switches);
}

}  // namespace

void measure_words(const GroupOptions& options, const MemoryPlan& plan, Results& results) {
    for (const Pattern& pattern : kPatterns) {
        run_case(options, plan, results, Who::two, [&](Case& it) {
            if (it.me == 1) return await_ends(it);
            std::uint32_t value = 0;
            it.results.put(fmt::format("words: {}", pattern.name),
                           streams(it, kWordsInStream,
                                   [&](std::size_t i) { it.put(pattern.offset(i), ++value); }));
        });
    }
}

void measure_blocks(const GroupOptions& options, const MemoryPlan& plan, Results& results) {
    for (const std::size_t bytes : block_sizes(plan)) {
        run_case(options, plan, results, Who::two, [&](Case& it) { blocks(it, bytes); });
    }
    if (options.link == "udp") run_case(options, plan, results, Who::two, datagrams);
}

void measure_reads(const GroupOptions& options, const MemoryPlan& plan, Results& results) {
    for (const std::size_t bytes : block_sizes(plan)) {
        run_case(options, plan, results, Who::two, [&](Case& it) { reads(it, bytes); });
    }
}

void measure_flush(const GroupOptions& options, const MemoryPlan& plan, Results& results) {
    run_case(options, plan, results, Who::two, [](Case& it) {
        if (it.me == 1) return;  // asleep, in no call of ours
        Sampling samples(it.plan);
        for (std::uint32_t value = 1; samples.goes_on(); ++value) {
            samples.add(time_of(1, [&] {
                it.put(kPing, value);
                it.flush();
            }));
        }
        it.results.put("flush: after a word, the other asleep", samples.values());
    });
}

void measure_frame(const GroupOptions& options, const MemoryPlan& plan, Results& results) {
    run_case(options, plan, results, Who::all, frames);
}

void measure_idle(const GroupOptions& options, const MemoryPlan& plan, Results& results) {
    const std::int64_t start = now_ns();
    const Common<Meeting> begun(options.ranks);
    run_processes(options, options.ranks, [&](unsigned process, const std::string&) {
        begun->meet();
        if (process != 0) return;
        results.put("idle: floor, start of as many processes",
                    {static_cast<double>(now_ns() - start)});
    });
    run_case(options, plan, results, Who::all, idle);
}

}  // namespace tools
