// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The wire model's containers: a growing ring buffer and the queue of events.
///
/// Thread safety: none.
/// Invariants:    events leave in the order of (time, order); order is unique, so the sequence is a
///                function of the pushed events and nothing else.
/// Units:         picoseconds.
/// Errors:        none but std::bad_alloc, and only while a container grows.
/// Source:        a 4-ary heap after LaMarca and Ladner 1996; the lanes are ours.

#include "rmem/base/check.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace rmem::detail {

/// A FIFO over a power of two of slots that doubles when it is full. Elements keep a running
/// number, so that others can name them while the FIFO moves on.
template <class T>
class NumberedRing {
public:
    explicit NumberedRing(std::size_t capacity = 2) : slots_(capacity), mask_(capacity - 1) {}

    bool empty() const noexcept { return first_ == end_; }
    std::uint64_t first() const noexcept { return first_; }
    std::uint64_t end() const noexcept { return end_; }
    T& operator[](std::uint64_t number) noexcept { return slots_[number & mask_]; }
    const T& operator[](std::uint64_t number) const noexcept { return slots_[number & mask_]; }
    T& front() noexcept { return (*this)[first_]; }
    const T& front() const noexcept { return (*this)[first_]; }
    T& back() noexcept { return (*this)[end_ - 1]; }
    void pop_front() noexcept { ++first_; }
    void push_back(const T& value) {
        if (end_ - first_ > mask_) grow();
        slots_[end_++ & mask_] = value;
    }

private:
    void grow() {
        std::vector<T> larger(slots_.size() * 2);
        const std::uint64_t mask = larger.size() - 1;
        for (std::uint64_t n = first_; n != end_; ++n) larger[n & mask] = (*this)[n];
        slots_.swap(larger);
        mask_ = mask;
    }

    std::vector<T> slots_;
    std::uint64_t mask_;
    std::uint64_t first_ = 0;
    std::uint64_t end_ = 0;
};

/// The order of kinds at one time: the value is the rank.
enum class WireEventKind : std::uint8_t {
    fault = 0,  ///< a node or a cable changes
    entry,      ///< a write reaches a TX FIFO that may be full
    instant,    ///< profile `none`: a write is everywhere
    extend,     ///< the last word of an open PLUS packet has left: append or close
    delivery,   ///< a write's last word is in a node's memory
    hop,        ///< a passing packet has been in a node for its least stay
    insertion   ///< a node may be able to send an own packet; passing ones go first
};

struct WireEvent {
    std::uint64_t time = 0;
    std::uint64_t order = 0;  ///< kind, then order of pushing
    std::uint32_t packet = 0;
    std::uint16_t node = 0;
    std::uint16_t detail = 0;

    WireEventKind kind() const noexcept { return static_cast<WireEventKind>(order >> kKindShift); }
    bool before(const WireEvent& other) const noexcept {
        return time != other.time ? time < other.time : order < other.order;
    }

    static constexpr int kKindShift = 56;
};

/// A priority queue that is O(1) in the common case: events of one kind are usually pushed with
/// growing times (now plus a constant), and then queue up in that kind's lane. Only those that come
/// out of turn, behind contention, go through the heap.
class WireEventQueue {
public:
    static constexpr std::uint64_t kNever = std::numeric_limits<std::uint64_t>::max();

    WireEventQueue() { heap_.reserve(256); }

    std::uint64_t next_time() const noexcept {
        return std::min(std::min(firsts_[0].time, firsts_[1].time),
                        std::min(firsts_[2].time, firsts_[3].time));
    }

    /// The first delivery that `is_wanted`, until that time and before all that came out of turn;
    /// null if there is none.
    template <class IsWanted>
    const WireEvent* find_delivery(std::uint64_t until, IsWanted is_wanted) const {
        const Lane& lane = lanes_[0];
        for (std::uint64_t n = lane.first(); n != lane.end(); ++n) {
            if (lane[n].time > until || firsts_[kHeap].before(First(lane[n]))) return nullptr;
            if (is_wanted(lane[n])) return &lane[n];
        }
        return nullptr;
    }

    void push(WireEventKind kind, WireEvent event) {
        const std::uint64_t rank = static_cast<std::uint64_t>(kind);
        event.order = (rank << WireEvent::kKindShift) | next_order_++;
        insert(event);
    }

    /// Returns an event that extract() took out to its place.
    void put_back(const WireEvent& event) { insert(event); }

    /// Takes out the first event; there must be one.
    WireEvent pop() {
        RMEM_CHECK(next_time() != kNever);
        const std::size_t first = earlier(earlier(0, 1), earlier(2, 3));
        WireEvent event;
        if (first == kHeap) {
            event = heap_.front();
            pop_heap();
            firsts_[kHeap] = heap_.empty() ? First() : First(heap_.front());
        } else {
            Lane& lane = lanes_[first];
            event = lane.front();
            lane.pop_front();
            firsts_[first] = lane.empty() ? First() : First(lane.front());
        }
        return event;
    }

    /// Takes out, in order, all events that `match`. Walks everything: for faults only.
    template <class Match>
    std::vector<WireEvent> extract(Match match) {
        std::vector<WireEvent> all = drain();
        std::vector<WireEvent> found;
        for (const WireEvent& event : all) {
            if (match(event)) {
                found.push_back(event);
            } else {
                insert(event);
            }
        }
        return found;
    }

    /// Sets the origin of time later by `ps`; no event is earlier than that.
    void rebase(std::uint64_t ps) {
        for (WireEvent event : drain()) {
            event.time -= ps;
            insert(event);
        }
    }

private:
    using Lane = NumberedRing<WireEvent>;
    static constexpr std::size_t kLanes = 3;
    static constexpr std::size_t kHeap = kLanes;

    /// When a lane's, or the heap's, first event is: every look at the queue asks for it.
    struct First {
        std::uint64_t time = kNever;
        std::uint64_t order = kNever;

        First() = default;
        explicit First(const WireEvent& event) : time(event.time), order(event.order) {}
        bool before(const First& other) const noexcept {
            return time != other.time ? time < other.time : order < other.order;
        }
    };
    static constexpr std::uint64_t kFirstLaneKind =
        static_cast<std::uint64_t>(WireEventKind::delivery);

    std::size_t earlier(std::size_t a, std::size_t b) const noexcept {
        return firsts_[b].before(firsts_[a]) ? b : a;
    }

    void insert(WireEvent event) {
        const std::uint64_t rank = event.order >> WireEvent::kKindShift;
        if (rank >= kFirstLaneKind) {
            const std::size_t i = rank - kFirstLaneKind;
            Lane& lane = lanes_[i];
            if (lane.empty()) firsts_[i] = First(event);
            if (lane.empty() || lane.back().before(event)) return lane.push_back(event);
        }
        push_heap(event);
    }

    std::vector<WireEvent> drain() {
        std::vector<WireEvent> all;
        all.swap(heap_);
        firsts_.fill(First());
        for (Lane& lane : lanes_) {
            for (; !lane.empty(); lane.pop_front()) all.push_back(lane.front());
        }
        std::sort(all.begin(), all.end(),
                  [](const WireEvent& a, const WireEvent& b) { return a.before(b); });
        return all;
    }

    [[gnu::noinline]] void push_heap(WireEvent event) {
        std::size_t hole = heap_.size();
        heap_.push_back(event);
        while (hole > 0) {
            const std::size_t parent = (hole - 1) / 4;
            if (!event.before(heap_[parent])) break;
            heap_[hole] = heap_[parent];
            hole = parent;
        }
        heap_[hole] = event;
        firsts_[kHeap] = First(heap_.front());
    }

    void pop_heap() {
        const WireEvent last = heap_.back();
        heap_.pop_back();
        const std::size_t size = heap_.size();
        if (size == 0) return;
        std::size_t hole = 0;
        for (std::size_t child = 1; child < size; child = 4 * hole + 1) {
            std::size_t least = child;
            const std::size_t end = std::min(child + 4, size);
            for (std::size_t other = child + 1; other < end; ++other) {
                if (heap_[other].before(heap_[least])) least = other;
            }
            if (!heap_[least].before(last)) break;
            heap_[hole] = heap_[least];
            hole = least;
        }
        heap_[hole] = last;
    }

    std::array<First, 4> firsts_;  ///< of the lanes and, last, of the heap
    std::array<Lane, kLanes> lanes_{Lane(64), Lane(64), Lane(64)};
    std::vector<WireEvent> heap_;
    std::uint64_t next_order_ = 0;
};

}  // namespace rmem::detail
