// SPDX-License-Identifier: Apache-2.0
#include "remote/protocol.hpp"

namespace remote {

void write_hello(std::vector<std::byte>& to, const Hello& hello) {
    FrameWriter(to, Kind::hello)
        .put(kMagic)
        .put(hello.version)
        .put(static_cast<std::uint16_t>(hello.channel))
        .put(hello.session);
}

std::optional<Hello> read_hello(const Frame& frame) {
    FieldReader fields(frame.body);
    const auto magic = fields.take<std::uint32_t>();
    Hello hello;
    hello.version = fields.take<std::uint16_t>();
    const auto channel = fields.take<std::uint16_t>();
    hello.session = fields.take<std::uint64_t>();
    // Another version may say more.
    const bool is_known = fields.is_whole() || hello.version != kVersion;
    if (kind_of(frame) != Kind::hello || magic != kMagic || !is_known || channel > 1)
        return std::nullopt;
    hello.channel = static_cast<Channel>(channel);
    return hello;
}

void write_welcome(std::vector<std::byte>& to, const Welcome& welcome) {
    FrameWriter(to, Kind::welcome)
        .put(welcome.session)
        .put(welcome.memory_bytes)
        .put(welcome.node)
        .put(welcome.nodes)
        .put(welcome.rank)
        .put(welcome.ranks);
}

std::optional<Welcome> read_welcome(const Frame& frame) {
    FieldReader fields(frame.body);
    Welcome welcome;
    welcome.session = fields.take<std::uint64_t>();
    welcome.memory_bytes = fields.take<std::uint64_t>();
    welcome.node = fields.take<std::uint32_t>();
    welcome.nodes = fields.take<std::uint32_t>();
    welcome.rank = fields.take<std::uint32_t>();
    welcome.ranks = fields.take<std::uint32_t>();
    if (kind_of(frame) != Kind::welcome || !fields.is_whole()) return std::nullopt;
    return welcome;
}

}  // namespace remote
