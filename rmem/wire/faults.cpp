// SPDX-License-Identifier: Apache-2.0
#include "rmem/wire/faults.hpp"

#include "rmem/base/quantity.hpp"
#include "rmem/base/random.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <utility>

namespace rmem {

namespace {

constexpr std::int64_t kMaxDelayNs = 4'000'000'000;  // a log record holds no more

[[noreturn]] void refuse(std::string_view item, const std::string& what) {
    throw Error(Errc::bad_fault, fmt::format("RMEM_FAULTS: in '{}': {}", item, what));
}

std::string_view trimmed(std::string_view text) {
    constexpr std::string_view kBlanks = " \t\n";
    const auto first = text.find_first_not_of(kBlanks);
    if (first == std::string_view::npos) return {};
    return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

/// Takes the part before `separator` (or all) off the front of `text`.
std::string_view cut_off(std::string_view& text, char separator) {
    const auto end = text.find(separator);
    const std::string_view part = text.substr(0, end);
    text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
    return trimmed(part);
}

/// The settings of one item, each of which may be taken once; one that is left over is an error.
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
                refuse(item_, fmt::format("'{}' is not a setting; write name=value", whole));
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

void take_choice(Settings& settings, FaultChoice& choice) {
    constexpr std::uint64_t kAny = std::numeric_limits<std::uint64_t>::max();
    if (const auto text = settings.take("after"))
        choice.after = settings.number("after", *text, kAny);
    if (const auto text = settings.take("count"))
        choice.count = settings.number("count", *text, kAny);
    if (const auto text = settings.take("share")) choice.share = settings.share(*text);
}

/// When a fault begins and, unless it is forever, ends.
struct Span {
    std::int64_t at_ns = 0;
    std::optional<std::int64_t> until_ns;
};

Span take_span(Settings& settings, std::string_view since) {
    Span span;
    if (const auto text = settings.take("at")) span.at_ns = settings.time("at", *text);
    if (const auto text = settings.take("until")) span.until_ns = settings.time("until", *text);
    if (span.until_ns && *span.until_ns <= span.at_ns) {
        refuse(settings.name(), fmt::format("until ({} ns) is not after at ({} ns); at and until "
                                            "count from {}",
                                            *span.until_ns, span.at_ns, since));
    }
    return span;
}

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
    if (const auto text = settings.take("node")) {
        fault.node = static_cast<std::uint32_t>(settings.number("node", *text, nodes - 1));
    }
    take_choice(settings, fault);
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
    const Span span = take_span(settings, "the making of the ring");
    settings.finish(cut ? "cable, ring, at, until" : "node, at, until");
    fault.at_ns = span.at_ns;
    for (fault.ring = first; fault.ring <= last; ++fault.ring) {
        fault.up = false;
        faults.push_back(fault);
        if (!span.until_ns) continue;
        WireFault end = fault;
        end.up = true;
        end.at_ns = *span.until_ns;
        faults.push_back(end);
    }
}

udp::NodeSet nodes_up_to(std::uint32_t nodes) {
    udp::NodeSet all;
    for (std::uint32_t node = 0; node < nodes; ++node) all.insert(node);
    return all;
}

/// Reads `3`, `0-2` or `0-2+5`.
udp::NodeSet parse_nodes(const Settings& settings, std::string_view key, std::string_view text,
                         std::uint32_t nodes) {
    udp::NodeSet set;
    do {
        std::string_view range = cut_off(text, '+');
        const bool one = range.find('-') == std::string_view::npos;
        const auto first = settings.number(key, std::string(cut_off(range, '-')), nodes - 1);
        const auto last =
            one ? first : settings.number(key, std::string(trimmed(range)), nodes - 1);
        if (last < first) {
            refuse(settings.name(),
                   fmt::format("{} is '{}-{}'; give the lower node first", key, first, last));
        }
        for (auto node = first; node <= last; ++node) set.insert(static_cast<unsigned>(node));
    } while (!text.empty());
    return set;
}

constexpr std::string_view kOwnStart = "the node's start";

void set_span(DatagramFault& fault, const Span& span) {
    fault.at_ns = span.at_ns;
    if (span.until_ns) fault.until_ns = *span.until_ns;
}

DatagramFault parse_datagram_fault(Settings& settings, std::uint32_t nodes) {
    using Kind = DatagramFault::Kind;
    const auto* const name =
        std::find(kDatagramFaultNames.begin(), kDatagramFaultNames.end(), settings.name());
    const auto kind = static_cast<Kind>(name - kDatagramFaultNames.begin());
    DatagramFault fault;
    fault.kind = kind;
    fault.from = fault.to = nodes_up_to(kMaxNodes);
    if (const auto text = settings.take("from"))
        fault.from = parse_nodes(settings, "from", *text, nodes);
    if (const auto text = settings.take("to")) fault.to = parse_nodes(settings, "to", *text, nodes);
    const bool later = kind == Kind::hold || kind == Kind::duplicate;
    if (kind == Kind::hold) {
        fault.by_ns = settings.time("by", settings.need("by"));
    } else if (kind == Kind::duplicate) {
        if (const auto text = settings.take("by")) fault.by_ns = settings.time("by", *text);
    }
    take_choice(settings, fault);
    set_span(fault, take_span(settings, kOwnStart));
    settings.finish(later ? "by, from, to, after, count, share, at, until"
                          : "from, to, after, count, share, at, until");
    return fault;
}

/// Two faults: neither side gets the other's datagrams.
void parse_part(Settings& settings, std::uint32_t nodes, std::vector<DatagramFault>& faults) {
    DatagramFault fault;
    fault.kind = DatagramFault::Kind::part;
    fault.from = parse_nodes(settings, "nodes", settings.need("nodes"), nodes);
    fault.to = nodes_up_to(nodes);
    fault.from.for_each([&](unsigned node) { fault.to.erase(node); });
    set_span(fault, take_span(settings, kOwnStart));
    settings.finish("nodes, at, until");
    if (fault.to.empty()) {
        refuse(settings.name(), fmt::format("these are all {} nodes; leave out those on the other "
                                            "side",
                                            nodes));
    }
    faults.push_back(fault);
    std::swap(fault.from, fault.to);
    faults.push_back(fault);
}

// ---- Which item there is on which link

using Parse = void (*)(Settings& settings, std::uint32_t nodes, FaultPlan& plan);

void add_datagram_fault(Settings& settings, std::uint32_t nodes, FaultPlan& plan) {
    plan.datagrams.push_back(parse_datagram_fault(settings, nodes));
}
void add_write_fault(Settings& settings, std::uint32_t nodes, FaultPlan& plan) {
    plan.writes.push_back(parse_write_fault(settings, nodes));
}
void add_wire_fault(Settings& settings, std::uint32_t nodes, FaultPlan& plan) {
    parse_wire_fault(settings, nodes, plan.wire);
}
void add_part(Settings& settings, std::uint32_t nodes, FaultPlan& plan) {
    parse_part(settings, nodes, plan.datagrams);
}

struct Item {
    std::string_view name;
    bool on_ring, on_udp;  ///< a simulated ring is a ring
    Parse parse;
};

constexpr auto kItems = [] {
    std::array<Item, 4 + kDatagramFaultKinds> items{
        Item{"delay", true, true, add_write_fault}, Item{"lose", true, false, add_write_fault},
        Item{"cut", true, false, add_wire_fault}, Item{"bypass", true, false, add_wire_fault}};
    auto* item = &items[4];
    for (const std::string_view name : kDatagramFaultNames)
        *item++ = {name, false, true, name == "part" ? add_part : add_datagram_fault};
    return items;
}();

bool is_on(const Item& item, LinkKind link) {
    if (link == LinkKind::direct) return false;
    return is_remote(link) ? item.on_udp : item.on_ring;
}

/// "seed=<n>, delay:, lose:": all that a link takes.
std::string items_on(LinkKind link) {
    std::string list = "seed=<n>";
    for (const Item& item : kItems) {
        if (is_on(item, link)) list += fmt::format(", {}:", item.name);
    }
    return list;
}

const Item& item_named(std::string_view text, std::string_view name, LinkKind link) {
    if (link == LinkKind::direct) {
        refuse(text,
               "link direct is one memory, without a wire to inject it into; give another "
               "link, or unset RMEM_FAULTS");
    }
    const auto* const found = std::find_if(kItems.begin(), kItems.end(),
                                           [&](const Item& item) { return item.name == name; });
    if (found == kItems.end()) {
        refuse(text, fmt::format("there is no fault '{}'; on link {} there are {}", name,
                                 name_of(link), items_on(link)));
    }
    if (!is_on(*found, link)) {
        refuse(text,
               fmt::format("link {} cannot {}; there are {}", name_of(link), name, items_on(link)));
    }
    return *found;
}

}  // namespace

FaultPlan FaultPlan::parse(std::string_view spec, std::uint32_t nodes, LinkKind link) {
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
        item_named(item, settings.name(), link).parse(settings, nodes, plan);
    }
    std::stable_sort(plan.wire.begin(), plan.wire.end(),
                     [](const WireFault& a, const WireFault& b) { return a.at_ns < b.at_ns; });
    return plan;
}

bool FaultChooser::hits(std::uint64_t& random) noexcept {
    if (seen_++ < choice_.after || hit_ >= choice_.count) return false;
    if (choice_.share != std::numeric_limits<std::uint64_t>::max() &&
        next_random(random) > choice_.share) {
        return false;
    }
    ++hit_;
    return true;
}

WriteFaults::WriteFaults(const FaultPlan& plan, std::uint32_t node, std::uint32_t rank)
    : random_(plan.seed + (std::uint64_t{rank} << 32U)) {
    for (const WriteFault& fault : plan.writes) {
        if (fault.node == WriteFault::kAllNodes || fault.node == node)
            faults_.push_back({fault, FaultChooser(fault)});
    }
}

WriteFaults::Verdict WriteFaults::next() noexcept {
    Verdict verdict;
    std::uint64_t delay = 0;
    for (Active& active : faults_) {
        if (!active.chooser.hits(random_)) continue;
        ++verdict.injected;
        verdict.lose = verdict.lose || active.fault.lose;
        delay += active.fault.delay_ns;
    }
    verdict.delay_ns = static_cast<std::uint32_t>(std::min<std::uint64_t>(delay, kMaxDelayNs));
    return verdict;
}

}  // namespace rmem
