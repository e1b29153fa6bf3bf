// SPDX-License-Identifier: Apache-2.0
#include "rmem/ring/joining.hpp"

#include "rmem/base/process.hpp"
#include "rmem/ring/ring.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace rmem {

namespace {

std::string full_size_text(std::size_t bytes) {
    return fmt::format("{} ({} bytes)", size_setting(bytes), bytes);
}

std::string bound_text(std::int64_t ns) {
    return ns == 0 ? "unset" : duration_setting(ns);
}

}  // namespace

std::vector<GivenSetting> settings_of(const RingConfig& config) {
    return {{"RMEM_LINK", name_of(config.link)},
            {"RMEM_RANKS", std::to_string(config.ranks)},
            {"RMEM_NODES", std::to_string(config.nodes)},
            {"RMEM_SIZE", full_size_text(config.user_bytes)},
            {"RMEM_TIMING", to_string(config.timing)},
            {"RMEM_BOUND", bound_text(config.bound_ns)}};
}

std::vector<Difference> differences_of(const RingConfig& there, const RingConfig& here) {
    std::vector<Difference> found;
    const auto a = settings_of(there), b = settings_of(here);
    for (std::size_t i = 0; i < a.size(); ++i) {
        if (a[i].second != b[i].second) found.push_back({a[i].first, a[i].second, b[i].second});
    }
    return found;
}

Error settings_differ(const std::string& ring, const std::vector<Difference>& differences) {
    std::vector<std::string> texts;
    for (const Difference& d : differences) {
        texts.push_back(fmt::format("{} is {} there and {} here", d.variable, d.there, d.here));
    }
    return {Errc::config_mismatch,
            fmt::format(
                "ring '{}' was made with other settings than this process has: {}; give all "
                "members the same, or none, to take them from the ring; or use another RMEM_RING",
                ring, fmt::join(texts, ", "))};
}

void refuse_other_clock(const std::string& ring, std::uint64_t theirs) {
    const auto own = own_namespace("time");
    if (own == theirs || own == 0 || theirs == 0) return;
    throw Error(
        Errc::config_mismatch,
        fmt::format("ring '{}' was made in another time namespace (time:[{}], this process "
                    "is in time:[{}]), whose monotonic clock is another: the times of "
                    "writes would mean nothing; start all of them in one (`nsenter --time`, "
                    "one container), or use another RMEM_RING",
                    ring, theirs, own));
}

Environment completed(const Environment& environment, const RingConfig& there) {
    RingConfig here = there;
    here.link = environment.link.value_or(there.link);
    here.nodes = environment.nodes.value_or(there.nodes);
    here.ranks = environment.ranks.value_or(there.ranks);
    here.user_bytes = environment.size.value_or(there.user_bytes);
    here.bound_ns = environment.bound_ns.value_or(there.bound_ns);
    if (environment.timing) here.timing = timing_setting(*environment.timing);
    const auto differences = differences_of(there, here);
    if (!differences.empty()) throw settings_differ(there.name, differences);
    Environment result = environment;
    result.ring = there.name;
    result.link = there.link;
    result.nodes = there.nodes;
    result.ranks = there.ranks;
    result.size = there.user_bytes;
    result.bound_ns = there.bound_ns;
    result.timing = to_string(there.timing);
    return result;
}

Joined join_ring(const Environment& environment, Deadline deadline, const Wish& wish,
                 const std::function<RingConfig(const Environment&)>& to_make) {
    const std::string name = environment.ring_name();
    const bool is_remote =
        environment.link ? rmem::is_remote(*environment.link) : environment.several_hosts;
    for (;;) {
        auto there = Ring::find(name, is_remote, deadline);
        const Environment all = there ? completed(environment, there->config()) : environment;
        const RingConfig config = wish(all, there ? &there->config() : nullptr);
        const Member member = all.member(config);
        if (there && there->segment_name() == config.segment_name(member.node)) {
            there->expect(config);
            return {std::move(there), member};
        }
        try {
            const RingConfig made = to_make ? to_make(all) : config;
            return {Ring::open(config, deadline, member.node, &made), member};
        } catch (const Error& error) {
            // Another process may have made it since, with settings that this one leaves open.
            const bool differs =
                error.code() == Errc::config_mismatch || error.code() == Errc::version_mismatch;
            if (there || !differs || deadline.passed(now_ns())) throw;
        }
    }
}

}  // namespace rmem
