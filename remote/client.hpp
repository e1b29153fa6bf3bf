// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A node elsewhere, served by `rmem serve`: the calls of rmem.h that programs of cards need.
///
/// remote/rmem_calls.cpp gives them their names in C, so that what is written for a node of this
/// host is linked with a node elsewhere without a change.
/// Writes and interrupts are sent and not answered: one that could not be made is told by the next
/// call that asks something. Before an interrupt or a flush leaves, what the program has stored
/// through its pointers does; before a read or a write, that of the same pages.
///
/// Thread safety: any thread. A callback runs in a thread of its own.
/// Errors: the constructor throws `rmem::Error`. Calls return codes of rmem.h, with the sentence in
///   rmem_last_error(): RMEM_EPEER when the connection has ended, which one line on stderr says,
///   too. It does not come back.
/// Fork: a child inherits the object without threads, and with a connection that is its parent's:
///   is_inherited() says so, and no other call may be made, nor the destructor.
/// Trust: what the server sends is bounded before it is used.
/// Units: bytes, nanoseconds.

#include "remote/protocol.hpp"
#include "remote/socket.hpp"
#include "remote/view.hpp"
#include "rmem/base/at_fork.hpp"
#include "rmem/base/clock.hpp"
#include "rmem/base/helper_thread.hpp"
#include "rmem/rmem.h"

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace remote {

class Client final : rmem::AtFork {
public:
    using Callback = void (*)(void* with, const rmem_interrupt* interrupt);

    static constexpr std::size_t kMaxInterrupts = 1024;
    /// Between looks for stores of the program, while something is mapped.
    static constexpr int kLookMs = 1;

    explicit Client(const Address& address);
    /// What the program has stored leaves first.
    ~Client();
    Client(const Client&) = delete;
    Client& operator=(const Client&) = delete;

    [[nodiscard]] const Welcome& node() const { return welcome_; }
    [[nodiscard]] bool is_inherited() const { return is_inherited_; }
    /// RMEM_EINVAL: there is no word of the memory at that offset.
    [[nodiscard]] int check_word(std::uint64_t offset) const;
    /// RMEM_EPEER: the connection has ended.
    [[nodiscard]] int state();

    [[nodiscard]] int read(std::uint64_t offset, std::span<std::byte> to);
    [[nodiscard]] int write(std::uint64_t offset, std::span<const std::byte> data,
                            rmem::WordPart part = rmem::kWholeWord);
    [[nodiscard]] int send_interrupt(int to, std::uint32_t number, std::uint32_t value);
    [[nodiscard]] int accept_interrupts(std::uint64_t numbers);
    [[nodiscard]] int flush(std::int64_t timeout_ns);
    [[nodiscard]] int counter(std::string_view name, std::uint64_t& value);
    [[nodiscard]] int is_there(Kind kind, int of);  ///< is_alive of a rank, is_present of a node
    [[nodiscard]] int is_member();

    /// Stores where the memory begins here; these whole pages of it are the node's from now on.
    [[nodiscard]] int map(std::uint64_t offset, std::uint64_t bytes, void** memory);

    [[nodiscard]] int next_interrupt(rmem_interrupt& interrupt, std::int64_t timeout_ns);
    [[nodiscard]] int on_interrupt(Callback function, void* with);

private:
    using Bytes = std::vector<std::byte>;
    using Lock = std::unique_lock<std::mutex>;

    void in_child() noexcept override { is_inherited_ = true; }

    // ---- Calls
    void greet(Socket& socket, Channel channel);
    [[nodiscard]] bool take_frame(Socket& socket, FrameQueue& frames);
    [[nodiscard]] int post(const Bytes& frame, std::uint64_t* number = nullptr);
    [[nodiscard]] int ask(const Bytes& frame, Kind kind, std::span<std::byte> answer);
    [[nodiscard]] int ask_number(const Bytes& frame, std::uint64_t& number);
    [[nodiscard]] int failed(const Frame& frame);
    [[nodiscard]] int check_range(std::uint64_t offset, std::size_t bytes) const;
    void end(const std::string& why);
    void send_stores();
    void send_stores(std::uint64_t offset, std::uint64_t bytes);

    // ---- News
    void follow_news();
    [[nodiscard]] bool take_news(FrameQueue& frames);
    [[nodiscard]] bool take(const Frame& frame);
    [[nodiscard]] bool has_view();
    /// Until there is something of `wanted`, or the connection has ended.
    template <class Wanted>
    void await(Lock& lock, rmem::Deadline deadline, Wanted wanted);
    void call_back();

    bool is_inherited_ = false;  ///< by a fork()ed child
    const std::string where_;
    Socket calls_;
    FrameQueue answers_{kMaxBodyBytes};
    Welcome welcome_;
    Socket news_;

    std::mutex map_mutex_;   ///< one map at a time; before the next
    std::mutex view_mutex_;  ///< before the next
    std::optional<View> view_;
    std::uint64_t asked_maps_ = 0;

    std::mutex calls_mutex_;    ///< what is sent, and its answer; before the next
    std::uint64_t writes_ = 0;  ///< that were sent

    std::mutex news_mutex_;
    std::condition_variable has_news_;
    std::string ended_;  ///< why; empty: it has not
    std::uint64_t shown_maps_ = 0;
    std::uint64_t frames_ = 0;  ///< of news
    std::deque<rmem_interrupt> interrupts_;
    std::uint64_t missed_ = 0;
    Callback callback_ = nullptr;
    void* with_ = nullptr;
    bool is_closing_ = false;

    std::optional<rmem::HelperThread> callback_thread_;
    std::optional<rmem::HelperThread> news_thread_;
};

}  // namespace remote
