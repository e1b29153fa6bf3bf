// SPDX-License-Identifier: Apache-2.0

// Figures of two ranks: one-way times, bandwidth, and how often messages can be sent.
#include "bench/mpi/figures.hpp"

namespace mpi_bench {

namespace {

constexpr std::size_t kLatencySizes[] = {8, 0, 1, 64, 256, 1024, 4096, 16384, 65536};
constexpr std::size_t kSelfSizes[] = {8};
constexpr std::size_t kBandwidthSizes[] = {1 << 20, 1 << 16, 1 << 24, 1 << 26};
constexpr std::size_t kRateSizes[] = {8, 1024};

/// A stream's window: some messages, or as many as fit a number of bytes, but two at least.
constexpr std::size_t kMostWindow = 32, kWindowBytes = std::size_t{32} << 20;
/// A message rate's window, as the field measures it.
constexpr std::size_t kRateWindow = 64;

/// Two buffers of some messages, of which the first word (if it has one) says which message it is.
class Exchange {
public:
    Exchange(int rank, std::size_t size, std::size_t messages = 1)
        : rank_(rank),
          size_(size),
          out_(messages * size + kWord, 1),
          in_(messages * size + kWord, 2) {}

    /// The echo is checked.
    void ping_pong() {
        if (rank_ == 0) {
            ++number_;
            if (size_ >= kWord) std::memcpy(out_.data(), &number_, kWord);
            send_to(1, out_.data(), size_);
            receive_from(1, in_.data(), size_);
            if (size_ >= kWord) expect(word_at(0) == number_, "the echo differs from the ping");
        } else if (rank_ == 1) {
            receive_from(0, in_.data(), size_);
            send_to(0, in_.data(), size_);
        }
    }

    /// Nobody is waited for, so that a profiler counts what a message costs and nothing else.
    void to_oneself() {
        MPI_Request request;
        ++number_;
        std::memcpy(out_.data(), &number_, kWord);
        MPI_Irecv(in_.data(), static_cast<int>(size_), MPI_BYTE, rank_, 0, MPI_COMM_WORLD,
                  &request);
        send_to(rank_, out_.data(), size_);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        expect(word_at(0) == number_, "what came is not what was sent");
    }

    /// A window of messages that are sent at once, and the receiver's word that all have come. The
    /// receiver checks the first and the last word of each: the last, because it comes last.
    void stream(std::size_t window) {
        expect(size_ >= 2 * kWord, "a stream's messages have 16 bytes or more");
        const std::size_t last = size_ - kWord;
        std::uint64_t sum = 0;
        if (rank_ == 0) {
            MPI_Request requests[kMostWindow];
            ++number_;
            std::memcpy(out_.data(), &number_, kWord);
            std::memcpy(out_.data() + last, &number_, kWord);
            for (std::size_t i = 0; i < window; ++i)
                MPI_Isend(out_.data(), static_cast<int>(size_), MPI_BYTE, 1, 0, MPI_COMM_WORLD,
                          &requests[i]);
            MPI_Waitall(static_cast<int>(window), requests, MPI_STATUSES_IGNORE);
            receive_from(1, &sum, sizeof sum);
            expect(sum == 2 * window * number_, "the stream arrived damaged");
        } else if (rank_ == 1) {
            for (std::size_t i = 0; i < window; ++i) {
                receive_from(0, in_.data(), size_);
                sum += word_at(0) + word_at(last);
            }
            send_to(0, &sum, sizeof sum);
        }
    }

    /// A window of messages that find their receives posted, each with a place of its own, and the
    /// receiver's word that all have come, in their order.
    void window() {
        MPI_Request requests[kRateWindow];
        for (std::size_t i = 0; i < kRateWindow; ++i, ++number_) {
            if (rank_ == 0) {
                std::memcpy(&out_[i * size_], &number_, kWord);
                MPI_Isend(&out_[i * size_], static_cast<int>(size_), MPI_BYTE, 1, 0, MPI_COMM_WORLD,
                          &requests[i]);
            } else {
                MPI_Irecv(&in_[i * size_], static_cast<int>(size_), MPI_BYTE, 0, 0, MPI_COMM_WORLD,
                          &requests[i]);
            }
        }
        MPI_Waitall(kRateWindow, requests, MPI_STATUSES_IGNORE);
        if (rank_ == 0) return receive_from(1, in_.data(), kWord);
        for (std::size_t i = 0; i < kRateWindow; ++i)
            expect(word_at(i * size_) == number_ - kRateWindow + i, "a message is not the next");
        send_to(0, in_.data(), kWord);
    }

private:
    static constexpr std::size_t kWord = sizeof(std::uint64_t);

    static void send_to(int rank, const void* bytes, std::size_t size) {
        MPI_Send(bytes, static_cast<int>(size), MPI_BYTE, rank, 0, MPI_COMM_WORLD);
    }
    static void receive_from(int rank, void* bytes, std::size_t size) {
        MPI_Recv(bytes, static_cast<int>(size), MPI_BYTE, rank, 0, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    }
    std::uint64_t word_at(std::size_t place) const {
        std::uint64_t word;
        std::memcpy(&word, in_.data() + place, kWord);
        return word;
    }

    int rank_;
    std::size_t size_;
    std::vector<unsigned char> out_, in_;
    std::uint64_t number_ = 0;
};

std::size_t window_of(std::size_t size) {
    return std::clamp<std::size_t>(size == 0 ? kMostWindow : kWindowBytes / size, 2, kMostWindow);
}

/// `messages`: in one operation.
template <class Operation>
void measure_bandwidth(const World& world, const char* name, std::size_t size, std::size_t messages,
                       Operation&& op) {
    if (!world.is_leader()) {
        for (int phase = 0; phase < 2; ++phase) rivals::follow(world, 1, op);
        return;
    }
    const rivals::Options& method = world.options.method;
    const Figure figure{name, size, world.ranks, 1.0 / static_cast<double>(messages)};
    rivals::lead(world, rivals::budget(method, method.warmup, 0.1), 1, op);
    const auto series = rivals::lead(world, rivals::budget(method, method.samples, 0.9), 1, op);
    std::printf("{");
    rivals::print_samples(figure, series);
    rivals::print_rate(figure, series);
    rivals::print_end();
}

}  // namespace

void latency(const World& world) {
    if (world.ranks == 1 && world.options.wants("self"))
        for_sizes(world, kSelfSizes, [&](std::size_t size) {
            Exchange exchange(world.rank, size);
            measure(world, {"self", size, 1}, [&] { exchange.to_oneself(); });
        });
    if (world.ranks == 2 && world.options.wants("latency"))
        for_sizes(world, kLatencySizes, [&](std::size_t size) {
            Exchange exchange(world.rank, size);
            measure(world, {"latency", size, 2, 0.5}, [&] { exchange.ping_pong(); });
        });
}

void bandwidth(const World& world) {
    if (world.ranks != 2 || world.options.rounds != 0) return;
    if (world.options.wants("stream"))
        for_sizes(world, kBandwidthSizes, [&](std::size_t size) {
            const std::size_t window = window_of(size);
            Exchange exchange(world.rank, size);
            measure_bandwidth(world, "stream", size, window, [&] { exchange.stream(window); });
        });
    if (world.options.wants("rate"))
        for_sizes(world, kRateSizes, [&](std::size_t size) {
            expect(size >= sizeof(std::uint64_t), "a message rate's messages have 8 bytes or more");
            Exchange exchange(world.rank, size, kRateWindow);
            measure_bandwidth(world, "rate", size, kRateWindow, [&] { exchange.window(); });
        });
    if (world.options.wants("transfer"))
        for_sizes(world, kBandwidthSizes, [&](std::size_t size) {
            Exchange exchange(world.rank, size);
            measure_bandwidth(world, "transfer", size, 2, [&] { exchange.ping_pong(); });
        });
}

}  // namespace mpi_bench
