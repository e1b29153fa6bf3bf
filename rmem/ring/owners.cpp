// SPDX-License-Identifier: Apache-2.0
#include "rmem/ring/owners.hpp"

#include "rmem/base/check.hpp"
#include "rmem/ring/life_cycle.hpp"
#include "rmem/ring/ring.hpp"
#include "rmem/ring/segment.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <type_traits>

namespace rmem {

namespace {

constexpr std::uint8_t kAnybody = 0, kSeveral = 254, kNobody = 255;
constexpr std::size_t kMostOwners = 254;

static_assert(std::is_trivially_copyable_v<ForeignWrite>);
constexpr std::size_t kReportWords = sizeof(ForeignWrite) / sizeof(std::uint64_t);
static_assert(sizeof(ForeignWrite) % sizeof(std::uint64_t) == 0);
using ReportWords = std::array<std::uint64_t, kReportWords>;

/// One that is being written, or was overwritten meanwhile, has another number than it should.
struct Report {
    std::atomic<std::uint64_t> number;  ///< from 1; 0: it is being written
    std::array<std::atomic<std::uint64_t>, kReportWords> words;
};

/// The one whose all bytes of a line are that are not anybody's; kSeveral: there are several.
std::uint8_t code_of_line(const std::uint8_t* codes) noexcept {
    std::uint8_t owner = kAnybody;
    for (std::size_t i = 0; i < kLineBytes; ++i) {
        if (codes[i] == kAnybody || codes[i] == owner) continue;
        if (owner != kAnybody) return kSeveral;
        owner = codes[i];
    }
    return owner;
}

/// Where the table's parts lie: codes of lines, and codes of bytes.
constexpr std::size_t lines_of(std::size_t user_bytes) noexcept {
    return round_up(user_bytes, kPageBytes) / kLineBytes;
}

}  // namespace

struct Owners::Area {
    std::atomic<std::uint64_t> written;  ///< reports
    std::array<ByteOwner, kMostOwners + 1> owners;
    std::array<Report, kReports> reports;
};

std::optional<OwnerMode> parse_owner_mode(const std::string& text) noexcept {
    if (text == "off") return OwnerMode::off;
    if (text == "report") return OwnerMode::report;
    if (text == "enforce") return OwnerMode::enforce;
    return std::nullopt;
}

std::string text_of(const ByteOwner& owner) {
    switch (owner.kind) {
        case ByteOwner::Kind::node: return fmt::format("node {}", owner.number);
        case ByteOwner::Kind::rank: return fmt::format("rank {}", owner.number);
        case ByteOwner::Kind::nobody: return "nobody";
        case ByteOwner::Kind::anybody: break;
    }
    return "anybody";
}

std::size_t Owners::area_bytes(const RingConfig& config) noexcept {
    return round_up(sizeof(Area), kPageBytes) + round_up(lines_of(config.user_bytes), kPageBytes) +
           round_up(config.user_bytes, kPageBytes);
}

bool Owners::put(const Ring& ring, OwnerMode mode, std::span<const OwnedRange> ranges,
                 bool has_canaries) {
    RMEM_CHECK(mode != OwnerMode::off);
    const ByteLock held =
        life_cycle_lock(ring.segment(), ring.segment_name(), Deadline::in(kDefaultJoinTimeoutNs));
    if (mode_of(ring) != OwnerMode::off) return false;
    const std::size_t user_bytes = ring.config().user_bytes;
    std::byte* const place = ring.segment().data() + SegmentLayout(ring.config()).owners;
    // Up to where there are owners; behind that what was not touched is anybody's.
    std::size_t end = has_canaries ? user_bytes : 0;
    for (const OwnedRange& range : ranges)
        end = std::max<std::size_t>(
            end, std::min<std::uint64_t>(range.offset + range.bytes, user_bytes));
    end = round_up(end, kPageBytes);
    const std::size_t head = round_up(sizeof(Area), kPageBytes);
    const std::size_t lines_bytes = round_up(lines_of(user_bytes), kPageBytes);
    ring.segment().reserve(place, head + lines_bytes + end);
    Area& area = *reinterpret_cast<Area*>(place);
    auto* const lines = reinterpret_cast<std::uint8_t*>(place + head);
    std::uint8_t* const codes = lines + lines_bytes;
    std::memset(codes, has_canaries ? kNobody : kAnybody, end);
    std::size_t known = 0;
    for (const OwnedRange& range : ranges) {
        std::uint8_t code = kAnybody;
        if (range.owner.kind == ByteOwner::Kind::nobody) {
            code = kNobody;
        } else if (range.owner.kind != ByteOwner::Kind::anybody) {
            auto* const begin = area.owners.begin() + 1;
            auto* const found = std::find(begin, begin + known, range.owner);
            if (found == begin + known) {
                if (++known >= kMostOwners) {
                    throw Error(Errc::invalid_argument,
                                fmt::format("ring '{}' is to look after owners, and its map has "
                                            "more than {}; let several ranks be their node's",
                                            ring.config().name, kMostOwners - 1));
                }
                *found = range.owner;
            }
            code = static_cast<std::uint8_t>(found - begin + 1);
        }
        if (range.offset >= end) continue;
        std::memset(codes + range.offset, code,
                    std::min<std::uint64_t>(range.bytes, end - range.offset));
    }
    for (std::size_t line = 0; line < end / kLineBytes; ++line)
        lines[line] = code_of_line(codes + line * kLineBytes);
    auto& header = *reinterpret_cast<SegmentHeader*>(ring.segment().data());
    // (2) - this release-store synchronizes-with the acquire-load (1): the table is there
    header.owners.store(static_cast<std::uint32_t>(mode), std::memory_order_release);
    return true;
}

OwnerMode Owners::mode_of(const Ring& ring) noexcept {
    // (1) - this acquire-load synchronizes-with the release-store (2)
    const std::uint32_t mode = ring.header().owners.load(std::memory_order_acquire);
    return mode > static_cast<std::uint32_t>(OwnerMode::enforce) ? OwnerMode::enforce
                                                                 : static_cast<OwnerMode>(mode);
}

Owners::Owners(const Ring& ring, Member member)
    : area_(reinterpret_cast<Area*>(ring.segment().data() + SegmentLayout(ring.config()).owners)),
      lines_(reinterpret_cast<const std::uint8_t*>(area_) + round_up(sizeof(Area), kPageBytes)),
      codes_(lines_ + round_up(lines_of(ring.config().user_bytes), kPageBytes)),
      bytes_(ring.config().user_bytes),
      mode_(mode_of(ring)) {
    const auto code_of = [&](ByteOwner::Kind kind, unsigned number) {
        const ByteOwner wanted{kind, static_cast<std::uint16_t>(number)};
        const auto begin = area_->owners.begin() + 1;
        const auto found = std::find(begin, area_->owners.end(), wanted);
        return found == area_->owners.end() ? kAnybody
                                            : static_cast<std::uint8_t>(found - begin + 1);
    };
    own_node_ = code_of(ByteOwner::Kind::node, member.node);
    own_rank_ =
        member.rank < ring.config().ranks ? code_of(ByteOwner::Kind::rank, member.rank) : kAnybody;
}

std::optional<std::size_t> Owners::find_foreign(std::size_t offset,
                                                std::size_t bytes) const noexcept {
    RMEM_CHECK_IF(false, offset <= bytes_ && bytes <= bytes_ - offset);
    const std::size_t end = offset + bytes;
    // Eight lines of one owner at once, as of a large block.
    const std::uint64_t own = own_node_ * std::uint64_t{0x0101010101010101};
    for (std::size_t at = offset; at < end;) {
        const std::size_t line = at / kLineBytes, next = std::min((line + 1) * kLineBytes, end);
        std::uint64_t eight = 0;
        if (end - at >= sizeof eight * kLineBytes) {
            std::memcpy(&eight, lines_ + line, sizeof eight);
            if (eight == own) {
                at = (line + sizeof eight) * kLineBytes;
                continue;
            }
        }
        if (!is_own(lines_[line])) [[unlikely]] {
            if (const auto found = find_in_bytes(at, next)) return found;
        }
        at = next;
    }
    return std::nullopt;
}

std::optional<std::size_t> Owners::find_in_bytes(std::size_t at, std::size_t end) const noexcept {
    const auto found = std::find_if(codes_ + at, codes_ + end,
                                    [this](std::uint8_t code) { return !is_own(code); });
    return found == codes_ + end ? std::nullopt
                                 : std::optional(static_cast<std::size_t>(found - codes_));
}

ByteOwner Owners::owner_of(std::size_t offset) const noexcept {
    const std::uint8_t code = codes_[offset];
    if (code == kNobody) return {ByteOwner::Kind::nobody, 0};
    return code == kAnybody ? ByteOwner{} : area_->owners[code];
}

void Owners::report(ForeignWrite write) const noexcept {
    // relaxed is enough: it gives each a number of its own
    const std::uint64_t number = area_->written.fetch_add(1, std::memory_order_relaxed) + 1;
    Report& report = area_->reports[number % kReports];
    const auto words = std::bit_cast<ReportWords>(write);
    report.number.store(0, std::memory_order_relaxed);  // relaxed is enough: (5) comes after it
    for (std::size_t i = 0; i < words.size(); ++i) {
        // (5) - this release-store synchronizes-with the acquire-load (6): who has it sees the 0
        report.words[i].store(words[i], std::memory_order_release);
    }
    // (3) - this release-store synchronizes-with the acquire-load (4): all words are there
    report.number.store(number, std::memory_order_release);
}

std::uint64_t Owners::reports() const noexcept {
    return area_->written.load(std::memory_order_relaxed);  // relaxed is enough: to count
}

std::vector<ForeignWrite> Owners::last() const {
    std::vector<ForeignWrite> all;
    const std::uint64_t end = reports();
    for (std::uint64_t left = std::min<std::uint64_t>(end, kReports); left-- != 0;) {
        const std::uint64_t number = end - left;
        const Report& report = area_->reports[number % kReports];
        // (4) - this acquire-load synchronizes-with the release-store (3)
        if (report.number.load(std::memory_order_acquire) != number) continue;
        ReportWords words;
        for (std::size_t i = 0; i < words.size(); ++i) {
            // (6) - this acquire-load synchronizes-with the release-store (5)
            words[i] = report.words[i].load(std::memory_order_acquire);
        }
        // relaxed is enough: (6) comes before it
        if (report.number.load(std::memory_order_relaxed) != number) continue;
        all.push_back(std::bit_cast<ForeignWrite>(words));
        all.back().program.back() = '\0';
    }
    return all;
}

}  // namespace rmem
