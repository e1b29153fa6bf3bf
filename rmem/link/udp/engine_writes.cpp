// SPDX-License-Identifier: Apache-2.0
// What the program that runs the engine writes.

#include "rmem/link/udp/engine.hpp"

#include <algorithm>

namespace rmem::udp {

namespace {

constexpr std::size_t kNextBytes = 256;  // of a group that is likely to come next

}  // namespace

/// What the program has streamed. False: some of it has found no room.
bool Engine::take_own() {
    if (outbox_.own().is_empty()) [[likely]]
        return true;
    idle_until_ns_ = 0;
    written_ns_ = std::max(now_ns(), ran_ns_);
    is_in_group_ = true;  // what is full by now leaves with what comes
    const bool is_all = outbox_.take_own(written_ns_);
    send_outgoing();
    is_in_group_ = outbox_.coalescer().is_loaded();
    return is_all;
}

bool Engine::has_room(std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    if (!take_own()) return false;
    if (outbox_.has_room(std::min(bytes, outbox_.most_group_bytes()))) return true;
    return outbox_.is_completed();  // more room than now there will never be
}

std::size_t Engine::put(const LogRecord& record, const std::byte* words) {
    std::unique_lock lock(mutex_);
    idle_until_ns_ = 0;
    written_ns_ = record.written_ns;
    is_in_group_ = true;  // what is full by now leaves with what comes
    const std::size_t taken = take_own() ? outbox_.put_some(record, words) : 0;
    send_outgoing();
    is_in_group_ = outbox_.coalescer().is_loaded();
    if (take_stand_by(record.written_ns)) [[unlikely]] {
        lock.unlock();
        bell_.ring();
    }
    return taken;
}

Engine::Committed Engine::commit(std::int64_t now) {
    std::unique_lock lock(mutex_);
    idle_until_ns_ = 0;
    const bool is_all = take_own();
    outbox_.commit(std::max(now, ran_ns_));  // the helper may have run since
    send_outgoing();
    is_in_group_ = outbox_.coalescer().is_loaded();
    const bool coalesces = outbox_.coalescer().coalesces() || !is_all;
    if (!coalesces) {
        flush();
        if (!is_in_group_) outbox_.has_left(now_ns());
    }
    // relaxed is enough: its program asks
    streams_.store(is_in_group_ && now >= serves_until_ns_, std::memory_order_relaxed);
    const std::size_t room_bytes = outbox_.has_room(kNextBytes) ? kNextBytes : 0;
    if (take_stand_by(now)) [[unlikely]] {
        lock.unlock();
        bell_.ring();
    }
    return {coalesces, room_bytes};
}

void Engine::commit_on_wait() {
    std::unique_lock lock(mutex_);
    static_cast<void>(take_own());
    outbox_.commit_on_wait();
    if (take_stand_by(now_ns())) [[unlikely]] {
        lock.unlock();
        bell_.ring();
    }
}

bool Engine::coalesces() {
    const std::lock_guard lock(mutex_);
    return outbox_.coalescer().coalesces() || !outbox_.own().is_empty();
}

bool Engine::is_overdue() {
    const std::lock_guard lock(mutex_);
    return std::min(outbox_.due_ns(), outbox_.own_due_ns()) <= now_ns();
}

void Engine::ask_for_acks() {
    const std::lock_guard lock(mutex_);
    outbox_.send_and_ask(now_ns());
    flush();
}

bool Engine::is_completed() {
    const std::lock_guard lock(mutex_);
    return outbox_.own().is_empty() && outbox_.is_completed();
}

}  // namespace rmem::udp
