// SPDX-License-Identifier: Apache-2.0
#include "simulator/hunt/jobs.hpp"

#include "rmem/base/hash.hpp"
#include "rmem/error.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <map>

namespace simulator {

namespace {

constexpr std::size_t kSentenceBytes = 400;

/// A job's report on one seed, through its pipe.
struct Report {
    std::uint64_t seed = 0;
    Findings::Counts faults{}, coverage{};
    std::uint64_t messages = 0, injected = 0, events = 0, hash = 0;
    std::uint32_t failed = 0;
    std::array<char, kSentenceBytes> sentence{};
};

struct Job {
    pid_t pid = -1;
    int pipe = -1;
    std::uint64_t next = 0;  ///< the seed that it is at
    std::array<char, sizeof(Report)> bytes{};
    std::size_t have = 0;
};

Report report_of(std::uint64_t seed, const HuntPlan& plan) {
    const Findings findings = plan.subject.run(seed, plan.hash);
    Report report;
    report.seed = seed;
    report.faults = findings.faults;
    report.coverage = findings.coverage;
    report.messages = findings.messages;
    report.injected = findings.injected;
    report.events = findings.events;
    report.hash = findings.hash;
    if (findings.violations.empty()) return report;
    report.failed = 1;
    const std::string& first = findings.violations.front();
    std::memcpy(report.sentence.data(), first.data(), std::min(first.size(), kSentenceBytes - 1));
    return report;
}

[[noreturn]] void run_job(const HuntPlan& plan, std::uint64_t first, std::uint64_t end, int pipe) {
    for (std::uint64_t seed = first; seed < end; seed += plan.jobs) {
        ::alarm(HuntPlan::kMaxSecondsASeed);  // an endless loop ends here
        const Report report = report_of(seed, plan);
        if (::write(pipe, &report, sizeof report) != sizeof report) break;
    }
    ::_exit(0);
}

class Jobs {
public:
    Jobs(const HuntPlan& plan, HuntResult& result) : plan_(plan), result_(result) {}
    ~Jobs() {
        for (Job& job : jobs_) end(job);
    }

    void start(std::uint64_t first) {
        if (first >= plan_.first + plan_.seeds) return;
        std::array<int, 2> ends{};
        if (::pipe(ends.data()) != 0) throw failed("make a pipe");
        const pid_t pid = ::fork();
        if (pid < 0) throw failed("start a process");
        if (pid == 0) {
            ::close(ends[0]);
            run_job(plan_, first, plan_.first + plan_.seeds, ends[1]);
        }
        ::close(ends[1]);
        Job job;
        job.pid = pid;
        job.pipe = ends[0];
        job.next = first;
        jobs_.push_back(job);
    }
    bool any() const { return !jobs_.empty(); }

    /// Waits up to a second for the jobs' reports, and takes them.
    void take() {
        std::vector<pollfd> ready;
        for (const Job& job : jobs_) ready.push_back({job.pipe, POLLIN, 0});
        if (::poll(ready.data(), ready.size(), 1000) <= 0) return;
        for (std::size_t i = ready.size(); i-- > 0;) {
            if (ready[i].revents != 0 && !read(jobs_[i])) close_job(i);
        }
    }
    /// The hashes, as if the seeds had run one after the other.
    std::uint64_t hash() const {
        std::uint64_t sum = 0;
        for (const auto& [seed, hash] : hashes_) sum = rmem::golden_mix(sum, hash);
        return sum;
    }

private:
    static rmem::Error failed(const char* what) {
        return rmem::Error(rmem::Errc::system,
                           fmt::format("cannot {} for the hunt: {}", what, std::strerror(errno)));
    }
    bool read(Job& job) {
        const ssize_t got =
            ::read(job.pipe, job.bytes.data() + job.have, job.bytes.size() - job.have);
        if (got <= 0) return false;
        job.have += static_cast<std::size_t>(got);
        if (job.have < job.bytes.size()) return true;
        Report report;
        std::memcpy(&report, job.bytes.data(), sizeof report);
        job.have = 0;
        job.next = report.seed + plan_.jobs;
        note(report);
        return true;
    }
    void note(const Report& report) {
        Findings findings;
        findings.faults = report.faults;
        findings.coverage = report.coverage;
        findings.messages = report.messages;
        findings.injected = report.injected;
        findings.events = report.events;
        result_.all += findings;
        ++result_.seeds;
        if (plan_.hash) hashes_[report.seed] = report.hash;
        if (report.failed != 0) {
            result_.failed.push_back({report.seed, report.sentence.data(), false});
        }
    }
    /// It has ended: done, or killed by its seed.
    void close_job(std::size_t i) {
        Job job = jobs_[i];
        jobs_.erase(jobs_.begin() + static_cast<std::ptrdiff_t>(i));
        ::close(job.pipe);
        job.pipe = -1;
        int status = 0;
        ::waitpid(job.pid, &status, 0);
        if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return;
        const std::string how =
            WIFSIGNALED(status)
                ? fmt::format("was ended by signal {} ({})", WTERMSIG(status),
                              WTERMSIG(status) == SIGALRM ? "it took too long"
                                                          : ::strsignal(WTERMSIG(status)))
                : fmt::format("ended with exit code {}", WEXITSTATUS(status));
        ++result_.seeds;
        result_.failed.push_back({job.next, "its process " + how, true});
        start(job.next + plan_.jobs);
    }
    static void end(Job& job) {
        ::kill(job.pid, SIGKILL);
        ::waitpid(job.pid, nullptr, 0);
        ::close(job.pipe);
    }

    const HuntPlan& plan_;
    HuntResult& result_;
    std::vector<Job> jobs_;
    std::map<std::uint64_t, std::uint64_t> hashes_;
};

}  // namespace

std::vector<std::string> HuntResult::never_met() const {
    std::vector<std::string> names;
    for (const Kinds::Kind& fault : kinds.faults) {
        if (all.faults.at(fault.place) == 0) names.emplace_back(fault.name);
    }
    for (const Kinds::Kind& mark : kinds.coverage) {
        if (all.coverage.at(mark.place) == 0) names.emplace_back(mark.name);
    }
    return names;
}

HuntResult hunt(const HuntPlan& plan,
                const std::function<void(std::uint64_t, std::size_t)>& progress) {
    HuntResult result;
    result.kinds = plan.subject.kinds;
    Jobs jobs(plan, result);
    for (unsigned j = 0; j < plan.jobs; ++j) jobs.start(plan.first + j);
    while (jobs.any() && result.failed.size() < plan.most_failures) {
        jobs.take();
        if (progress) progress(result.seeds, result.failed.size());
    }
    result.all.hash = jobs.hash();
    std::sort(result.failed.begin(), result.failed.end(),
              [](const FailedSeed& a, const FailedSeed& b) { return a.seed < b.seed; });
    return result;
}

}  // namespace simulator
