// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Where a card's registers are, and what their bits mean.
///
/// A name that ends in Mask is a field; one that ends in Bit a single bit. A node in software has
/// no others.
/// Thread safety: constants alone.
/// Source: the vendor's driver and its utilities.

#include "cards/scgt/scgtapi.h"
#include "rmem/version.h"

namespace cards::scgt {

inline constexpr uint32 kControlBytes = 0x100;
inline constexpr uint32 kManagementBytes = 0x2000;

enum Register : uint32 {
    kBoardInfo = 0x00,
    kDriverCsr = 0x04,
    kUserCsr = 0x08,
    kInterruptCsr = 0x0C,
    kLinkControl = 0x10,
    kLinkStatus = 0x14,
    kBroadcastMask = 0x18,
    kUnicastMask = 0x1C,
    kMiscellaneous = 0x20,
    kNetTimer = 0x40,
    kHostTimer = 0x44,
    kLatencyTimer = 0x48,
    kTraffic = 0x4C,           ///< in words
    kInterruptTraffic = 0x50,  ///< sent and received
    kSpyTraffic = 0x54,
    kQueuedInterrupts = 0x58,
    kHostInterrupts = 0x5C,
    kLinkErrors = 0x80,
    kLinkDowns = 0x84,
    kDecoderErrors = 0x88,
    kSyncErrors = 0x8C,
    kCrcErrors = 0x90,
    kEofErrors = 0x94,
    kProtocolErrors = 0x98,
    kReceiverErrors = 0x9C,
};

/// Of network management.
inline constexpr uint32 kStatusTable = 0x0000;  ///< a word for each node, by its distance upstream
inline constexpr uint32 kSendBroadcast = 0x1000;  ///< a word for each number
inline constexpr uint32 kSendUnicast = 0x1800;    ///< a word for each node
inline constexpr uint32 kMaxRingNodes = 256;
inline constexpr uint32 kLinks = 2;  ///< interfaces to the ring, of which one is selected
/// The upper byte of the revision is the board's, the lower one its extension.
inline constexpr uint32 kFirmware = RMEM_VERSION_MAJOR << 8 | RMEM_VERSION_MINOR;

namespace board_info {
inline constexpr uint32 kSizeMask = 0x3;  ///< 256 KB or, with kDdrBit, 128 MB, shifted left by it
inline constexpr uint32 kDdrBit = 0x40;
inline constexpr uint32 k64BitBits = 0x300;    ///< as a target, and as an initiator
inline constexpr uint32 k66MHzBus = 2U << 10;  ///< 64 bits, 3.3 V
inline constexpr uint32 kGt200 = 1U << 13;
inline constexpr uint32 kRevisionShift = 16;
}  // namespace board_info

namespace driver_csr {
inline constexpr uint32 kPattern = 0xA;  ///< 5 is read where the bytes of registers are reversed
inline constexpr uint32 kResetBit = 0x1000;
}  // namespace driver_csr

namespace user_csr {
inline constexpr uint32 kWordSwapBit = 0x1;
inline constexpr uint32 kByteSwapBit = 0x2;
inline constexpr uint32 kNo64BitBit = 0x10;
}  // namespace user_csr

namespace interrupt_csr {
inline constexpr uint32 kLinkErrorEnableBit = 0x40000;
inline constexpr uint32 kOtherEnableBits = 0xB0000;  ///< of DMA, and of the network
}  // namespace interrupt_csr

namespace link_control {
inline constexpr uint32 kLaser0Bit = 0x1;
inline constexpr uint32 kLaser1Bit = 0x2;
inline constexpr uint32 kLinkSelectBit = 0x10;
inline constexpr uint32 kNodeShift = 8;
inline constexpr uint32 kNodeMask = 0xFF00;
inline constexpr uint32 kTransmitBit = 0x10000;
inline constexpr uint32 kReceiveBit = 0x20000;
inline constexpr uint32 kRetransmitBit = 0x40000;
inline constexpr uint32 kWrapBit = 0x80000;
inline constexpr uint32 kWriteMeLastBit = 0x100000;
inline constexpr uint32 kInterruptSelfBit = 0x200000;
inline constexpr uint32 kSpyShift = 24;
inline constexpr uint32 kSpyMask = 0xFF000000;
}  // namespace link_control

namespace link_status {
inline constexpr uint32 kDownBit = 0x1;  ///< these, until they are written to
inline constexpr uint32 kCrcErrorBit = 0x8;
inline constexpr uint32 kProtocolErrorBit = 0x20;
inline constexpr uint32 kErrorBits = kDownBit | kCrcErrorBit | kProtocolErrorBit;
inline constexpr uint32 kUpBit = 0x20000;
inline constexpr uint32 kSignal0Bit = 0x40000;
inline constexpr uint32 kSignal1Bit = 0x80000;
inline constexpr uint32 kTwoLinksBit = 0x800000;
inline constexpr uint32 kAgeShift = 24;  ///< the other nodes that a message passes
inline constexpr uint32 kAgeMask = 0xFF000000;
}  // namespace link_status

namespace miscellaneous {
inline constexpr uint32 kNoReadBypassBit = 0x200;
inline constexpr uint32 kUpstreamShift = 24;
inline constexpr uint32 kUpstreamMask = 0xFF000000;
}  // namespace miscellaneous

/// What a node tells of itself, in the table.
namespace node_status {
inline constexpr uint32 kUpstreamShift = 8;
inline constexpr uint32 kLaser0Bit = 0x10000;
inline constexpr uint32 kLaser1Bit = 0x20000;
inline constexpr uint32 kLinkSelectBit = 0x40000;
inline constexpr uint32 kTwoLinksBit = 0x80000;
inline constexpr uint32 kTransmitBit = 0x100000;
inline constexpr uint32 kReceiveBit = 0x200000;
inline constexpr uint32 kRetransmitBit = 0x400000;
inline constexpr uint32 kWriteMeLastBit = 0x800000;
inline constexpr uint32 kUpBit = 0x1000000;
inline constexpr uint32 kSignal0Bit = 0x2000000;
inline constexpr uint32 kSignal1Bit = 0x4000000;
inline constexpr uint32 kValidBit = 0x80000000;
}  // namespace node_status

}  // namespace cards::scgt
