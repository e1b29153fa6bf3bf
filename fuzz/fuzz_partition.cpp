// SPDX-License-Identifier: Apache-2.0

/// libFuzzer target: a peer's partition with any contents, and any changes
/// (tests/support/hostile_bank.hpp).
///
///     cmake --preset asan && cmake --build --preset asan
///     build/fuzz/fuzz/fuzz_partition -max_len=4096 my-corpus fuzz/corpus
///
/// The first byte chooses link and layout, the others all the rest.

#include "rmem/ring/segment.hpp"
#include "tests/support/hostile_run.hpp"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

namespace {

using rmem::test::Choices;
using rmem::test::run_among_hostile_peers;

constexpr unsigned kMaxSteps = 10'000;  // an input is used up long before

/// A ring whose name is gone at once: libFuzzer ends a process without destructors.
std::shared_ptr<rmem::Ring> nameless_ring(rmem::LinkKind link) {
    const auto name = "fuzz-" + std::to_string(::getpid());
    auto ring = rmem::test::hostile_ring(name, link);
    rmem::Segment::remove(name);
    return ring;
}

std::string run(unsigned kind, Choices choices) {
    using billboard::Layout, billboard::LineBoard, billboard::PaperBoard;
    static const auto ring = nameless_ring(rmem::LinkKind::direct);
    static const auto apart = nameless_ring(rmem::LinkKind::ring);
    switch (kind % 4) {
        case 0:
            return run_among_hostile_peers<false, LineBoard>(ring, Layout::lines, choices,
                                                             kMaxSteps);
        case 1:
            return run_among_hostile_peers<false, PaperBoard>(ring, Layout::paper, choices,
                                                              kMaxSteps);
        case 2:
            return run_among_hostile_peers<true, LineBoard>(apart, Layout::lines, choices,
                                                            kMaxSteps);
        default:
            return run_among_hostile_peers<true, PaperBoard>(ring, Layout::paper, choices,
                                                             kMaxSteps);
    }
}

}  // namespace

// libFuzzer knows it by this name.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);  // NOLINT

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {  // NOLINT
    if (size == 0) return 0;
    const std::string violation = run(data[0], Choices(std::span(data + 1, size - 1)));
    if (violation.empty()) return 0;
    std::fprintf(stderr, "%s\n", violation.c_str());
    std::abort();
}
