// SPDX-License-Identifier: Apache-2.0
#include "ports/gamma/process.hpp"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <utility>

namespace ports::gamma {

namespace {

constexpr std::int64_t kLookNs = 1'000'000;  ///< for those who have not come yet
/// As long in company as alone.
constexpr billboard::SliceLengths kWaitSlices{.longest_in_company_ns =
                                                  billboard::SliceLengths{}.longest_ns};

}  // namespace

Process::Process(std::shared_ptr<ProcessEndpoint> process, unsigned nodes, const Settings& settings,
                 Visible visible)
    : process_(std::move(process)),
      endpoint_(process_->endpoint()),
      settings_(settings),
      visible_(visible),
      counters_(*endpoint_, billboard::Class::gamma),
      me_(endpoint_->rank()),
      ranks_(endpoint_->ranks()),
      frame_payload_(std::min(kFramePayload, endpoint_->partition_bytes() - kPartsHeaderBytes)) {
    peers_.resize(ranks_);
    barriers_ = settings_.first_number;
    for (Peer& p : peers_) {
        for (Arrived& a : p.arrived) a.number = settings_.first_number;
    }
    for (auto* numbers : {&to_rank_, &from_rank_, &from_rank_to_all_}) {
        numbers->assign(ranks_ * kPorts, settings_.first_number);
    }
    peers_[me_].request = {nodes, settings_.par_pid};
    peers_[me_].has_greeted = peers_[me_].is_greeted = true;
}

std::unique_ptr<Process> Process::start(std::shared_ptr<ProcessEndpoint> process, unsigned nodes,
                                        const Settings& settings, Visible visible) {
    if (nodes == 0) {
        throw rmem::Error(rmem::Errc::bad_environment,
                          "gamma_init: a group of 0 nodes is not valid; give 1 or more");
    }
    std::unique_ptr<Process> started(new Process(std::move(process), nodes, settings, visible));
    started->join(nodes);
    if (settings.has_progress_thread) started->process_->attend(*started);
    return started;
}

Process::~Process() {
    set_progress(false);
    const auto held = process_->hold();
    for (const Stalled& s : stalled_) done_with(s.frame);
}

void Process::set_progress(bool on) {
    if (on == std::exchange(settings_.has_progress_thread, on)) return;
    if (on) {
        process_->attend(*this);
    } else {
        process_->dismiss(*this);
    }
}

// ---- Start-up

/// Tells all others what this process asks for, and waits until all have told it the same.
void Process::join(unsigned nodes) {
    auto held = process_->hold();
    const Deadline end = endpoint_->deadline_in(settings_.join_timeout_ns);
    const auto missing = [&] {
        return std::find_if(peers_.begin(), peers_.end(),
                            [](const Peer& p) { return !p.has_greeted || !p.is_greeted; });
    };
    while (missing() != peers_.end() || answers_due_ != 0) {
        for (unsigned r = 0; r < ranks_; ++r) {
            if (!peers_[r].is_greeted && say_hello(r, false) == BBP_OK) peers_[r].is_greeted = true;
        }
        pump();
        int result = 0;
        while (take_one(endpoint_->deadline_in(kLookNs), result)) {
        }
        held.give_way();
        if (!end.passed(endpoint_.now_ns()) || missing() == peers_.end()) continue;
        throw rmem::Error(rmem::Errc::timed_out,
                          fmt::format("rank {} has not called gamma_init({}, …) in time; of the {} "
                                      "ranks of the ring, all but "
                                      "MU-Net's daemons have to (RMEM_JOIN_TIMEOUT)",
                                      missing() - peers_.begin(), nodes, ranks_));
    }
    form();
}

void Process::form() {
    std::vector<Request> requests;
    for (const Peer& p : peers_) {
        requests.push_back(p.request);
        has_non_members_ |= !p.request.takes_part();
    }
    groups_ = form_groups(requests);
    others_ = groups_;
    for (unsigned pid = 0; pid < groups_.size(); ++pid) {
        const auto own = std::find(groups_[pid].begin(), groups_[pid].end(), static_cast<int>(me_));
        if (own == groups_[pid].end()) continue;
        par_pid_ = pid;
        node_ = static_cast<unsigned>(own - groups_[pid].begin());
        others_[pid].erase(others_[pid].begin() + node_);
    }
    own_messages_ = Header{Kind::message, 0, 0, par_pid_, 0}.word();
    to_group_.assign(groups_.size() * kPorts, settings_.first_number);
    is_formed_ = true;
}

int Process::prepare_exit() {
    const Held held = hold();
    if (depth_ != 0 || atomic_ != 0) {
        return fail(GAMMA_EINVAL,
                    "gamma_exit was called by a handler, or in gamma_atomic; let the "
                    "program itself call it");
    }
    const Deadline end = endpoint_->deadline_in(settings_.patience_ns);
    while (!pump() && !end.passed(endpoint_.now_ns())) {
        int result = 0;
        take_one(endpoint_->deadline_in(kLookNs), result);
    }
    return BBP_OK;
}

std::int64_t Process::counter(unsigned par_pid, unsigned node, unsigned counter) {
    const int rank = rank_of(par_pid, node);
    if (rank == static_cast<int>(me_)) return static_cast<std::int64_t>(counters_.get(counter));
    rmem::Ring* ring = endpoint_->ring();
    if (rank < 0 || ring == nullptr) return -1;
    const auto r = static_cast<unsigned>(rank);
    // relaxed is enough: a number for people
    const auto state =
        static_cast<rmem::RankState>(ring->rank(r).state.load(std::memory_order_relaxed));
    if (state == rmem::RankState::elsewhere || state == rmem::RankState::lost) return -1;
    const rmem::PortCounters* const block = counters_of(*endpoint_, billboard::Class::gamma, r);
    return static_cast<std::int64_t>(block->get(counter));
}

// ---- Ports

int Process::rank_of(unsigned par_pid, unsigned node) const noexcept {
    if (par_pid >= groups_.size() || node >= groups_[par_pid].size()) return -1;
    return groups_[par_pid][node];
}

int Process::bind(const Binding& b) {
    const Held held = hold();
    if (b.port > kLastPort || b.dest_port > kLastPort || b.semaphore >= kPorts) {
        return fail(GAMMA_EPORT,
                    fmt::format("port {}, bound to port {} and semaphore {}, is not valid; ports "
                                "are 0 to {}, semaphores 0 to {}",
                                b.port, b.dest_port, b.semaphore, kLastPort, kPorts - 1));
    }
    const bool to_all = b.node == BROADCAST;
    const int rank = to_all ? -1 : rank_of(b.par_pid, b.node);
    if (rank < 0 && !(to_all && rank_of(b.par_pid, 0) >= 0)) {
        return fail(
            GAMMA_ENODE,
            fmt::format(
                "there is no node {} of parallel PID {}, which has {} nodes, counted from 0",
                b.node, b.par_pid, b.par_pid < groups_.size() ? groups_[b.par_pid].size() : 0));
    }
    if (b.buffer == nullptr && b.size != 0) {
        return fail(
            GAMMA_EINVAL,
            fmt::format("the buffer of port {} is a null pointer with {} bytes", b.port, b.size));
    }
    Port& p = ports_[b.port];
    const Header header{Kind::message, to_all ? unsigned{kBroadcast} : 0U, b.dest_port, b.par_pid,
                        b.port};
    const std::size_t stream =
        (to_all ? b.par_pid : static_cast<unsigned>(rank)) * std::size_t{kPorts} + b.dest_port;
    p.out = {header.word(), to_all ? kToAll : rank, to_all ? &to_group_[stream] : &to_rank_[stream],
             b.par_pid};
    p.on_message = b.on_message;
    p.on_error = b.on_error;
    p.semaphore = b.semaphore;
    p.told_gone = false;
    place_buffer(b.port, b.buffer, b.size);
    return BBP_OK;
}

int Process::set_error_handler(unsigned port, Handler handler) {
    const Held held = hold();
    if (!is_bound(port))
        return fail(GAMMA_EPORT,
                    fmt::format("port {} is not bound; bind it with gamma_setport", port));
    ports_[port].on_error = handler;
    return BBP_OK;
}

int Process::post_recv(unsigned port, void* buffer, std::size_t size) {
    const Held held = hold();
    if (!is_bound(port))
        return fail(GAMMA_EPORT,
                    fmt::format("port {} is not bound; bind it with gamma_setport", port));
    if (buffer == nullptr && size != 0) {
        return fail(GAMMA_EINVAL, fmt::format("the buffer for port {} is a null pointer with {} "
                                              "bytes",
                                              port, size));
    }
    place_buffer(port, buffer, size);
    return BBP_OK;
}

/// What has come of a message in parts moves with its port: the former buffer is the program's
/// again.
void Process::place_buffer(unsigned port, void* buffer, std::size_t size) {
    Port& p = ports_[port];
    p.is_in_use = false;
    RMEM_CHECK_IF(false, p.source < 0 || p.received <= p.total);  // (G4)
    const bool fits = p.source < 0 || p.total <= size;
    if (p.source >= 0 && fits && p.buffer != buffer) std::memmove(buffer, p.buffer, p.received);
    p.buffer = static_cast<std::byte*>(buffer);
    p.size = size;
    if (!fits) {
        count(Counter::messages_overlong);
        break_message(port, GAMMA_EOVERLONG);
    }
}

// ---- Waiting

/// Takes in until done() gives a result; `check`, in between, may give one too. What is there
/// already costs no look at the clock, and for what is not, the look is over before it comes.
template <class Done, class Check>
int Process::wait_until(Held& held, Done&& done, Check&& check) {
    polled();
    for (;;) {
        if (const int result = done(); result != kPending) return result;
        if (!may_take_in()) {
            return fail(GAMMA_EAGAIN,
                        "the awaited message is not there and cannot come here: in gamma_atomic, "
                        "and in too many nested handlers, no message is received");
        }
        int taken = 0;
        if (take_briefly(taken)) continue;
        for (billboard::Slices slices(held, *endpoint_, Deadline::never(), kWaitSlices);
             !take_one(slices.deadline(), taken); slices.pass(depth_ == 0)) {
            pump();
            watch_sources();
            if (const int result = done(); result != kPending) return result;
            if (taken == BBP_EPEER || only_non_members_live()) {
                return fail(
                    GAMMA_EPEER,
                    "the awaited message cannot come: all other processes are dead or have left");
            }
            if (const int result = check(); result != kPending) return result;
            polled();
            if (!stalled_.empty()) ::sched_yield();
        }
    }
}

int Process::take_error(Semaphore& s) {
    return fail(std::exchange(s.error, 0),
                "the awaited semaphore got an error, from gamma_sigerr or from a port without an "
                "error handler");
}

namespace {

int bad_semaphore(unsigned semaphore, int n) {
    return fail(
        semaphore < kPorts ? GAMMA_EINVAL : GAMMA_EPORT,
        fmt::format(
            "{} signals of semaphore {} are not valid; semaphores are 0 to {}, signals 0 or more",
            n, semaphore, kPorts - 1));
}

}  // namespace

int Process::wait(unsigned semaphore, int n) {
    Held held = hold();
    if (semaphore >= kPorts || n < 0) return bad_semaphore(semaphore, n);
    Semaphore& s = semaphores_[semaphore];
    return wait_until(
        held, [&] { return take_signals(s, n); }, [&] { return check_destinations(semaphore); });
}

int Process::test(unsigned semaphore, int n) {
    const Held held = hold();
    if (semaphore >= kPorts || n < 0) return bad_semaphore(semaphore, n);
    polled();
    Semaphore& s = semaphores_[semaphore];
    int result = take_signals(s, n);
    if (result == kPending) {
        take_in();
        pump();
        watch_sources();
        result = take_signals(s, n);
        if (result == kPending) endpoint_->give_way();
    }
    return result == BBP_OK ? 1 : result == kPending ? 0 : result;
}

bool Process::is_in_parts(const std::uint32_t* stream) const noexcept {
    return std::find(in_parts_.begin(), in_parts_.end(), stream) != in_parts_.end();
}

/// Until the message of another thread that is under way in it has gone.
int Process::await_stream(Held& held, const std::uint32_t* stream) {
    return wait_until(
        held, [&] { return is_in_parts(stream) ? kPending : BBP_OK; }, [] { return kPending; });
}

int Process::signal(unsigned semaphore) {
    if (semaphore >= kPorts) return bad_semaphore(semaphore, 1);
    const Held held = hold();
    ++semaphores_[semaphore].count;
    return BBP_OK;
}

int Process::signal_error(unsigned semaphore) {
    const Held held = hold();
    if (semaphore >= kPorts) return bad_semaphore(semaphore, 1);
    semaphores_[semaphore].error = GAMMA_ESIGNAL;
    return BBP_OK;
}

int Process::atomically(Handler function) {
    const Held held = hold();
    ++atomic_;
    function();
    --atomic_;
    return BBP_OK;
}

/// Whether a port with this semaphore is bound to the dead: then nobody may come to signal it.
int Process::check_destinations(unsigned semaphore) {
    for (unsigned port = 0; port <= kLastPort; ++port) {
        Port& p = ports_[port];
        if (p.out.dest == kUnbound || p.semaphore != semaphore || !all_gone(p.out)) continue;
        if (std::exchange(p.told_gone, true) == false && p.on_error != nullptr)
            raise_error(port, GAMMA_EPEER);
        return fail(
            GAMMA_EPEER,
            fmt::format("the process that port {} is bound to is dead or has left; bind the "
                        "port again, or wait on another semaphore",
                        port));
    }
    return kPending;
}

bool Process::all_gone(const Out& out) {
    if (out.dest >= 0) return is_gone(out.dest);
    const auto dests = members(out);
    return !dests.empty() &&
           std::all_of(dests.begin(), dests.end(), [&](int r) { return is_gone(r); });
}

/// Where all other ranks are processes, the billboard tells that they are gone.
bool Process::only_non_members_live() {
    if (!has_non_members_) return false;
    bool has_others = false;
    for (unsigned r = 0; r < ranks_; ++r) {
        if (r == me_ || !peers_[r].request.takes_part()) continue;
        if (!is_gone(static_cast<int>(r))) return false;
        has_others = true;
    }
    return has_others;
}

/// Whether the rank is dead, and all that it has sent has been taken in.
bool Process::is_gone(int rank) {
    const auto r = static_cast<unsigned>(rank);
    if (r == me_ || find_stalled(r) != nullptr) return false;
    if (!endpoint_.is_gone(r)) return false;
    lose_sources(r);
    return true;
}

// ---- Barrier

/// Dissemination: in round k each node tells the one 2^k above it that it, and all it knows of,
/// have come. A node that finds that one cannot come goes through the remaining rounds without
/// waiting and says so, so that nobody is left.
int Process::sync() {
    Held held = hold();
    if (depth_ != 0 || atomic_ != 0)
        return fail(GAMMA_EINVAL,
                    "gamma_sync was called by a handler, or in gamma_atomic; let the program "
                    "itself call it");
    const Group& group = own_group();
    const unsigned nodes = static_cast<unsigned>(group.size());
    ++barriers_;
    int result = BBP_OK;
    for (unsigned round = 0, step = 1; step < nodes; ++round, step *= 2) {
        const int to = group[(node_ + step) % nodes], from = group[(node_ + nodes - step) % nodes];
        const int sent = send_round(held, to, round, result != BBP_OK);
        if (result == BBP_OK) result = sent;
        if (result == BBP_OK) result = await_round(held, from, round);
    }
    if (result == BBP_OK) count(Counter::barriers);
    return result;
}

int Process::await_round(Held& held, int from, unsigned round) {
    const Arrived& arrived = peers_[static_cast<unsigned>(from)].arrived[round];
    const auto missing = [&](int rank) {
        return fail(GAMMA_EPEER,
                    fmt::format("rank {} of the group is dead or has left, or says so of another; "
                                "the barrier cannot be completed",
                                rank));
    };
    return wait_until(
        held,
        [&]() -> int {
            if (static_cast<std::int32_t>(arrived.number - barriers_) < 0) return kPending;
            return arrived.failed && arrived.number == barriers_ ? missing(from) : BBP_OK;
        },
        [&]() -> int { return is_gone(from) ? missing(from) : kPending; });
}

}  // namespace ports::gamma
