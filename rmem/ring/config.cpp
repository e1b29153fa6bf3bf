// SPDX-License-Identifier: Apache-2.0
#include "rmem/ring/config.hpp"

#include "rmem/base/environment_variable.hpp"
#include "rmem/base/hash.hpp"
#include "rmem/base/process.hpp"
#include "rmem/base/suggestion.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstring>
#include <limits>
#include <string_view>

namespace rmem {

namespace {

std::optional<std::string> variable(const char* name) {
    const char* value = environment_setting(name);
    return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

std::optional<unsigned> unsigned_variable(const char* name, unsigned max) {
    const auto text = variable(name);
    if (!text) return std::nullopt;
    return parse_unsigned(name, *text, max);
}

/// A count of nodes or ranks; whether a ring holds that number says RingConfig::check().
std::optional<unsigned> count_variable(const char* name, unsigned max) {
    const auto text = variable(name);
    if (!text) return std::nullopt;
    try {
        return parse_unsigned(name, *text, std::numeric_limits<unsigned>::max());
    } catch (const Error&) {
        throw malformed_setting(name, *text, fmt::format("a whole number from 1 to {}", max));
    }
}

// ---- Launchers

/// How a launcher tells a process its rank, and which job it belongs to.
struct Launcher {
    const char* rank;
    const char* count;
    const char* here;                ///< how many of them are on this host
    std::array<const char*, 2> job;  ///< variables that together name the job
};

constexpr const char* kSlurmRank = "SLURM_PROCID";

// PMIx comes last: Open MPI and Slurm set its variables beside their own, but no count.
constexpr std::array<Launcher, 4> kLaunchers = {{
    {"PMI_RANK", "PMI_SIZE", "MPI_LOCALNRANKS", {"PMI_JOBID", nullptr}},
    {"OMPI_COMM_WORLD_RANK",
     "OMPI_COMM_WORLD_SIZE",
     "OMPI_COMM_WORLD_LOCAL_SIZE",
     {"OMPI_MCA_ess_base_jobid", nullptr}},
    {kSlurmRank, "SLURM_NTASKS", nullptr, {"SLURM_JOB_ID", "SLURM_STEP_ID"}},
    {"PMIX_RANK", nullptr, nullptr, {"PMIX_NAMESPACE", nullptr}},
}};

/// Slurm's own steps have higher numbers: a job's script, an interactive shell. They are told that
/// they are rank 0 of all the job's, and are none.
constexpr unsigned kMaxSlurmStep = 0xfffffff0;

/// Whether srun has started this process as a rank. What another launcher's daemon starts finds the
/// daemon's variables.
bool is_slurm_rank() {
    const auto step = unsigned_variable("SLURM_STEP_ID", std::numeric_limits<unsigned>::max());
    if (!step || *step > kMaxSlurmStep) return false;
    return variable("PMIX_NAMESPACE").value_or("slurm.").starts_with("slurm.");
}

/// Whether some of a job's ranks are elsewhere. All of its ranks find the same. Where the launcher
/// does not tell how many are here, Slurm may tell on how many hosts its step is.
bool leaves_host(const Launcher& launcher) {
    if (launcher.count != nullptr && launcher.here != nullptr) {
        const auto all = unsigned_variable(launcher.count, kMaxRanks);
        const auto here = unsigned_variable(launcher.here, kMaxRanks);
        if (all && here) return *here < *all;
    }
    return unsigned_variable("SLURM_STEP_NUM_NODES", kMaxNodes).value_or(1) > 1;
}

/// The parent of the process that leads this one's session. Hydra tells its ranks no job id, but
/// makes each lead a session of its own below one proxy: the processes that they start stay in that
/// session.
unsigned parent_of_session() {
    return process_parent(static_cast<unsigned>(::getsid(0)));
}

/// A ring name of this user that only this job has.
std::string job_ring_name(const Launcher& launcher) {
    std::string job;
    for (const char* name : launcher.job) {
        if (name == nullptr) continue;
        if (const auto part = variable(name)) job += (job.empty() ? "" : "-") + *part;
    }
    if (job.empty()) job = fmt::format("session-{}", parent_of_session());
    std::replace_if(
        job.begin(), job.end(), [](unsigned char c) { return std::isalnum(c) == 0 && c != '-'; },
        '-');
    std::string name = fmt::format("job-{}-{}", ::getuid(), job);
    if (name.size() > kMaxNameBytes) name.erase(0, name.size() - kMaxNameBytes);
    return name;
}

void read_launcher(Environment& environment) {
    for (const Launcher& launcher : kLaunchers) {
        const auto rank = unsigned_variable(launcher.rank, kMaxRanks - 1);
        if (!rank || (launcher.rank == kSlurmRank && !is_slurm_rank())) continue;
        environment.rank = rank;
        if (!environment.ranks && launcher.count != nullptr) {
            environment.ranks = unsigned_variable(launcher.count, kMaxRanks);
        }
        if (!environment.ranks && !environment.nodes) {
            throw Error(
                Errc::bad_environment,
                fmt::format("{} is set, but no variable says how many ranks there are{}; set "
                            "RMEM_RANKS",
                            launcher.rank,
                            launcher.count == nullptr
                                ? std::string{}
                                : fmt::format(" ({} is not set)", launcher.count)));
        }
        if (!environment.ring) environment.ring = job_ring_name(launcher);
        environment.several_hosts = leaves_host(launcher);
        return;
    }
}

bool is_name_character(unsigned char c) {
    return std::isalnum(c) != 0 || c == '.' || c == '_' || c == '-';
}

void check_name(const std::string& name) {
    if (!name.empty() && name.size() <= kMaxNameBytes && name != "." && name != ".." &&
        std::all_of(name.begin(), name.end(), is_name_character)) {
        return;
    }
    throw Error(
        Errc::invalid_argument,
        fmt::format(
            "RMEM_RING: '{}' is not a valid name of a ring; give 1 to {} letters, digits, dots, "
            "dashes or underscores, not dots alone",
            name, kMaxNameBytes));
}

void check_count(const char* what, const char* variable, unsigned count, unsigned max) {
    if (count >= 1 && count <= max) return;
    throw Error(Errc::bad_node_count, fmt::format("invalid number of {}: {} ({}); must be 1 to {}",
                                                  what, count, variable, max));
}

void check_bytes(const char* what, std::size_t bytes, std::size_t min, std::size_t max) {
    if (bytes >= min && bytes <= max && bytes % kWordBytes == 0) return;
    throw Error(Errc::bad_size,
                fmt::format("invalid size of {}: {} bytes; must be a multiple of {} from {} to {}",
                            what, bytes, kWordBytes, min, max));
}

/// A segment may hold numbers that no parsing gives; they must not reach the wire model.
void check_timing(const TimingProfile& timing) {
    const bool terminated = std::memchr(timing.name, 0, sizeof timing.name) != nullptr;
    if (terminated && parse_timing(to_string(timing)) == timing) return;
    throw Error(
        Errc::bad_profile,
        fmt::format("the timing profile '{}' has numbers that no RMEM_TIMING gives; use one that "
                    "parse_timing() made",
                    std::string_view(timing.name, terminated ? std::strlen(timing.name) : 0)));
}

/// RMEM_RANK.
std::optional<unsigned> rank_variable() {
    if (variable("RMEM_RANK") == "guest") return Member::kGuest;
    return unsigned_variable("RMEM_RANK", kMaxRanks - 1);
}

}  // namespace

void RingConfig::check() const {
    check_name(name);
    check_count("ranks", "RMEM_RANKS", ranks, kMaxRanks);
    check_count("nodes", "RMEM_NODES", nodes, kMaxNodes);
    if (!is_known(link)) {
        throw Error(Errc::unknown_link,
                    fmt::format("there is no link of number {}; give direct, ring, "
                                "udp or fabric (RMEM_LINK)",
                                static_cast<unsigned>(link)));
    }
    check_bytes("the memory of a ring (RMEM_SIZE)", user_bytes, kWordBytes, kMaxUserBytes);
    check_bytes("the system regions of a ring", system_bytes, 0, kMaxSystemBytes);
    if (bound_ns < 0) {
        throw Error(Errc::invalid_argument,
                    fmt::format("RMEM_BOUND: {} ns is not a valid bound; give a positive time, or "
                                "0 for the timing profile's own",
                                bound_ns));
    }
    check_timing(timing);
}

int version() noexcept {
    return RMEM_VERSION;
}

std::string RingConfig::segment_name(unsigned node) const {
    return is_remote() ? fmt::format("{}@{}", name, node) : name;
}

std::uint64_t RingConfig::hash() const noexcept {
    Fnv1a fnv;
    for (const std::uint64_t value :
         {std::uint64_t{nodes}, std::uint64_t{ranks}, static_cast<std::uint64_t>(link),
          std::uint64_t{user_bytes}, static_cast<std::uint64_t>(bound_ns),
          std::uint64_t{system_bytes}, system_hash}) {
        fnv.add_word(value);
    }
    fnv.add_word(hash_of(timing));
    return fnv.value();
}

Environment Environment::read() {
    refuse_misspelt_settings();
    Environment environment;
    environment.ring = variable("RMEM_RING");
    environment.unix_group = variable("RMEM_UNIX_GROUP");
    environment.timing = variable("RMEM_TIMING");
    environment.faults = variable("RMEM_FAULTS");
    environment.check = variable("RMEM_CHECK");
    environment.node = unsigned_variable("RMEM_NODE", kMaxNodes - 1);
    environment.nodes = count_variable("RMEM_NODES", kMaxNodes);
    environment.rank = rank_variable();
    environment.ranks = count_variable("RMEM_RANKS", kMaxRanks);
    if (const auto text = variable("RMEM_LINK")) environment.link = parse_link(*text);
    if (const auto text = variable("RMEM_SIZE")) environment.size = parse_size("RMEM_SIZE", *text);
    if (const auto text = variable("RMEM_BOUND")) {
        environment.bound_ns = parse_duration_ns("RMEM_BOUND", *text);
    }
    if (const auto text = variable("RMEM_JOIN_TIMEOUT")) {
        environment.join_timeout_ns = parse_duration_ns("RMEM_JOIN_TIMEOUT", *text);
    }
    if (!environment.rank) read_launcher(environment);
    return environment;
}

TimingProfile timing_setting(const std::string& text) {
    try {
        return parse_timing(text);
    } catch (const Error& error) {
        throw Error(error.code(), fmt::format("RMEM_TIMING: {}", error.sentence()));
    }
}

std::string Environment::ring_name() const {
    if (!ring) return fmt::format("{}-{}", RingConfig{}.name, ::getuid());
    check_name(*ring);
    return *ring;
}

void refuse_idle_settings(const Environment& environment, const RingConfig& config) {
    const auto refuse = [&](Errc code, const char* name, const std::string& value,
                            const char* needs, const char* instead) {
        throw Error(code, fmt::format("{} is '{}', which has no effect on link {}: {}; give "
                                      "RMEM_LINK={}, or unset it",
                                      name, value, name_of(config.link), needs, instead));
    };
    const bool is_direct = config.link == LinkKind::direct;
    if (is_direct && !config.timing.instant) {
        refuse(Errc::bad_profile, "RMEM_TIMING", to_string(config.timing),
               "that is one memory, without a wire to keep times", "ring");
    }
    if (is_direct && environment.faults) {
        refuse(Errc::bad_fault, "RMEM_FAULTS", *environment.faults,
               "that is one memory, without a wire to inject faults into", "ring or udp");
    }
    if ((is_direct || config.is_remote()) && environment.check) {
        refuse(Errc::bad_environment, "RMEM_CHECK", *environment.check,
               "only link ring has all nodes' writes to compare", "ring");
    }
}

RingConfig Environment::ring_config() const {
    RingConfig config;
    config.name = ring_name();
    config.nodes = nodes.value_or(ranks.value_or(config.nodes));
    config.ranks = ranks.value_or(config.nodes);
    if (several_hosts) config.link = LinkKind::udp;
    config.link = link.value_or(config.link);
    if (several_hosts && !config.is_remote()) {
        throw Error(Errc::bad_environment,
                    fmt::format("RMEM_LINK is {}, which joins programs of one host, but some ranks "
                                "of this job are on another one; unset it, or give udp or fabric",
                                name_of(config.link)));
    }
    config.user_bytes = size.value_or(config.user_bytes);
    if (timing) config.timing = timing_setting(*timing);
    config.bound_ns = bound_ns.value_or(config.bound_ns);
    config.unix_group = unix_group.value_or("");
    config.check();
    refuse_idle_settings(*this, config);
    return config;
}

Member Environment::member(const RingConfig& config) const {
    Member member;
    if (rank == Member::kGuest) {
        member = {Member::kGuest, node.value_or(0)};
        if (node || config.nodes == 1) return member;
        throw Error(Errc::bad_environment,
                    fmt::format("ring '{}' has {} nodes, and nothing says at which this process is "
                                "a guest; set RMEM_NODE",
                                config.name, config.nodes));
    }
    if (rank) {
        member.rank = *rank;
        member.node = node.value_or(*rank * config.nodes / config.ranks);
    } else if (node && config.nodes == config.ranks) {
        member.rank = member.node = *node;
    } else if (config.ranks != 1) {
        throw Error(
            Errc::bad_environment,
            fmt::format("ring '{}' has {} ranks, and nothing says which one this process is; "
                        "set RMEM_RANK, or start it with `rmem run` or mpiexec",
                        config.name, config.ranks));
    } else {
        member.node = node.value_or(0);
    }
    if (member.rank < config.ranks && member.node < config.nodes) return member;
    const bool is_rank = member.rank >= config.ranks;
    if (!ranks && !nodes) {
        throw Error(Errc::bad_rank,
                    fmt::format("{} is {}, but nothing says how many there are: RMEM_RANKS is not "
                                "set, and this host has no ring '{}' to take it from; set it, or "
                                "start the ring first",
                                is_rank ? "RMEM_RANK" : "RMEM_NODE",
                                is_rank ? member.rank : member.node, config.name));
    }
    throw Error(
        Errc::bad_rank,
        fmt::format("rank {} on node {} is outside ring '{}', which has {} ranks and {} "
                    "nodes (RMEM_RANKS, RMEM_NODES); ranks and nodes count from 0 (RMEM_RANK, "
                    "RMEM_NODE)",
                    member.rank, member.node, config.name, config.ranks, config.nodes));
}

}  // namespace rmem
