// SPDX-License-Identifier: Apache-2.0
#pragma once

/// One case of the memory's figures: its processes, their nodes, and where they meet.
///
/// Thread safety: a Case belongs to one process's thread.
/// Progress: a process that fails ends all (rank_group.hpp).

#include "rmem/node.hpp"
#include "tools/measure/memory.hpp"

#include <atomic>
#include <functional>
#include <memory>
#include <optional>

namespace tools {

inline constexpr std::size_t kPing = 0x1000;      ///< node 0 writes it
inline constexpr std::size_t kPong = 0x2000;      ///< node 1 writes it
inline constexpr std::size_t kEnd = 0x3000;       ///< node 0 writes it when a case is over
inline constexpr std::size_t kSleepers = 0x4000;  ///< written once, when a case is over
inline constexpr std::size_t kFlags = 0x8000;     ///< of each node, a line apart
inline constexpr std::size_t kBlock = 0x100000;
inline constexpr std::int64_t kPatienceNs =
    rmem::kNsPerSecond;                             ///< of one wait; then it is begun again
inline constexpr std::uint32_t kOver = 0xffffffff;  ///< the value that ends a case

/// Memory that the processes of a case share beside the ring.
struct Shared {
    alignas(64) std::atomic<std::uint32_t> line;   ///< the floor of a word to and fro
    alignas(64) std::atomic<std::uint32_t> other;  ///< of a plain store, which is never read
    alignas(64) std::atomic<std::int64_t> start_ns;
    std::atomic<std::int64_t> times[rmem::kMaxNodes];
    std::atomic<std::int64_t> counts[rmem::kMaxNodes];
};

/// What a process of a case has.
struct Case {
    unsigned me;
    unsigned nodes;
    rmem::Node& node;
    Meeting& meeting;  ///< of those who take part
    Shared& shared;
    const MemoryPlan& plan;
    Results& results;

    /// Writes a word, however long the outbound queue is full.
    void put(std::size_t offset, std::uint32_t value) {
        while (is_refused(node.write_word(offset, value))) node.poll();
    }
    void write(std::size_t offset, const void* from, std::size_t bytes) {
        while (is_refused(node.write(offset, from, bytes))) node.poll();
    }
    void flush();

private:
    [[nodiscard]] static bool is_refused(rmem::WriteResult result) {
        if (result == rmem::WriteResult::dropped) [[unlikely]]
            throw_dropped();
        return result == rmem::WriteResult::again;
    }
    [[noreturn]] static void throw_dropped();
};

/// Takes samples until there are enough, or the time is over.
class Sampling {
public:
    explicit Sampling(const MemoryPlan& plan);
    bool goes_on() const;
    void add(double value) { values_.push_back(value); }
    const std::vector<double>& values() const noexcept { return values_; }

private:
    std::size_t most_;
    std::int64_t end_ns_;
    std::vector<double> values_;
};

using Part = std::function<void(Case&)>;

/// Runs a case: `active` on nodes 0 and 1, the others asleep; or on all nodes.
enum class Who { two, all };
void run_case(const GroupOptions& options, const MemoryPlan& plan, Results& results, Who who,
              const Part& part);

void sleep_ns(std::int64_t ns);

/// A socket of this process on the loop-back interface, connected with that of the other of two.
int datagram_socket(Case& it);

/// What a word to and fro is compared with: a line of the cache, or of those who sleep a futex; the
/// wire; on udp a datagram. `quantity` begins the names.
enum class Sleeps : bool { no, yes };
void measure_floors(const GroupOptions& options, const MemoryPlan& plan, Results& results,
                    const std::string& quantity, Sleeps sleeps);

/// The same of a message that all get, and all but two sleep for: on udp a datagram to a group.
void measure_multicast(const GroupOptions& options, const MemoryPlan& plan, Results& results,
                       const std::string& series);

// memory_hops.cpp, memory_messages.cpp, memory_streams.cpp
void measure_store(const GroupOptions& options, const MemoryPlan& plan, Results& results);
void measure_hop(const GroupOptions& options, const MemoryPlan& plan, Results& results);
void measure_interrupt(const GroupOptions& options, const MemoryPlan& plan, Results& results);
void measure_message(const GroupOptions& options, const MemoryPlan& plan, Results& results);
void measure_rhythm(const GroupOptions& options, const MemoryPlan& plan, Results& results);
void measure_words(const GroupOptions& options, const MemoryPlan& plan, Results& results);
void measure_blocks(const GroupOptions& options, const MemoryPlan& plan, Results& results);
void measure_reads(const GroupOptions& options, const MemoryPlan& plan, Results& results);
void measure_flush(const GroupOptions& options, const MemoryPlan& plan, Results& results);
void measure_frame(const GroupOptions& options, const MemoryPlan& plan, Results& results);
void measure_idle(const GroupOptions& options, const MemoryPlan& plan, Results& results);

}  // namespace tools
