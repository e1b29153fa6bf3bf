// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "rmem/base/descriptor.hpp"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>

namespace rmem::test {

/// A port of the loop-back interface that nobody has just now, for sockets of that kind.
inline std::uint16_t free_port(int kind = SOCK_DGRAM) {
    const Descriptor probe(::socket(AF_INET, kind | SOCK_CLOEXEC, 0));
    sockaddr_in own{};
    own.sin_family = AF_INET;
    own.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof own;
    auto* address = reinterpret_cast<sockaddr*>(&own);
    EXPECT_EQ(::bind(probe.get(), address, size), 0);
    EXPECT_EQ(::getsockname(probe.get(), address, &size), 0);
    return ntohs(own.sin_port);
}

}  // namespace rmem::test
