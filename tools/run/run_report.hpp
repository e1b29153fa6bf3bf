// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The output of `rmem run`: that of the ranks and their ends, as text or as JSON lines.
///
/// Text: labelled lines to the stream they came on; its own sentences go to stderr.
/// JSON: one object per line on stdout, with "event": ring, started, output, ended, ending, signal,
/// restarted, node-died, summary. Every `false` returned says that nobody reads stdout any more.

#include "rmem/ring/config.hpp"
#include "tools/json.hpp"
#include "tools/run/rank_output.hpp"

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tools {

/// How a rank ended.
struct RankEnd {
    unsigned rank = 0;
    pid_t pid = 0;
    int status = 0;             ///< as of wait(2)
    std::int64_t after_ns = 0;  ///< since the start
    bool expected = false;      ///< we had told it to end
    bool failed() const { return status != 0; }
    /// The exit code, or 128 + signal.
    int exit_code() const;
};

class RunReport {
public:
    RunReport(bool json, unsigned ranks);

    /// `ranks`: of this job; the ring may have more.
    void ring(const rmem::RingConfig& config, std::size_t ranks);
    void started(unsigned rank, pid_t pid);
    [[nodiscard]] bool output(unsigned rank, int fd, std::string_view line, bool whole);
    void ended(const RankEnd& end);
    void restarting(unsigned rank, unsigned left);
    /// The process of a node with several ranks has ended before them.
    void node_died(unsigned node, pid_t pid);
    /// The others are told to end, because one has failed.
    void ending(const std::vector<unsigned>& ranks, int signal, std::int64_t grace_ns);
    /// Some ranks have ended, and the rest have printed nothing for that long.
    void silent(const std::vector<unsigned>& ended, const std::vector<unsigned>& running,
                std::int64_t for_ns);
    void passed_on(int signal, const std::vector<unsigned>& ranks, bool again_kills);
    void summary(int exit_code, std::int64_t after_ns, const std::string& ring_kept);

private:
    void say(const std::string& sentence);
    void emit(const nlohmann::json& event);

    bool json_;
    LabelledOutput output_;
};

/// "SIGSEGV"
std::string signal_name(int number);

}  // namespace tools
