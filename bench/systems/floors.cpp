// SPDX-License-Identifier: Apache-2.0
//
// What the machine itself costs, by variant:
//   line   one cache line that bounces between the two CPUs, and a line each as a barrier: no
//          messaging system over coherent memory is faster
//   copy   memcpy of one process, from memory and to memory that it has used just now: what a
//          message's bytes take when nobody else has to see them
//   futex  rank 1 sleeps in it and is woken by rank 0, which spins for the answer: what waking
//          takes, and one cache line back
#include "bench/harness/harness.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>

namespace {

using namespace bench;

template <class Word>
struct alignas(kLineBytes) Line {
    std::atomic<Word> word{0};
};
struct Lines {
    Line<std::uint64_t> ball, arrived[2];
    Line<std::uint32_t> bells[2];
};

class LineChannel {
public:
    LineChannel(Lines& lines, int rank) : lines_(lines), rank_(rank) {}

    /// The word is message and signal in one: the rank in its last bit makes every hop a change.
    void send(const void* data, std::size_t size) {
        std::uint64_t word = 0;
        std::memcpy(&word, data, std::min(size, sizeof word));
        last_ = word << 1 | std::uint64_t(rank_);
        lines_.ball.word.store(last_, std::memory_order_release);
    }
    void receive(void* data, std::size_t size) {
        std::uint64_t word;
        while ((word = lines_.ball.word.load(std::memory_order_acquire)) == last_) cpu_relax();
        last_ = word;
        word >>= 1;
        std::memcpy(data, &word, std::min(size, sizeof word));
    }
    void barrier() {
        lines_.arrived[rank_].word.store(++epoch_, std::memory_order_release);
        while (lines_.arrived[1 - rank_].word.load(std::memory_order_acquire) < epoch_) cpu_relax();
    }

private:
    Lines& lines_;
    int rank_;
    std::uint64_t last_ = 0, epoch_ = 0;
};

/// Nothing is sent to anybody: of `stream` and `window` alone.
class CopyChannel {
public:
    void send(const void* data, std::size_t size) {
        std::memcpy(copy_.data(), data, size);
        asm volatile("" : : "r"(copy_.data()) : "memory");  // it is used
    }
    void receive(void*, std::size_t) {}

private:
    std::vector<std::byte> copy_ = std::vector<std::byte>(kMaxBytes);
};

class FutexChannel {
public:
    FutexChannel(Lines& lines, int rank)
        : out_(lines.bells[rank]), in_(lines.bells[1 - rank]), rank_(rank) {}

    void send(const void* data, std::size_t) {
        std::memcpy(&number_, data, sizeof number_);
        out_.word.fetch_add(1, std::memory_order_release);
        if (rank_ == 0) call(out_, FUTEX_WAKE, 1);
    }
    void receive(void* data, std::size_t) {
        while (in_.word.load(std::memory_order_acquire) == seen_)
            rank_ == 0 ? cpu_relax() : call(in_, FUTEX_WAIT, seen_);
        ++seen_;
        std::memcpy(data, &number_, sizeof number_);  // what the other one would have sent back
    }

private:
    static void call(Line<std::uint32_t>& bell, int what, std::uint32_t value) {
        syscall(SYS_futex, &bell.word, what, value, nullptr, nullptr, 0);
    }

    Line<std::uint32_t>& out_;
    Line<std::uint32_t>& in_;
    int rank_;
    std::uint32_t seen_ = 0;
    std::uint64_t number_ = 0;
};

}  // namespace

int bench::measure(const Setup& setup) {
    const Common<Lines> common;
    Lines& lines = *common;
    if (setup.variant == "copy")
        return measure_ranks(setup, [](int, Meeting&) { return CopyChannel(); });
    if (setup.variant == "futex")
        return measure_ranks(setup, [&](int r, Meeting&) { return FutexChannel(lines, r); });
    return measure_ranks(setup, [&](int r, Meeting&) { return LineChannel(lines, r); });
}
