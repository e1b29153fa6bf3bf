// SPDX-License-Identifier: Apache-2.0
#pragma once

/// An endpoint whose calls are another one's, by way of what `By` does around them:
///
///     by.target()                            the other one, for what does not change
///     by.local(call)                         around call(target), which asks for no other rank
///     by.waits(deadline, is_whole, call)     around call(target, deadline), which does; with a
///                                            message that is posted in one go
///     by.receives(src, deadline, call, end)  the same of a message; `end` ends one that the caller
///                                            is not told of
///
/// Contract: billboard/endpoint.hpp. Thread safety, errors: By's.

#include "billboard/endpoint.hpp"
#include "rmem/link/far_memory.hpp"

#include <memory>
#include <utility>

namespace billboard {

template <class By>
class Forwarding : public Endpoint {
public:
    unsigned rank() const noexcept override { return by().target().rank(); }
    unsigned ranks() const noexcept override { return by().target().ranks(); }
    std::size_t partition_bytes() const noexcept override {
        return by().target().partition_bytes();
    }
    std::size_t short_bytes() const noexcept override { return by().target().short_bytes(); }

    int send(int dest, const void* buf, std::size_t len, Deadline deadline, Class cls) override {
        return by().waits(deadline, len > partition_bytes(), [&](auto& e, Deadline until) {
            return e.send(dest, buf, len, until, cls);
        });
    }
    int mcast(std::span<const int> dests, const void* buf, std::size_t len, Deadline deadline,
              Class cls) override {
        return by().waits(deadline, len > partition_bytes(), [&](auto& e, Deadline until) {
            return e.mcast(dests, buf, len, until, cls);
        });
    }
    int send_joined(std::span<const int> dests, Bytes head, Bytes body, Class cls) override {
        return by().waits(Deadline::now(), false,
                          [&](auto& e, Deadline) { return e.send_joined(dests, head, body, cls); });
    }
    int recv(int src, void* buf, std::size_t cap, std::size_t* len, Deadline deadline,
             Class cls) override {
        return by().receives(
            src, deadline,
            [&](auto& e, Deadline until) { return e.recv(src, buf, cap, len, until, cls); },
            [](auto&) {});
    }
    int available(int src, Class cls) override {
        return by().waits(Deadline::now(), false,
                          [&](auto& e, Deadline) { return e.available(src, cls); });
    }
    int probe(int src, std::size_t* len, Class cls) override {
        return by().receives(
            src, Deadline::now(), [&](auto& e, Deadline) { return e.probe(src, len, cls); },
            [](auto&) {});
    }
    int compose(std::size_t len, void** buf) override {
        return by().local([&](auto& e) { return e.compose(len, buf); });
    }
    int post(std::span<const int> dests, void* buf, std::size_t len, Deadline deadline,
             Class cls) override {
        return by().waits(deadline, false, [&](auto& e, Deadline until) {
            return e.post(dests, buf, len, until, cls);
        });
    }
    int discard(void* buf) override {
        return by().local([&](auto& e) { return e.discard(buf); });
    }
    int view(int src, const void** data, std::size_t* len, Deadline deadline, Class cls) override {
        return by().receives(
            src, deadline,
            [&](auto& e, Deadline until) { return e.view(src, data, len, until, cls); },
            [&](auto& e) { e.release(*data); });
    }
    int release(const void* data) override {
        return by().local([&](auto& e) { return e.release(data); });
    }
    int take(std::span<std::byte> small, const void** data, std::size_t* len, Deadline deadline,
             Class cls) override {
        return by().receives(
            BBP_ANY, deadline,
            [&](auto& e, Deadline until) { return e.take(small, data, len, until, cls); },
            [&](auto& e) {
                if (*data != small.data()) e.release(*data);
            });
    }
    int barrier(Deadline deadline) override {
        return by().waits(deadline, false,
                          [](auto& e, Deadline until) { return e.barrier(until); });
    }
    int barrier_group(std::span<const int> members, unsigned id, Deadline deadline) override {
        return by().waits(deadline, false, [&](auto& e, Deadline until) {
            return e.barrier_group(members, id, until);
        });
    }
    int group_join(std::string_view name) override {
        return by().local([&](auto& e) { return e.group_join(name); });
    }
    int group_leave(std::string_view name) override {
        return by().local([&](auto& e) { return e.group_leave(name); });
    }
    int mcast_group(std::string_view name, const void* buf, std::size_t len, Deadline deadline,
                    Class cls) override {
        return by().waits(deadline, len > partition_bytes(), [&](auto& e, Deadline until) {
            return e.mcast_group(name, buf, len, until, cls);
        });
    }
    int fd() override {
        return by().local([](auto& e) { return e.fd(); });
    }
    rmem::Ring* ring() noexcept override { return by().target().ring(); }
    rmem::InterruptSource* wake_source() noexcept override { return by().target().wake_source(); }
    void give_way() override {
        by().local([](auto& e) { e.give_way(); });
    }
    bool is_crowded() override {
        return by().local([](auto& e) { return e.is_crowded(); });
    }
    bool has_left(unsigned s) override {
        return by().local([&](auto& e) { return e.has_left(s); });
    }
    void set_progress_thread(bool on) override { by().target().set_progress_thread(on); }
    Deadline deadline_in(std::int64_t ns) const override { return by().target().deadline_in(ns); }
    void use_far(std::unique_ptr<rmem::FarMemory> far) override {
        by().target().use_far(std::move(far));
    }
    void leave() noexcept override {
        by().local([](auto& e) { e.leave(); });
    }

private:
    By& by() noexcept { return static_cast<By&>(*this); }
    const By& by() const noexcept { return static_cast<const By&>(*this); }
};

}  // namespace billboard
