// SPDX-License-Identifier: Apache-2.0
#pragma once

/// One client of `rmem serve`: bytes of its calls in, calls of the node made, bytes of answers and
/// of news out. Sockets and the clock are its owner's.
///
/// A write that finds no room, and a flush, stay at the front until they are done; nothing behind
/// them is looked at, so a client's calls are made in its order, and its connection fills. What
/// fails without having an answer is told instead of the next answer.
///
/// Of each page that is mapped there is a twin, what the bank held when it was last compared, one
/// for all sessions; and each session knows the words that its client does not have as the twin
/// has them. look() sends these. A write of the client's changes a twin that no other session has,
/// since the client has stored it; of others its words are told again. Each change says how many
/// of those writes were made before, so that the client can tell what its own later stores have
/// overtaken.
///
/// Invariants, executed: a session has the twin of each page that it has mapped, and a twin a
///   session; a session waits for a call that it has; no interrupt is due before one that came
///   before it, nor before what the bank held when it came; answers and news are bounded, as is
///   said below.
/// Thread safety: one thread, which makes the node's calls too.
/// Errors: is_broken(): the client does not speak the protocol; end it.
/// Trust: every byte is a client's. Input is bounded by wants_input(), each output by
///   kMaxWaitingBytes and one frame more, interrupts by kMaxInterrupts.
/// Units: bytes, nanoseconds.

#include "remote/protocol.hpp"
#include "rmem/rmem.h"

#include <array>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace remote {

/// The twins of a node's sessions, by the offsets of their pages.
class Twins {
public:
    using Words = std::bitset<kPageBytes / kWordBytes>;
    struct Twin {
        std::array<std::byte, kPageBytes> bytes{};
        std::vector<Words*> due;  ///< of each session: what its client does not have
    };

    explicit Twins(rmem_node* node) : node_(node) {}

    /// For a client whose page is zeros.
    [[nodiscard]] Twin& join(std::uint64_t offset, Words& due);
    void leave(std::uint64_t offset, Words& due);
    void compare(std::uint64_t offset, Twin& twin) const;

private:
    rmem_node* const node_;
    std::map<std::uint64_t, Twin> twins_;
};

class Session {
public:
    static constexpr std::size_t kMaxWaitingBytes = std::size_t{256} << 10;
    static constexpr std::size_t kMaxInterrupts = 1024;
    /// A flush is answered after it, so that other threads of the client can call; it asks again.
    static constexpr std::int64_t kLongestFlushNs = 200'000'000;

    /// `number`: by which the client names itself on its second connection.
    Session(rmem_node* node, std::uint64_t number, Twins& twins);
    ~Session();
    Session(const Session&) = delete;
    Session& operator=(const Session&) = delete;

    [[nodiscard]] std::uint64_t number() const { return number_; }
    [[nodiscard]] bool is_broken() const { return is_broken_; }

    /// Bytes of the connection for calls, in any pieces.
    void receive(std::span<const std::byte> bytes) { calls_.add(bytes); }
    /// Makes what calls there are.
    void run(std::int64_t now_ns);
    /// More calls would find room.
    [[nodiscard]] bool wants_input() const {
        return !is_waiting_ && !is_broken_ && !is_full(answers_);
    }
    /// For the node; run() has to be called again soon.
    [[nodiscard]] bool is_waiting() const { return is_waiting_; }
    /// Calls have come whole that are not made yet.
    [[nodiscard]] bool has_calls() const { return calls_.front().has_value(); }

    /// The node has got one.
    void on_interrupt(const rmem_interrupt& interrupt);
    /// Compares what is mapped with the bank, as far as there is room for news: at most `most`
    /// pages, the next in turn; returns how many.
    std::size_t look(std::size_t most);
    [[nodiscard]] std::size_t pages() const { return pages_.size(); }
    /// There may be something to tell.
    [[nodiscard]] bool wants_look() const { return !pages_.empty() || !interrupts_.empty(); }

    [[nodiscard]] rmem::ByteQueue& answers() { return answers_; }
    [[nodiscard]] rmem::ByteQueue& news() { return news_; }

private:
    enum class Step { done, again, broken };
    struct Due {
        std::uint64_t looks;  ///< of pages, that have to be before
        rmem_interrupt interrupt;
    };
    struct Page {
        Twins::Twin* twin = nullptr;
        /// Also words of which the client has written a part: the rest may be in news that it
        /// leaves out for its write, so they are told whole.
        Twins::Words is_due;
    };

    [[nodiscard]] static bool is_full(const rmem::ByteQueue& box) {
        return box.left().size() >= kMaxWaitingBytes;
    }
    [[nodiscard]] static bool is_bounded(const rmem::ByteQueue& box) {
        return box.left().size() < kMaxWaitingBytes + kMaxBodyBytes + FrameWriter::kHeaderBytes;
    }
    [[nodiscard]] Step make(const Frame& frame, std::int64_t now_ns);
    [[nodiscard]] Step read(FieldReader fields);
    [[nodiscard]] Step write(FieldReader fields, std::int64_t now_ns);
    [[nodiscard]] Step write_part(FieldReader fields, std::int64_t now_ns);
    [[nodiscard]] Step send(FieldReader fields, std::int64_t now_ns);
    [[nodiscard]] Step accept(FieldReader fields);
    [[nodiscard]] Step flush(FieldReader fields, std::int64_t now_ns);
    [[nodiscard]] Step counter(FieldReader fields);
    [[nodiscard]] Step state(Kind kind, FieldReader fields);
    [[nodiscard]] Step map(FieldReader fields);
    [[nodiscard]] Step put(int code, std::int64_t now_ns);
    [[nodiscard]] Step answer(int code);
    [[nodiscard]] Step answer_number(std::uint64_t number);
    [[nodiscard]] bool has_waited(std::int64_t now_ns, std::int64_t longest_ns);
    void client_has(std::uint64_t offset, std::span<const std::byte> data);
    void compare(std::uint64_t offset, Page& page);
    void tell_what_is_due();

    rmem_node* const node_;
    Twins& twins_;
    const std::uint64_t number_;
    const std::uint64_t memory_bytes_;
    FrameQueue calls_{kMaxBodyBytes};
    rmem::ByteQueue answers_;
    rmem::ByteQueue news_;
    bool is_broken_ = false;
    bool is_waiting_ = false;
    std::int64_t waiting_since_ns_ = 0;  ///< while is_waiting_
    std::string failure_;                ///< of a call without an answer; empty: there is none
    int failure_code_ = RMEM_OK;

    std::uint64_t writes_ = 0;    ///< that were made, or have failed
    std::uint64_t accepted_ = 0;  ///< numbers of interrupts
    std::uint64_t missed_ = 0;    ///< interrupts, since the last that was kept
    std::deque<Due> interrupts_;
    std::map<std::uint64_t, Page> pages_;  ///< by their offsets
    std::uint64_t next_page_ = 0;          ///< that is compared
    std::uint64_t looks_ = 0;              ///< pages that were compared
    std::deque<std::uint64_t> maps_;       ///< when each has been shown
    std::uint64_t shown_ = 0;              ///< maps
    std::vector<std::byte> buffer_;
};

}  // namespace remote
