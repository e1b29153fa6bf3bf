// SPDX-License-Identifier: Apache-2.0
//
// A bare futex: rank 1 sleeps in it and is woken by rank 0, which spins for the answer. In
// `asleep`, what waking takes and one cache line back.
#include "../method.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>

namespace {

using namespace rivals;

struct alignas(cache_line) Word {
    std::atomic<std::uint32_t> value{0};
};

class FutexChannel {
public:
    FutexChannel(Word* words, int rank) : out_(words[rank]), in_(words[1 - rank]), rank_(rank) {}

    void send(const void*, std::size_t) {
        out_.value.fetch_add(1, std::memory_order_release);
        if (rank_ == 0) call(out_, FUTEX_WAKE, 1);
    }
    void receive(void* data, std::size_t size) {
        while (in_.value.load(std::memory_order_acquire) == seen_)
            rank_ == 0 ? relax() : call(in_, FUTEX_WAIT, seen_);
        ++seen_;
        std::memcpy(data, &seen_, std::min(size, sizeof seen_));
    }
    /// A word is all that the leader tells: how often.
    void share(void* data, std::size_t size) {
        if (rank_ == 0) {
            shared().store(*static_cast<std::uint64_t*>(data));
            send(data, size);
        } else {
            std::uint64_t ignored;
            receive(&ignored, sizeof ignored);
            *static_cast<std::uint64_t*>(data) = shared().load();
        }
    }

private:
    std::atomic<std::uint64_t>& shared() {
        Word& first = rank_ == 0 ? out_ : in_;
        return *reinterpret_cast<std::atomic<std::uint64_t>*>(&first + 2);
    }
    static void call(Word& word, int what, std::uint32_t value) {
        syscall(SYS_futex, &word.value, what, value, nullptr, nullptr, 0);
    }

    Word& out_;
    Word& in_;
    int rank_;
    std::uint32_t seen_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
    return guarded("futex", [&] {
        const Options options = parse_options(argc, argv, "A bare futex");
        const System system{"futex", "1"};
        auto* words = new (shared_memory(4 * sizeof(Word))) Word[4];
        return measure_pair(system, options,
                            [&](int rank, Meeting&) { return FutexChannel(words, rank); });
    });
}
