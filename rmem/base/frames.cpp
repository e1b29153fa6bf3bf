// SPDX-License-Identifier: Apache-2.0
#include "rmem/base/frames.hpp"

#include "rmem/base/check.hpp"

namespace rmem {

namespace {

constexpr std::size_t kKindAt = 4;
constexpr std::size_t kZeroAt = 6;
constexpr std::size_t kHeaderBytes = FrameWriter::kHeaderBytes;
/// More bytes than these are not left in front of others.
constexpr std::size_t kMaxGoneBytes = std::size_t{256} << 10;

std::size_t body_bytes(std::span<const std::byte> frame) {
    return load<std::uint32_t>(frame.data());
}

}  // namespace

void ByteQueue::sent(std::size_t bytes) {
    RMEM_CHECK(bytes <= left().size());
    sent_ += bytes;
    if (!empty() && sent_ < kMaxGoneBytes) return;
    bytes_.erase(bytes_.begin(), bytes_.begin() + static_cast<std::ptrdiff_t>(sent_));
    sent_ = 0;
}

// ---- Writing

FrameWriter::FrameWriter(std::vector<std::byte>& to, std::uint16_t kind)
    : to_(to), begin_(to.size()) {
    put(std::uint32_t{0}).put(kind).put(std::uint16_t{0});
}

FrameWriter::~FrameWriter() {
    const std::size_t bytes = to_.size() - begin_ - kHeaderBytes;
    store(to_.data() + begin_, static_cast<std::uint32_t>(bytes));
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
    queue_.bytes().insert(queue_.bytes().end(), bytes.begin(), bytes.end());
}

bool FrameQueue::is_broken() const {
    const auto left = queue_.left();
    return left.size() >= kHeaderBytes &&
           (body_bytes(left) > most_ || load<std::uint16_t>(left.data() + kZeroAt) != 0);
}

std::optional<Frame> FrameQueue::front() const {
    const auto left = queue_.left();
    if (left.size() < kHeaderBytes || is_broken() || left.size() - kHeaderBytes < body_bytes(left))
        return std::nullopt;
    return Frame{load<std::uint16_t>(left.data() + kKindAt),
                 left.subspan(kHeaderBytes, body_bytes(left))};
}

void FrameQueue::pop() {
    RMEM_CHECK(front().has_value());
    queue_.sent(kHeaderBytes + body_bytes(queue_.left()));
}

}  // namespace rmem
