// SPDX-License-Identifier: Apache-2.0
#include "rmem/timing.hpp"

#include <array>
#include <charconv>
#include <cstring>

namespace rmem {

namespace {

constexpr std::uint64_t kPsPerNs = 1000;
constexpr std::uint64_t kPsPerSecond = 1'000'000'000'000;
constexpr std::uint64_t kCablePsPerMetre = 5 * kPsPerNs;
constexpr std::uint64_t kMaxCableMetres = 100'000;
constexpr std::uint64_t kMaxBoundNs = 3'600 * kPsPerSecond / kPsPerNs;
constexpr std::uint32_t kWordBytes = 4;

constexpr std::array<std::string_view, 8> kNames = {
    "none",     "scramnet-burst", "scramnet-burst-plus", "scramnet-burst-plus-1k",
    "platinum", "platinum-plus",  "platinum-plus-1k",    "gt200"};

[[noreturn]] void refuse(const std::string& sentence) {
    throw Error(Errc::bad_profile, sentence);
}

TimingProfile scramnet(bool platinum, std::uint32_t packet_bytes) {
    TimingProfile p;
    p.bits_per_s = 150'000'000;
    p.node_delay_ps = 247 * kPsPerNs;
    p.pitch_ps = 615 * kPsPerNs;
    p.header_bits = 46;
    p.bits_per_byte = 9;
    p.packet_bytes = packet_bytes;
    p.fifo_words = 1024;
    p.instant = 0;
    p.packets = packet_bytes > kWordBytes ? PacketMode::variable : PacketMode::fixed;
    p.retransmits = platinum ? 1 : 0;
    return p;
}

// 33 MB/s at 4 B and 207 MB/s at 128 B lie on 105.2 ns + 10 bits for each byte: the line code's.
// The split of the 105.2 ns into 160 header bits and a gap is ours.
TimingProfile gt200() {
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

std::string list_of_names() {
    std::string list;
    for (const std::string_view name : kNames) {
        if (!list.empty()) list += ", ";
        list += name;
    }
    return list;
}

TimingProfile named(std::string_view name) {
    TimingProfile p;
    if (name == "none") return p;
    if (name == "scramnet-burst") {
        p = scramnet(false, kWordBytes);
    } else if (name == "scramnet-burst-plus") {
        p = scramnet(false, 256);
    } else if (name == "scramnet-burst-plus-1k") {
        p = scramnet(false, 1024);
    } else if (name == "platinum") {
        p = scramnet(true, kWordBytes);
    } else if (name == "platinum-plus") {
        p = scramnet(true, 256);
    } else if (name == "platinum-plus-1k") {
        p = scramnet(true, 1024);
    } else if (name == "gt200") {
        p = gt200();
    } else {
        refuse("timing profile \"" + std::string(name) +
               "\" does not exist; valid ones: " + list_of_names());
    }
    std::memset(p.name, 0, sizeof p.name);
    std::memcpy(p.name, name.data(), name.size());
    return p;
}

/// A whole number followed by one of the units; false when it is anything else or overflows.
bool read_quantity(std::string_view text, std::uint64_t* number, std::string_view* unit) {
    const char* end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, *number);
    *unit = std::string_view(stop, static_cast<std::size_t>(end - stop));
    return error == std::errc() && stop != text.data();
}

[[noreturn]] void refuse_value(std::string_view key, std::string_view value, const char* valid) {
    refuse("timing option \"" + std::string(key) + "\" is \"" + std::string(value) +
           "\"; valid: " + valid);
}

void set_fifo(TimingProfile* p, std::string_view value) {
    if (value == "hold") {
        p->overflow = FifoPolicy::hold_off;
    } else if (value == "lose") {
        p->overflow = FifoPolicy::lose;
    } else {
        refuse_value("fifo", value, "hold, lose");
    }
}

void set_packet(TimingProfile* p, std::string_view value) {
    if (p->packets != PacketMode::variable || p->bits_per_byte != 9) {
        refuse("timing option \"packet\" fits the plus profiles only, found in \"" +
               std::string(p->name) + "\"; valid there: none");
    }
    if (value != "256" && value != "1024") refuse_value("packet", value, "256, 1024");
    p->packet_bytes = value == "256" ? 256 : 1024;
}

void set_cable(TimingProfile* p, std::string_view value) {
    std::uint64_t metres = 0;
    std::string_view unit;
    if (!read_quantity(value, &metres, &unit) || unit != "m" || metres > kMaxCableMetres) {
        refuse_value("cable", value, "whole metres of one segment, 0m to 100000m");
    }
    p->cable_ps = metres * kCablePsPerMetre;
}

void set_bound(TimingProfile* p, std::string_view value) {
    std::uint64_t number = 0;
    std::string_view unit;
    std::uint64_t scale = 0;
    if (read_quantity(value, &number, &unit)) {
        if (unit == "ns") scale = 1;
        if (unit == "us") scale = 1'000;
        if (unit == "ms") scale = 1'000'000;
    }
    if (scale == 0 || number == 0 || number > kMaxBoundNs / scale) {
        refuse_value("bound", value, "a whole number of ns, us or ms, at most one hour");
    }
    p->promised_ns = number * scale;
}

void set_option(TimingProfile* p, std::string_view option) {
    const std::size_t equals = option.find('=');
    const std::string_view key = option.substr(0, equals);
    const std::string_view value =
        equals == std::string_view::npos ? std::string_view() : option.substr(equals + 1);
    if (key == "fifo") {
        set_fifo(p, value);
    } else if (key == "packet") {
        set_packet(p, value);
    } else if (key == "cable") {
        set_cable(p, value);
    } else if (key == "bound") {
        set_bound(p, value);
    } else {
        refuse("timing option \"" + std::string(option) +
               "\" does not exist; valid ones: fifo=hold|lose, packet=256|1024, cable=<metres>m, "
               "bound=<n>ns|us|ms");
    }
}

std::uint64_t bits_ps(const TimingProfile& p, std::uint64_t bits) noexcept {
    return (bits * kPsPerSecond + p.bits_per_s / 2) / p.bits_per_s;
}

class Fnv {
public:
    void add(std::uint64_t value) noexcept {
        for (int shift = 0; shift < 64; shift += 8) {
            hash_ = (hash_ ^ ((value >> shift) & 0xff)) * 0x100000001b3ULL;
        }
    }
    std::uint64_t value() const noexcept { return hash_; }

private:
    std::uint64_t hash_ = 0xcbf29ce484222325ULL;
};

}  // namespace

TimingProfile parse_timing(std::string_view spec) {
    std::size_t comma = spec.find(',');
    TimingProfile profile = named(spec.substr(0, comma));
    while (comma != std::string_view::npos) {
        spec.remove_prefix(comma + 1);
        comma = spec.find(',');
        set_option(&profile, spec.substr(0, comma));
    }
    return profile;
}

std::string to_string(const TimingProfile& profile) {
    std::string spec(profile.name, ::strnlen(profile.name, TimingProfile::kNameSize));
    const TimingProfile plain = named(spec);
    if (profile.overflow != plain.overflow) {
        spec += profile.overflow == FifoPolicy::lose ? ",fifo=lose" : ",fifo=hold";
    }
    if (profile.packet_bytes != plain.packet_bytes) {
        spec += ",packet=" + std::to_string(profile.packet_bytes);
    }
    if (profile.cable_ps != plain.cable_ps) {
        spec += ",cable=" + std::to_string(profile.cable_ps / kCablePsPerMetre) + "m";
    }
    if (profile.promised_ns != plain.promised_ns) {
        spec += ",bound=" + std::to_string(profile.promised_ns) + "ns";
    }
    return spec;
}

std::vector<std::string> timing_profile_names() {
    return {kNames.begin(), kNames.end()};
}

std::uint64_t packet_ps(const TimingProfile& p, std::uint32_t words) noexcept {
    if (p.instant != 0) return 0;
    return bits_ps(p, p.header_bits + std::uint64_t{words} * kWordBytes * p.bits_per_byte);
}

std::uint64_t gap_ps(const TimingProfile& p) noexcept {
    const std::uint64_t slot = packet_ps(p, 1);
    return p.pitch_ps > slot ? p.pitch_ps - slot : 0;
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
    Fnv hash;
    for (const char c : p.name) hash.add(static_cast<unsigned char>(c));
    for (const std::uint64_t v :
         {p.bits_per_s, p.node_delay_ps, p.insertion_ps, p.pitch_ps, p.cable_ps, p.promised_ns}) {
        hash.add(v);
    }
    for (const std::uint32_t v :
         {p.header_bits, p.bits_per_byte, p.packet_bytes, p.fifo_words, p.max_age}) {
        hash.add(v);
    }
    hash.add(static_cast<std::uint64_t>(p.packets));
    hash.add(static_cast<std::uint64_t>(p.overflow));
    hash.add(p.retransmits);
    hash.add(p.instant);
    return hash.value();
}

}  // namespace rmem
