// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The Billboard protocol itself, over any link and either posting board.
///
/// Contract: billboard/endpoint.hpp. Of the link it uses the Memory M, and of a membership in its
/// ring what rmem/link/memory.hpp lists. It is made of parts, each of which owns its state and
/// states its invariants, and knows only those above it:
///   core/own_rank.hpp     what all use: this rank's memory, board, counters
///   core/set_aside.hpp    messages in private memory
///   core/reassembly.hpp   messages in parts
///   core/views.hpp        messages in view
///   core/aborts_due.hpp   who is still to be told of a message taken back
///   core/peers.hpp        who is there: joining, deaths, returns; waiting, with a look at them
///   core/posting.hpp      buffers, multicast, parts
///   core/taking.hpp       order, classes, deliveries
///   core/barriers.hpp     barriers
///   core/groups.hpp       groups by name
/// The short, expected ways of sending and receiving are here, so that they are compiled into the
/// C functions. What they read lies in this object, without a pointer in between.

#include "billboard/boards/line_board.hpp"
#include "billboard/boards/paper_board.hpp"
#include "billboard/core/aborts_due.hpp"
#include "billboard/core/answer_pause.hpp"
#include "billboard/core/barriers.hpp"
#include "billboard/core/groups.hpp"
#include "billboard/core/own_rank.hpp"
#include "billboard/core/peers.hpp"
#include "billboard/core/posting.hpp"
#include "billboard/core/reassembly.hpp"
#include "billboard/core/set_aside.hpp"
#include "billboard/core/taking.hpp"
#include "billboard/core/views.hpp"
#include "billboard/endpoint.hpp"
#include "rmem/base/marks.hpp"
#include "rmem/link/direct/memory.hpp"
#include "rmem/link/memory.hpp"
#include "rmem/link/seat.hpp"

#include <memory>
#include <utility>

namespace billboard {

template <class M, template <class> class BoardOf>
class EndpointCore final : public Endpoint {
public:
    using Own = OwnRank<M, BoardOf>;
    using Board = typename Own::Board;
    static constexpr int kNobody = billboard::kNobody;
    static constexpr int kInLines = kNobody - 1;  ///< recv_at_once()
    /// Where a store is the transfer, a call costs as much as what it does.
    static constexpr bool kHasShortCalls = Board::kHasShortCalls;
    /// Its calls are to be guarded (billboard/core/node_guard.hpp).
    static constexpr bool kMayLoseNode = Own::kMayLoseNode;

    EndpointCore(std::shared_ptr<rmem::Seat<M>> seat, const Settings& settings, Deadline deadline,
                 const typename M::Options& options = {});
    /// In a seat of its own.
    EndpointCore(std::shared_ptr<typename M::Ring> ring, rmem::Member member,
                 const Settings& settings, Deadline deadline,
                 const typename M::Options& options = {})
        : EndpointCore(std::make_shared<rmem::Seat<M>>(std::move(ring), member, options), settings,
                       deadline, options) {}
    ~EndpointCore() override { leave(); }

    unsigned rank() const noexcept override { return own_.me; }
    unsigned ranks() const noexcept override { return own_.ranks; }
    std::size_t partition_bytes() const noexcept override { return posting_.data_bytes(); }
    std::size_t short_bytes() const noexcept override { return own_.board.most_short(); }

    /// send() of a shortest message to a rank that answers; false if it is another case, and
    /// send_in_line() is to be asked. Calls nothing but to wake the receiver, and throws nothing.
    [[nodiscard, gnu::always_inline]] bool send_in_slot(int dest, const void* buf, std::size_t len,
                                                        Class cls = Class::user) noexcept {
        return post_at_once<Place::slot>(dest, buf, len, cls);
    }
    /// The same of what fits a line. False: it takes longer, so ask send_in_lines().
    [[nodiscard, gnu::always_inline]] bool send_in_line(int dest, const void* buf, std::size_t len,
                                                        Class cls = Class::user) noexcept {
        return post_at_once<Place::line>(dest, buf, len, cls);
    }
    /// The same of what takes several. False: it takes longer, so ask send().
    [[nodiscard, gnu::always_inline]] bool send_in_lines(int dest, const void* buf, std::size_t len,
                                                         Class cls = Class::user) noexcept {
        return post_at_once<Place::lines>(dest, buf, len, cls);
    }
    /// recv() from a named rank of what is there, short and fits. BBP_EAGAIN: nothing is there;
    /// kInLines: recv_lines() takes it; kNobody: something that takes longer, or it is unknown.
    [[nodiscard, gnu::always_inline]] int recv_at_once(int src, void* buf, std::size_t cap,
                                                       std::size_t* len,
                                                       Class cls = Class::user) noexcept {
        if constexpr (kHasShortCalls) {
            const auto s = static_cast<unsigned>(src);
            if (s >= own_.ranks || buf == nullptr || !aside_.empty()) [[unlikely]]
                return kNobody;
            const int length = own_.board.receive_at_once(s, cls, buf, cap);
            if (length < 0)
                return length == Board::kNothing   ? BBP_EAGAIN
                       : length == Board::kInLines ? kInLines
                                                   : kNobody;
            if (len != nullptr) *len = static_cast<std::size_t>(length);
            return src;
        }
        return kNobody;
    }
    /// recv() of what recv_at_once() has found in several lines. kNobody: it is not whole yet.
    [[nodiscard, gnu::always_inline]] int recv_lines(int src, void* buf, std::size_t cap,
                                                     std::size_t* len, Class cls = Class::user) {
        if constexpr (kHasShortCalls) {
            const int length = own_.board.receive_lines(static_cast<unsigned>(src), cls, buf, cap);
            if (length < 0) return kNobody;
            if (len != nullptr) *len = static_cast<std::size_t>(length);
            return src;
        }
        return kNobody;
    }
    /// recv() after recv_at_once() has found nothing: another look at once would take the line from
    /// its writer.
    [[nodiscard]] int recv_after_look(int src, void* buf, std::size_t cap, std::size_t* len) {
        return recv_later(src, buf, cap, len, {}, Class::user);
    }

    [[gnu::always_inline]] int send(int dest, const void* buf, std::size_t len,
                                    Deadline deadline = {}, Class cls = Class::user) override {
        if (post_at_once<Place::any>(dest, buf, len, cls)) return BBP_OK;
        if (Board::kInlineBytes != 0 && static_cast<unsigned>(dest) < own_.ranks &&
            own_.board.is_short(len) && (buf != nullptr || len == 0)) [[likely]] {
            const auto d = static_cast<unsigned>(dest);
            if ((own_.board.tx_room(d) || (!is_try(deadline) && await_room_briefly(d))) &&
                !aborts_due_.any() && own_.memory.room(Board::posted_bytes(len))) [[likely]] {
                own_.board.post_inline(d, cls, buf, len);
                own_.memory.commit();
                RMEM_MARK("send.before-wake");
                own_.memory.notify(d);
                return BBP_OK;
            }
        }
        return posting_.send(dest, buf, len, deadline, cls);
    }

    [[gnu::always_inline]] int recv(int src, void* buf, std::size_t cap, std::size_t* len,
                                    Deadline deadline = {}, Class cls = Class::user) override {
        const bool any = src == BBP_ANY;
        const int from = recv_short(any ? find_any() : src, any, buf, cap, len, cls);
        if (from >= 0) [[likely]]
            return from;
        found_nothing(src);
        return is_try(deadline) ? taking_.recv(src, buf, cap, len, deadline, cls)
                                : recv_later(src, buf, cap, len, deadline, cls);
    }

    int available(int src, Class cls = Class::user) override {
        if (!M::kReplicated && src == BBP_ANY && aside_.empty() && !own_.board.may_have_any() &&
            taking_.is_early_to_look_around()) [[likely]] {
            own_.memory.give_way();
            return 0;
        }
        const int source = probe(src, nullptr, cls);
        return source >= 0 ? 1 : source == BBP_EAGAIN ? 0 : source;
    }

    [[nodiscard]] int mcast(std::span<const int> dests, const void* buf, std::size_t len,
                            Deadline deadline = {}, Class cls = Class::user) override;
    int send_joined(std::span<const int> dests, Bytes head, Bytes body,
                    Class cls = Class::user) override;
    int probe(int src, std::size_t* len, Class cls = Class::user) override {
        return taking_.probe(src, len, cls);
    }
    int compose(std::size_t len, void** buf) override { return posting_.compose(len, buf); }
    int post(std::span<const int> dests, void* buf, std::size_t len, Deadline deadline = {},
             Class cls = Class::user) override {
        return posting_.post(dests, buf, len, deadline, cls);
    }
    int discard(void* buf) override { return posting_.discard(buf); }
    int view(int src, const void** data, std::size_t* len, Deadline deadline = {},
             Class cls = Class::user) override {
        return taking_.view(src, data, len, deadline, cls);
    }
    int release(const void* data) override { return views_.release(data); }
    int take(std::span<std::byte> small, const void** data, std::size_t* len,
             Deadline deadline = {}, Class cls = Class::user) override {
        const int candidate = find_any();
        // A program that polls makes this many times a message.
        if (candidate < 0 && is_try(deadline) && !M::kReplicated && has_taken_nothing() &&
            taking_.is_early_to_look_around()) {
            if constexpr (kHasShortCalls) own_.board.expect_more(own_.before(taking_.next_any()));
            return BBP_EAGAIN;
        }
        return take_found(candidate, small, data, len, deadline, cls);
    }
    /// take() of a message that is there, whole in its slot. BBP_EAGAIN: there seems to be nothing.
    /// kNobody: something that takes longer, so ask take(); which also looks for the dead now and
    /// then.
    [[nodiscard]] [[gnu::always_inline]] int take_at_once(std::span<std::byte> small,
                                                          std::size_t* len, Class cls) {
        const int candidate = find_any();
        if (candidate < 0) {
            found_nothing(BBP_ANY);
            return has_taken_nothing() ? BBP_EAGAIN : kNobody;
        }
        const int from = recv_short(candidate, true, small.data(), small.size(), len, cls);
        if constexpr (Board::kInlineBytes != 0) {
            if (from >= 0) [[likely]]
                own_.board.expect_answer(static_cast<unsigned>(from));
        }
        return from;
    }
    /// The same of one that comes within a brief wait; kNobody: none has.
    [[nodiscard]] [[gnu::always_inline]] int take_briefly(std::span<std::byte> small,
                                                          std::size_t* len, Class cls,
                                                          AnswerPause& pause) {
        for (unsigned polls = own_.memory.brief_polls();; --polls) {
            const std::int64_t began = pause.before_poll();
            const int from = take_at_once(small, len, cls);
            pause.after_poll(from, began);
            if (from != BBP_EAGAIN) return from;
            if (polls == 0) return kNobody;
            rmem::cpu_relax();
        }
    }
    /// send_joined() to one rank, of what lies beside a flag. False: something else, or no room
    /// now, so ask that.
    [[nodiscard]] [[gnu::always_inline]] bool send_joined_at_once(int dest, Bytes head, Bytes body,
                                                                  Class cls) {
        if constexpr (Board::kInlineBytes != 0 && !M::kReplicated) {
            const auto d = static_cast<unsigned>(dest);
            if (own_.board.can_join(head.size() + body.size()) && d < own_.ranks &&
                own_.board.tx_room(d) && !aborts_due_.any()) [[likely]] {
                own_.board.post_joined(d, cls, head, body);
                own_.memory.notify(d);
                return true;
            }
        }
        return false;
    }
    int barrier(Deadline deadline = {}) override { return barriers_.barrier(deadline); }
    int barrier_group(std::span<const int> members, unsigned id, Deadline deadline = {}) override {
        return barriers_.barrier_group(members, id, deadline);
    }
    int group_join(std::string_view name) override { return groups_.join(name); }
    int group_leave(std::string_view name) override { return groups_.leave(name); }
    [[nodiscard]] int mcast_group(std::string_view name, const void* buf, std::size_t len,
                                  Deadline deadline = {}, Class cls = Class::user) override {
        const std::vector<int> dests = groups_.others(name);
        const int result = mcast(dests, buf, len, deadline, cls);
        return result == BBP_OK ? static_cast<int>(dests.size()) : result;
    }
    int fd() override { return taking_.fd(); }
    rmem::InterruptSource* wake_source() noexcept override {
        if constexpr (requires { own_.memory.interrupt_source(); })
            return own_.memory.interrupt_source();
        return nullptr;
    }
    rmem::Ring* ring() noexcept override {
        if constexpr (M::kHasDescriptors) return &own_.member.ring();
        return nullptr;
    }
    void give_way() override { own_.memory.give_way(); }
    bool is_crowded() override { return own_.memory.is_crowded(); }
    bool has_left(unsigned s) override { return peers_.has_left(s); }
    void set_progress_thread(bool on) override {
        if constexpr (M::kReplicated) own_.seat->set_progress_thread(on);
    }
    Deadline deadline_in(std::int64_t ns) const override {
        return ns <= 0 ? Deadline::now() : Deadline::after(own_.memory.now_ns(), ns);
    }
    void use_far(std::unique_ptr<rmem::FarMemory> far) override { own_.far = std::move(far); }
    void leave() noexcept override {
        if (!peers_.is_in()) return;
        taking_.close_fd();
        peers_.leave();
    }

    // ---- For NodeGuard
    /// Whether the bank is still of the node's incarnation in which this rank has opened.
    [[nodiscard]] bool has_bank() const noexcept {
        if constexpr (kMayLoseNode) return own_.memory.has_bank();
        return true;
    }
    [[nodiscard]] bool is_given_up_by(unsigned s) const noexcept {
        return peers_.is_given_up_by(s);
    }
    void give_up(unsigned s) { peers_.give_up(s); }
    [[nodiscard]] int tell_gone(unsigned s) { return peers_.tell_gone(s); }

private:
    enum class Place : std::uint8_t { slot, line, lines, any };
    template <Place place>
    [[nodiscard, gnu::always_inline]] bool post_at_once(int dest, const void* buf, std::size_t len,
                                                        Class cls) {
        if constexpr (kHasShortCalls) {
            const auto d = static_cast<unsigned>(dest);
            if (d >= own_.ranks || (buf == nullptr && len != 0) || aborts_due_.any() ||
                !own_.memory.room(Board::posted_bytes(len))) [[unlikely]]
                return false;
            const bool is_posted =
                place == Place::slot    ? own_.board.post_in_slot(d, cls, buf, len)
                : place == Place::line  ? own_.board.post_in_line(d, cls, buf, len)
                : place == Place::lines ? own_.board.post_in_lines(d, cls, buf, len)
                                        : own_.board.post_at_once(d, cls, buf, len);
            if (is_posted) [[likely]] {
                RMEM_MARK("send.before-wake");
                own_.memory.notify(d);
            }
            return is_posted;
        }
        return false;
    }
    /// BBP_ANY: of the one that has sent last.
    void found_nothing(int src) {
        if constexpr (kHasShortCalls) {
            const unsigned s =
                src == BBP_ANY ? own_.before(taking_.next_any()) : static_cast<unsigned>(src);
            if (s < own_.ranks) own_.board.found_nothing(s);
        }
    }
    [[gnu::always_inline]] int find_any() const { return own_.board.find(taking_.next_any()); }
    [[nodiscard, gnu::always_inline]] int recv_short(int from, bool any, void* buf, std::size_t cap,
                                                     std::size_t* len, Class cls) {
        const int source = billboard::recv_short(own_, aside_, from, buf, cap, len, cls);
        if (any && source >= 0) taking_.set_next_any(own_.after(static_cast<unsigned>(source)));
        return source;
    }
    bool has_taken_nothing() const noexcept { return aside_.empty() && !reassembly_.any(); }
    [[nodiscard]] int recv_later(int src, void* buf, std::size_t cap, std::size_t* len,
                                 Deadline deadline, Class cls);
    [[nodiscard]] int take_found(int candidate, std::span<std::byte> small, const void** data,
                                 std::size_t* len, Deadline deadline, Class cls);
    [[nodiscard]] int await_briefly(int src);
    [[nodiscard]] bool await_room_briefly(unsigned d);
    [[nodiscard]] bool can_post_inline(std::span<const int> dests);

    Own own_;
    SetAside aside_;
    AbortsDue aborts_due_{own_.ranks};
    Reassembly<Own> reassembly_{own_, aside_};
    Views<Own> views_{own_};
    Peers<Own> peers_{own_, aside_, reassembly_, aborts_due_, views_};
    Posting<Own> posting_{own_, peers_, reassembly_, aborts_due_};
    Taking<Own> taking_{own_, peers_, aside_, reassembly_, views_};
    Groups<Own> groups_{own_, peers_};
    Barriers<Own> barriers_{own_, peers_, aside_, *this};
};

/// All words that a rank begins with are there before its incarnation is.
template <class M, template <class> class BoardOf>
EndpointCore<M, BoardOf>::EndpointCore(std::shared_ptr<rmem::Seat<M>> seat,
                                       const Settings& settings, Deadline deadline,
                                       const typename M::Options& options)
    : own_(std::move(seat), settings, options) {
    peers_.begin();
    if (!peers_.is_first_incarnation()) {  // the words of that one are as the ring was made
        groups_.begin();
        barriers_.begin();
    }
    peers_.join(deadline);
}

/// Waits for what is not there at once. In a function of its own, so that a receive that finds its
/// message there does not pay for the room that waiting takes.
template <class M, template <class> class BoardOf>
[[gnu::noinline]] int EndpointCore<M, BoardOf>::recv_later(int src, void* buf, std::size_t cap,
                                                           std::size_t* len, Deadline deadline,
                                                           Class cls) {
    const int from = recv_short(await_briefly(src), src == BBP_ANY, buf, cap, len, cls);
    return from >= 0 ? from : taking_.recv(src, buf, cap, len, deadline, cls);
}

/// take() of what `candidate` has sent, or of what takes longer. In a function of its own, so that
/// a look that finds nothing saves no registers.
template <class M, template <class> class BoardOf>
[[gnu::noinline]] int EndpointCore<M, BoardOf>::take_found(int candidate,
                                                           std::span<std::byte> small,
                                                           const void** data, std::size_t* len,
                                                           Deadline deadline, Class cls) {
    int from = recv_short(candidate, true, small.data(), small.size(), len, cls);
    if (from < 0 && !is_try(deadline))
        from = recv_short(await_briefly(BBP_ANY), true, small.data(), small.size(), len, cls);
    if (from < 0) return taking_.take(small, data, len, deadline, cls);
    if constexpr (Board::kInlineBytes != 0) own_.board.expect_answer(static_cast<unsigned>(from));
    *data = small.data();
    return from;
}

/// Spins until something is there, but not for long. Returns its sender; kNobody: nothing, or
/// it takes longer.
template <class M, template <class> class BoardOf>
inline int EndpointCore<M, BoardOf>::await_briefly(int src) {
    if (!has_taken_nothing()) return kNobody;
    unsigned polls = own_.memory.brief_polls();
    if (static_cast<unsigned>(src) < own_.ranks) {
        return own_.board.await_next(static_cast<unsigned>(src), polls) ? src : kNobody;
    }
    for (; src == BBP_ANY && polls > 0; --polls) {
        rmem::cpu_relax();
        if (const int from = find_any(); from >= 0) return from;
    }
    return kNobody;
}

/// Spins until d has room for one more message, but not for long: a rank never makes it for itself
/// so.
template <class M, template <class> class BoardOf>
bool EndpointCore<M, BoardOf>::await_room_briefly(unsigned d) {
    if (d == own_.me) return false;
    for (unsigned polls = own_.memory.brief_polls(); polls > 0; --polls) {
        rmem::cpu_relax();
        if (own_.board.tx_room(d)) return true;
    }
    return false;
}

/// The expected case of a short multicast: to ranks that there are, each once, with room for all.
/// Replicated banks get a multicast's payload once, whatever its size.
template <class M, template <class> class BoardOf>
bool EndpointCore<M, BoardOf>::can_post_inline(std::span<const int> dests) {
    if ((M::kReplicated && dests.size() != 1) || dests.empty() || aborts_due_.any()) return false;
    typename Own::RankSet seen;
    for (const int dest : dests) {
        const auto d = static_cast<unsigned>(dest);
        if (d >= own_.ranks || seen[d] || !own_.board.tx_room(d)) return false;
        seen[d] = true;
    }
    return own_.memory.room(dests.size() * rmem::kLineBytes);
}

template <class M, template <class> class BoardOf>
int EndpointCore<M, BoardOf>::mcast(std::span<const int> dests, const void* buf, std::size_t len,
                                    Deadline deadline, Class cls) {
    if (Board::kInlineBytes != 0 && own_.board.is_short(len) && (buf != nullptr || len == 0) &&
        is_copied_to_each(dests.size(), len) && can_post_inline(dests)) [[likely]] {
        for (const int d : dests) own_.board.post_inline(static_cast<unsigned>(d), cls, buf, len);
        own_.memory.commit();
        for (const int d : dests) own_.memory.notify(static_cast<unsigned>(d));
        own_.count(Counter::multicasts);
        return BBP_OK;
    }
    return posting_.mcast(dests, buf, len, deadline, cls);
}

/// What is short, or written once for all banks, is one piece on its way.
template <class M, template <class> class BoardOf>
int EndpointCore<M, BoardOf>::send_joined(std::span<const int> dests, Bytes head, Bytes body,
                                          Class cls) {
    if (dests.size() == 1 && send_joined_at_once(dests[0], head, body, cls)) [[likely]]
        return BBP_OK;
    if (!M::kReplicated && !own_.board.is_short(head.size() + body.size()))
        return posting_.send_joined(dests, {head, body}, cls);
    const Bytes one = posting_.joined({head, body});
    return dests.size() == 1 ? send(dests[0], one.data(), one.size(), Deadline::now(), cls)
                             : mcast(dests, one.data(), one.size(), Deadline::now(), cls);
}

/// All templates of an endpoint over a link and with a board: explicit instantiations of them, or
/// with `extern` the word that they are elsewhere.
#define BILLBOARD_ENDPOINT_OF(declaration, visibility, Memory, BoardOf) \
    declaration struct visibility OwnRank<Memory, BoardOf>;             \
    declaration class visibility Reassembly<OwnRank<Memory, BoardOf>>;  \
    declaration class visibility Views<OwnRank<Memory, BoardOf>>;       \
    declaration class visibility Peers<OwnRank<Memory, BoardOf>>;       \
    declaration class visibility Posting<OwnRank<Memory, BoardOf>>;     \
    declaration class visibility Taking<OwnRank<Memory, BoardOf>>;      \
    declaration class visibility Groups<OwnRank<Memory, BoardOf>>;      \
    declaration class visibility Barriers<OwnRank<Memory, BoardOf>>;    \
    declaration class visibility EndpointCore<Memory, BoardOf>

BILLBOARD_ENDPOINT_OF(extern template, RMEM_API, rmem::DirectMemory, LineBoard);
BILLBOARD_ENDPOINT_OF(extern template, , rmem::DirectMemory, PaperBoard);

/// Where a store is the transfer, a call between libraries costs as much as what it does: who has
/// this compiled in (billboard/bbp.h's calls, ports') asks by fastest() whether an endpoint is of
/// it.
using Fastest = EndpointCore<rmem::DirectMemory, LineBoard>;
inline Fastest* fastest(Endpoint* endpoint) noexcept {
    return dynamic_cast<Fastest*>(endpoint);
}

}  // namespace billboard
