// SPDX-License-Identifier: Apache-2.0
#include "rmem/faults.hpp"

#include "rmem/config.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <string>

namespace rmem {

namespace {

constexpr std::int64_t kMaxDelayNs = 4'000'000'000;  // what a log record holds

[[noreturn]] void refuse(std::string_view item, const std::string& what) {
    throw Error(Errc::bad_fault, fmt::format("RMEM_FAULTS: in '{}': {}", item, what));
}

std::string_view trimmed(std::string_view text) {
    constexpr std::string_view kBlanks = " \t\n";
    const auto first = text.find_first_not_of(kBlanks);
    if (first == std::string_view::npos) return {};
    return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

/// Takes what stands before `separator` (or all) off the front of `text`.
std::string_view cut_off(std::string_view& text, char separator) {
    const auto end = text.find(separator);
    const std::string_view part = text.substr(0, end);
    text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
    return trimmed(part);
}

/// The settings of one item, each of which may be taken once; what is left over is an error.
class Settings {
public:
    explicit Settings(std::string_view item) : item_(item) {
        name_ = cut_off(item, ':');
        while (!trimmed(item).empty()) {
            std::string_view setting = cut_off(item, ',');
            const std::string_view whole = setting;
            const bool has_value = setting.find('=') != std::string_view::npos;
            const std::string_view key = cut_off(setting, '=');
            if (!has_value || key.empty() || trimmed(setting).empty()) {
                refuse(item_, fmt::format("'{}' is no setting; write name=value", whole));
            }
            settings_.push_back({std::string(key), std::string(trimmed(setting))});
        }
    }

    std::string_view name() const { return name_; }

    std::optional<std::string> take(std::string_view key) {
        const auto found = std::find_if(settings_.begin(), settings_.end(),
                                        [&](const Setting& s) { return s.key == key; });
        if (found == settings_.end()) return std::nullopt;
        std::string value = found->value;
        settings_.erase(found);
        return value;
    }
    std::string need(std::string_view key) {
        auto value = take(key);
        if (!value) refuse(item_, fmt::format("'{}' is missing; {} needs it", key, name_));
        return *value;
    }

    std::uint64_t number(std::string_view key, const std::string& text, std::uint64_t max) const {
        std::uint64_t value = 0;
        const auto* end = text.data() + text.size();
        const auto result = std::from_chars(text.data(), end, value);
        if (result.ec != std::errc{} || result.ptr != end || value > max) {
            refuse(item_,
                   fmt::format("{} is '{}'; give a whole number from 0 to {}", key, text, max));
        }
        return value;
    }
    std::int64_t time(std::string_view key, const std::string& text) const {
        try {
            return parse_duration_ns(std::string(key), text);
        } catch (const Error&) {
            refuse(item_,
                   fmt::format("{} is '{}'; give a time such as 200us, 5ms or 2s", key, text));
        }
    }
    std::uint64_t share(const std::string& text) const {
        double percent = 0;
        const auto* end = text.data() + text.size();
        const auto result = std::from_chars(text.data(), end, percent);
        const bool whole = result.ec == std::errc{} && result.ptr + 1 == end && *result.ptr == '%';
        if (!whole || !(percent > 0 && percent <= 100)) {
            refuse(item_, fmt::format("share is '{}'; give more than 0% and up to 100%", text));
        }
        if (percent >= 100) return std::numeric_limits<std::uint64_t>::max();
        return static_cast<std::uint64_t>(std::ldexp(percent / 100, 64));
    }
    void finish(std::string_view valid) const {
        if (settings_.empty()) return;
        refuse(item_, fmt::format("{} has no setting '{}' (or has it twice); it takes {}", name_,
                                  settings_.front().key, valid));
    }

private:
    struct Setting {
        std::string key, value;
    };
    std::string_view item_, name_;
    std::vector<Setting> settings_;
};

WriteFault parse_write_fault(Settings& settings, std::uint32_t nodes) {
    WriteFault fault;
    fault.lose = settings.name() == "lose";
    if (!fault.lose) {
        const std::int64_t by = settings.time("by", settings.need("by"));
        if (by > kMaxDelayNs) {
            refuse("delay",
                   fmt::format("by is {} ns; the longest delay is {} ns", by, kMaxDelayNs));
        }
        fault.delay_ns = static_cast<std::uint32_t>(by);
    }
    constexpr std::uint64_t kAny = std::numeric_limits<std::uint64_t>::max();
    if (const auto text = settings.take("node")) {
        fault.node = static_cast<std::uint32_t>(settings.number("node", *text, nodes - 1));
    }
    if (const auto text = settings.take("after"))
        fault.after = settings.number("after", *text, kAny);
    if (const auto text = settings.take("count"))
        fault.count = settings.number("count", *text, kAny);
    if (const auto text = settings.take("share")) fault.share = settings.share(*text);
    settings.finish(fault.lose ? "node, after, count, share" : "by, node, after, count, share");
    return fault;
}

void parse_wire_fault(Settings& settings, std::uint32_t nodes, std::vector<WireFault>& faults) {
    const bool cut = settings.name() == "cut";
    const char* const key = cut ? "cable" : "node";
    WireFault fault;
    fault.kind = cut ? WireFault::Kind::cable : WireFault::Kind::node;
    fault.place = static_cast<std::uint32_t>(settings.number(key, settings.need(key), nodes - 1));
    std::uint32_t first = 0, last = 0;
    if (cut) {
        const std::string ring = settings.take("ring").value_or("0");
        if (ring == "both") {
            last = 1;
        } else {
            first = last = static_cast<std::uint32_t>(settings.number("ring", ring, 1));
        }
    }
    if (const auto text = settings.take("at")) fault.at_ns = settings.time("at", *text);
    std::optional<std::int64_t> until;
    if (const auto text = settings.take("until")) until = settings.time("until", *text);
    settings.finish(cut ? "cable, ring, at, until" : "node, at, until");
    if (until && *until <= fault.at_ns) {
        refuse(settings.name(),
               fmt::format("until ({} ns) is not after at ({} ns); at and until count "
                           "from the making of the ring",
                           *until, fault.at_ns));
    }
    for (fault.ring = first; fault.ring <= last; ++fault.ring) {
        fault.up = false;
        faults.push_back(fault);
        if (!until) continue;
        WireFault end = fault;
        end.up = true;
        end.at_ns = *until;
        faults.push_back(end);
    }
}

std::uint64_t next_random(std::uint64_t& state) noexcept {  // splitmix64
    state += 0x9e3779b97f4a7c15U;
    std::uint64_t z = state;
    z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27U)) * 0x94d049bb133111ebU;
    return z ^ (z >> 31U);
}

}  // namespace

FaultPlan FaultPlan::parse(std::string_view spec, std::uint32_t nodes) {
    FaultPlan plan;
    while (!trimmed(spec).empty()) {
        const std::string_view item = cut_off(spec, ';');
        if (item.empty()) continue;
        if (item.substr(0, 5) == "seed=") {
            const Settings none("seed");
            plan.seed = none.number("seed", std::string(trimmed(item.substr(5))),
                                    std::numeric_limits<std::uint64_t>::max());
            continue;
        }
        Settings settings(item);
        if (settings.name() == "delay" || settings.name() == "lose") {
            plan.writes.push_back(parse_write_fault(settings, nodes));
        } else if (settings.name() == "cut" || settings.name() == "bypass") {
            parse_wire_fault(settings, nodes, plan.wire);
        } else {
            refuse(item,
                   fmt::format("there is no fault '{}'; there are seed=<n>, delay:, lose:, cut: "
                               "and bypass:",
                               settings.name()));
        }
    }
    std::stable_sort(plan.wire.begin(), plan.wire.end(),
                     [](const WireFault& a, const WireFault& b) { return a.at_ns < b.at_ns; });
    return plan;
}

WriteFaults::WriteFaults(const FaultPlan& plan, std::uint32_t node, std::uint32_t rank)
    : random_(plan.seed + (std::uint64_t{rank} << 32U)) {
    for (const WriteFault& fault : plan.writes) {
        if (fault.node == WriteFault::kAllNodes || fault.node == node) faults_.push_back({fault});
    }
}

WriteFaults::Verdict WriteFaults::next() noexcept {
    Verdict verdict;
    std::uint64_t delay = 0;
    for (Active& active : faults_) {
        if (!hits(active)) continue;
        ++verdict.injected;
        verdict.lose = verdict.lose || active.fault.lose;
        delay += active.fault.delay_ns;
    }
    verdict.delay_ns = static_cast<std::uint32_t>(std::min<std::uint64_t>(delay, kMaxDelayNs));
    return verdict;
}

bool WriteFaults::hits(Active& active) noexcept {
    if (active.seen++ < active.fault.after || active.hit >= active.fault.count) return false;
    if (active.fault.share != std::numeric_limits<std::uint64_t>::max() &&
        next_random(random_) > active.fault.share) {
        return false;
    }
    ++active.hit;
    return true;
}

}  // namespace rmem
