// SPDX-License-Identifier: Apache-2.0
#pragma once

/// One end of a bridge: what it sends of its ring, what it brings to it, and the line to the other
/// end, as a state machine. Bytes, writes and times in; bytes, writes and sentences out. Sockets,
/// rings and clocks are its owner's; docs/design/bridge.md has the terms and states.
///
///     end.connect(now);                          // again for each line
///     end.receive(bytes, now);                   // of the other end
///     while (const Delivery* d = end.delivery()) { write(*d); end.delivered(now); }
///     end.sender().take(write, now);             // of the own ring
///     end.run(now);                              // then what is in out() is for the other end
///
/// Order: what one end puts out, the other must get whole and in order.
/// Invariants, executed: a line comes when there is none; bytes come from a line that is there, in
///   the order of time.
/// Errors: is_broken(): the other is no end of this version, or has fallen silent; problem() says
///   which. Its owner ends the line, and calls disconnect().
/// Trust: the other end may say anything; what it makes this one keep is bounded by kMaxBodyBytes
///   and one receive.
/// Thread safety: one thread. Units: nanoseconds of CLOCK_MONOTONIC.

#include "bridge/receiver.hpp"
#include "bridge/sender.hpp"
#include "rmem/base/round_trip.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace bridge {

struct EndCounts {
    std::uint64_t lines = 0;        ///< that have come
    std::uint64_t lines_lost = 0;   ///< that have ended
    std::uint64_t refused = 0;      ///< regions that were refused, a circle's each time
    std::uint64_t frames_made = 0;  ///< written to the own ring
    std::uint64_t writes_made = 0, bytes_made = 0;
};

class End {
public:
    static constexpr std::int64_t kBeatNs = 100'000'000;
    static constexpr std::int64_t kSilenceNs = 10'000'000'000;

    End(std::vector<SentRegion> sent, std::vector<ReceivedRegion> received);

    [[nodiscard]] Sender& sender() { return sender_; }
    [[nodiscard]] const Sender& sender() const { return sender_; }
    [[nodiscard]] const Receiver& receiver() const { return receiver_; }
    [[nodiscard]] const EndCounts& counts() const { return counts_; }

    // ---- The line
    void connect(std::int64_t now_ns);
    void disconnect();
    [[nodiscard]] bool is_connected() const { return is_connected_; }
    [[nodiscard]] rmem::ByteQueue& out() { return sender_.out(); }
    void receive(std::span<const std::byte> bytes, std::int64_t now_ns);
    /// False while what has come waits for the target ring: the line is not to be read.
    [[nodiscard]] bool wants_input() const { return receiver_.delivery() == nullptr; }
    [[nodiscard]] bool is_broken() const { return !problem_.empty(); }
    [[nodiscard]] const std::string& problem() const { return problem_; }
    /// Sends what is to be sent.
    void run(std::int64_t now_ns);
    /// When run() has more to do.
    [[nodiscard]] std::int64_t due_ns(std::int64_t now_ns) const;

    // ---- The target
    [[nodiscard]] const Delivery* delivery() const { return receiver_.delivery(); }
    void delivered(std::int64_t now_ns);
    /// A time of the other end's clock by this one's, if that is known.
    [[nodiscard]] std::optional<rmem::RoundTrip::Estimate> local_time(std::int64_t other_ns,
                                                                      std::int64_t now_ns) const;

    // ---- Paths
    /// Of the words that a region sends, its own hop last.
    void set_path(std::size_t sent_region, const Path& path);
    /// What the other end has said; null: nothing yet, or it does not send that region.
    [[nodiscard]] const Path* path_of(std::size_t received_region) const;
    /// The table allows the region, or refuses it with a sentence.
    void admit(std::size_t received_region);
    void refuse(std::size_t received_region, const std::string& sentence);
    [[nodiscard]] bool is_refused(std::size_t received_region) const {
        return received_[received_region].is_refused;
    }

    /// What people should know, since the last call.
    [[nodiscard]] std::vector<std::string> take_news() { return std::exchange(news_, {}); }

private:
    struct Received {
        std::optional<std::uint16_t> number;  ///< the other end's for it
        std::optional<Path> path;
        bool is_refused = false;
    };

    void take_messages(std::int64_t now_ns);
    [[nodiscard]] bool take(const rmem::Frame& message, std::int64_t now_ns);
    [[nodiscard]] bool take_open(std::span<const std::byte> body);
    void take_offer(std::uint16_t number, const Offer& offer);
    [[nodiscard]] bool take_accept(std::span<const std::byte> body, std::int64_t now_ns);
    [[nodiscard]] bool take_refuse(std::span<const std::byte> body);
    [[nodiscard]] bool take_path(std::span<const std::byte> body);
    [[nodiscard]] bool take_status(std::span<const std::byte> body, std::int64_t now_ns);
    void send_status(std::int64_t now_ns);
    void fail(const std::string& sentence);
    [[nodiscard]] std::vector<std::byte>& bytes() { return sender_.out().bytes(); }

    Sender sender_;
    Receiver receiver_;
    std::optional<rmem::FrameQueue> messages_;  ///< of the line
    std::vector<Path> paths_;                   ///< of what is sent
    std::vector<Received> received_;            ///< of what is received
    rmem::RoundTrip round_trip_;
    std::int64_t echo_ns_ = 0, echo_came_ns_ = 0;  ///< the other's last status
    std::int64_t heard_ns_ = 0, status_ns_ = 0;
    std::uint64_t told_ = 0;  ///< the last frame that was acknowledged
    bool is_connected_ = false, is_open_ = false;
    std::string problem_;
    std::vector<std::string> news_;
    EndCounts counts_;
};

}  // namespace bridge
