// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The Billboard protocol itself, over any link and either posting board.
///
/// Contract: billboard/endpoint.hpp. Of the link it uses the Memory M, and of a membership in its
/// ring what rmem/link/memory.hpp lists. The short, expected paths are here, so that they are
/// compiled into the C functions; the others are beside it:
///   core/peers.hpp      who is there: joining, deaths, returns
///   core/sending.hpp    buffers, multicast, messages larger than a partition
///   core/receiving.hpp  order, classes, parts
///   core/viewing.hpp    views
///   core/barriers.hpp   barriers and groups by name
///
/// Invariants
///   (I1) A rank posts to s only while s's confirmation word for it holds its own incarnation.
///   (I2) A rank confirms s only when s is fresh or has confirmed it, after it has taken over all
///        that s's former incarnation had posted: so nothing is read by a slot number or a flag
///        that meant another message.
///   (I3) A restarted rank writes no buffer until every live peer has confirmed it.
///   (I4) What is taken from the board is delivered, set aside or counted as dropped: never lost.
///   (I5) While BBP_EPEER of a rank that is back is due, its former life's end stands among the
///        messages set aside, before all of its new life, and nothing is posted to that.

#include "billboard/boards/arrival.hpp"
#include "billboard/boards/buffers.hpp"
#include "billboard/boards/inline_board.hpp"
#include "billboard/boards/paper_board.hpp"
#include "billboard/core/answer_pause.hpp"
#include "billboard/core/counters.hpp"
#include "billboard/core/set_aside.hpp"
#include "billboard/core/wake_fd.hpp"
#include "billboard/endpoint.hpp"
#include "billboard/errors.hpp"
#include "rmem/base/copy.hpp"
#include "rmem/base/marks.hpp"
#include "rmem/link/direct/memory.hpp"
#include "rmem/link/memory.hpp"
#include "rmem/link/seat.hpp"

#include <boost/container/small_vector.hpp>

#include <bitset>
#include <deque>
#include <memory>
#include <vector>

namespace billboard {

inline constexpr std::size_t kTotalBytes = 8;  ///< the first part of a large message: its size
inline constexpr std::uint64_t kImpossible = ~std::uint64_t{0};
inline constexpr unsigned kEmptyPollsPerLook = 64;  ///< try calls between looks at the clock
/// At one sender's messages in one go: all that it can have posted, each seen twice where it ends a
/// message in parts.
inline constexpr unsigned kMostLooks = 2 * kBuffers;

template <class M, template <class> class BoardOf>
class EndpointCore final : public Endpoint {
public:
    using Board = BoardOf<M>;
    static constexpr int kNobody = -2;  ///< neither a rank nor BBP_ANY
    /// Its calls are to be guarded (billboard/core/node_guard.hpp).
    static constexpr bool kMayLoseNode = requires(const M& memory) { memory.has_bank(); };

    EndpointCore(std::shared_ptr<rmem::Seat<M>> seat, const Settings& settings, Deadline deadline,
                 const typename M::Options& options = {});
    /// In a seat of its own.
    EndpointCore(std::shared_ptr<typename M::Ring> ring, rmem::Member member,
                 const Settings& settings, Deadline deadline,
                 const typename M::Options& options = {})
        : EndpointCore(std::make_shared<rmem::Seat<M>>(std::move(ring), member, options), settings,
                       deadline, options) {}
    ~EndpointCore() override;

    unsigned rank() const noexcept override { return me_; }
    unsigned ranks() const noexcept override { return ranks_; }
    std::size_t partition_bytes() const noexcept override { return buffers_.data_bytes(); }

    [[gnu::always_inline]] int send(int dest, const void* buf, std::size_t len,
                                    Deadline deadline = {}, Class cls = Class::user) override {
        if (Board::kInlineBytes != 0 && len <= Board::kInlineBytes &&
            static_cast<unsigned>(dest) < ranks_ && (buf != nullptr || len == 0)) [[likely]] {
            const auto d = static_cast<unsigned>(dest);
            if ((board_.tx_room(d) || (!is_try(deadline) && await_room_briefly(d))) &&
                aborts_due_ == 0 && memory_.room(rmem::kLineBytes)) [[likely]] {
                board_.post_inline(d, cls, buf, len);
                memory_.commit();
                RMEM_MARK("send.before-wake");
                memory_.notify(d);
                return BBP_OK;
            }
        }
        return send_slowly(dest, buf, len, deadline, cls);
    }

    [[gnu::always_inline]] int recv(int src, void* buf, std::size_t cap, std::size_t* len,
                                    Deadline deadline = {}, Class cls = Class::user) override {
        const bool any = src == BBP_ANY;
        int from = recv_inline(any ? board_.find(next_any_) : src, any, buf, cap, len, cls);
        if (from >= 0) [[likely]]
            return from;
        if (!is_try(deadline)) {
            from = recv_inline(await_briefly(src), any, buf, cap, len, cls);
            if (from >= 0) return from;
        }
        return recv_slowly(src, buf, cap, len, deadline, cls);
    }

    int available(int src, Class cls = Class::user) override {
        if (!M::kReplicated && src == BBP_ANY && aside_.empty() && !board_.may_have_any() &&
            ++empty_polls_ < kEmptyPollsPerLook) [[likely]] {
            memory_.give_way();
            return 0;
        }
        const int source = probe(src, nullptr, cls);
        return source >= 0 ? 1 : source == BBP_EAGAIN ? 0 : source;
    }

    int mcast(std::span<const int> dests, const void* buf, std::size_t len, Deadline deadline = {},
              Class cls = Class::user) override;
    int send_joined(std::span<const int> dests, Bytes head, Bytes body,
                    Class cls = Class::user) override;
    int probe(int src, std::size_t* len, Class cls = Class::user) override;
    int compose(std::size_t len, void** buf) override;
    int post(std::span<const int> dests, void* buf, std::size_t len, Deadline deadline = {},
             Class cls = Class::user) override;
    int discard(void* buf) override;
    int view(int src, const void** data, std::size_t* len, Deadline deadline = {},
             Class cls = Class::user) override;
    int release(const void* data) override;
    int take(std::byte* small, const void** data, std::size_t* len, Deadline deadline = {},
             Class cls = Class::user) override {
        const int candidate = board_.find(next_any_);
        const int from = recv_inline(candidate, true, small, kInlineBytes, len, cls);
        if (from >= 0) [[likely]] {
            if constexpr (Board::kInlineBytes != 0)
                board_.expect_answer(static_cast<unsigned>(from));
            *data = small;
            return from;
        }
        if (!is_try(deadline)) return take_slowly(small, data, len, deadline, cls);
        if (!M::kReplicated && candidate < 0 && aside_.empty() && gathering_ == 0 &&
            ++empty_polls_ < kEmptyPollsPerLook) [[likely]] {
            return BBP_EAGAIN;
        }
        look_for(BBP_ANY, cls);
        return try_view(BBP_ANY, data, len, cls, deadline, small);
    }
    /// take() of a message that is there, whole in its slot. BBP_EAGAIN: there seems to be nothing.
    /// kNobody: something that takes longer, so ask take(); which also looks for the dead now and
    /// then.
    [[gnu::always_inline]] int take_at_once(std::byte* small, std::size_t* len, Class cls) {
        const int candidate = board_.find(next_any_);
        if (candidate < 0) return aside_.empty() && gathering_ == 0 ? BBP_EAGAIN : kNobody;
        const int from = recv_inline(candidate, true, small, kInlineBytes, len, cls);
        if constexpr (Board::kInlineBytes != 0) {
            if (from >= 0) [[likely]]
                board_.expect_answer(static_cast<unsigned>(from));
        }
        return from;
    }
    /// The same of one that comes within a brief wait; kNobody: none has.
    [[gnu::always_inline]] int take_briefly(std::byte* small, std::size_t* len, Class cls,
                                            AnswerPause& pause) {
        for (unsigned polls = memory_.brief_polls();; --polls) {
            if (const int from = take_at_once(small, len, cls); from != BBP_EAGAIN) return from;
            if (polls == 0) return kNobody;
            pause.after_empty_poll();
        }
    }
    /// send_joined() to one rank, of what lies beside a flag. False: something else, or no room
    /// now, so ask that.
    [[gnu::always_inline]] bool send_joined_at_once(int dest, Bytes head, Bytes body, Class cls) {
        if constexpr (Board::kInlineBytes != 0 && !M::kReplicated) {
            const auto d = static_cast<unsigned>(dest);
            if (head.size() + body.size() <= kHeadBytes && d < ranks_ && board_.tx_room(d) &&
                aborts_due_ == 0) [[likely]] {
                board_.post_joined(d, cls, head, body);
                memory_.notify(d);
                return true;
            }
        }
        return false;
    }
    int barrier(Deadline deadline = {}) override;
    int barrier_group(std::span<const int> members, unsigned id, Deadline deadline = {}) override;
    int group_join(std::string_view name) override;
    int group_leave(std::string_view name) override;
    int mcast_group(std::string_view name, const void* buf, std::size_t len, Deadline deadline = {},
                    Class cls = Class::user) override;
    int fd() override;
    rmem::Ring* ring() noexcept override {
        if constexpr (M::kHasDescriptors) return &member_.ring();
        return nullptr;
    }
    void give_way() override { memory_.give_way(); }
    bool is_crowded() override { return memory_.is_crowded(); }
    bool has_left(unsigned s) override { return peers_[s].left; }
    void set_progress_thread(bool on) override {
        if constexpr (M::kReplicated) seat_->set_progress_thread(on);
    }
    Deadline deadline_in(std::int64_t ns) const override {
        return ns <= 0 ? Deadline::now() : Deadline::after(memory_.now_ns(), ns);
    }
    void leave() noexcept override;

    /// Whether the bank is still that of the node's life that this rank has opened in.
    bool has_bank() const noexcept {
        if constexpr (kMayLoseNode) return memory_.has_bank();
        return true;
    }
    /// Whether s has given this rank up, though it lives: then s may have used the buffers of its
    /// messages again.
    bool is_given_up_by(unsigned s) const noexcept;
    /// Takes it for dead in turn, and nothing of it any more.
    void give_up(unsigned s);
    /// BBP_EPEER, after which nothing of it is due any more.
    int tell_gone(unsigned s);

private:
    /// What this rank knows of another.
    struct Peer {
        std::uint32_t incarnation = 0;  ///< 0: never seen
        bool rx_open = false;
        bool tx_open = false;
        bool gone = false;       ///< dead or left; what it had posted may still be there
        bool left = false;       ///< its last life that is over ended by leaving
        bool peer_due = false;   ///< BBP_EPEER is still to be reported, once: gone or (I5)
        bool abort_due = false;  ///< a half-sent message is still to be taken back
        unsigned views = 0;      ///< views of its data that are out
        bool gathering = false;  ///< a message in parts is being gathered
        Class gathering_class = Class::user;
        std::uint64_t gathering_total = 0;
        std::uint64_t gathered_bytes = 0;
        std::byte* sink = nullptr;  ///< where to; null: to `gathered`
        bool sink_filled = false;
        std::vector<std::byte> gathered;
    };
    struct View {
        const std::byte* data;
        unsigned source;
        unsigned buffer;  ///< kPrivate: `copy` holds the bytes
        std::vector<std::byte> copy;
    };
    static constexpr unsigned kPrivate = kBuffers;
    using RankSet = std::bitset<rmem::kMaxRanks>;

    /// A message, one piece behind the other. Only `body` may be larger than a partition.
    struct Pieces {
        Bytes head, body;
        std::size_t size() const noexcept { return head.size() + body.size(); }
    };
    static Pieces whole(const void* buf, std::size_t len) noexcept {
        return {{}, {static_cast<const std::byte*>(buf), len}};
    }

    /// The receivers of one post that are still to be reached.
    struct Post {
        boost::container::small_vector<unsigned, 8> dests;  // no allocation for a few
        boost::container::small_vector<unsigned, 1> gone;   ///< struck from it
    };

    // -- core/peers.hpp
    void join(Deadline deadline);
    bool all_joined() const;
    void refresh(unsigned s);
    bool see(unsigned s);
    void meet(unsigned s, std::uint32_t incarnation);
    void connect(unsigned s);
    bool has_departed(unsigned s) const;
    Counter why_gone(unsigned s) const;
    void mark_gone(unsigned s, Counter why);
    void take_over(unsigned s);
    void check_peers();
    bool incarnation_is_over() const;
    bool is_gone(unsigned s);
    bool others_gone();
    bool data_open();
    int gone_error(unsigned s);
    void close_incarnation(unsigned s);
    int end_incarnation(unsigned s);
    bool has_confirmed(unsigned s) const;

    // -- core/sending.hpp
    bool await_room_briefly(unsigned d);
    bool can_post_inline(std::span<const int> dests);
    int send_slowly(int dest, const void* buf, std::size_t len, Deadline deadline, Class cls);
    int check_message(std::span<const int> dests, const void* buf, std::size_t len) const;
    int send_joined_slowly(std::span<const int> dests, const Pieces& pieces, Class cls);
    int mcast_slowly(std::span<const int> dests, const Pieces& pieces, Deadline deadline,
                     Class cls);
    int post_to(Post& post, const Pieces& pieces, Deadline deadline, Class cls);
    int try_post(Post& post, const Pieces& pieces, Class cls);
    int ready(Post& post, bool needs_data, std::size_t bytes);
    bool self_room();
    bool post_abort(unsigned d);
    void set_abort_due(unsigned d, bool due);
    std::optional<unsigned> allocate(std::size_t bytes);
    std::optional<unsigned> allocate_for(const Post& post, std::size_t bytes);
    void announce(const Post& post, unsigned buffer, const Descriptor& d);
    void fill(unsigned buffer, const void* buf, std::size_t len);
    void after_post(std::size_t at, std::size_t len);
    void take_back(const Post& post);
    int send_in_parts(Post& post, Bytes bytes, Deadline deadline, Class cls);
    int try_part(Post& post, const std::byte* from, std::size_t bytes, std::size_t total, Class cls,
                 Part part);
    int result_of(const Post& post);
    int room_timed_out(const Post& post) const;
    std::optional<unsigned> find_composed(const void* buf) const;
    int try_post_composed(Post& post, unsigned buffer, std::size_t len, Class cls);

    // -- core/receiving.hpp
    int await_briefly(int src);
    [[gnu::always_inline]] int recv_inline(int from, bool any, void* buf, std::size_t cap,
                                           std::size_t* len, Class cls);
    int take_slowly(std::byte* small, const void** data, std::size_t* len, Deadline deadline,
                    Class cls);
    int recv_slowly(int src, void* buf, std::size_t cap, std::size_t* len, Deadline deadline,
                    Class cls);
    int check_source(int src) const;
    enum class Found { nothing, private_memory, board, in_parts };
    /// What a message must be like for who looks for one: `ready`, whole as it is; `begun`, of one
    /// in parts the first will do; `coming`, so it will of one that is being filled.
    enum class Wanted { ready, begun, coming };
    int find(int src, Class cls, Wanted wanted, Found& found, unsigned& s, Arrival& a);
    int settle(unsigned s, Class cls, Wanted wanted, Arrival& a);
    bool has_whole(int src, Class cls);
    bool gather(unsigned s, const Arrival& a);
    std::uint64_t total_of(unsigned s, const Arrival& a) const;
    bool set_aside(unsigned s, const Arrival& a);
    bool is_filled(unsigned s, const Arrival& a) const;
    void drop(unsigned s, const Arrival& a, Counter why);
    int try_recv(int src, void* buf, std::size_t cap, std::size_t* len, Deadline deadline,
                 Class cls);
    int deliver(unsigned s, bool any, const Arrival& a, void* buf, std::size_t cap,
                std::size_t* len, Deadline deadline);
    int copy_filling(unsigned s, bool any, const Arrival& a, void* buf, Deadline deadline);
    int recv_parts(unsigned s, bool any, void* buf, std::size_t cap, std::size_t* len,
                   Deadline deadline);
    bool has_next_beside(unsigned s) const;
    int nothing_from(int src, Deadline deadline);
    void look_around(int src);
    void gather_from(unsigned s);
    void gather_all();
    void gather_latest();
    int find_in_parts(int src, Class cls) const;
    int find_taken(int src, Class cls, Found& found, unsigned& s);
    int find_unfinished(int src, Class cls, Found& found, unsigned& s) const;
    int half_lost(unsigned s, bool any);
    void stop_gathering(Peer& p);
    void start_gathering(Peer& p, Class cls, std::size_t total);
    void give_up_gathering(unsigned s, const Arrival& a, Part part);
    int deliver_private(SetAside::Message* message, void* buf, std::size_t cap, std::size_t* len);
    int try_view(int src, const void** data, std::size_t* len, Class cls, Deadline deadline,
                 std::byte* small = nullptr);
    const std::byte* bytes_of(unsigned s, const Arrival& a) const {
        return a.is_inline ? a.payload
                           : memory_.data(geometry_.data(s) + a.descriptor.offset, a.length);
    }

    // -- core/barriers.hpp
    int check_members(std::span<const int> members, unsigned id);
    int arrive_and_wait(std::span<const int> members, std::size_t index, Deadline deadline);
    int barrier_by_messages(std::span<const int> members, unsigned id, Deadline deadline);
    std::size_t barrier_word(unsigned r, std::size_t count_index) const {
        return count_index == 0 ? geometry_.barrier(r)
                                : geometry_.barrier(r, static_cast<unsigned>(count_index - 1));
    }
    bool is_in_group(unsigned r, std::uint64_t hash) const;

    /// Tries until `attempt` gives something else than BBP_EAGAIN or the deadline passes:
    /// BBP_ETIMEDOUT, to which the caller adds its sentence. Between looks at the peers it tries
    /// only when `worth_trying` says so: that is the spinning loop.
    template <class Attempt, class Worth>
    int wait_for(Deadline deadline, Attempt&& attempt, Worth&& worth_trying) {
        int result = attempt();
        if (result != BBP_EAGAIN) return result;
        if (is_try(deadline)) return not_now();
        memory_.begin_wait();
        while (result == BBP_EAGAIN) {
            rmem::Step step;
            do {
                step = memory_.wait(deadline);
            } while (step == rmem::Step::poll && !worth_trying());
            if (step == rmem::Step::check_peers) [[unlikely]] {
                if (awaited_ >= 0) refresh(static_cast<unsigned>(awaited_));
                check_peers();
            }
            result = attempt();
            if (step == rmem::Step::expired && result == BBP_EAGAIN) result = BBP_ETIMEDOUT;
        }
        memory_.end_wait();
        return result;
    }
    /// What a call that does not wait says when there is nothing, or no room.
    int not_now() noexcept {
        memory_.give_way();
        return BBP_EAGAIN;
    }
    /// That a message was taken leaves with the answer, if there is one, where a datagram of its
    /// own would cost as much.
    void commit_taken() {
        if constexpr (rmem::CommitsOnWait<M>) {
            memory_.commit_on_wait();
        } else {
            memory_.commit();
        }
    }
    /// Before a message is posted.
    void look_before_post() {
        if constexpr (rmem::CommitsOnWait<M>) {
            memory_.progress_to_post();
        } else {
            memory_.progress();
        }
    }
    /// Before a message is looked for. Where asking the link is a system call, one that is here
    /// whole needs none.
    void look_for(int src, Class cls) {
        if constexpr (M::kFar) {
            if (has_whole(src, cls)) return;
        }
        memory_.progress();
    }
    template <class Attempt>
    int wait_for(Deadline deadline, Attempt&& attempt) {
        return wait_for(deadline, attempt, [] { return true; });
    }
    static bool is_try(Deadline deadline) noexcept {
        return deadline.passed(std::numeric_limits<std::int64_t>::min());
    }

    void count(Counter id, std::uint64_t n = 1) noexcept { counters_.add(id, n); }

    using MemoryInUse = std::conditional_t<M::kReplicated, M&, M>;
    static MemoryInUse memory_of(rmem::Seat<M>& seat, const typename M::Options& options) {
        if constexpr (M::kReplicated) {
            return seat.memory;
        } else {
            return M(seat.member, options);
        }
    }

    std::shared_ptr<rmem::Seat<M>> seat_;
    typename M::Membership& member_;
    Geometry geometry_;
    MemoryInUse memory_;
    Settings settings_;
    unsigned me_;
    unsigned ranks_;
    std::uint32_t incarnation_ =
        0;  ///< of this rank's messages: 1 the first, more each time that they begin
    unsigned next_any_ = 0;  ///< BBP_ANY looks here first, so that nobody starves
    unsigned next_check_ = 0;
    int awaited_ = -1;                           ///< whom a call waits for, if it is one
    unsigned empty_polls_ = kEmptyPollsPerLook;  ///< since the last look, whatever the call
    std::int64_t next_look_ns_ = 0;              ///< for dead peers, by a try call
    std::size_t first_part_at_ = 0;              ///< of the message that is being sent in parts
    unsigned aborts_due_ = 0;  ///< peers to whom a half-sent message is to be taken back
    unsigned gathering_ = 0;   ///< peers of which a message in parts is being gathered
    bool data_open_ = false;   ///< (I3)
    bool is_first_ = false;    ///< no life of this rank was announced before
    bool left_ = false;
    SetAside aside_;
    Board board_;
    Buffers buffers_;
    std::vector<Peer> peers_;
    std::vector<View> views_;
    std::vector<std::byte>
        joined_;  ///< a message of two pieces, where they cannot be joined in place
    rmem::Counters& counters_;
    std::vector<std::uint32_t> barrier_counts_;
    std::vector<bool> barrier_pending_;
    std::vector<std::vector<int>> barrier_members_;
    std::vector<int> everybody_;
    std::unique_ptr<WakeFd> wake_fd_;
};

/// Spins until something is there, but not for long. Whose it is; kNobody: nothing, or it takes
/// longer.
template <class M, template <class> class BoardOf>
inline int EndpointCore<M, BoardOf>::await_briefly(int src) {
    if (!aside_.empty() || gathering_ != 0) return kNobody;
    unsigned polls = memory_.brief_polls();
    if (static_cast<unsigned>(src) < ranks_) {
        return board_.await_next(static_cast<unsigned>(src), polls) ? src : kNobody;
    }
    for (; src == BBP_ANY && polls > 0; --polls) {
        rmem::cpu_relax();
        if (const int from = board_.find(next_any_); from >= 0) return from;
    }
    return kNobody;
}

/// The expected case, from whom something seems to be there; `any`: he was not asked for by name.
/// kNobody: nothing is there, or something that takes longer to say.
template <class M, template <class> class BoardOf>
inline int EndpointCore<M, BoardOf>::recv_inline(int from, bool any, void* buf, std::size_t cap,
                                                 std::size_t* len, Class cls) {
    if constexpr (Board::kInlineBytes != 0) {
        const auto s = static_cast<unsigned>(from);
        if (s >= ranks_ || buf == nullptr || !aside_.empty()) [[unlikely]]
            return kNobody;
        const int length = board_.receive_head(s, cls, buf, cap);
        if (length < 0) return kNobody;
        if (len != nullptr) *len = static_cast<std::size_t>(length);
        if (any) next_any_ = s + 1 == ranks_ ? 0 : s + 1;
        return from;
    }
    return kNobody;
}

extern template class RMEM_API EndpointCore<rmem::DirectMemory, InlineBoard>;
extern template class EndpointCore<rmem::DirectMemory, PaperBoard>;

/// Where a store is the transfer, a call between libraries costs as much as what it does: who has
/// this compiled in (billboard/bbp.h's calls, ports') asks by fastest() whether an endpoint is of
/// it.
using Fastest = EndpointCore<rmem::DirectMemory, InlineBoard>;
inline Fastest* fastest(Endpoint* endpoint) noexcept {
    return dynamic_cast<Fastest*>(endpoint);
}

}  // namespace billboard
