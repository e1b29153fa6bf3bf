// SPDX-License-Identifier: Apache-2.0
//
// What the machine itself costs, by the same method: one cache line that bounces between the two
// CPUs, two lines as a barrier, and memcpy. No messaging system over coherent memory is faster.
#include "method.hpp"

namespace {

using namespace rivals;

struct alignas(cache_line) Line {
    std::atomic<std::uint64_t> word{0};
};

struct Lines {
    Line ball;
    Line arrived[2];
};

class FloorChannel {
public:
    FloorChannel(Lines& lines, int rank, Meeting& meeting)
        : lines_(lines), rank_(rank), meeting_(meeting) {}

    /// The word is message and signal in one: the rank in its last bit makes every hop a change.
    void send(const void* data, std::size_t) {
        std::uint64_t word;
        std::memcpy(&word, data, sizeof word);
        last_ = word << 1 | std::uint64_t(rank_);
        lines_.ball.word.store(last_, std::memory_order_release);
    }

    void receive(void* data, std::size_t) {
        std::uint64_t word;
        while ((word = lines_.ball.word.load(std::memory_order_acquire)) == last_) relax();
        last_ = word;
        word >>= 1;
        std::memcpy(data, &word, sizeof word);
    }

    void barrier() {
        lines_.arrived[rank_].word.store(++epoch_, std::memory_order_release);
        while (lines_.arrived[1 - rank_].word.load(std::memory_order_acquire) < epoch_) relax();
    }

    void share(void* data, std::size_t size) {
        const std::string all(static_cast<const char*>(data), size);
        const std::string theirs = meeting_.exchange(rank_, all);
        if (rank_ == 1) std::memcpy(data, theirs.data(), size);
    }

private:
    Lines& lines_;
    int rank_;
    Meeting& meeting_;
    std::uint64_t last_ = 0;
    std::uint64_t epoch_ = 0;
};

/// memcpy needs no other process to agree with.
struct Alone {
    static void share(void*, std::size_t) {}
};

void copy_stream(const System& system, const Options& options) {
    const Message message(stream_bytes);
    std::vector<std::byte> target(stream_bytes);
    const auto window = [&] {
        std::uint64_t sum = 0;
        for (std::size_t i = 0; i < stream_window; ++i) {
            std::memcpy(target.data(), message.bytes.data(), stream_bytes);
            sum += look_at(target.data(), stream_bytes);
        }
        require(sum == message.sum * stream_window, "memcpy damaged the message");
    };
    Alone alone;
    lead_stream(system, alone, 1, options, window);
}

int measure(const Options& options) {
    const System system{"floor", "1"};
    Lines& lines = *new (shared_memory(sizeof(Lines))) Lines;
    return in_two_processes(
        options, [&](int rank, Meeting& meeting) { return FloorChannel(lines, rank, meeting); },
        [&](FloorChannel& channel, int rank) {
            const bool leader = rank == 0;
            if (!options.steps.empty()) return measure_channel(system, channel, rank, 2, options);
            if (options.wants("pingpong")) pingpong(system, channel, leader, options);
            if (options.wants("barrier")) barrier(system, channel, 2, leader, options);
            if (leader && options.wants("stream")) copy_stream(system, options);
        });
}

}  // namespace

int main(int argc, char** argv) {
    return guarded("floor", [&] {
        return measure(parse_options(argc, argv, "The machine's own cost: cache line and memcpy"));
    });
}
