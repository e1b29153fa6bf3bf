// SPDX-License-Identifier: Apache-2.0
#include "tools/measure/rank_group.hpp"

#include "rmem/base/check.hpp"
#include "rmem/base/clock.hpp"
#include "rmem/ring/ring.hpp"
#include "rmem/ring/segment.hpp"
#include "tools/measure/billboard_channel.hpp"

#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string_view>

namespace tools {

struct Results::Shared {
    std::size_t series, numbers;
    struct {
        char name[64];
        std::size_t first, count;
    } index[kMaxSeries];
    double values[kMaxNumbers];
};

namespace {

constexpr std::size_t kFailureBytes = 512;

/// A failed rank's message: in memory shared with the parent.
struct Failure {
    int code;  ///< rmem::Errc; 0: it did not fail
    char sentence[kFailureBytes];
};

/// A process that ends when this one does, at the latest; -1 where there is none to be had.
pid_t start(const std::function<int()>& body) {
    const pid_t pid = ::fork();
    if (pid != 0) return pid;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::_exit(body());
}

void set(const char* name, const std::string& value) {
    if (value.empty()) {
        ::unsetenv(name);
    } else {
        ::setenv(name, value.c_str(), 1);
    }
}

void set_environment(const GroupOptions& options, const std::string& ring) {
    set("RMEM_RING", ring);
    set("RMEM_RANKS", std::to_string(options.ranks));
    set("RMEM_LINK", options.link);
    set("RMEM_LAYOUT", options.layout);
    set("RMEM_TIMING", options.timing);
    set("RMEM_BARRIER", options.barrier);
    set("RMEM_PARTITION", options.partition);
    set("RMEM_SPIN", options.spin);
    set("RMEM_SIZE", std::to_string(kUserBytes));
    if (options.link == "udp" || options.link == "fabric")
        ::setenv("RMEM_INTERFACE", "lo", 0);  // all are on this host
    for (const char* other : {"RMEM_NODE", "RMEM_NODES", "RMEM_FAULTS", "RMEM_CHECK"}) {
        ::unsetenv(other);
    }
}

/// The whole run of a rank. Pinned only once joined: how long it spins depends on the processors
/// that the whole group may use.
void be_rank(unsigned rank, const std::string& ring, unsigned processor, Results& results,
             const std::function<void(RankContext&)>& body) {
    set("RMEM_RANK", std::to_string(rank));
    int me = 0, ranks = 0;
    checked(bbp_init(&me, &ranks));
    bind_to({processor});
    // On udp each rank has a segment of its own, and the floor needs one that is common.
    const bool is_apart = rmem::is_remote(rmem::parse_link(std::getenv("RMEM_LINK")));
    const auto mapping = rmem::Ring::attach(is_apart ? ring + "@0" : ring);
    RankContext context{rank, static_cast<unsigned>(ranks), mapping->bank(0), results};
    body(context);
    checked(bbp_finalize());
}

int be_process(unsigned process, const std::string& ring,
               const std::function<void(unsigned, const std::string&)>& body, Failure& failure) {
    const auto fail = [&](rmem::Errc code, const std::string& sentence) {
        // Whole, with the zeros after it: another rank's may be there.
        std::strncpy(failure.sentence, fmt::format("rank {}: {}", process, sentence).c_str(),
                     kFailureBytes - 1);
        failure.code = static_cast<int>(code);
        return 1;
    };
    try {
        body(process, ring);
        return 0;
    } catch (const rmem::Error& e) {
        return fail(e.code(), e.sentence());
    } catch (const std::bad_alloc&) {
        return fail(rmem::Errc::no_space, "not enough memory; measure with fewer --bytes");
    } catch (const std::exception& e) {
        return fail(rmem::Errc::system, e.what());
    }
}

/// True when all have ended well. One that fails, or the deadline, ends the others.
bool wait_for(std::vector<pid_t> children, const GroupOptions& options) {
    const auto limit_ns = static_cast<std::int64_t>(options.deadline_s * 1e9);
    const rmem::Deadline deadline = rmem::Deadline::in(limit_ns);
    bool failed = false;
    for (int ticks = 0; !children.empty(); ++ticks) {
        std::erase_if(children, [&](pid_t pid) {
            int status = 0;
            if (::waitpid(pid, &status, WNOHANG) != pid) return false;
            failed = failed || status != 0;
            return true;
        });
        if (failed || deadline.passed(rmem::now_ns())) {
            failed = true;
            for (const pid_t pid : children) ::kill(pid, SIGKILL);
        }
        if (options.progress && ticks % 100 == 99) fmt::print(stderr, ".");
        ::usleep(10'000);
    }
    return !failed;
}

}  // namespace

Companion::Companion(const std::function<void()>& body)
    : pid_(start([&] {
          body();
          return 0;
      })) {
    if (pid_ < 0) throw rmem::Error(rmem::Errc::system, "no further process to be had");
}
Companion::~Companion() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
}

Results::Results() = default;
Results::~Results() = default;

void Results::put(const std::string& name, const std::vector<double>& values) {
    Shared& s = *shared_;
    if (s.series == kMaxSeries || values.size() > kMaxNumbers - s.numbers) {
        throw rmem::Error(
            rmem::Errc::invalid_argument,
            fmt::format("{} samples are more than the {} that have room; ask for fewer (--samples)",
                        values.size(), kMaxNumbers - s.numbers));
    }
    auto& entry = s.index[s.series++];
    RMEM_CHECK(name.size() < sizeof entry.name);
    std::strncpy(entry.name, name.c_str(), sizeof entry.name - 1);
    entry.first = s.numbers;
    entry.count = values.size();
    if (!values.empty())
        std::memcpy(s.values + s.numbers, values.data(), values.size() * sizeof(double));
    s.numbers += values.size();
}

Series Results::all() const {
    Series result;
    for (std::size_t i = 0; i < shared_->series; ++i) {
        const auto& entry = shared_->index[i];
        const double* first = shared_->values + entry.first;
        auto& series = result[entry.name];
        series.insert(series.end(), first, first + entry.count);
    }
    return result;
}

std::vector<std::string> Results::names() const {
    std::vector<std::string> names;
    for (std::size_t i = 0; i < shared_->series; ++i) {
        const std::string name = shared_->index[i].name;
        if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    }
    return names;
}

unsigned processor_of(const GroupOptions& options, unsigned rank) {
    const auto processors = options.processors.empty() ? usable_processors() : options.processors;
    return processors[rank % processors.size()];
}

void run_ranks(const GroupOptions& options, Results& results,
               const std::function<void(RankContext&)>& body) {
    run_processes(options, options.ranks, [&](unsigned rank, const std::string& ring) {
        be_rank(rank, ring, processor_of(options, rank), results, body);
    });
}

void run_processes(const GroupOptions& options, unsigned processes,
                   const std::function<void(unsigned, const std::string&)>& body) {
    RMEM_CHECK(processes > 0);
    static int run = 0;
    const std::string ring = fmt::format("bench-{}-{}", ::getpid(), ++run);
    set_environment(options, ring);
    const Common<Failure> failure;
    std::vector<pid_t> children;
    for (unsigned process = 0; process < processes; ++process) {
        const pid_t pid = start([&] { return be_process(process, ring, body, *failure); });
        if (pid > 0) children.push_back(pid);
    }
    if (children.size() == processes && wait_for(children, options)) return;
    for (const auto& segment : rmem::Segment::list()) {  // the killed cannot have done it
        if (segment == ring || segment.starts_with(ring + "@")) rmem::Segment::remove(segment);
    }
    if (failure->code == 0)
        throw rmem::Error(rmem::Errc::timed_out,
                          fmt::format("a rank did not end within {} s; allow more by --deadline",
                                      options.deadline_s));
    throw rmem::Error(static_cast<rmem::Errc>(failure->code), failure->sentence);
}

}  // namespace tools
