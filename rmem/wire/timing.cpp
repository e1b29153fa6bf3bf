// SPDX-License-Identifier: Apache-2.0
#include "rmem/wire/timing.hpp"

#include "rmem/base/hash.hpp"
#include "rmem/base/limits.hpp"
#include "rmem/base/quantity.hpp"
#include "rmem/wire/timing_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <span>

namespace rmem {

namespace {

constexpr std::uint64_t kPsPerNs = 1000;
constexpr std::uint64_t kPsPerSecond = 1'000'000'000'000;
constexpr std::uint64_t kCablePsPerMetre = 5 * kPsPerNs;
constexpr std::uint64_t kMaxCableMetres = 100'000;
constexpr std::uint64_t kMaxBoundNs = 3'600 * kPsPerSecond / kPsPerNs;

constexpr std::uint32_t kScramnetByte = 9;  // bits, a parity bit among them
constexpr std::uint32_t kDefaultDepth = 1024;
constexpr std::uint32_t kMaxPacketBytes = 4096;

constexpr TimingProfile scramnet(bool platinum, std::uint32_t packet_bytes) {
    TimingProfile p;
    p.bits_per_s = 150'000'000;
    p.node_delay_ps = 247 * kPsPerNs;
    p.pitch_ps = 615 * kPsPerNs;
    p.header_bits = 46;
    p.bits_per_byte = kScramnetByte;
    p.packet_bytes = packet_bytes;
    p.fifo_words = 1024;
    p.whole_words = 1;
    p.instant = 0;
    p.packets = packet_bytes > kWordBytes ? PacketMode::variable : PacketMode::fixed;
    p.retransmits = platinum ? 1 : 0;
    return p;
}

// 33 MB/s at 4 B and 207 MB/s at 128 B lie on 105.2 ns + 10 bits for each byte: the line code's.
// The split of the 105.2 ns into 160 header bits and a gap is ours.
constexpr TimingProfile gt200() {
    TimingProfile p;
    p.bits_per_s = 2'500'000'000;
    p.node_delay_ps = 450 * kPsPerNs;
    p.insertion_ps = 350 * kPsPerNs;
    p.pitch_ps = 121'200;
    p.header_bits = 160;
    p.bits_per_byte = 10;
    p.packet_bytes = 128;
    p.fifo_words = 1024;
    p.instant = 0;
    p.packets = PacketMode::variable;
    return p;
}

// 47.1 MB/s at 4 B and 174 MB/s at 64 B (data sheets) lie on 66.3 ns + 10 bits for each byte,
// 8b/10b's, at 2.125 Gbit/s: derived. That all of it is header, in 14 characters, is ours. 700 ns
// from node to node for a word, 85 ns of it the packet's, leave 615 for the insertion; 2.1 us until
// a packet of 64 B, 367 ns long, is at the third node behind, leave 559 for each of the two
// between: derived, from what sellers say. FIFO: as SCRAMNet's, assumed.
constexpr TimingProfile rfm5565() {
    TimingProfile p;
    p.bits_per_s = 2'125'000'000;
    p.node_delay_ps = 559 * kPsPerNs;
    p.insertion_ps = 615 * kPsPerNs;
    p.pitch_ps = 84'900;
    p.header_bits = 140;
    p.bits_per_byte = 10;
    p.packet_bytes = 64;
    p.fifo_words = kDefaultDepth;
    p.instant = 0;
    p.packets = PacketMode::variable;
    return p;
}

/// The basis that options turn into a card; without a line rate it is no card yet.
constexpr TimingProfile custom() {
    TimingProfile p;
    p.bits_per_byte = 8;
    p.fifo_words = kDefaultDepth;
    p.instant = 0;
    return p;
}

constexpr std::string_view kScramnet =
    "SCRAMNet+ SC150e, hardware reference: 150 Mbit/s, 247 ns in a node, 615 ns from word to word, "
    "46 header bits and 9 bits a byte, FIFO of 1024";

/// The profiles, and where their numbers are from: `custom` has none, and is not listed.
struct Named {
    std::string_view name, source;
    TimingProfile timing;
};
constexpr auto kProfiles = std::to_array<Named>({
    {"none", "no wire: a write is everywhere at once", {}},
    {"scramnet-burst", kScramnet, scramnet(false, kWordBytes)},
    {"scramnet-burst-plus", kScramnet, scramnet(false, 256)},
    {"scramnet-burst-plus-1k", kScramnet, scramnet(false, 1024)},
    {"platinum", kScramnet, scramnet(true, kWordBytes)},
    {"platinum-plus", kScramnet, scramnet(true, 256)},
    {"platinum-plus-1k", kScramnet, scramnet(true, 1024)},
    {"gt200",
     "SCRAMNet GT200, hardware reference: 2.5 Gbit/s, 450 ns in a node, 350 ns insertion, packets "
     "to 128 B, 33 MB/s at 4 B; derived: header bits and gap; FIFO assumed",
     gt200()},
    {"rfm5565",
     "RFM 5565, vendors' data sheets: 2.125 Gbit/s, packets of 4 to 64 B, 47.1 MB/s at 4 B, 174 "
     "MB/s at 64 B; derived: header bits and word pitch from these, insertion and node delay from "
     "700 ns node to node and 2.1 us for 64 B to all of 4 nodes (both said by sellers, not "
     "measured); FIFO assumed",
     rfm5565()},
    {"custom", "", custom()},
});

[[noreturn]] void refuse(const std::string& sentence) {
    throw Error(Errc::bad_profile, sentence);
}

std::string list_of_names() {
    return fmt::format("{}, custom with options of a card, or a file such as ./my.toml",
                       fmt::join(timing_profile_names(), ", "));
}

TimingProfile named(std::string_view name) {
    const auto* const found =
        std::find_if(kProfiles.begin(), kProfiles.end(),
                     [&](const Named& profile) { return profile.name == name; });
    if (found == kProfiles.end()) {
        refuse(fmt::format("timing profile \"{}\" does not exist; valid ones: {}", name,
                           list_of_names()));
    }
    TimingProfile p = found->timing;
    std::memset(p.name, 0, sizeof p.name);
    std::memcpy(p.name, name.data(), name.size());
    return p;
}

constexpr auto kPlain = std::to_array<Unit>({{"", 1}});
constexpr auto kTimes = std::to_array<Unit>(
    {{"ps", 1}, {"ns", kPsPerNs}, {"us", kPsPerNs * 1'000}, {"ms", kPsPerNs * 1'000'000}});
constexpr auto kBounds = std::to_array<Unit>({{"ns", 1}, {"us", 1'000}, {"ms", 1'000'000}});
constexpr auto kMetres = std::to_array<Unit>({{"m", kCablePsPerMetre}});
constexpr std::array<std::string_view, 2> kFifos = {"hold", "lose"},
                                          kPackets = {"fixed", "variable"},
                                          kWords = {"bytes", "whole"}, kNoOrYes = {"no", "yes"};

/// An option: a number with one of `units`, of which the first is written, or one of `words`.
struct Option {
    std::string_view key;
    std::uint64_t least, most;
    std::span<const Unit> units;
    std::uint64_t (*get)(const TimingProfile&);
    void (*set)(TimingProfile&, std::uint64_t);
    const char* valid;
    std::span<const std::string_view> words = {};
    bool is_of_a_card = true;  ///< means nothing to `none`
};
template <auto Member>
std::uint64_t get(const TimingProfile& p) {
    return static_cast<std::uint64_t>(p.*Member);
}
template <auto Member>
void set(TimingProfile& p, std::uint64_t value) {
    p.*Member = static_cast<std::remove_reference_t<decltype(p.*Member)>>(value);
}
template <auto Member>
constexpr Option number(std::string_view key, std::uint64_t least, std::uint64_t most,
                        std::span<const Unit> units, const char* valid, bool is_of_a_card = true) {
    return {key, least, most, units, get<Member>, set<Member>, valid, {}, is_of_a_card};
}
template <auto Member>
constexpr Option choice(std::string_view key, std::span<const std::string_view> words,
                        const char* valid, bool is_of_a_card = true) {
    return {key, 0, words.size() - 1, {}, get<Member>, set<Member>, valid, words, is_of_a_card};
}

using Timing = TimingProfile;
constexpr auto kOptions = std::to_array<Option>({
    choice<&Timing::overflow>("fifo", kFifos, "hold, lose", false),
    number<&Timing::bits_per_s>("line", 1'000'000, kPsPerSecond, kPlain,
                                "whole bits a second, 1000000 to 1000000000000"),
    number<&Timing::node_delay_ps>("delay", 0, kPsPerSecond, kTimes,
                                   "a time such as 450ns, at most a second"),
    number<&Timing::insertion_ps>("insertion", 0, kPsPerSecond, kTimes,
                                  "a time such as 350ns, at most a second"),
    number<&Timing::pitch_ps>("pitch", 0, kPsPerSecond, kTimes,
                              "a time such as 615ns, at most a second"),
    number<&Timing::header_bits>("header", 0, 1'000'000, kPlain, "bits, at most 1000000"),
    number<&Timing::bits_per_byte>("byte", 1, 64, kPlain, "bits of a byte on the wire, 1 to 64"),
    number<&Timing::fifo_words>("depth", 0, 1'000'000, kPlain,
                                "words of the transmit FIFO, at most 1000000; 0: no limit"),
    choice<&Timing::packets>("packets", kPackets, "fixed, variable"),
    choice<&Timing::retransmits>("resend", kNoOrYes, "yes, no"),
    choice<&Timing::whole_words>("words", kWords, "whole, bytes"),
    number<&Timing::packet_bytes>("packet", kWordBytes, kMaxPacketBytes, kPlain,
                                  "bytes, a multiple of 4 to 4096", false),
    number<&Timing::cable_ps>("cable", 0, kMaxCableMetres* kCablePsPerMetre, kMetres,
                              "whole metres of one segment, 0m to 100000m", false),
    number<&Timing::promised_ns>("bound", 1, kMaxBoundNs, kBounds,
                                 "a whole number of ns, us or ms, at most one hour", false),
});

[[noreturn]] void refuse_value(std::string_view key, std::string_view value, const char* valid) {
    refuse(fmt::format("timing option \"{}\" is \"{}\"; valid: {}", key, value, valid));
}

void set_value(TimingProfile* p, const Option& option, std::string_view value) {
    std::optional<std::uint64_t> given;
    if (option.words.empty()) {
        given = number_with_unit(value, option.units, option.most);
    } else if (const auto word = std::find(option.words.begin(), option.words.end(), value);
               word != option.words.end()) {
        given = static_cast<std::uint64_t>(word - option.words.begin());
    }
    if (!given || *given < option.least) refuse_value(option.key, value, option.valid);
    option.set(*p, *given);
}

/// What the packets of a card hold: SCRAMNet's are of two sizes.
void set_packet(TimingProfile* p, const Option& option, std::string_view value) {
    const bool is_scramnet = p->bits_per_byte == kScramnetByte;
    if (p->instant != 0 || std::string_view(p->name) == "gt200" ||
        (is_scramnet && p->packets == PacketMode::fixed)) {
        refuse(
            fmt::format("timing option \"packet\" fits the plus profiles only, found in \"{}\"; "
                        "valid there: none",
                        p->name));
    }
    if (is_scramnet && value != "256" && value != "1024")
        refuse_value(option.key, value, "256, 1024");
    set_value(p, option, value);
    if (p->packet_bytes % kWordBytes != 0) refuse_value(option.key, value, option.valid);
    if (p->packet_bytes > kWordBytes) p->packets = PacketMode::variable;
}

void set_option(TimingProfile* p, std::string_view key, std::string_view value) {
    const auto* const option = std::find_if(kOptions.begin(), kOptions.end(),
                                            [&](const Option& one) { return one.key == key; });
    if (option == kOptions.end() || (option->is_of_a_card && p->instant != 0)) {
        refuse(
            fmt::format("timing option \"{}{}{}\" does not exist; valid ones: fifo=hold|lose, "
                        "packet=256|1024, cable=<metres>m, bound=<n>ns|us|ms; of a card: line, "
                        "delay, insertion, pitch, header, byte, depth, packets, resend, words",
                        key, value.empty() ? "" : "=", value));
    }
    key == "packet" ? set_packet(p, *option, value) : set_value(p, *option, value);
}

void set_option(TimingProfile* p, std::string_view option) {
    const std::size_t equals = option.find('=');
    set_option(p, option.substr(0, equals),
               equals == std::string_view::npos ? std::string_view() : option.substr(equals + 1));
}

std::uint64_t bits_ps(const TimingProfile& p, std::uint64_t bits) noexcept {
    return (bits * kPsPerSecond + p.bits_per_s / 2) / p.bits_per_s;
}

/// A fixed packet holds one word; a packet is over before its transmitter's next one.
void check_card(TimingProfile* p) {
    if (p->instant != 0) return;
    const std::string name = fmt::format("timing profile \"{}\"", p->name);
    if (p->bits_per_s == 0)
        refuse(name + " has no line rate; give line=<bit/s>, such as line=2125000000");
    if (p->packets == PacketMode::fixed && p->packet_bytes != kWordBytes) {
        refuse(
            fmt::format("{} has packets=fixed, which hold one word, and packet={}; give "
                        "packets=variable, or packet=4",
                        name, p->packet_bytes));
    }
    const std::uint64_t slot = packet_ps(*p, 1);
    if (p->pitch_ps == 0) p->pitch_ps = slot;
    if (p->pitch_ps >= slot) return;
    refuse(
        fmt::format("{} sends a word each {} ps, and a word takes {} ps on the wire; give "
                    "pitch= at least that",
                    name, p->pitch_ps, slot));
}

TimingProfile from_file(const std::string& path) {
    const TimingFile file = read_timing_file(path);
    const auto at = [](const std::string& where, const auto& action) {
        try {
            return action();
        } catch (const Error& error) {
            throw Error(Errc::bad_profile, where + ": " + error.sentence());
        }
    };
    TimingProfile profile =
        file.base.empty() ? named("custom") : at(file.base_where, [&] { return named(file.base); });
    for (const TimingFile::Option& option : file.options) {
        at(option.where, [&] { set_option(&profile, option.key, option.value); });
    }
    at(path, [&] { check_card(&profile); });
    return profile;
}

}  // namespace

bool names_timing_file(std::string_view spec) noexcept {
    const std::string_view name = spec.substr(0, spec.find(','));
    return name.find('/') != std::string_view::npos || name.ends_with(".toml");
}

std::string_view timing_source(std::string_view name) noexcept {
    for (const Named& profile : kProfiles) {
        if (profile.name == name) return profile.source;
    }
    return {};
}

TimingProfile parse_timing(std::string_view spec) {
    std::size_t comma = spec.find(',');
    const std::string_view name = spec.substr(0, comma);
    TimingProfile profile = names_timing_file(spec) ? from_file(std::string(name)) : named(name);
    while (comma != std::string_view::npos) {
        spec.remove_prefix(comma + 1);
        comma = spec.find(',');
        set_option(&profile, spec.substr(0, comma));
    }
    check_card(&profile);
    return profile;
}

std::string to_string(const TimingProfile& profile) {
    std::string spec(profile.name, ::strnlen(profile.name, TimingProfile::kNameSize));
    const TimingProfile plain = named(spec);
    for (const Option& option : kOptions) {
        // A segment's header may hold any.
        const std::uint64_t value = std::min(option.get(profile), option.most);
        if (value == option.get(plain)) continue;
        spec += option.words.empty()
                    ? fmt::format(",{}={}{}", option.key, value / option.units[0].factor,
                                  option.units[0].suffix)
                    : fmt::format(",{}={}", option.key, option.words[value]);
    }
    return spec;
}

std::vector<std::string> timing_profile_names() {
    std::vector<std::string> names;
    for (const Named& profile : kProfiles) {
        if (!profile.source.empty()) names.emplace_back(profile.name);
    }
    return names;
}

std::uint64_t packet_ps(const TimingProfile& p, std::uint32_t words) noexcept {
    if (p.instant != 0) return 0;
    return bits_ps(p, p.header_bits + std::uint64_t{words} * kWordBytes * p.bits_per_byte);
}

std::uint64_t gap_ps(const TimingProfile& p) noexcept {
    const std::uint64_t slot = packet_ps(p, 1);
    return p.pitch_ps > slot ? p.pitch_ps - slot : 0;
}

std::int64_t busy_ns(const TimingProfile& p, std::uint32_t words) noexcept {
    const std::uint32_t full = p.packet_bytes / static_cast<std::uint32_t>(kWordBytes);
    std::uint64_t ps = (words / full) * (packet_ps(p, full) + gap_ps(p));
    if (words % full != 0) ps += packet_ps(p, words % full) + gap_ps(p);
    return static_cast<std::int64_t>((ps + kPsPerNs - 1) / kPsPerNs);
}

std::int64_t round_ns(const TimingProfile& p, std::uint32_t nodes) noexcept {
    const std::uint64_t ps = p.insertion_ps + nodes * (p.node_delay_ps + p.cable_ps);
    return static_cast<std::int64_t>((ps + kPsPerNs - 1) / kPsPerNs);
}

std::uint64_t max_node_delay_ps(const TimingProfile& p) noexcept {
    return p.node_delay_ps + packet_ps(p, p.packet_bytes / kWordBytes);
}

std::int64_t bound_ns(const TimingProfile& p, std::uint32_t nodes, std::uint32_t words) noexcept {
    if (p.promised_ns != 0 || p.instant != 0) return static_cast<std::int64_t>(p.promised_ns);
    const std::uint32_t packet_words = p.packet_bytes / kWordBytes;
    const std::uint64_t packets = (std::uint64_t{words} + packet_words - 1) / packet_words;
    const std::uint64_t turn = packet_ps(p, packet_words) + gap_ps(p);
    const std::uint64_t ps =
        p.insertion_ps + nodes * (packets * turn + max_node_delay_ps(p) + p.cable_ps);
    return static_cast<std::int64_t>((ps + kPsPerNs - 1) / kPsPerNs);
}

std::uint64_t hash_of(const TimingProfile& p) noexcept {
    Fnv1a hash;
    for (const char c : p.name) hash.add_word(static_cast<unsigned char>(c));
    for (const std::uint64_t v :
         {p.bits_per_s, p.node_delay_ps, p.insertion_ps, p.pitch_ps, p.cable_ps, p.promised_ns}) {
        hash.add_word(v);
    }
    for (const std::uint32_t v :
         {p.header_bits, p.bits_per_byte, p.packet_bytes, p.fifo_words, std::uint32_t{p.max_age}}) {
        hash.add_word(v);
    }
    hash.add_word(static_cast<std::uint64_t>(p.packets));
    hash.add_word(static_cast<std::uint64_t>(p.overflow));
    hash.add_word(p.retransmits);
    hash.add_word(p.instant);
    hash.add_word(p.whole_words);
    return hash.value();
}

}  // namespace rmem
