// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The Directed Point service layer of a process: what the paper has in the kernel.
///
/// It writes headers, dispatches what comes to the token buffer pools of its endpoints (the paper's
/// Message Dispatcher Routine), and serves what others do with the descriptors. Messages are taken
/// in by a thread in a call, else by the process's progress thread; descriptors are served by the
/// engine.
///
/// Thread safety: calls with an endpoint's descriptor, open(), close() and stat() from any thread;
/// what begins with "while held" is for the holder of the process endpoint. `lifecycle_mutex_` is
/// taken before that, never after.
/// Progress: no call waits for others but in slices, between which others come in.
/// Errors: results are those of dp.h with a negative errno for -1; open() throws.

#include "billboard/process/process_endpoint.hpp"
#include "ports/common/counters.hpp"
#include "ports/dp/endpoint.hpp"
#include "ports/dp/engine.hpp"
#include "ports/dp/outgoing.hpp"
#include "rmem/base/marks.hpp"

#include <array>
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

namespace ports::dp {

/// A time that has passed: a thread that waits until then polls for a while, some 50 us, before it
/// looks at the clock.
inline constexpr billboard::Deadline kBriefly{1};
inline constexpr std::size_t kShortestBytes = 8;  ///< of a message that is sent as two words

/// Which endpoint a descriptor is, by its number: the first look of each call.
class Descriptors {
public:
    static void put(int fd, Endpoint* endpoint) noexcept;  ///< null: none any more
    static void forget(const Endpoint& endpoint) noexcept;
    static void forget_all() noexcept;
    /// By its number; null: none, or one that was not seen before (a duplicate).
    [[nodiscard, gnu::always_inline]] static Endpoint* known(int fd) noexcept {
        if (static_cast<unsigned>(fd) >= kDescriptors) [[unlikely]]
            return nullptr;
        // (1) - this acquire-load synchronizes-with the release-store in ports/dp/descriptors.cpp
        // (2)
        return table_[static_cast<unsigned>(fd)].load(std::memory_order_acquire);
    }
    /// Known, or found by what the descriptor is.
    [[nodiscard]] RMEM_API static Endpoint* find(int fd) noexcept;

private:
    static constexpr std::size_t kDescriptors = 65536;
    static std::array<std::atomic<Endpoint*>, kDescriptors> table_;
};

class Service final : public billboard::Attendant {
public:
    /// That of this process, or simulated process; null: it has never had an endpoint.
    [[nodiscard]] static Service* current() noexcept;
    /// The same, made if there is none. Null in a fork()ed child.
    [[nodiscard]] static Service* make();

    Service();
    ~Service();

    /// A new endpoint's descriptor.
    [[nodiscard]] int open(unsigned dpid);
    void close(Endpoint& endpoint, int fd);

    billboard::ProcessEndpoint& process() noexcept { return *process_; }
    [[nodiscard]] int read_expected(Endpoint& e, char** address);
    [[nodiscard]] bool write_expected(Endpoint& e, const void* message, std::size_t length);
    [[nodiscard]] int read(Endpoint& e, int fd, char** address);
    [[nodiscard]] int try_read(Endpoint& e, int fd, char** address);
    [[nodiscard]] int write(Endpoint& e, int fd, const void* message, std::size_t length);
    int flush(Endpoint& e, std::uint32_t n) {
        const auto held = process_->hold();
        return static_cast<int>(e.pool->flush(n));
    }
    int drain(Endpoint& e, std::int64_t timeout_ns);
    [[nodiscard]] int set_pool(Endpoint& e, dpmmap_t& map);
    [[nodiscard]] int set_reliable(Endpoint& e, bool on);
    void set_target(Endpoint& e, int nid, int dpid);
    [[nodiscard]] int add_target(Endpoint& e, int nid, int dpid);
    [[nodiscard]] int remove_target(Endpoint& e, int nid, int dpid);
    int stat(const Endpoint* e, dp_stat_t& counts);

    [[nodiscard]] int nid();
    [[nodiscard]] int nids();
    [[nodiscard]] int container();  ///< while an endpoint is open

    bool attend() noexcept override;
    /// What the engine has seen.
    void serve(std::uint64_t id, Engine::Event event) noexcept;
    [[nodiscard]] Endpoint* find_inode(ino_t inode);
    /// Of the process, while an endpoint is open.
    rmem::PortCounters& counters() noexcept { return counters_->block(); }
    void abandon() noexcept;

private:
    using Held = billboard::ProcessEndpoint::Held;

    const Ring& ring() const noexcept { return ring_; }
    [[nodiscard]] bool has_engine() const noexcept { return engine_ != nullptr; }
    std::int64_t now_ns() const { return ring_.now_ns(); }

    // -- all while held
    /// What is no endpoint's.
    void count(Counter counter) noexcept {
        ++closed_[static_cast<std::size_t>(counter)];
        counters_->add(counter);
    }
    [[nodiscard]] Endpoint* find(unsigned dpid) noexcept {
        return dpid < by_dpid_.size() ? by_dpid_[dpid] : nullptr;
    }
    void dispatch_copy(unsigned from, std::span<const std::byte> bytes);
    template <class AnyRing>
    [[nodiscard]] bool write_words(AnyRing& ring, Endpoint& e, const void* message,
                                   std::size_t length);
    int receive_one(billboard::Deadline deadline) noexcept;
    bool receive_all() noexcept;
    void on_message(unsigned from, const std::byte* bytes, std::size_t size);
    void on_frame(unsigned from, const Frame& frame);
    bool deliver(Endpoint& e, const std::byte* container, std::size_t length) noexcept;
    [[nodiscard]] bool pick(Endpoint& e, int fd, char** address, int& length) noexcept;
    [[nodiscard]] int await(Held& held, Endpoint& e, int fd, char** address);
    [[nodiscard]] int await_long(Held& held, Endpoint& e, int fd, char** address);
    void leave_behind(Endpoint& e) noexcept;
    void is_not_behind(Endpoint& e) noexcept {
        if (e.is_left_behind) --left_behind_;
        e.is_left_behind = false;
    }
    void offer_due(const Endpoint* reading = nullptr) noexcept;
    [[nodiscard]] int read_left(Endpoint& e, char** address) noexcept;
    bool is_nonblocking(Endpoint& e, int fd) noexcept;

    [[nodiscard]] int send(Held& held, Endpoint& e, int fd, const void* message,
                           std::size_t length);
    [[nodiscard]] int send_raw(Held& held, Endpoint& e, int fd, const void* message,
                               std::size_t length);
    [[nodiscard]] int send_reliably(Held& held, Endpoint& e, int fd, const void* message,
                                    std::size_t length);
    [[nodiscard]] int post(Held& held, Endpoint& e, int fd, Outgoing& out);
    int wait_until(Held& held, Endpoint& e, std::int64_t timeout_ns,
                   const std::function<int()>& done);
    [[nodiscard]] int check_target(int nid, int dpid);
    [[nodiscard]] Target make_target(const Endpoint& e, int nid, int dpid);
    void let_go(Endpoint& e, Target&& target);

    // -- while held: the Go-Back-N layer
    void on_reliable(unsigned from, Endpoint& e, const Frame& frame);
    void on_ack(unsigned from, Endpoint& e, const Frame& frame);
    void pump(Endpoint& e, Target& target);
    void acknowledge(Endpoint& e, std::uint32_t source, GoBackNReceiver& receiver);
    void tick() noexcept;
    void tick(Endpoint& e, std::int64_t now);
    [[nodiscard]] static bool is_idle(const Endpoint& e) noexcept;
    [[nodiscard]] static int broken(const Endpoint& e) noexcept;

    void serve_writes(Held& held, Endpoint& e);
    void end(std::uint64_t id);
    [[nodiscard]] Endpoint* begin_end(std::uint64_t id);
    [[nodiscard]] bool remove(Endpoint& e);
    void await_endings();
    [[nodiscard]] Endpoint* begin_serving(std::uint64_t id);

    std::mutex lifecycle_mutex_;  ///< endpoints come and go
    std::shared_ptr<billboard::ProcessEndpoint> process_;
    Ring ring_;  ///< its endpoint
    std::unique_ptr<Engine> engine_;
    std::map<std::uint64_t, std::unique_ptr<Endpoint>> endpoints_;  ///< by id
    std::vector<Endpoint*> by_dpid_;
    std::uint64_t last_id_ = 0;
    std::uint16_t generation_ = 0;
    unsigned reliable_ = 0;  ///< endpoints that the Go-Back-N layer has to do with
    std::size_t container_ = 0;
    unsigned nid_ = 0;
    unsigned left_behind_ =
        0;  ///< endpoints where a message waits outside dp_read, and is not offered
    unsigned reads_ = 0;
    unsigned waiting_readers_ = 0;
    Counts closed_{};                     ///< of endpoints that are no more, and of none
    std::optional<PortCounts> counters_;  ///< while an endpoint is open
    billboard::AnswerPause pause_;
};

// ---- The expected cases, which are compiled into the calls

/// The next message comes while its reader waits: from the ring straight to its place in the pool.
/// Or it is in the pool. -1: neither.
[[gnu::always_inline]] inline int Service::read_expected(Endpoint& e, char** address) {
    if (!e.takes_directly || e.pool->unread() != 0 || left_behind_ != 0 || reliable_ != 0)
        [[unlikely]]
        return read_left(e, address);
    polled();
    std::byte* const landing = e.pool->landing();
    if (landing == nullptr) [[unlikely]]
        return -1;
    std::size_t size = 0;
    const int from = e.ring.take_briefly({landing, TokenPool::kLandingBytes}, size, pause_);
    if (from < 0) [[unlikely]]
        return -1;
    const std::uint64_t header = load_word(landing);
    const std::size_t length = Header::from(header).length;
    if (Header::without_length(header) != e.plain_to_it || length + kHeaderBytes > size)
        [[unlikely]] {
        dispatch_copy(static_cast<unsigned>(from), {landing, size});
        return -1;
    }
    RMEM_MARK("dp.landed");
    *address = reinterpret_cast<char*>(e.pool->land(length));
    e.count(Counter::arrived);
    return static_cast<int>(length);
}

/// Of two words, by `ring`: whether it has been sent.
template <class AnyRing>
[[gnu::always_inline]] inline bool Service::write_words(AnyRing& ring, Endpoint& e,
                                                        const void* message, std::size_t length) {
    if (length > kShortestBytes || e.raw_dest < 0) [[unlikely]]
        return false;
    // One store: the copy to the ring loads both at once, and would have to wait for two stores.
    using Words = std::uint64_t __attribute__((vector_size(16)));
    const Words words{e.raw_to | static_cast<std::uint64_t>(length) << 32,
                      word_of(message, length)};
    if (ring.send(e.raw_dest, &words, sizeof words, billboard::Deadline::now(),
                  billboard::Class::dp) != BBP_OK) [[unlikely]]
        return false;
    RMEM_MARK("dp.words-sent");
    pause_.sent();
    e.count(Counter::written);
    return true;
}

[[gnu::always_inline]] inline bool Service::write_expected(Endpoint& e, const void* message,
                                                           std::size_t length) {
    return e.ring.fastest() != nullptr && write_words(*e.ring.fastest(), e, message, length);
}

}  // namespace ports::dp
