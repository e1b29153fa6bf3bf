// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Which receive a message belongs to: the rules of MPI, and of libfabric's tagged and untagged
/// messages.
///
///     if (auto match = matcher.arrive(envelope)) …copy to match->placement in match->receive…
///     else matcher.keep(message);                    // its bytes in private memory, at once
///
///     while (Message* message = matcher.post(receive, placement)) {
///         …copy from the message…
///         if (placement.last) break;
///     }
///
/// Terms
///   receive     a buffer that waits for a message; *posted* while it is in the matcher
///   message     one that has come before its receive; *unexpected* while it is in the matcher
///   tag         64 bits. Those set in a receive's `ignore` do not count. Untagged messages have a
///               matcher of their own, tags 0.
///   source      the number of the sender, below the matcher's `sources`; kAnySource in what is
///               asked for: any
///
/// Rules
///   - A message goes to the receive posted first among those that it fits; a receive gets the
///     message that came first among those that fit it. So messages of one source that fit the same
///     receive are received in the order in which they came.
///   - A receive of several messages (`least` > 0) takes them one behind the other into one buffer,
///     until fewer than `least` bytes are free (1: until all is full); one with `least` 0 takes
///     one.
///   - A message that is longer than the room that a receive has is cut; what does not fit is lost
///     (MPI_ERR_TRUNCATE).
///   - What was claimed belongs to its claimer, and fits no receive any more.
///
/// Receives and messages are the caller's: they stay where they are, and as they are, while they
/// are in a matcher. Nothing is allocated after construction, and nothing throws.
///
/// Invariants, of which (M2) and (M3) are the caller's part
///   (M1) A receive is posted exactly while it is in one list: of its source, or of any source. A
///        message is unexpected exactly while it is in two: of all, and of its source.
///   (M2) A source that is named is below `sources`.
///   (M3) A receive that is posted, and a message that is kept, is in no matcher yet.
/// They are checked where `kAlwaysChecks` says so, and in debug builds (rmem/base/check.hpp).
///
/// Cost: a receive that names its source, and a message, look at what is posted for that source and
/// for any, or has come from it.
/// Thread safety: one thread at a time.

#include <boost/intrusive/list.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace mpi_channel {

using Source = std::uint32_t;
inline constexpr Source kAnySource = ~Source{0};

/// Of a message.
struct Envelope {
    Source source = 0;
    std::uint64_t tag = 0;
    std::size_t size = 0;
};

/// The messages that a receive, or a question, asks for.
struct Wanted {
    Source source = kAnySource;
    std::uint64_t tag = 0;
    std::uint64_t ignore = 0;

    [[nodiscard]] bool fits(const Envelope& envelope) const noexcept {
        return (source == kAnySource || source == envelope.source) &&
               ((tag ^ envelope.tag) & ~ignore) == 0;
    }
};

namespace intrusive = boost::intrusive;
struct InOrder;   ///< among all unexpected messages
struct BySource;  ///< among those of one source, or receives that name it
template <class Tag>
using Link =
    intrusive::list_base_hook<intrusive::tag<Tag>, intrusive::link_mode<intrusive::normal_link>>;

/// A buffer that waits. The caller derives from it, or finds its own by address.
struct Receive : Link<BySource> {
    Wanted wanted;
    std::size_t capacity = 0;
    std::size_t least = 0;  ///< 0: one message; else it is over when fewer bytes are free
    /// By the messages taken so far; 0 again when it is used for another buffer.
    std::size_t used = 0;

    // The matcher's own
    std::uint64_t turn = 0;
    bool posted = false;
};

/// One that has come before its receive.
struct Message : Link<InOrder>, Link<BySource> {
    Envelope envelope;

    // The matcher's own
    bool unexpected = false;
};

/// Where in a receive's buffer a message goes.
struct Placement {
    std::size_t at = 0;
    std::size_t bytes = 0;
    bool cut = false;   ///< the message is longer
    bool last = false;  ///< the receive is over
};

struct Match {
    Receive* receive;
    Placement placement;
};

template <bool kAlwaysChecks>
class MatcherOf {
public:
    explicit MatcherOf(unsigned sources);
    /// Nothing is in it any more, or its owners go with it.
    ~MatcherOf();
    MatcherOf(const MatcherOf&) = delete;
    MatcherOf& operator=(const MatcherOf&) = delete;

    // ---- Messages that come
    /// The receive that the message belongs to, and where it goes; the receive is no longer posted
    /// if that was its last. Nothing: keep().
    [[nodiscard]] std::optional<Match> arrive(const Envelope& envelope);
    /// Of a message without a receive yet. `envelope` is set; it came after all others in
    /// here.
    void keep(Message& message);

    // ---- Receives
    /// The unexpected message that the receive takes first, no longer in here, and in `placement`
    /// where it goes; null: the receive is posted. After one that was not the last
    /// (`placement.last`), ask again with the same receive.
    [[nodiscard]] Message* post(Receive& receive, Placement& placement);
    /// True if it was posted, and is no longer. False: it is over already, or was never posted.
    bool cancel(Receive& receive);

    // ---- Questions
    /// The unexpected message that such a receive would get; it stays.
    [[nodiscard]] Message* peek(const Wanted& wanted);
    /// The same, and takes it out: it is the caller's, to be received or discarded.
    [[nodiscard]] Message* claim(const Wanted& wanted);
    /// Takes out one that peek() has given.
    void claim(Message& message);

    /// Where a message claimed goes in a receive that was not posted.
    [[nodiscard]] static Placement place(Receive& receive, std::size_t size) noexcept;

    // ---- When a source is gone for good
    /// The receive posted first that names it, no longer posted; null: none is left. Those of any
    /// source stay, unless kAnySource is given: then they are meant.
    [[nodiscard]] Receive* take_hopeless(Source source);

    [[nodiscard]] std::size_t posted() const noexcept { return posted_; }
    [[nodiscard]] std::size_t unexpected() const noexcept { return in_order_.size(); }

private:
    using Receives = intrusive::list<Receive, intrusive::base_hook<Link<BySource>>>;
    using Messages = intrusive::list<Message, intrusive::base_hook<Link<InOrder>>>;
    using MessagesOfOne = intrusive::list<Message, intrusive::base_hook<Link<BySource>>>;

    static Receive* first_fit(Receives& receives, const Envelope& envelope) noexcept;
    Receives& receives_of(Source source) noexcept;
    void take(Receive& receive) noexcept;

    std::vector<Receives> of_;  ///< receives that name a source
    Receives of_any_;
    std::vector<MessagesOfOne> from_;
    Messages in_order_;
    std::uint64_t turns_ = 0;
    std::size_t posted_ = 0;
};

/// One whose checks run in every build.
using Matcher = MatcherOf<true>;

}  // namespace mpi_channel
