// SPDX-License-Identifier: Apache-2.0

/// libFuzzer target: bytes from the network as a datagram of the udp link
/// (rmem/link/udp/protocol/datagram.hpp).
///
///     cmake --preset asan && cmake --build --preset asan
///     build/fuzz/fuzz/fuzz_datagram -max_len=4096 my-corpus fuzz/corpus
///
/// The input is read twice: as it is, and with a header put right, so that most reach the sections.

#include "rmem/link/udp/protocol/datagram.hpp"
#include "tests/support/datagram_walk.hpp"

#include <span>
#include <vector>

namespace {

using rmem::load;
using rmem::store;
using rmem::test::DatagramWalk;
using namespace rmem::udp;

constexpr std::size_t kRingAt = 8;

void put_header_right(std::span<std::byte> bytes) {
    store(bytes.data(), kMagic);
    store(bytes.data() + kVersionAt, kVersion);
    store(bytes.data() + kVersionAt + 1, std::uint8_t{0});   // kind of tag
    store(bytes.data() + kVersionAt + 2, std::uint16_t{1});  // origin
    store(bytes.data() + kLengthAt, static_cast<std::uint16_t>(bytes.size() - kEnvelopeBytes));
}

}  // namespace

// libFuzzer knows it by this name.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);  // NOLINT

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {  // NOLINT
    const auto input = std::as_bytes(std::span(data, size));
    std::vector<std::byte> bytes(input.begin(), input.end());
    const bool has_header = bytes.size() >= kEnvelopeBytes;
    const std::uint64_t ring = has_header ? load<std::uint64_t>(bytes.data() + kRingAt) : 0;
    DatagramWalk::run(bytes, ring, kMaxPayload);
    if (!has_header) return 0;
    put_header_right(bytes);
    DatagramWalk::run(bytes, ring, kMaxPayload);
    return 0;
}
