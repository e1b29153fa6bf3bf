// SPDX-License-Identifier: Apache-2.0
#pragma once

/// An endpoint on link udp, whose node may be dropped by the others, or lose its engine, at any
/// moment.
///
/// Soon the bank is another incarnation's then: its contents are not for the program, and may
/// change while it reads. So each call checks afterwards whether the bank is still of the node's
/// incarnation in which it was opened; if it is not, the call's result is BBP_EPEER, as for all
/// calls to come, until the program opens the ring again. A view that is out may show
/// anything then. The same holds for a message of a rank that has meanwhile given this one up.
/// Contract: billboard/endpoint.hpp. Thread safety, errors: as there.

#include "billboard/endpoint.hpp"
#include "billboard/errors.hpp"
#include "rmem/link/far_memory.hpp"

#include <memory>
#include <utility>

namespace billboard {

template <class Core>
class NodeGuard final : public Endpoint {
public:
    template <class... Arguments>
    explicit NodeGuard(Arguments&&... arguments) : core_(std::forward<Arguments>(arguments)...) {}

    unsigned rank() const noexcept override { return core_.rank(); }
    unsigned ranks() const noexcept override { return core_.ranks(); }
    std::size_t partition_bytes() const noexcept override { return core_.partition_bytes(); }
    std::size_t short_bytes() const noexcept override { return core_.short_bytes(); }

    int send(int dest, const void* buf, std::size_t len, Deadline deadline, Class cls) override {
        return guarded([&] { return core_.send(dest, buf, len, deadline, cls); });
    }
    int mcast(std::span<const int> dests, const void* buf, std::size_t len, Deadline deadline,
              Class cls) override {
        return guarded([&] { return core_.mcast(dests, buf, len, deadline, cls); });
    }
    int send_joined(std::span<const int> dests, Bytes head, Bytes body, Class cls) override {
        return guarded([&] { return core_.send_joined(dests, head, body, cls); });
    }
    int recv(int src, void* buf, std::size_t cap, std::size_t* len, Deadline deadline,
             Class cls) override {
        return received(src, [&] { return core_.recv(src, buf, cap, len, deadline, cls); });
    }
    int available(int src, Class cls) override {
        return guarded([&] { return core_.available(src, cls); });
    }
    int probe(int src, std::size_t* len, Class cls) override {
        return received(src, [&] { return core_.probe(src, len, cls); });
    }
    int compose(std::size_t len, void** buf) override { return core_.compose(len, buf); }
    int post(std::span<const int> dests, void* buf, std::size_t len, Deadline deadline,
             Class cls) override {
        return guarded([&] { return core_.post(dests, buf, len, deadline, cls); });
    }
    int discard(void* buf) override { return core_.discard(buf); }
    int view(int src, const void** data, std::size_t* len, Deadline deadline, Class cls) override {
        return received(
            src, [&] { return core_.view(src, data, len, deadline, cls); },
            [&] { core_.release(*data); });
    }
    int release(const void* data) override { return core_.release(data); }
    int take(std::span<std::byte> small, const void** data, std::size_t* len, Deadline deadline,
             Class cls) override {
        return received(
            BBP_ANY, [&] { return core_.take(small, data, len, deadline, cls); },
            [&] {
                if (*data != small.data()) core_.release(*data);
            });
    }
    int barrier(Deadline deadline) override {
        return guarded([&] { return core_.barrier(deadline); });
    }
    int barrier_group(std::span<const int> members, unsigned id, Deadline deadline) override {
        return guarded([&] { return core_.barrier_group(members, id, deadline); });
    }
    int group_join(std::string_view name) override { return core_.group_join(name); }
    int group_leave(std::string_view name) override { return core_.group_leave(name); }
    int mcast_group(std::string_view name, const void* buf, std::size_t len, Deadline deadline,
                    Class cls) override {
        return guarded([&] { return core_.mcast_group(name, buf, len, deadline, cls); });
    }
    int fd() override { return core_.fd(); }
    rmem::Ring* ring() noexcept override { return core_.ring(); }
    rmem::InterruptSource* wake_source() noexcept override { return core_.wake_source(); }
    void give_way() override { core_.give_way(); }
    bool is_crowded() override { return core_.is_crowded(); }
    bool has_left(unsigned s) override { return core_.has_left(s); }
    void set_progress_thread(bool on) override { core_.set_progress_thread(on); }
    Deadline deadline_in(std::int64_t ns) const override { return core_.deadline_in(ns); }
    void use_far(std::unique_ptr<rmem::FarMemory> far) override { core_.use_far(std::move(far)); }
    void leave() noexcept override { core_.leave(); }

private:
    template <class Call>
    [[nodiscard, gnu::always_inline]] int guarded(Call&& call) {
        const int result = call();
        return core_.has_bank() ? result : lost();
    }
    /// `discard` ends what the caller is not told of. A call that named nobody goes on to the next
    /// message.
    template <class Call, class Discard>
    [[gnu::always_inline]] int received(int src, Call&& call, Discard&& discard) {
        for (;;) {
            const int from = guarded(call);
            if (from < 0 || !core_.is_given_up_by(static_cast<unsigned>(from))) [[likely]]
                return from;
            discard();
            core_.give_up(static_cast<unsigned>(from));
            if (src != BBP_ANY) return core_.tell_gone(static_cast<unsigned>(from));
        }
    }
    template <class Call>
    [[gnu::always_inline]] int received(int src, Call&& call) {
        return received(src, call, [] {});
    }
    [[nodiscard]] static int lost() {
        return fail(BBP_EPEER,
                    "this node was removed from the ring (or its engine stopped), so no other rank "
                    "can be reached; call bbp_finalize, then bbp_init, to rejoin");
    }

    Core core_;
};

}  // namespace billboard
