// SPDX-License-Identifier: Apache-2.0
#include "remote/protocol.hpp"

#include <utility>

namespace remote {

namespace {

constexpr std::size_t kKindAt = 4;
constexpr std::size_t kZeroAt = 6;

}  // namespace

// ---- Writing

FrameWriter::FrameWriter(std::vector<std::byte>& to, Kind kind) : to_(to), begin_(to.size()) {
    put(std::uint32_t{0}).put(static_cast<std::uint16_t>(kind)).put(std::uint16_t{0});
}

FrameWriter::~FrameWriter() {
    const std::size_t bytes = to_.size() - begin_ - kHeaderBytes;
    rmem::udp::store(to_.data() + begin_, static_cast<std::uint32_t>(bytes));
}

FrameWriter& FrameWriter::put(std::span<const std::byte> data) {
    to_.insert(to_.end(), data.begin(), data.end());
    return *this;
}

FrameWriter& FrameWriter::put(std::string_view text) {
    return put(std::as_bytes(std::span(text)));
}

// ---- Reading

void FrameQueue::add(std::span<const std::byte> bytes) {
    bytes_.erase(bytes_.begin(), bytes_.begin() + static_cast<std::ptrdiff_t>(begin_));
    begin_ = 0;
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
}

std::size_t FrameQueue::body_bytes() const {
    return rmem::udp::load<std::uint32_t>(bytes_.data() + begin_);
}

bool FrameQueue::is_broken() const {
    return bytes() >= kHeaderBytes &&
           (body_bytes() > most_ ||
            rmem::udp::load<std::uint16_t>(bytes_.data() + begin_ + kZeroAt) != 0);
}

std::optional<Frame> FrameQueue::front() const {
    if (bytes() < kHeaderBytes || is_broken() || bytes() - kHeaderBytes < body_bytes())
        return std::nullopt;
    const std::byte* const header = bytes_.data() + begin_;
    return Frame{static_cast<Kind>(rmem::udp::load<std::uint16_t>(header + kKindAt)),
                 {header + kHeaderBytes, body_bytes()}};
}

void FrameQueue::pop() {
    begin_ += kHeaderBytes + body_bytes();
}

// ---- The first frames

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
    if (frame.kind != Kind::hello || magic != kMagic || !is_known || channel > 1)
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
    if (frame.kind != Kind::welcome || !fields.is_whole()) return std::nullopt;
    return welcome;
}

}  // namespace remote
