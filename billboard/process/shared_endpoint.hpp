// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A process's endpoint as those see it who hold nothing: each call holds it for itself.
///
/// A call that waits does so in slices, and gives way between them, so that the progress thread and
/// others come in. Not so the sending of a message larger than a partition: its parts are sent in
/// one go.
/// Contract, errors: billboard/endpoint.hpp. Thread safety: any thread; a message in view is its
/// viewer's.

#include "billboard/endpoint.hpp"
#include "billboard/process/process_endpoint.hpp"
#include "rmem/link/far_memory.hpp"

#include <limits>
#include <memory>
#include <utility>

namespace billboard {

class SharedEndpoint final : public Endpoint {
public:
    explicit SharedEndpoint(ProcessEndpoint& process) : process_(process) {}

    unsigned rank() const noexcept override { return process_.endpoint().rank(); }
    unsigned ranks() const noexcept override { return process_.endpoint().ranks(); }
    std::size_t partition_bytes() const noexcept override {
        return process_.endpoint().partition_bytes();
    }
    std::size_t short_bytes() const noexcept override { return process_.endpoint().short_bytes(); }

    int send(int dest, const void* buf, std::size_t len, Deadline deadline, Class cls) override {
        const auto send = [&](Endpoint& e, Deadline slice) {
            return e.send(dest, buf, len, slice, cls);
        };
        return len > partition_bytes() ? whole(deadline, send) : sliced(deadline, send);
    }
    int mcast(std::span<const int> dests, const void* buf, std::size_t len, Deadline deadline,
              Class cls) override {
        const auto send = [&](Endpoint& e, Deadline slice) {
            return e.mcast(dests, buf, len, slice, cls);
        };
        return len > partition_bytes() ? whole(deadline, send) : sliced(deadline, send);
    }
    int send_joined(std::span<const int> dests, Bytes head, Bytes body, Class cls) override {
        return held([&](Endpoint& e) { return e.send_joined(dests, head, body, cls); });
    }
    int recv(int src, void* buf, std::size_t cap, std::size_t* len, Deadline deadline,
             Class cls) override {
        return sliced(deadline, [&](Endpoint& e, Deadline slice) {
            return e.recv(src, buf, cap, len, slice, cls);
        });
    }
    int available(int src, Class cls) override {
        return held([&](Endpoint& e) { return e.available(src, cls); });
    }
    int probe(int src, std::size_t* len, Class cls) override {
        return held([&](Endpoint& e) { return e.probe(src, len, cls); });
    }
    int compose(std::size_t len, void** buf) override {
        return held([&](Endpoint& e) { return e.compose(len, buf); });
    }
    int post(std::span<const int> dests, void* buf, std::size_t len, Deadline deadline,
             Class cls) override {
        return sliced(deadline, [&](Endpoint& e, Deadline slice) {
            return e.post(dests, buf, len, slice, cls);
        });
    }
    int discard(void* buf) override {
        return held([&](Endpoint& e) { return e.discard(buf); });
    }
    int view(int src, const void** data, std::size_t* len, Deadline deadline, Class cls) override {
        return sliced(deadline, [&](Endpoint& e, Deadline slice) {
            return e.view(src, data, len, slice, cls);
        });
    }
    int release(const void* data) override {
        return held([&](Endpoint& e) { return e.release(data); });
    }
    int take(std::span<std::byte> small, const void** data, std::size_t* len, Deadline deadline,
             Class cls) override {
        return sliced(deadline, [&](Endpoint& e, Deadline slice) {
            return e.take(small, data, len, slice, cls);
        });
    }
    int barrier(Deadline deadline) override {
        return sliced(deadline, [&](Endpoint& e, Deadline slice) { return e.barrier(slice); });
    }
    int barrier_group(std::span<const int> members, unsigned id, Deadline deadline) override {
        return sliced(deadline, [&](Endpoint& e, Deadline slice) {
            return e.barrier_group(members, id, slice);
        });
    }
    int group_join(std::string_view name) override {
        return held([&](Endpoint& e) { return e.group_join(name); });
    }
    int group_leave(std::string_view name) override {
        return held([&](Endpoint& e) { return e.group_leave(name); });
    }
    int mcast_group(std::string_view name, const void* buf, std::size_t len, Deadline deadline,
                    Class cls) override {
        const auto send = [&](Endpoint& e, Deadline slice) {
            return e.mcast_group(name, buf, len, slice, cls);
        };
        return len > partition_bytes() ? whole(deadline, send) : sliced(deadline, send);
    }
    int fd() override {
        return held([](Endpoint& e) { return e.fd(); });
    }
    rmem::Ring* ring() noexcept override { return process_.endpoint().ring(); }
    rmem::InterruptSource* wake_source() noexcept override {
        return process_.endpoint().wake_source();
    }
    void give_way() override {
        held([](Endpoint& e) {
            e.give_way();
            return 0;
        });
    }
    bool is_crowded() override {
        return held([](Endpoint& e) { return static_cast<int>(e.is_crowded()); }) != 0;
    }
    bool has_left(unsigned s) override {
        return held([&](Endpoint& e) { return static_cast<int>(e.has_left(s)); }) != 0;
    }
    void set_progress_thread(bool on) override { process_.endpoint().set_progress_thread(on); }
    Deadline deadline_in(std::int64_t ns) const override {
        return process_.endpoint().deadline_in(ns);
    }
    void use_far(std::unique_ptr<rmem::FarMemory> far) override {
        process_.endpoint().use_far(std::move(far));
    }
    void leave() noexcept override {
        held([](Endpoint& e) {
            e.leave();
            return 0;
        });
    }

private:
    template <class Call>
    int held(Call&& call) {
        const auto held = process_.hold();
        return call(process_.endpoint());
    }
    template <class Call>
    [[nodiscard]] int whole(Deadline deadline, Call&& call) {
        return held([&](Endpoint& e) { return call(e, deadline); });
    }
    template <class Call>
    [[nodiscard]] int sliced(Deadline deadline, Call&& call) {
        auto held = process_.hold();
        Endpoint& endpoint = process_.endpoint();
        // Before a clock is read: mostly it needs no waiting.
        if (const int result = call(endpoint, Deadline::now());
            result != BBP_EAGAIN || deadline.passed(std::numeric_limits<std::int64_t>::min()))
            return result;
        for (Slices slices(held, endpoint, deadline);; slices.pass()) {
            const int result = call(endpoint, slices.deadline());
            if (result != BBP_ETIMEDOUT || slices.is_last()) return result;
        }
    }

    ProcessEndpoint& process_;
};

}  // namespace billboard
