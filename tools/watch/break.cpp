// SPDX-License-Identifier: Apache-2.0
// `rmem break`: stops who writes a variable, or tells.
//
// Guests of two nodes watch the variable, since a node gets no interrupts of its own writes.

#include "rmem/base/clock.hpp"
#include "rmem/base/descriptor.hpp"
#include "rmem/node.hpp"
#include "rmem/ring/segment.hpp"
#include "tools/commands.hpp"
#include "tools/json.hpp"
#include "tools/output.hpp"
#include "tools/stop_signals.hpp"
#include "tools/usage.hpp"
#include "tools/watch/bank_view.hpp"
#include "tools/watch/named.hpp"
#include "tools/watch/writers.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <charconv>
#include <fstream>
#include <limits>
#include <memory>
#include <string>
#include <vector>

namespace tools {

namespace {

constexpr const char* kBreakExamples = R"(
Examples:
  rmem break rig aircraft/altitude --when '> 20000'     stops the process that writes such a value
  rmem break rig gear/status --signal ABRT              a core dump of the next writer
  rmem break rig 0x100 --signal none --times 0          only tells, each time, until Ctrl-C

kill -CONT goes on with a stopped process; gdb -p looks into it.
Exit codes: 0 done, 1 failed, or the time is over, 2 wrong command line.)";

constexpr std::size_t kMostWatched = 4096;  // bytes

struct BreakOptions {
    GivenPlace given;
    std::string when, signal = "STOP", duration;
    std::uint64_t times = 1;
    bool json = false;
};

struct SignalName {
    const char* name;
    int number;
};
constexpr SignalName kSignals[] = {{"none", 0},       {"STOP", SIGSTOP}, {"ABRT", SIGABRT},
                                   {"INT", SIGINT},   {"TERM", SIGTERM}, {"KILL", SIGKILL},
                                   {"USR1", SIGUSR1}, {"USR2", SIGUSR2}, {"TRAP", SIGTRAP}};

int signal_of(const std::string& name) {
    for (const SignalName& one : kSignals) {
        if (name == one.name) return one.number;
    }
    throw UsageError(
        fmt::format("--signal: there is no '{}'; give none, STOP, ABRT, INT, TERM, "
                    "KILL, USR1, USR2 or TRAP",
                    name));
}

/// "> 30"
class Condition {
public:
    explicit Condition(std::string_view text) {
        while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
        if (text.empty()) return;
        const std::size_t end = text.find_first_not_of("<>=!");
        word_ = std::string(text.substr(0, end));
        std::string_view number = end == std::string_view::npos ? "" : text.substr(end);
        while (!number.empty() && number.front() == ' ') number.remove_prefix(1);
        const auto [rest, error] =
            std::from_chars(number.data(), number.data() + number.size(), number_);
        const bool is_known = word_ == "<" || word_ == "<=" || word_ == ">" || word_ == ">=" ||
                              word_ == "==" || word_ == "!=";
        if (!is_known || error != std::errc{} || rest != number.data() + number.size()) {
            throw UsageError(
                fmt::format("--when: '{}' is no condition; give one of < <= > >= == "
                            "!= and a number, such as '> 30'",
                            text));
        }
    }
    bool holds(double value) const {
        if (word_ == "<") return value < number_;
        if (word_ == "<=") return value <= number_;
        if (word_ == ">") return value > number_;
        if (word_ == ">=") return value >= number_;
        if (word_ == "==") return value == number_;
        return word_.empty() || value != number_;
    }

private:
    std::string word_;  ///< empty: always
    double number_ = 0;
};

class Break {
public:
    explicit Break(const BreakOptions& options)
        : options_(options),
          condition_(options.when),
          signal_(signal_of(options.signal)),
          end_ns_(options.duration.empty()
                      ? rmem::kNever
                      : rmem::now_ns() + duration_option("--for", options.duration)),
          ring_(rmem::Ring::attach(named_segment(options.given.ring, options.given.node))),
          meant_(meant_by(options.given, *ring_)) {
        // A number's fields are in the number; alone they are meant by their own name.
        if (meant_.leaves.size() > 1)
            std::erase_if(meant_.leaves, [](const auto& leaf) { return leaf.field != nullptr; });
        const std::uint64_t begin = meant_.begin(), bytes = meant_.end() - begin;
        check_user_range(ring_->config(), begin, bytes, "");
        if (bytes > kMostWatched) {
            throw UsageError(fmt::format("'{}' has {} bytes, and {} can be watched; give a part",
                                         options.given.place, bytes, kMostWatched));
        }
        const unsigned first = chosen_node(*ring_, options.given.node);
        const unsigned nodes = ring_->config().nodes;
        std::vector<unsigned> places{first};
        if (!ring_->config().is_remote() && nodes > 1) places.push_back((first + 1) % nodes);
        for (const unsigned node : places) {
            nodes_.emplace_back(ring_, rmem::Member{rmem::Member::kGuest, node});
            const std::uint64_t from = begin / rmem::kWordBytes * rmem::kWordBytes;
            nodes_.back().watch(from, (meant_.end() - from + 3) / 4 * 4);
        }
    }

    /// False: the time was over before.
    bool run() {
        std::vector<pollfd> readable;
        for (rmem::Node& node : nodes_) readable.push_back({node.interrupt_fd(), POLLIN, 0});
        if (!options_.json) fmt::print(stderr, "rmem break: watching\n");
        for (std::uint64_t done = 0;;) {
            for (rmem::Node& node : nodes_) {
                while (const auto found = node.next_interrupt(rmem::Deadline::now())) {
                    if (act(node, *found) && ++done == options_.times) return true;
                }
            }
            if (stop_.wait(readable, end_ns_)) continue;
            return stop_.signal() != 0;
        }
    }

private:
    /// Whether it was what is waited for.
    bool act(rmem::Node& node, const rmem::Interrupt& found) {
        for (const maps::Leaf& leaf : meant_.leaves) {
            const std::uint64_t word = found.offset;
            if (leaf.offset >= word + rmem::kWordBytes || leaf.offset + leaf.bytes <= word)
                continue;
            std::vector<std::byte> bytes(leaf.bytes);
            node.read(leaf.offset, bytes.data(), bytes.size());
            if (!condition_.holds(maps::value_of(leaf, bytes))) continue;
            const std::uint32_t pid = writer_of(leaf, found.origin);
            const bool is_told = pid != 0 && signal_ != 0 && send(pid);
            const char* what = is_told                     ? options_.signal.c_str()
                               : pid == 0                  ? "which process is not known"
                               : options_.signal == "none" ? "told"
                                                           : "it cannot be signalled";
            if (options_.json) {
                show_json_line({{"name", meant_.label(leaf)},
                                {"offset", leaf.offset},
                                {"value", meant_.json(leaf, bytes)},
                                {"node", found.origin},
                                {"pid", pid},
                                {"signalled", is_told}});
            } else {
                show(fmt::format("{} = {}  written by node {}, process {}: {}\n",
                                 meant_.label(leaf), meant_.text(leaf, bytes), found.origin,
                                 pid == 0 ? "-" : process_text(pid), what));
            }
            return true;
        }
        return false;
    }

    /// To a process that has the ring's memory: the number is what the shared memory says, and may
    /// be any. False: it is none, or may not be signalled.
    bool send(std::uint32_t pid) const {
        if (pid <= 1 || pid > static_cast<std::uint32_t>(std::numeric_limits<pid_t>::max()) ||
            pid == static_cast<std::uint32_t>(::getpid()))
            return false;
        // Held by it, the number stays that process's until it is signalled.
        const rmem::Descriptor process(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
        if (process.get() < 0) return false;
        std::ifstream maps(fmt::format("/proc/{}/maps", pid));
        const std::string object = rmem::Segment::object_name(ring_->segment_name());
        bool has_it = false;
        for (std::string line; !has_it && std::getline(maps, line);)
            has_it = line.ends_with(object);
        return has_it && ::syscall(SYS_pidfd_send_signal, process.get(), signal_, nullptr, 0) == 0;
    }

    /// By the logs; without, the only program that the node has. 0: it is not known.
    std::uint32_t writer_of(const maps::Leaf& leaf, unsigned origin) const {
        const auto writes = last_writes(*ring_, leaf.offset, leaf.offset + leaf.bytes, kMostLooked);
        for (auto write = writes.rbegin(); write != writes.rend(); ++write) {
            if (write->node == origin) return write->pid;
        }
        std::uint32_t only = 0;
        const auto self = static_cast<std::uint32_t>(::getpid());
        for (unsigned seat = 0; seat < ring_->seats(); ++seat) {
            // relaxed is enough, twice: who has written has joined before
            const rmem::RankSlot& slot = ring_->rank(seat);
            const std::uint32_t pid = slot.pid.load(std::memory_order_relaxed);
            const bool is_it = slot.node.load(std::memory_order_relaxed) == origin && pid != self &&
                               !ring_->config().is_keeper(seat) && ring_->is_joined(seat) &&
                               ring_->is_alive(seat);
            if (!is_it) continue;
            if (only != 0 && only != pid) return 0;
            only = pid;
        }
        return only;
    }

    static constexpr std::size_t kMostLooked = 64;

    const BreakOptions& options_;
    const Condition condition_;
    const int signal_;
    const std::int64_t end_ns_;
    const StopSignals stop_;  // before the library's threads
    const std::shared_ptr<rmem::Ring> ring_;
    Meant meant_;
    std::vector<rmem::Node> nodes_;
};

}  // namespace

void add_break(cli::App& app) {
    auto options = std::make_shared<BreakOptions>();
    cli::App* command = app.add_subcommand("break", "Stop who writes a variable");
    options->given.add_to(
        *command, "Node that watches (default: the first; on link udp the one that is here)");
    command->add_option("--when", options->when, "Only such values: '> 30', '<= -1', '== 0'");
    command
        ->add_option("--signal", options->signal,
                     "What the writer gets: STOP, ABRT (a core dump), INT, TERM, KILL, USR1, "
                     "USR2, TRAP or none")
        ->capture_default_str();
    command->add_option("--times", options->times, "End after as many; 0: never")
        ->capture_default_str();
    command->add_option("--for", options->duration, "End after this time, such as 5m");
    command->add_flag("--json", options->json, "One JSON object for each");
    command->footer(kBreakExamples);
    command->callback([options] {
        static_cast<void>(options->given.type());
        if (!Break(*options).run()) end_with(kExitFailed);
    });
}

}  // namespace tools
