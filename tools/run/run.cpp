// SPDX-License-Identifier: Apache-2.0
// `rmem run`: makes a ring and runs a program's ranks in it.
//
// The options become RMEM_ variables of this process; the ring is made from them by the same code
// that computes the settings of the ranks, which inherit them.

#include "billboard/environment.hpp"
#include "rmem/base/clock.hpp"
#include "rmem/base/environment_variable.hpp"
#include "rmem/link/carrier/endpoints.hpp"
#include "rmem/link/ring/memory.hpp"
#include "rmem/link/udp/engine_settings.hpp"
#include "rmem/link/udp/key_file.hpp"
#include "rmem/ring/node_board.hpp"
#include "rmem/ring/ring.hpp"
#include "rmem/ring/waiting/awaiting.hpp"
#include "rmem/ring/waiting/waiting.hpp"
#include "rmem/wire/faults.hpp"
#include "tools/commands.hpp"
#include "tools/output.hpp"
#include "tools/run/cleaning.hpp"
#include "tools/run/launcher.hpp"
#include "tools/run/node_processes.hpp"
#include "tools/run/rig.hpp"
#include "tools/run/ring_map.hpp"
#include "tools/settings.hpp"

#include <fmt/format.h>
#include <grp.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tools {

namespace {

constexpr const char* kRunExamples = R"(
Examples:
  rmem run -n 4 -- ./program --its=options
  rmem run -n 2 --link ring --timing scramnet-burst -- ./program
  rmem run -n 4 --ring rig --size 8M -- ./program    under a name, for `rmem watch rig 0x100`
  rmem run -n 4 --ring rig --map rig.toml -- ./program    with names, for `rmem watch rig NAME`
  rmem run -n 8 --nodes 4 --layout paper -- ./program
  rmem run -n 4 --nodes 2 --link udp -- ./program    two nodes, each run by an `rmem node`
  rmem run -n 3 --link ring --faults 'cut:cable=1,at=5ms,until=20ms' -- ./program
  rmem run -n 3 --link ring --bound 5us --faults 'delay:node=1,by=200us,count=5' -- ./program
  rmem run -n 4 --restart 1 -- ./program             a killed rank comes back once
  rmem run -n 1 ./aircraft : -n 2 ./panel --wide     two programs, ranks 0 and 1 to 2
  rmem run --rig rig.toml                            programs, users, processors: rmem-run(1)

Faults: items divided by `;`, each one of (rmem(7) says more)
  seed=N                        delay:by=TIME[,node=N][,after=N][,count=N][,share=N%]
  lose:[node=N][,after=N][,count=N][,share=N%]
  cut:cable=N[,ring=0|1|both][,at=TIME][,until=TIME]
  bypass:node=N[,at=TIME][,until=TIME]
and of datagrams, on links udp and fabric, drop, duplicate, corrupt, hold:by=TIME and part:nodes=A-B

Programs whose output comes late keep it in a buffer because it goes through a pipe: start them with
`stdbuf -oL`, or use --no-label.

Exit codes: 0 every rank ended with 0; otherwise that of the rank that failed first (128 + signal
if it died of one); 125 rmem run itself failed; 126 the program cannot be executed; 127 it is not
there.)";

constexpr int kExitRunFailed = 125;
constexpr std::int64_t kMakeNs = 10'000'000'000;
constexpr std::int64_t kSilenceNs = 10'000'000'000;

constexpr Setting kRunSettings[] = {
    {"--ring", "RMEM_RING", "Name of the ring (default: one that nobody else has)"},
    {"--nodes", "RMEM_NODES", "Nodes; ranks are dealt out in order (default: one per rank)"},
    {"--link", "RMEM_LINK", "direct, ring, udp or fabric"},
    {"--barrier", "RMEM_BARRIER", "How bbp_barrier works: arrival or paper"},
    {"--spin", "RMEM_SPIN", "Polls before a waiting rank yields (default: as processors allow)"},
    {"--check", "RMEM_CHECK", "writers: report writes of two nodes to one word"},
};

struct RunOptions {
    OwnersOption owners;
    unsigned ranks = 0;  ///< 0: not given
    Settings settings;
    std::vector<std::string> words;  ///< programs and their arguments
    std::string rig;                 ///< or the file that has them
    std::string grace = "2s";
    unsigned restarts = 0;
    bool label = true, keep_going = false, bind = false, json = false;
};

std::string unused_name() {
    return fmt::format("run-{}-{:04x}", ::getpid(), std::random_device{}() & 0xffffU);
}

RingKeys ring_keys() {
    RingKeys keys;
    const auto add = [&](std::span<const Setting> settings) {
        for (const Setting& setting : settings) keys.emplace(setting.option + 2, setting.variable);
    };
    add(kRunSettings);
    add(kRingSettings);
    auto name = keys.extract("ring");
    name.key() = "name";
    keys.insert(std::move(name));
    return keys;
}

/// Options count before the rig file, the rig file before the environment.
std::vector<RankProgram> chosen_programs(const RunOptions& options) {
    if (options.rig.empty()) return programs_of(std::max(options.ranks, 1U), options.words);
    Rig rig = read_rig(options.rig, ring_keys());
    for (const auto& [variable, value] : rig.settings) {
        // A path in the file is meant from there.
        const auto folder = std::filesystem::path(options.rig).parent_path();
        set_variable(variable, variable == "RMEM_MAP" ? (folder / value).string() : value);
    }
    return std::move(rig.programs);
}

/// Settings of a ring that was made to stay hold where the command line leaves them open.
/// Gives back that ring's configuration.
std::optional<rmem::RingConfig> adopt_ring(std::size_t count) {
    const char* name = std::getenv("RMEM_RING");  // NOLINT: one thread
    if (name == nullptr || !rmem::Segment::open(name)) return std::nullopt;
    try {
        const auto ring = rmem::Ring::observe(name);
        const rmem::RingConfig& config = ring->config();
        if (!ring->stays()) return std::nullopt;
        const auto set = [](const char* variable, const std::string& value) {
            if (std::getenv(variable) == nullptr)
                set_variable(variable, value);  // NOLINT: as above
        };
        if (count <= config.ranks) set_variable("RMEM_RANKS", fmt::format("{}", config.ranks));
        if (count < config.ranks) set("RMEM_AWAIT", fmt::format("{}", count));
        set("RMEM_NODES", fmt::format("{}", config.nodes));
        set("RMEM_LINK", name_of(config.link));
        set("RMEM_SIZE", fmt::format("{}", config.user_bytes));
        if (config.timing.instant == 0) set("RMEM_TIMING", rmem::to_string(config.timing));
        if (config.bound_ns != 0) set("RMEM_BOUND", fmt::format("{}ns", config.bound_ns));
        return config;
    } catch (const rmem::Error&) {  // reported when it is joined
        return std::nullopt;
    }
}

/// The settings that the ranks inherit, and those that this process reads. Gives back those of a
/// ring that was made to stay.
std::optional<rmem::RingConfig> set_environment(const RunOptions& options, std::size_t count) {
    options.settings.apply();
    const std::string ranks = fmt::format("{}", count);
    set_variable("RMEM_RANKS", ranks);
    auto kept = adopt_ring(count);
    prepare_map("run");
    if (std::getenv("RMEM_RING") == nullptr) set_variable("RMEM_RING", unused_name());  // NOLINT
    if (std::getenv("RMEM_NODES") == nullptr) set_variable("RMEM_NODES", ranks);        // NOLINT
    // All of a ring that is started here is here: nobody else need hear it.
    const char* link = std::getenv("RMEM_LINK");                  // NOLINT: one thread
    const bool stays = std::getenv("RMEM_GROUP") == nullptr &&    // NOLINT: as above
                       std::getenv("RMEM_INTERFACE") == nullptr;  // NOLINT: as above
    if (link != nullptr && link == std::string_view("udp") && stays)
        set_variable("RMEM_INTERFACE", "lo");
    for (const char* name : {"RMEM_RANK", "RMEM_NODE"}) unset_variable(name);
    return kept;
}

/// In order, those that no rig file has bound already.
void bind_to_cores(std::vector<RankProgram>& programs) {
    const auto processors = usable_processors();
    for (std::size_t rank = 0; rank < programs.size(); ++rank) {
        if (!programs[rank].processors.empty()) continue;
        programs[rank].processors = {processors[rank % processors.size()]};
    }
}

/// A bound rank sees few processors, and would think that it has to share them.
void let_bound_ranks_spin(const std::vector<RankProgram>& programs) {
    std::set<unsigned> taken;
    for (const RankProgram& program : programs) {
        if (program.processors.empty()) return;
        for (const unsigned processor : program.processors) {
            if (!taken.insert(processor).second) return;
        }
    }
    if (std::getenv("RMEM_SPIN") == nullptr) {  // NOLINT: one thread
        set_variable("RMEM_SPIN", fmt::format("{}", rmem::kSpinPolls));
    }
}

/// Other users can join only what is shared with a group that they are in.
void check_users(const std::vector<RankProgram>& programs, const rmem::RingConfig& config) {
    const ::group* group = ::getgrnam(config.unix_group.c_str());  // NOLINT: one thread
    for (const RankProgram& program : programs) {
        if (!program.user) continue;
        const auto& groups = program.user->groups;
        if (group != nullptr &&
            std::find(groups.begin(), groups.end(), group->gr_gid) != groups.end())
            continue;
        throw rmem::Error(
            rmem::Errc::not_permitted,
            fmt::format("{}: user '{}' could not join ring '{}', which {}; give [ring] unix-group "
                        "a group that all of its users are in",
                        program.where, program.user->name, config.name,
                        config.unix_group.empty()
                            ? "is this user's alone"
                            : fmt::format("is for group '{}'", config.unix_group)));
    }
}

void check_settings(const rmem::Environment& environment, const rmem::RingConfig& config) {
    if (config.link == rmem::LinkKind::sim) {
        throw rmem::Error(
            rmem::Errc::unknown_link,
            "link sim does not join processes, its programs are functions in one (`rmem "
            "sim`); give --link direct, ring, udp or fabric");
    }
    if (config.nodes > config.ranks) {
        throw rmem::Error(
            rmem::Errc::bad_node_count,
            fmt::format("{} nodes for {} ranks: each node needs a rank; give --nodes at most -n",
                        config.nodes, config.ranks));
    }
    // A message that each rank would repeat is printed once.
    if (environment.faults) rmem::FaultPlan::parse(*environment.faults, config.nodes, config.link);
    if (config.link == rmem::LinkKind::ring) rmem::RingOptions::from(environment, config);
    if (config.link == rmem::LinkKind::udp) rmem::udp::Endpoints::read(config.nodes);
    if (config.link == rmem::LinkKind::fabric) rmem::fabric::Settings::read(config.nodes);
    if (const char* spin = rmem::environment_setting("RMEM_SPIN")) {
        rmem::parse_unsigned("RMEM_SPIN", spin, rmem::kMaxSpinPolls);
    }
}

/// The ring's segments on this host: one, or one for each node.
std::vector<std::string> segments_of(const rmem::RingConfig& config) {
    std::vector<std::string> names;
    for (unsigned node = 0; node < (config.is_remote() ? config.nodes : 1); ++node) {
        names.push_back(config.segment_name(node));
    }
    return names;
}

/// A node's part of the ring. `held`: where the lock goes that makes its ranks this job's.
std::shared_ptr<rmem::Ring> make_ring(const RunOptions& options, const rmem::RingConfig& config,
                                      unsigned node, std::vector<rmem::ByteLock>& held) {
    auto ring = rmem::Ring::open(config, rmem::Deadline::in(kMakeNs), node);
    const auto in_use = [&](const std::string& by) {
        return rmem::Error(
            rmem::Errc::rank_taken,
            fmt::format("ring '{}' is in use: {}; choose another --ring, or end that job",
                        config.name, by));
    };
    auto lock = ring->try_lock_launcher();
    if (!lock) {
        throw in_use(fmt::format("another `rmem run` has it, which process {} made",
                                 ring->header().creator_pid));
    }
    held.push_back(std::move(*lock));
    options.owners.give(*ring);
    for (unsigned rank = 0; rank < config.ranks; ++rank) {
        if (!ring->is_alive(rank)) continue;
        // relaxed is enough: for people
        const auto pid = ring->rank(rank).pid.load(std::memory_order_relaxed);
        throw in_use(fmt::format("its rank {} is process {}", rank, pid));
    }
    return ring;
}

using Rings = std::vector<std::shared_ptr<rmem::Ring>>;

/// On link udp: a key that only this user's processes can read, until this one ends. Datagrams pass
/// where all users of the host may listen and send.
rmem::Descriptor make_own_key(const Rings& rings) {
    const char* insecure = rmem::environment_setting("RMEM_INSECURE");
    const bool has_one = rmem::environment_setting("RMEM_KEY_FILE") != nullptr ||
                         (insecure != nullptr && insecure != std::string_view("0"));
    // Processes that run already have their own settings.
    const bool is_alone = std::none_of(rings.begin(), rings.end(),
                                       [](const auto& ring) { return ring->has_engine(); });
    if (has_one || !is_alone || !rings.front()->config().is_remote()) return {};
    rmem::Descriptor key = rmem::udp::new_key_without_name();
    set_variable("RMEM_KEY_FILE", fmt::format("/proc/{}/fd/{}", ::getpid(), key.get()));
    return key;
}

/// Whether a running rank's node is still to come, or not known yet to one that may leave. When
/// there is none any more, the locks are let go that make those wait.
bool is_expecting(const Rings& rings, const std::vector<unsigned>& running,
                  std::vector<rmem::ByteLock>& expecting) {
    for (const auto& ring : rings) {
        const rmem::RingConfig& config = ring->config();
        // relaxed is enough: a node has the bank when it is a member
        const auto epoch = ring->board().membership_epoch.load(std::memory_order_relaxed);
        std::vector<unsigned> missing;
        if (epoch == 0) missing = {ring->own_node()};
        if (epoch % 2 == 1) missing = rmem::missing_nodes(*ring, config.ranks);
        for (const unsigned rank : running) {
            const unsigned node = rank * config.nodes / config.ranks;
            if (std::find(missing.begin(), missing.end(), node) != missing.end()) return true;
        }
    }
    expecting.clear();
    return false;
}

Job job_of(const RunOptions& options, std::vector<RankProgram> programs,
           const rmem::Environment& environment, const rmem::RingConfig& config) {
    Job job;
    job.programs = std::move(programs);
    job.label = options.label || options.json;
    job.keep_going = options.keep_going;
    job.restarts = options.restarts;
    if (::isatty(STDERR_FILENO) == 1) job.silence_ns = kSilenceNs;
    job.grace_ns = rmem::parse_duration_ns("--grace", options.grace);
    job.place = [environment = rmem::Environment(environment), config](unsigned rank) mutable {
        environment.rank = rank;
        environment.node.reset();
        const rmem::Member member = environment.member(config);
        return Variables{{"RMEM_RANK", fmt::format("{}", member.rank)},
                         {"RMEM_NODE", fmt::format("{}", member.node)}};
    };
    return job;
}

int run(const RunOptions& options) {
    auto programs = chosen_programs(options);
    const auto found = set_environment(options, programs.size());
    if (options.bind) bind_to_cores(programs);
    let_bound_ranks_spin(programs);
    const rmem::Environment environment = rmem::Environment::read();
    auto messages = billboard::Settings::read();
    if (found) messages = billboard::completed(messages, *found);
    const rmem::RingConfig config = billboard::ring_config(environment, messages);
    check_settings(environment, config);
    check_users(programs, config);
    // A file's name would be another one in another folder, and its content may change.
    const std::string timing = environment.timing.value_or("");
    if (rmem::names_timing_file(timing))
        set_variable("RMEM_TIMING", rmem::to_string(config.timing));
    Job job = job_of(options, std::move(programs), environment, config);

    const std::int64_t start = rmem::now_ns();
    const auto segments = segments_of(config);
    Janitor janitor(segments);
    std::vector<rmem::ByteLock> held;
    Rings rings;
    for (unsigned node = 0; node < segments.size(); ++node)
        rings.push_back(make_ring(options, config, node, held));
    const rmem::Descriptor key = make_own_key(rings);
    RunReport report(options.json, config.ranks);
    report.ring(config, job.programs.size());
    std::optional<NodeProcesses> nodes;
    if (config.is_remote() && config.nodes < config.ranks) nodes.emplace(rings, report, janitor);
    std::vector<rmem::ByteLock> expecting;
    if (config.is_remote()) {
        for (const auto& ring : rings) {
            if (auto lock = ring->try_lock_expecting()) expecting.push_back(std::move(*lock));
        }
        job.is_expecting = [&](const auto& running) {
            return is_expecting(rings, running, expecting);
        };
    }
    const int exit_code = Launcher(job, report, janitor).run();
    nodes.reset();
    // The last member's leaving removes the ring.
    rings.clear();
    forget_addresses(segments);
    const bool kept = std::any_of(segments.begin(), segments.end(), is_left_over);
    report.summary(exit_code, rmem::now_ns() - start,
                   kept
                       ? fmt::format("ring '{}' stays, because other processes are in it; the last "
                                     "to leave removes it",
                                     config.name)
                       : "");
    return exit_code;
}

/// The required words where no rig file is.
void complete(RunOptions& options) {
    if (!options.rig.empty()) return;
    if (options.words.empty()) cli::miss("PROGRAM (or --rig)");
    const bool several =
        std::find(options.words.begin(), options.words.end(), ":") != options.words.end();
    if (options.ranks != 0 || several) return;
    const char* ranks = std::getenv("RMEM_RANKS");  // NOLINT: one thread
    if (ranks == nullptr) cli::miss("--ranks");
    options.ranks = rmem::parse_unsigned("RMEM_RANKS", ranks, rmem::kMaxRanks);
    if (options.ranks == 0) cli::miss("--ranks");
}

int run_or_say_why(RunOptions& options) {
    try {
        complete(options);
        return run(options);
    } catch (const rmem::Error& error) {
        fmt::print(stderr, "rmem run: {}\n", error.what());
        return kExitRunFailed;
    }
}

void add_behaviour(cli::App& command, RunOptions& options) {
    command.add_flag("--label,!--no-label", options.label,
                     "[rank] before each line of output (--no-label: output as it is)");
    command.add_flag("--keep-going", options.keep_going,
                     "Let the others run on when a rank has failed");
    command
        .add_option("--grace", options.grace,
                    "How long the others may go on after a failure, then until they are killed")
        ->capture_default_str();
    command.add_option("--restart", options.restarts,
                       "Start a rank that dies of a signal again, at most this many times");
    command.add_flag("--bind-to-core", options.bind, "Bind each rank to one processor, in order");
    command.add_flag("--json", options.json, "Print everything as JSON, one event per line");
}

}  // namespace

void add_run(cli::App& app) {
    auto options = std::make_shared<RunOptions>();
    cli::App* command = app.add_subcommand("run", "Run programs' ranks in a ring on this host");
    auto* ranks =
        command
            ->add_option(
                "-n,--ranks", options->ranks,
                "Number of ranks of the first program [RMEM_RANKS] (default with several: 1)")
            ->check(cli::range(1U, rmem::kMaxRanks));
    auto* rig = command
                    ->add_option("--rig", options->rig,
                                 "A file (TOML) with the ring, and each rank's program")
                    ->excludes(ranks);
    options->settings.add_to(*command, kRunSettings);
    options->settings.add_to(*command, kRingSettings);
    options->owners.add_to(*command);
    add_behaviour(*command, *options);
    command
        ->add_option("PROGRAM", options->words,
                     "Program and its arguments, after --; further ones follow ':'")
        ->excludes(rig);
    command->footer(kRunExamples);
    command->callback([options] { end_with(run_or_say_why(*options)); });
}

}  // namespace tools
