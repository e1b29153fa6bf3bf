// SPDX-License-Identifier: Apache-2.0

/// libFuzzer target: any bytes that another site sends, once they are decrypted: what is written
/// lies in the declared regions, and what an end keeps stays within its bounds. With a first byte
/// that is odd the bytes are those before the key, of which nothing may be taken.
///
///     cmake --preset asan && cmake --build --preset asan
///     build/asan/fuzz/fuzz_bridge -max_len=4096 my-corpus fuzz/corpus

#include "bridge/end.hpp"
#include "bridge/secure_line.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdlib>

// libFuzzer knows it by this name.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);  // NOLINT

namespace {

constexpr std::size_t kRegionBytes = 64;

void check_writes(bridge::End& end) {
    while (const bridge::Delivery* delivery = end.delivery()) {
        for (const auto& write : delivery->writes) {
            const std::uint64_t at = end.receiver().region(write.region).at;
            if (write.offset < at || write.offset + write.words.size() > at + kRegionBytes)
                std::abort();
        }
        end.delivered(2);
    }
}

void hear(std::span<const std::byte> bytes) {
    bridge::End end({{"out", 0, kRegionBytes, {}, 0, 0}},
                    {{"a", 1024, kRegionBytes}, {"b", 4096, kRegionBytes}});
    end.connect(1);
    for (std::size_t at = 0; at < bytes.size() && !end.is_broken();) {
        const std::size_t part = std::min<std::size_t>(bytes.size() - at, 64);
        end.receive(bytes.subspan(at, part), 2);
        at += part;
        check_writes(end);
        end.admit(0);
        end.admit(1);
        end.run(2);
    }
    // A copy for each acceptance, and what is said of the other end's offers.
    if (end.out().left().size() > (std::size_t{1} << 20)) std::abort();
}

void hear_before_the_key(std::span<const std::byte> bytes) {
    static const rmem::udp::MasterKey key(std::array<std::byte, 32>{});
    bridge::SecureLine line(key, bridge::SecureLine::Side::listener);
    line.receive(bytes);
    if (line.is_ready() || !line.take_plain().empty()) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {  // NOLINT
    if (size == 0) return 0;
    const auto bytes = std::as_bytes(std::span(data + 1, size - 1));
    data[0] % 2 == 0 ? hear(bytes) : hear_before_the_key(bytes);
    return 0;
}
