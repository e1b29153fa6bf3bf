// SPDX-License-Identifier: Apache-2.0

/// libFuzzer target: any bytes that a client sends to `rmem serve`. The node is real, on link
/// `direct`; what the session keeps must stay within its bounds.
///
///     cmake --preset asan && cmake --build --preset asan
///     build/asan/fuzz/fuzz_session -max_len=4096 my-corpus fuzz/corpus

#include "remote/session.hpp"

#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

// libFuzzer knows it by this name.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);  // NOLINT

namespace {

/// Closed at the end, so that its ring is gone.
struct Node {
    Node() {
        const std::string ring = "fuzz-session-" + std::to_string(::getpid());
        rmem_options options = RMEM_OPTIONS;
        options.ring = ring.c_str();
        options.link = "direct";
        options.node = 0;
        options.nodes = 2;
        options.memory_bytes = 4 * remote::kPageBytes;
        if (rmem_open_with(&node, &options) == RMEM_OK) return;
        std::fprintf(stderr, "%s\n", rmem_last_error());
        std::abort();
    }
    ~Node() { rmem_close(node); }

    rmem_node* node = nullptr;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {  // NOLINT
    static const Node own;
    constexpr std::size_t kMax =
        remote::Session::kMaxWaitingBytes + remote::kMaxBodyBytes + rmem::FrameWriter::kHeaderBytes;
    remote::Twins twins(own.node);
    remote::Session session(own.node, 1, twins);
    session.receive(std::as_bytes(std::span(data, size)));
    session.run(0);
    session.run(remote::Session::kLongestFlushNs);
    session.on_interrupt({34, 1, 1, 0, RMEM_SENT, 0});
    session.look(SIZE_MAX);
    if (session.answers().left().size() > kMax || session.news().left().size() > kMax) std::abort();
    return 0;
}
