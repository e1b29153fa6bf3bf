// SPDX-License-Identifier: Apache-2.0
#include "cards/scgt/registers.hpp"

#include "cards/scgt/results.hpp"
#include "rmem/base/clock.hpp"

#include <fmt/format.h>

#include <bit>
#include <iterator>

namespace cards::scgt {

namespace {

constexpr std::int64_t kNetTickNs = 8;    // 125 MHz, of a link of 2.5 Gbit/s
constexpr std::int64_t kHostTickNs = 15;  // 66 MHz
constexpr uint32 kMegabyte = 1U << 20;

/// By the bits of LINK_STAT that tell of them; others are counted alone.
constexpr uint32 kOtherError = 0x100;
constexpr std::array kErrorCounters = {
    CountedError{link_status::kDownBit, "ring_breaks"},
    CountedError{link_status::kDownBit, nullptr},
    CountedError{link_status::kCrcErrorBit, "lost_on_wire"},
    CountedError{link_status::kProtocolErrorBit, "records_refused"},
    CountedError{kOtherError, "ring_switches"},
    CountedError{kOtherError, "aged_out"},
    CountedError{kOtherError, "writes_lost_fifo"},
};

// ---- States

/// A state is a field of a register. Of a number the low bits count, a flag is on when it is not 0.
struct State {
    uint32 offset;
    uint32 mask;
    enum class Kind { number, flag, inverted_flag, plus_one } kind = Kind::number;
    bool is_read_only = false;
};

constexpr uint32 kAll = 0xFFFFFFFF;
using Kind = State::Kind;

/// In the order of their numbers.
constexpr State kStates[] = {
    {kLinkControl, link_control::kNodeMask},
    {kLinkControl, link_control::kLinkSelectBit},
    {kLinkErrors, kAll, Kind::number, true},
    {kLinkControl, link_control::kWrapBit, Kind::flag},
    {kLinkControl, link_control::kWriteMeLastBit, Kind::flag},
    {kUnicastMask, 1},
    {kBroadcastMask, kAll},
    {kLinkControl, link_control::kInterruptSelfBit, Kind::flag},
    {kLinkStatus, link_status::kAgeMask, Kind::plus_one, true},
    {kMiscellaneous, miscellaneous::kUpstreamMask, Kind::number, true},
    {kNetTimer, kAll},
    {kLatencyTimer, kAll},
    {kTraffic, kAll},
    {kSpyTraffic, kAll},
    {kLinkControl, link_control::kSpyMask},
    {kLinkControl, link_control::kTransmitBit, Kind::flag},
    {kLinkControl, link_control::kReceiveBit, Kind::flag},
    {kLinkControl, link_control::kRetransmitBit, Kind::flag},
    {kLinkControl, link_control::kLaser0Bit, Kind::flag},
    {kLinkControl, link_control::kLaser1Bit, Kind::flag},
    {kLinkStatus, link_status::kUpBit, Kind::number, true},
    {kLinkStatus, link_status::kSignal0Bit, Kind::number, true},
    {kLinkStatus, link_status::kSignal1Bit, Kind::number, true},
    {kUserCsr, user_csr::kNo64BitBit, Kind::inverted_flag},
    {kUserCsr, user_csr::kByteSwapBit, Kind::flag},
    {kUserCsr, user_csr::kWordSwapBit, Kind::flag},
    {kInterruptCsr, interrupt_csr::kLinkErrorEnableBit, Kind::flag},
    {kMiscellaneous, miscellaneous::kNoReadBypassBit, Kind::inverted_flag},
};
static_assert(std::size(kStates) == SCGT_READ_BYPASS_ENABLE + 1);

uint32 no_state(uint32 state) {
    return refuse(SCGT_BAD_PARAMETER, fmt::format("there is no state {}; they are 0 to {}", state,
                                                  std::size(kStates) - 1));
}

// ---- Refusals

uint32 no_register(uint32 offset, const char* access, const char* what, uint32 end) {
    if (offset >= end) {
        return refuse(SCGT_BAD_PARAMETER,
                      fmt::format("{:#x} is beyond the registers of {}, which end at {:#x}", offset,
                                  what, end));
    }
    return refuse(
        SCGT_CALL_UNSUPPORTED,
        fmt::format("the register of {} at {:#x} cannot be {} here", what, offset, access));
}

uint32 no_setting(const char* what) {
    return refuse(SCGT_CALL_UNSUPPORTED, fmt::format("a node in software cannot {}", what));
}

// ---- Counts

/// Those go on from what is written to them.
constexpr bool is_count(uint32 offset) {
    return (offset >= kNetTimer && offset <= kHostInterrupts && offset != kLatencyTimer) ||
           (offset >= kLinkErrors && offset <= kReceiverErrors);
}

}  // namespace

Registers::Registers(const CardNode& node, const InterruptCounts& interrupts)
    : node_(node),
      interrupts_(interrupts),
      settings_(default_settings()),
      cleared_errors_(node_, kErrorCounters),
      reported_errors_(node_, kErrorCounters) {}

/// As a card is after its configuration.
Registers::Settings Registers::default_settings() const {
    using namespace link_control;
    Settings settings{};
    settings[kInterruptCsr / kWordBytes] = interrupt_csr::kOtherEnableBits;
    settings[kLinkControl / kWordBytes] = kLaser0Bit | kLaser1Bit | kTransmitBit | kReceiveBit |
                                          kRetransmitBit | node_.id() << kNodeShift |
                                          node_.id() << kSpyShift;
    settings[kBroadcastMask / kWordBytes] = 0xFFFFFFFF;
    settings[kUnicastMask / kWordBytes] = 1;
    return settings;
}

// ---- What is measured

/// The next one that is there, against the way that messages take; alone it is the node itself.
unsigned Registers::upstream_of(unsigned node) const {
    do {
        node = (node + node_.nodes() - 1) % node_.nodes();
    } while (!node_.is_present(node));
    return node;
}

/// Of a ring of two the other's writes are what has come.
uint32 Registers::spy_traffic(uint32& words) const {
    const uint32 spied = setting(kLinkControl) >> link_control::kSpyShift;
    const unsigned id = node_.id();
    if (spied != id && spied < node_.nodes() && node_.nodes() > 2) {
        return refuse(SCGT_CALL_UNSUPPORTED,
                      fmt::format("what node {} sends is counted at that node; spy on node {}, or "
                                  "look there",
                                  spied, id));
    }
    const char* const counter = spied == id ? "bytes_sent" : "bytes_applied";
    words = spied < node_.nodes() ? static_cast<uint32>(node_.count_of(counter) / kWordBytes) : 0;
    return SCGT_SUCCESS;
}

uint32 Registers::read_count(uint32 offset, uint32& value) {
    // relaxed is enough, here and below: numbers, which nothing else hangs on
    const uint32 from_ring = interrupts_.from_ring.load(std::memory_order_relaxed);
    const auto errors = [this](uint32 bits) {
        return static_cast<uint32>(cleared_errors_.sum(bits));
    };
    switch (offset) {
        case kNetTimer: value = static_cast<uint32>(rmem::now_ns() / kNetTickNs); break;
        case kHostTimer: value = static_cast<uint32>(rmem::now_ns() / kHostTickNs); break;
        case kTraffic:
            value = static_cast<uint32>(
                (node_.count_of("bytes_sent") + node_.count_of("bytes_applied")) / kWordBytes);
            break;
        case kInterruptTraffic:
            value = interrupts_.sent.load(std::memory_order_relaxed) +
                    static_cast<uint32>(node_.count_of("interrupts_raised"));
            break;
        case kSpyTraffic: return spy_traffic(value);
        case kQueuedInterrupts: value = from_ring; break;
        case kHostInterrupts:
            value = from_ring + interrupts_.of_errors.load(std::memory_order_relaxed);
            break;
        case kLinkErrors: value = errors(CountedErrors::kAll); break;
        case kLinkDowns: value = errors(link_status::kDownBit); break;
        case kCrcErrors: value = errors(link_status::kCrcErrorBit); break;
        case kProtocolErrors: value = errors(link_status::kProtocolErrorBit); break;
        default: value = 0; break;  // errors of light, which a node in software has not
    }
    return SCGT_SUCCESS;
}

/// Of a ring that does not answer it is what it was.
uint32 Registers::measure_latency() {
    if (const auto round_ns = node_.measure_round())
        latency_ = static_cast<uint32>(*round_ns / kNetTickNs);
    return latency_;
}

uint32 Registers::board_info() const {
    using namespace board_info;
    constexpr uint32 kLargest = kSizeMask;
    // A code is of the smallest memory that holds this one.
    const bool is_large = node_.memory_bytes() > kMegabyte << 1;
    const uint32 smallest = is_large ? 128 * kMegabyte : kMegabyte >> 2;
    uint32 size = 0;
    while (size < kLargest && node_.memory_bytes() > smallest << size) ++size;
    return size | (is_large ? kDdrBit : 0) | k64BitBits | k66MHzBus | kGt200 |
           kFirmware << kRevisionShift;
}

uint32 Registers::link_status() const {
    using namespace link_status;
    uint32 status = kTwoLinksBit | (node_.present_nodes() - 1) << kAgeShift;
    if (node_.is_member()) status |= kUpBit | kSignal0Bit | kSignal1Bit;
    return status | (cleared_errors_.news() & kErrorBits);
}

// ---- Settings

/// For rmem_accept_interrupts.
std::uint64_t Registers::accepted_numbers() const {
    return setting(kBroadcastMask) | std::uint64_t{setting(kUnicastMask)} << kUnicastNumber;
}

uint32 Registers::accept_as_masked() {
    if (!listens_) return SCGT_SUCCESS;
    return result_of(node_.accept(accepted_numbers()));
}

uint32 Registers::listen() {
    listens_ = true;
    const uint32 result = accept_as_masked();
    listens_ = result == SCGT_SUCCESS;
    return result;
}

/// All of it, or nothing.
uint32 Registers::set_link_control(uint32 value) {
    using namespace link_control;
    const uint32 id = (value & kNodeMask) >> kNodeShift;
    // A name of the program's own is kept and read back. Others know the node by its number.
    if (id != node_.id() && id < node_.nodes()) {
        return refuse(SCGT_CALL_UNSUPPORTED,
                      fmt::format("this is node {}, and does not become {}; `rmem node --node {}` "
                                  "starts that one",
                                  node_.id(), id, id));
    }
    if ((value & kReceiveBit) == 0) return no_setting("keep out what others write");
    if ((value & kRetransmitBit) == 0) return no_setting("keep from others what passes it");
    if ((value & kWrapBit) != 0) return no_setting("write to itself alone");
    const uint32 changed = value ^ setting(kLinkControl);
    if ((changed & kWriteMeLastBit) != 0) {
        const int code = rmem_set_write_me_last(node_, (value & kWriteMeLastBit) != 0 ? 1 : 0);
        if (code != RMEM_OK) return result_of(code);
    }
    setting(kLinkControl) = value;
    return SCGT_SUCCESS;
}

uint32 Registers::set_driver_csr(uint32 value) {
    if ((value & driver_csr::kResetBit) == 0) return SCGT_SUCCESS;
    const Settings settings = default_settings();
    const uint32 result = set_link_control(settings[kLinkControl / kWordBytes]);
    if (result != SCGT_SUCCESS) return result;
    settings_ = settings;
    shifts_ = {};
    return accept_as_masked();
}

// ---- Registers

uint32 Registers::read_register(uint32 offset, uint32& value) {
    if (is_count(offset)) {
        const uint32 result = read_count(offset, value);
        value += shifts_[offset / kWordBytes];
        return result;
    }
    switch (offset) {
        case kBoardInfo: value = board_info(); break;
        case kDriverCsr: value = driver_csr::kPattern; break;
        case kUserCsr:
        case kInterruptCsr:
        case kLinkControl:
        case kBroadcastMask:
        case kUnicastMask: value = setting(offset); break;
        case kLinkStatus: value = link_status(); break;
        case kMiscellaneous:
            value = setting(kMiscellaneous) | upstream_of(node_.id())
                                                  << miscellaneous::kUpstreamShift;
            break;
        case kLatencyTimer: value = measure_latency(); break;
        default: return no_register(offset, "read", "control", kControlBytes);
    }
    return SCGT_SUCCESS;
}

/// What is no setting of a register is ignored.
uint32 Registers::write_register(uint32 offset, uint32 value) {
    if (is_count(offset)) {
        uint32 count = 0;
        const uint32 result = read_count(offset, count);
        if (result == SCGT_SUCCESS) shifts_[offset / kWordBytes] = value - count;
        return result;
    }
    switch (offset) {
        case kDriverCsr: return set_driver_csr(value);
        case kUserCsr:
            if ((value & (user_csr::kByteSwapBit | user_csr::kWordSwapBit)) != 0)
                return no_setting("swap what plain loads and stores move");
            setting(kUserCsr) = value & user_csr::kNo64BitBit;
            break;
        case kInterruptCsr:
            if ((~setting(kInterruptCsr) & value & interrupt_csr::kLinkErrorEnableBit) != 0)
                reported_errors_.tell();
            setting(kInterruptCsr) =
                interrupt_csr::kOtherEnableBits | (value & interrupt_csr::kLinkErrorEnableBit);
            break;
        case kLinkControl: return set_link_control(value);
        case kLinkStatus: cleared_errors_.tell(value & link_status::kErrorBits); break;
        case kBroadcastMask: setting(kBroadcastMask) = value; return accept_as_masked();
        case kUnicastMask: setting(kUnicastMask) = value & 1; return accept_as_masked();
        case kMiscellaneous:
            setting(kMiscellaneous) = value & miscellaneous::kNoReadBypassBit;
            break;
        case kBoardInfo:
        case kLatencyTimer: break;
        default: return no_register(offset, "written", "control", kControlBytes);
    }
    return SCGT_SUCCESS;
}

uint32 Registers::read(uint32 offset, uint32& value) {
    const auto lock = node_.lock();
    return read_register(offset / kWordBytes * kWordBytes, value);
}

uint32 Registers::write(uint32 offset, uint32 value) {
    const auto lock = node_.lock();
    return write_register(offset / kWordBytes * kWordBytes, value);
}

// ---- States

uint32 Registers::get_state(uint32 state, uint32& value) {
    if (state >= std::size(kStates)) return no_state(state);
    const State& field = kStates[state];
    const auto lock = node_.lock();
    uint32 all = 0;
    const uint32 result = read_register(field.offset, all);
    value = (all & field.mask) >> std::countr_zero(field.mask);
    if (field.kind == Kind::inverted_flag) value ^= 1;
    if (field.kind == Kind::plus_one) ++value;
    return result;
}

uint32 Registers::set_state(uint32 state, uint32 value) {
    if (state >= std::size(kStates)) return no_state(state);
    const State& field = kStates[state];
    if (state == SCGT_NUM_LINK_ERRS) return SCGT_SUCCESS;  // as with the driver, without effect
    if (field.is_read_only) {
        return refuse(SCGT_BAD_PARAMETER,
                      fmt::format("state {} is measured, and cannot be set", state));
    }
    if (field.kind == Kind::flag) value = value != 0 ? 1 : 0;
    if (field.kind == Kind::inverted_flag) value = value != 0 ? 0 : 1;
    const auto lock = node_.lock();
    uint32 all = 0;
    if (field.mask != kAll) {
        const uint32 result = read_register(field.offset, all);
        if (result != SCGT_SUCCESS) return result;
    }
    all = (all & ~field.mask) | (value << std::countr_zero(field.mask) & field.mask);
    return write_register(field.offset, all);
}

// ---- Network management

uint32 Registers::own_status() const {
    using namespace node_status;
    const uint32 control = setting(kLinkControl);
    const auto when = [&](uint32 bit, uint32 then) { return (control & bit) != 0 ? then : 0; };
    return when(link_control::kLaser0Bit, kLaser0Bit) | when(link_control::kLaser1Bit, kLaser1Bit) |
           when(link_control::kLinkSelectBit, kLinkSelectBit) |
           when(link_control::kTransmitBit, kTransmitBit) |
           when(link_control::kReceiveBit, kReceiveBit) |
           when(link_control::kRetransmitBit, kRetransmitBit) |
           when(link_control::kWriteMeLastBit, kWriteMeLastBit);
}

/// Of the node that is `index` + 1 upstream: itself at the end, and nothing behind it. Of others it
/// is known that they are there, and the rest is how nodes begin.
uint32 Registers::status_of(uint32 index) const {
    using namespace node_status;
    unsigned node = node_.id();
    for (uint32 hops = 0; hops <= index; ++hops) {
        node = upstream_of(node);
        if (node == node_.id() && hops < index) return 0;
    }
    constexpr uint32 kAsNodesBegin =
        kLaser0Bit | kLaser1Bit | kTransmitBit | kReceiveBit | kRetransmitBit;
    const uint32 status = node == node_.id() ? own_status() : kAsNodesBegin;
    const bool is_up = node_.is_member();
    return status | kValidBit | kTwoLinksBit | (is_up ? kUpBit | kSignal0Bit | kSignal1Bit : 0) |
           upstream_of(node) << kUpstreamShift | node;
}

uint32 Registers::read_status(uint32 offset, uint32& value) const {
    if (offset >= kStatusTable + kMaxRingNodes * kWordBytes)
        return no_register(offset, "read", "network management", kManagementBytes);
    const auto lock = node_.lock();
    value = status_of((offset - kStatusTable) / kWordBytes);
    return SCGT_SUCCESS;
}

/// Each node tells its status again at once.
uint32 Registers::write_status(uint32 offset) {
    if (offset / kWordBytes < kMaxRingNodes) return SCGT_SUCCESS;
    return no_register(offset, "written", "network management", kManagementBytes);
}

}  // namespace cards::scgt
