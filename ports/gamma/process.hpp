// SPDX-License-Identifier: Apache-2.0
#pragma once

/// One process of a virtual GAMMA: its ports, its semaphores, its group.
///
/// Contract: that of ports/gamma/libgamma.h, whose functions are these.
///
/// Invariants
///   (G1) Frames of a stream are numbered without gaps from the first number of the last hello;
///        what was not sent has used up its number, and the receiver is told of it by the next
///        frame or by a notice that stays owed until it is sent.
///   (G2) A sender whose next frame is for a port in use (a handler runs on its buffer, or
///        another's message is coming in) is stalled: that frame waits, and nothing more is taken
///        from that sender. So a process keeps one frame for each sender at most, and the order
///        within each is kept.
///   (G3) A handler runs when its frame is done with: copied, released, counted. It may call
///        anything.
///   (G4) One message at a time is in parts under way in a stream, and at a port; no more of it has
///        come in than it has.
///
/// Thread safety: any thread, when the process endpoint is shared; else one.
/// Progress: a waiting call receives, in slices; else the progress thread, as an attendant.
/// Errors: start() throws `rmem::Error`; the rest returns codes (codes.hpp).

#include "billboard/core/answer_pause.hpp"
#include "billboard/process/process_endpoint.hpp"
#include "ports/common/counters.hpp"
#include "ports/common/port_endpoint.hpp"
#include "ports/gamma/codes.hpp"
#include "ports/gamma/counters.hpp"
#include "ports/gamma/frame.hpp"
#include "ports/gamma/groups.hpp"
#include "ports/gamma/settings.hpp"
#include "rmem/base/check.hpp"
#include "rmem/base/copy.hpp"
#include "rmem/ring/waiting/waiting.hpp"

#include <array>
#include <memory>
#include <span>
#include <vector>

namespace ports::gamma {

using billboard::Deadline;
using billboard::ProcessEndpoint;
using Handler = void (*)();

/// The variables that handlers read.
struct Visible {
    unsigned short& active_port;
    long& msglen;
    int& error;
};

struct Binding {
    unsigned port = 0, node = 0, par_pid = 0, dest_port = 0, semaphore = 0;
    Handler on_message = nullptr;  ///< null: the port is passive
    Handler on_error = nullptr;
    void* buffer = nullptr;
    std::size_t size = 0;
};

/// A message's bytes, in two pieces.
struct Pieces {
    const void* first = nullptr;
    std::size_t first_bytes = 0;
    const void* second = nullptr;
    std::size_t second_bytes = 0;

    [[nodiscard]] std::size_t size() const noexcept { return first_bytes + second_bytes; }
    [[nodiscard]] bool has_holes() const noexcept {
        return (first == nullptr && first_bytes != 0) || (second == nullptr && second_bytes != 0);
    }
    void copy(std::byte* to, std::size_t offset, std::size_t bytes) const noexcept;
};

/// `immediate`: a frame at once, or BBP_EAGAIN, without a sentence.
enum class Service { best_effort, flow_controlled, immediate };

class RMEM_API Process final : private billboard::Attendant {
public:
    /// Waits until all ranks of the ring have done so, except for non-members, and forms the
    /// groups.
    [[nodiscard]] static std::unique_ptr<Process> start(std::shared_ptr<ProcessEndpoint> process,
                                                        unsigned nodes, const Settings& settings,
                                                        Visible visible);
    ~Process();
    Process(const Process&) = delete;
    Process& operator=(const Process&) = delete;

    unsigned par_pid() const noexcept { return par_pid_; }
    unsigned node() const noexcept { return node_; }
    unsigned nodes() const noexcept { return static_cast<unsigned>(own_group().size()); }

    int bind(const Binding& binding);
    [[nodiscard]] int set_error_handler(unsigned port, Handler handler);
    [[nodiscard]] int post_recv(unsigned port, void* buffer, std::size_t size);

    int send(unsigned port, const Pieces& message, Service service);

    [[nodiscard]] std::size_t frame_bytes() const noexcept { return frame_payload_; }
    /// Whether the progress thread takes messages in, too.
    void set_progress(bool on);

    int wait(unsigned semaphore, int n);
    [[nodiscard]] int test(unsigned semaphore, int n);
    int signal(unsigned semaphore);
    [[nodiscard]] int signal_error(unsigned semaphore);
    int sync();

    [[nodiscard]] int atomically(Handler function);
    /// GAMMA_EINVAL where it may not leave: in a handler, in gamma_atomic. Tells of what was lost
    /// first.
    [[nodiscard]] int prepare_exit();

    /// -1: no such process, or not on this host.
    std::int64_t counter(unsigned par_pid, unsigned node, unsigned counter);

private:
    friend struct PlantedBug;  ///< a test's, which a check finds
    using Held = ProcessEndpoint::Held;
    static constexpr int kToAll = -2;
    static constexpr int kUnbound = -1;
    static constexpr int kPending = 1;          ///< no result yet
    static constexpr unsigned kMaxFrames = 64;  ///< taken in one go: then others come in
    static constexpr unsigned kMaxDepth = 16;   ///< handlers within handlers
    static constexpr unsigned kMaxRounds = 8;   ///< of a barrier of 256 nodes

    /// Where a port's messages go.
    struct Out {
        std::uint32_t header = 0;
        int dest = kUnbound;              ///< rank, or kToAll
        std::uint32_t* number = nullptr;  ///< of the next frame of the stream
        unsigned par_pid = 0;
    };
    struct alignas(rmem::kLineBytes) Port {
        Out out;
        // what comes
        std::byte* buffer = nullptr;
        std::size_t size = 0;
        Handler on_message = nullptr, on_error = nullptr;
        unsigned semaphore = 0;
        bool is_in_use = false;    ///< a handler runs on its buffer
        bool told_gone = false;    ///< the error handler knows that the destination is dead
        bool is_in_error = false;  ///< its error handler runs
        // the message in parts that is coming in
        int source = -1;
        std::size_t total = 0, received = 0;
    };
    struct Semaphore {
        long long count = 0;
        int error = 0;
    };
    struct Frame {
        const std::byte* data;
        std::size_t length;
        bool is_view;
    };
    /// A sender's frame that waits for its port (G2).
    struct Stalled {
        unsigned source;
        Frame frame;
        std::vector<std::byte> copy;  ///< unless it is a view
    };
    /// A loss that its receiver does not know of yet.
    struct Notice {
        int dest;
        std::uint32_t header, number;
    };
    struct Arrived {
        std::uint32_t number = 0;
        bool failed = false;
    };
    /// What is known of another rank.
    struct Peer {
        Request request;
        bool has_greeted = false, is_greeted = false;
        bool answer_due = false;   ///< it has asked
        bool is_returned = false;  ///< as a new incarnation, which the program is not told of yet
        bool is_gone = false;      ///< as last seen
        std::uint32_t incarnations = 0;
        std::array<Arrived, kMaxRounds> arrived{};
    };
    struct Outgoing;

    Process(std::shared_ptr<ProcessEndpoint> process, unsigned nodes, const Settings& settings,
            Visible visible);

    /// A handler's thread holds the endpoint already.
    [[nodiscard]] Held hold();

    // -- process.cpp
    void join(unsigned nodes);
    void form();
    [[nodiscard]] const Group& own_group() const noexcept { return groups_[par_pid_]; }
    [[nodiscard]] int rank_of(unsigned par_pid, unsigned node) const noexcept;
    void place_buffer(unsigned port, void* buffer, std::size_t size);
    [[nodiscard]] bool is_bound(unsigned port) const noexcept {
        return port <= kLastPort && ports_[port].out.dest != kUnbound;
    }
    template <class Done, class Check>
    [[nodiscard]] int wait_until(Held& held, Done&& done, Check&& check);
    [[nodiscard]] int take_signals(Semaphore& s, int n) {
        if (s.count < n) return s.error == 0 ? kPending : take_error(s);
        s.count -= n;
        return BBP_OK;
    }
    [[nodiscard]] static int take_error(Semaphore& s);
    [[nodiscard]] int await_stream(Held& held, const std::uint32_t* stream);
    [[nodiscard]] bool is_in_parts(const std::uint32_t* stream) const noexcept;
    [[nodiscard]] int check_destinations(unsigned semaphore);
    bool is_gone(int rank);
    [[nodiscard]] bool only_non_members_live();
    [[nodiscard]] bool all_gone(const Out& out);
    [[nodiscard]] int send_round(Held& held, int to, unsigned round, bool failed);
    [[nodiscard]] int await_round(Held& held, int from, unsigned round);

    // -- receiving.cpp
    bool attend() noexcept override;
    [[nodiscard]] bool may_take_in() const noexcept { return atomic_ == 0 && depth_ < kMaxDepth; }
    bool take_in();
    bool take_one(Deadline deadline, int& result);
    [[nodiscard]] bool take_briefly(int& result);
    [[nodiscard]] bool take_from_each();
    [[nodiscard]] bool retry_stalled();
    void stall(Stalled stalled, int lost_port);
    [[nodiscard]] Stalled* find_stalled(unsigned source);
    [[nodiscard, gnu::always_inline]] bool short_message_arrived(unsigned source,
                                                                 const std::byte* data,
                                                                 std::size_t length);
    void arrived(unsigned source, const Frame& frame);
    [[nodiscard]] bool process_frame(unsigned source, const Frame& frame, int& lost_port);
    [[nodiscard]] bool message_arrived(unsigned source, const Header& h, const Frame& frame,
                                       int& lost_port);
    void single_arrived(unsigned port, const Frame& frame);
    void part_arrived(unsigned source, unsigned port, const Frame& frame);
    void notice_arrived(unsigned source, const Header& h, const Frame& frame);
    void hello_arrived(unsigned source, const Header& h, const Frame& frame);
    void barrier_arrived(unsigned source, const Header& h, const Frame& frame);
    void refuse(const Frame& frame);
    void done_with(const Frame& frame);
    [[gnu::always_inline]] void deliver(unsigned port, std::size_t bytes);
    void break_message(unsigned port, int error);
    void raise_error(unsigned port, int error);
    [[gnu::always_inline]] void run(Handler handler, unsigned port);
    void watch_sources();
    void lose_sources(unsigned rank);

    // -- sending.cpp
    [[nodiscard]] int check_message(unsigned port, const Pieces& message, Service service);
    [[nodiscard]] int send_slowly(Held& held, unsigned port, const Pieces& message,
                                  Service service);
    [[nodiscard]] int send_parts(Held& held, Outgoing& out, const Pieces& message);
    [[nodiscard]] int send_frame(Held& held, Outgoing& out, std::size_t header_bytes,
                                 const Pieces& message, std::size_t offset, std::size_t bytes);
    [[nodiscard]] int compose(std::size_t bytes, void*& composed, Deadline deadline);
    [[nodiscard]] int broadcast_to_each(Outgoing& out, const std::byte* frame, std::size_t bytes);
    template <class Attempt>
    [[nodiscard]] int wait_for_room(Held& held, const Outgoing& out, Attempt&& attempt);
    void lose(const Outgoing& out, std::uint32_t frames);
    void owe(int dest, const Out& out);
    [[nodiscard]] bool owes(int dest) const noexcept;
    bool pump();
    [[nodiscard]] int say_hello(unsigned rank, bool is_answer);
    [[nodiscard]] int told_gone(unsigned port, int rank);
    [[nodiscard]] std::span<const int> members(const Out& out) const noexcept;
    void count_detours() noexcept;

    void count(Counter id, std::uint64_t n = 1) noexcept { counters_.add(id, n); }

    std::shared_ptr<ProcessEndpoint> process_;
    const PortEndpoint<billboard::Class::gamma> endpoint_;
    Settings settings_;
    Visible visible_;
    PortCounts counters_;
    std::uint32_t own_messages_ = 0;  ///< word 0 of a short message for here, except for its ports
    unsigned detours_ = 0;            ///< what a short message has to look at first
    billboard::AnswerPause pause_;
    unsigned atomic_ = 0, depth_ = 0;
    unsigned me_, ranks_;
    unsigned par_pid_ = 0, node_ = 0;
    bool is_formed_ = false;
    bool has_non_members_ = false;
    std::size_t frame_payload_;
    std::uint32_t barriers_ = 0;  ///< begun
    std::array<Port, kPorts> ports_{};
    std::array<Semaphore, kPorts> semaphores_{};
    std::vector<Group> groups_;
    std::vector<std::vector<int>> others_;  ///< of each group, without this process
    std::vector<Peer> peers_;
    // Numbers of streams, 256 for each rank or group: by port.
    std::vector<std::uint32_t> to_rank_, to_group_, from_rank_, from_rank_to_all_;
    std::vector<Stalled> stalled_;
    std::vector<Notice> notices_;
    std::vector<const std::uint32_t*> in_parts_;  ///< streams with a message under way (G4)
    std::vector<unsigned> coming_in_;             ///< ports with one that is coming in
    unsigned answers_due_ = 0, returned_ = 0;
    unsigned next_source_ = 0;
};

/// Whose handler the calling thread runs: such a thread holds the endpoint already. In the initial
/// TLS, since each call looks at it.
[[gnu::tls_model("initial-exec")]] extern constinit thread_local const Process* handling;

inline Process::Held Process::hold() {
    return handling == this ? Held() : process_->hold();
}

}  // namespace ports::gamma
