// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Messages in private memory: met on the way to another class, gathered from parts, or saved from
/// a rank that has come back with a new incarnation. After the latter stands its end, until it is
/// told.
///
/// Invariant: a source has at most one end in the queue, and a message leaves it once.
/// Limit: kSetAsideBytes; what does not fit stays where it was posted and holds its sender back.
/// Thread safety: one thread. The queue is short in any sane program, so look-ups scan it.

#include "billboard/boards/layout.hpp"
#include "rmem/base/check.hpp"

#include <algorithm>
#include <cstddef>
#include <deque>
#include <optional>
#include <span>
#include <vector>

namespace billboard {

inline constexpr std::size_t kSetAsideBytes = std::size_t{1} << 30;
/// No message is larger than what fits into private memory.
inline constexpr std::size_t kMaxMessageBytes = kSetAsideBytes;

class SetAside {
public:
    struct Message {
        Class cls;
        unsigned source;
        std::vector<std::byte> bytes;
        bool is_end = false;  ///< of a former incarnation of `source`; of no class
    };

    [[nodiscard]] bool empty() const noexcept { return queue_.empty(); }
    [[nodiscard]] bool has_messages() const noexcept { return queue_.size() > ends_; }
    [[nodiscard]] bool has_room(std::size_t bytes) const noexcept {
        return bytes <= kSetAsideBytes && held_ <= kSetAsideBytes - bytes;
    }
    void push(Class cls, unsigned source, std::span<const std::byte> bytes) {
        push(Message{cls, source, {bytes.begin(), bytes.end()}});
    }
    void push(Message message) {
        const std::size_t cost = cost_of(message);
        queue_.push_back(std::move(message));
        held_ += cost;
    }
    /// All that `source` sends from now on is of another incarnation than before. At most one for
    /// each source.
    void push_end(unsigned source) {
        erase_end(source);
        queue_.push_back({Class::user, source, {}, true});
        ++ends_;
    }
    void erase_end(unsigned source) {
        ends_ -= std::erase_if(queue_, [&](const Message& m) { return is_end_of(m, source); });
    }
    [[nodiscard]] bool has_end(unsigned source) const noexcept {
        return ends_ != 0 && std::any_of(queue_.begin(), queue_.end(),
                                         [&](const Message& m) { return is_end_of(m, source); });
    }
    /// The oldest message of a class and source (negative: any); null if none.
    [[nodiscard]] Message* find(Class cls, int source) noexcept {
        for (Message& m : queue_) {
            if (is_of(m, cls, source)) return &m;
        }
        return nullptr;
    }
    /// Whether the end of an incarnation of `source` comes before its next message of this class.
    [[nodiscard]] bool ends_next(Class cls, unsigned source) const noexcept {
        if (ends_ == 0) return false;
        for (const Message& m : queue_) {
            if (is_end_of(m, source)) return true;
            if (is_of(m, cls, static_cast<int>(source))) return false;
        }
        return false;
    }
    /// One that find() has found.
    Message pop(const Message* which) {
        const auto it = std::find_if(queue_.begin(), queue_.end(),
                                     [&](const Message& m) { return &m == which; });
        RMEM_CHECK(it != queue_.end() && !it->is_end && held_ >= cost_of(*it));
        Message message = std::move(*it);
        held_ -= cost_of(message);
        queue_.erase(it);
        return message;
    }

private:
    /// Empty messages take memory too.
    static std::size_t cost_of(const Message& m) noexcept { return sizeof m + m.bytes.size(); }
    [[nodiscard]] static bool is_end_of(const Message& m, unsigned source) noexcept {
        return m.is_end && m.source == source;
    }
    [[nodiscard]] static bool is_of(const Message& m, Class cls, int source) noexcept {
        return !m.is_end && m.cls == cls &&
               (source < 0 || m.source == static_cast<unsigned>(source));
    }

    std::deque<Message> queue_;
    std::size_t held_ = 0;
    std::size_t ends_ = 0;  ///< of the queue
};

}  // namespace billboard
