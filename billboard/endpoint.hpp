// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The Billboard protocol in C++: one rank's end of it. billboard/bbp.h is the same in C.
///
///     auto endpoint = billboard::Endpoint::open();
///     endpoint->send(1, "hello", 6);
///
/// Contract: that of bbp.h, including the codes returned. In addition
///   - every call takes a deadline: `Deadline::now()` makes it a try call (BBP_EAGAIN instead of
///     waiting), `Deadline::never()` lets it wait, others end with BBP_ETIMEDOUT;
///   - every call takes the class of traffic it is about: classes never meet.
/// Thread safety: one thread at a time per Endpoint; several Endpoints of one process (threads as
///   ranks, on one shared mapping) are independent.
/// Errors: opening throws `rmem::Error`; all other calls return codes (bbp.h: bbp_last_error).

#include "billboard/bbp.h"
#include "billboard/boards/layout.hpp"
#include "billboard/environment.hpp"
#include "rmem/base/clock.hpp"

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>

namespace rmem {
class FarMemory;
class InterruptSource;
class Ring;
}  // namespace rmem

namespace billboard {

using rmem::Deadline;
using Bytes = std::span<const std::byte>;

[[nodiscard]] inline bool is_try(Deadline deadline) noexcept {
    return deadline.passed(Deadline::now().at_ns);
}

class RMEM_API Endpoint {
public:
    /// Joins the ring of the environment and waits for the other ranks.
    [[nodiscard]] static std::unique_ptr<Endpoint> open();
    /// The same, with these instead of the environment's settings of the billboard.
    [[nodiscard]] static std::unique_ptr<Endpoint> open(const Settings& settings);
    /// Joins on a mapping that this process has already.
    [[nodiscard]] static std::unique_ptr<Endpoint> open(std::shared_ptr<rmem::Ring> ring,
                                                        rmem::Member member,
                                                        const Settings& settings,
                                                        Deadline deadline);
    /// The one that bbp_init has opened in this process, or simulated program; null: none is open.
    static Endpoint* of_bbp_init() noexcept;
    virtual ~Endpoint() = default;
    Endpoint(const Endpoint&) = delete;
    Endpoint& operator=(const Endpoint&) = delete;

    [[nodiscard]] virtual unsigned rank() const noexcept = 0;
    [[nodiscard]] virtual unsigned ranks() const noexcept = 0;
    /// A message of at most this number of bytes can be sent by a try call, composed and viewed.
    [[nodiscard]] virtual std::size_t partition_bytes() const noexcept = 0;
    /// How long a message may be that lies in no buffer: composing it in place gains nothing.
    [[nodiscard]] virtual std::size_t short_bytes() const noexcept = 0;

    // ---- Messages
    [[nodiscard]] virtual int send(int dest, const void* buf, std::size_t len,
                                   Deadline deadline = {}, Class cls = Class::user) = 0;
    [[nodiscard]] virtual int mcast(std::span<const int> dests, const void* buf, std::size_t len,
                                    Deadline deadline = {}, Class cls = Class::user) = 0;
    /// A try call of send or mcast whose message is in two pieces: where a store is the transfer
    /// they are joined where it goes.
    [[nodiscard]] virtual int send_joined(std::span<const int> dests, Bytes head, Bytes body,
                                          Class cls = Class::user) = 0;
    [[nodiscard]] virtual int recv(int src, void* buf, std::size_t cap, std::size_t* len,
                                   Deadline deadline = {}, Class cls = Class::user) = 0;
    [[nodiscard]] virtual int available(int src, Class cls = Class::user) = 0;
    [[nodiscard]] virtual int probe(int src, std::size_t* len, Class cls = Class::user) = 0;

    // ---- No copies
    [[nodiscard]] virtual int compose(std::size_t len, void** buf) = 0;
    /// After BBP_EAGAIN or BBP_ETIMEDOUT the buffer is still composed.
    [[nodiscard]] virtual int post(std::span<const int> dests, void* buf, std::size_t len,
                                   Deadline deadline = {}, Class cls = Class::user) = 0;
    virtual int discard(void* buf) = 0;  ///< fails only where `buf` was not composed
    [[nodiscard]] virtual int view(int src, const void** data, std::size_t* len,
                                   Deadline deadline = {}, Class cls = Class::user) = 0;
    virtual int release(const void* data) = 0;  ///< fails only where `data` is not in view
    /// As view() of BBP_ANY, for a program that takes all that comes: a message that lies in no
    /// buffer is copied into `small` if that has room (kTakenBytes is enough for any); `*data` is
    /// that then, and needs no release.
    [[nodiscard]] virtual int take(std::span<std::byte> small, const void** data, std::size_t* len,
                                   Deadline deadline = {}, Class cls = Class::user) = 0;

    // ---- Barriers and groups
    [[nodiscard]] virtual int barrier(Deadline deadline = {}) = 0;
    [[nodiscard]] virtual int barrier_group(std::span<const int> members, unsigned id,
                                            Deadline deadline = {}) = 0;
    [[nodiscard]] virtual int group_join(std::string_view name) = 0;
    [[nodiscard]] virtual int group_leave(std::string_view name) = 0;
    [[nodiscard]] virtual int mcast_group(std::string_view name, const void* buf, std::size_t len,
                                          Deadline deadline = {}, Class cls = Class::user) = 0;

    // ---- Waiting elsewhere
    [[nodiscard]] virtual int fd() = 0;
    /// Where a thread may wait to be woken (rmem/ring/waiting/waiting.hpp); null: simulated.
    [[nodiscard]] virtual rmem::Ring* ring() noexcept = 0;
    /// What brings messages in this process, for a WakeFd (billboard/core/wake_fd.hpp); null:
    /// others do.
    [[nodiscard]] virtual rmem::InterruptSource* wake_source() noexcept = 0;
    /// After a poll by take() that found nothing: where there are more ranks than processors,
    /// another runs. All other calls that do not wait, or not for long, do so by themselves
    /// (rmem/ring/waiting/waiting.hpp).
    virtual void give_way() = 0;
    /// Whether that would give a processor away.
    [[nodiscard]] virtual bool is_crowded() = 0;
    /// Whether the last incarnation of that rank whose end was met here left, by leave().
    [[nodiscard]] virtual bool has_left(unsigned rank) = 0;
    /// A thread of a library calls it too, or no longer. Throws Error(invalid_argument) where the
    /// process's node would meet that.
    virtual void set_progress_thread(bool on) = 0;
    /// The time `ns` from now, on the link's clock; a time that has passed for 0 and less.
    [[nodiscard]] virtual Deadline deadline_in(std::int64_t ns) const = 0;

    /// Long messages go by that from now on, where their receivers can read it; where one store
    /// reaches all ranks nothing changes. open() gives it what rmem::far_memory_of() says.
    virtual void use_far(std::unique_ptr<rmem::FarMemory> far) = 0;

    /// Lets peers know that this rank leaves; called by the destructor too.
    virtual void leave() noexcept = 0;

protected:
    Endpoint() = default;
};

}  // namespace billboard
