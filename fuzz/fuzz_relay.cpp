// SPDX-License-Identifier: Apache-2.0

/// libFuzzer target: any bytes that a program writes into its MU-Net endpoint, or a node into its
/// frames (tests/support/munet_hostile.hpp).
///
///     cmake --preset asan && cmake --build --preset asan
///     build/fuzz/fuzz/fuzz_relay -max_len=4096 my-corpus fuzz/corpus

#include "tests/support/munet_hostile.hpp"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

// libFuzzer knows it by this name.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);  // NOLINT

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {  // NOLINT
    constexpr unsigned kMaxSteps = 10'000;  // an input is used up long before
    const std::string violation =
        rmem::test::run_beside_a_liar(rmem::test::Choices(std::span(data, size)), kMaxSteps);
    if (violation.empty()) return 0;
    std::fprintf(stderr, "%s\n", violation.c_str());
    std::abort();
}
