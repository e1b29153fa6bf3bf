// SPDX-License-Identifier: Apache-2.0
#include <billboard/endpoint.hpp>
#include <rmem/node.hpp>
#include <rmem/ring/ring.hpp>

#include <unistd.h>

#include <iostream>

/// Two nodes as threads could be: on one mapping.
int main() {
    rmem::RingConfig config;
    config.name = "cpp_user-" + std::to_string(::getpid());
    config.nodes = config.ranks = 2;
    const auto ring = rmem::Ring::open(config, rmem::Deadline::never());
    rmem::Node writer(ring, {.rank = 0, .node = 0}), reader(ring, {.rank = 1, .node = 1});
    if (writer.write_word(0x100, 42) != rmem::WriteResult::ok) return 1;
    std::cout << reader.load(0x100) << " in ring " << reader.ring().config().name << '\n'
              << bbp_strerror(BBP_EAGAIN) << '\n';
    try {
        static_cast<void>(writer.write_word(config.user_bytes, 1));
    } catch (const rmem::Error& error) {
        std::cout << error.what() << '\n';
        return rmem::version() == RMEM_VERSION && billboard::Endpoint::of_bbp_init() == nullptr ? 0
                                                                                                : 1;
    }
    return 1;
}
