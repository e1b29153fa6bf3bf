// SPDX-License-Identifier: Apache-2.0
#include "tools/record/recorded_text.hpp"

#include "rmem/base/time.hpp"
#include "tools/output.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <ctime>
#include <vector>

namespace tools {

using rmem::RecordedWrite;

namespace {

constexpr std::size_t kShownWords = 8;

struct FlagName {
    std::uint16_t flag;
    const char* name;
};
constexpr FlagName kFlags[] = {{RecordedWrite::kInterrupt, "interrupt"},
                               {RecordedWrite::kMeLast, "me-last"},
                               {RecordedWrite::kAtStart, "at-start"},
                               {RecordedWrite::kMissed, "missed"},
                               {RecordedWrite::kSampled, "sampled"},
                               {RecordedWrite::kApplied, "applied"},
                               {RecordedWrite::kMore, "more"}};

std::vector<std::string> flag_names(std::uint16_t flags) {
    std::vector<std::string> names;
    for (const FlagName& flag : kFlags) {
        if ((flags & flag.flag) != 0) names.emplace_back(flag.name);
    }
    return names;
}

std::uint32_t word_of(const RecordedWrite& write, std::size_t index) {
    std::uint32_t value = 0;
    std::memcpy(&value, write.words.data() + index * sizeof value, sizeof value);
    return value;
}

/// A word of which a write has some bytes: the others as --, the highest first.
std::string part_text(const RecordedWrite& write) {
    std::string text;
    for (std::size_t i = rmem::kWordBytes; i-- > 0;) {
        const auto byte = std::to_integer<unsigned>(write.words[i]);
        text += (write.part() >> i & 1) != 0 ? fmt::format("{:02x}", byte) : "--";
    }
    return text;
}

std::string words_text(const RecordedWrite& write) {
    if (write.part() != rmem::kWholeWord) return "   1 word : " + part_text(write);
    const std::size_t words = write.words.size() / rmem::kWordBytes;
    std::string text = fmt::format("{:4} {}:", words, words == 1 ? "word " : "words");
    for (std::size_t i = 0; i < std::min(words, kShownWords); ++i) {
        text += fmt::format(" {:08x}", word_of(write, i));
    }
    return words > kShownWords ? text + " …" : text;
}

double seconds(std::int64_t ns) {
    return static_cast<double>(ns) / 1e9;
}

struct Sum {
    std::uint64_t writes = 0, bytes = 0;

    void add(const RecordedWrite& write) {
        ++writes;
        bytes += write.words.size();
    }
    nlohmann::json to_json() const { return {{"writes", writes}, {"bytes", bytes}}; }
};

/// Adds up what is in a recording.
struct Totals {
    Sum played, at_start;
    std::uint64_t missed = 0;
    bool sampled = false;
    std::int64_t last_ns = 0;
    std::vector<Sum> nodes;

    void add(const RecordedWrite& write, const rmem::RecordingInfo& info) {
        last_ns = std::max(last_ns, write.time_ns - info.start_ns);
        sampled = sampled || (write.flags & RecordedWrite::kSampled) != 0;
        if ((write.flags & RecordedWrite::kMissed) != 0) {
            ++missed;
        } else if ((write.flags & RecordedWrite::kAtStart) != 0) {
            at_start.add(write);
        } else {
            played.add(write);
            nodes[write.node].add(write);
        }
    }
};

nlohmann::json nodes_json(const std::vector<Sum>& nodes) {
    nlohmann::json result = nlohmann::json::array();
    for (std::size_t node = 0; node < nodes.size(); ++node) {
        nlohmann::json entry = nodes[node].to_json();
        entry["node"] = node;
        result.push_back(entry);
    }
    return result;
}

}  // namespace

std::string write_text(const RecordedWrite& write, const rmem::RecordingInfo& info) {
    std::string text = fmt::format("{:+.9f} s  node {} rank {}",
                                   seconds(write.time_ns - info.start_ns), write.node, write.rank);
    if ((write.flags & RecordedWrite::kMissed) != 0) return text + "  writes were missed here\n";
    text += fmt::format("  {}  {}", offset_text(write.offset), words_text(write));
    for (const std::string& name : flag_names(write.flags)) text += "  " + name;
    if ((write.flags & RecordedWrite::kApplied) != 0) {
        text += fmt::format(" after {}", duration_text(write.delay_ns));
    }
    return text + "\n";
}

nlohmann::json write_json(const RecordedWrite& write, const rmem::RecordingInfo& info) {
    nlohmann::json words = nlohmann::json::array();
    for (std::size_t i = 0; i < write.words.size() / rmem::kWordBytes; ++i) {
        words.push_back(word_of(write, i));
    }
    nlohmann::json result = {{"time_ns", write.time_ns - info.start_ns},
                             {"wall_ns", info.wall_ns(write.time_ns)},
                             {"node", write.node},
                             {"rank", write.rank},
                             {"offset", write.offset},
                             {"flags", flag_names(write.flags)},
                             {"words", words}};
    if (write.part() != rmem::kWholeWord) result["bytes"] = part_text(write);
    if ((write.flags & RecordedWrite::kApplied) != 0) result["delay_ns"] = write.delay_ns;
    return result;
}

nlohmann::json summary_json(rmem::RecordingReader& reader) {
    const rmem::RecordingInfo& info = reader.info();
    Totals totals;
    totals.nodes.resize(info.config.nodes);
    RecordedWrite write;
    while (reader.next(write)) totals.add(write, info);
    const rmem::RecordingReport& report = reader.report();
    return {{"ring", info.config.name},
            {"link", name_of(info.config.link)},
            {"timing", rmem::to_string(info.config.timing)},
            {"nodes", info.config.nodes},
            {"ranks", info.config.ranks},
            {"user_bytes", info.config.user_bytes},
            {"system_bytes", info.config.system_bytes},
            {"start_wall_ns", info.start_wall_ns},
            {"last_ns", totals.last_ns},
            {"writes", totals.played.to_json()},
            {"at_start", totals.at_start.to_json()},
            {"missed", totals.missed},
            {"sampled", totals.sampled},
            {"by_node", nodes_json(totals.nodes)},
            {"whole", report.whole()},
            {"closed", report.closed},
            {"blocks", report.blocks},
            {"lost_blocks", report.lost_blocks},
            {"damaged_bytes", report.damaged_bytes},
            {"tail_bytes", report.tail_bytes}};
}

std::string summary_text(const nlohmann::json& summary) {
    const auto number = [&](const char* key) { return summary[key].get<std::uint64_t>(); };
    const auto start = summary["start_wall_ns"].get<std::int64_t>();
    const auto& writes = summary["writes"];
    std::string text = fmt::format(
        "ring {}: link {}, timing {}, {} nodes, {} ranks, {} of user's memory\n"
        "  begun {:%Y-%m-%d %H:%M:%S}, last write after {}\n"
        "  {} {} ({}); {} in the memory at the start\n",
        printable(summary["ring"].get<std::string>()), summary["link"].get<std::string>(),
        summary["timing"].get<std::string>(), number("nodes"), number("ranks"),
        size_text(number("user_bytes")),
        fmt::localtime(static_cast<std::time_t>(start / rmem::kNsPerSecond)),
        duration_text(number("last_ns")), writes["writes"].get<std::uint64_t>(),
        summary["sampled"].get<bool>() ? "changes, found by looking" : "writes",
        size_text(writes["bytes"].get<std::uint64_t>()),
        size_text(summary["at_start"]["bytes"].get<std::uint64_t>()));
    if (number("missed") != 0) {
        text += fmt::format("  {} times writes were missed\n", number("missed"));
    }
    Table table({">node", ">writes", ">bytes"});
    for (const nlohmann::json& node : summary["by_node"]) {
        if (node["writes"] == 0) continue;
        table.add({fmt::to_string(node["node"].get<unsigned>()),
                   fmt::to_string(node["writes"].get<std::uint64_t>()),
                   size_text(node["bytes"].get<std::uint64_t>())});
    }
    return table.empty() ? text : text + "\n" + table.text(2);
}

}  // namespace tools
