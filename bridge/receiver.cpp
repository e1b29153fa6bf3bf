// SPDX-License-Identifier: Apache-2.0
#include "bridge/receiver.hpp"

#include "rmem/base/check.hpp"

#include <algorithm>
#include <utility>

namespace bridge {

Receiver::Receiver(std::vector<ReceivedRegion> regions) {
    for (ReceivedRegion& region : regions) regions_.push_back({std::move(region)});
}

std::optional<std::size_t> Receiver::find(const std::string& name) const {
    const auto found = std::find_if(regions_.begin(), regions_.end(),
                                    [&](const Region& each) { return each.received.name == name; });
    if (found == regions_.end()) return std::nullopt;
    return static_cast<std::size_t>(found - regions_.begin());
}

void Receiver::begin() {
    called_.clear();
    for (Region& region : regions_) region.is_admitted = false;
    is_waiting_ = false;
    taken_ = 0;
}

void Receiver::call(std::uint16_t number, std::size_t region) {
    if (called_.size() <= number) called_.resize(number + std::size_t{1});
    called_[number] = region;
}

std::optional<std::size_t> Receiver::called(std::uint16_t number) const {
    return number < called_.size() ? called_[number] : std::nullopt;
}

void Receiver::admit(std::size_t region, bool is_admitted) {
    regions_[region].is_admitted = is_admitted;
}

bool Receiver::take(std::span<const std::byte> body) {
    RMEM_CHECK(!is_waiting_);
    body_.assign(body.begin(), body.end());
    if (!read_frame(body_, frame_) || frame_.head.number != taken_ + 1) return false;
    delivery_.head = frame_.head;
    delivery_.writes.clear();
    for (const Piece& piece : frame_.pieces) {
        const auto region = called(piece.region);
        if (!region) return false;
        const ReceivedRegion& place = regions_[*region].received;
        const std::uint64_t words = place.bytes / kWordBytes;
        const std::uint64_t count = piece.words.size() / kWordBytes;
        if (piece.word > words || count > words - piece.word) return false;
        if (!regions_[*region].is_admitted) continue;
        delivery_.writes.push_back({*region, place.at + std::uint64_t{piece.word} * kWordBytes,
                                    piece.words, (piece.flags & Piece::kInterrupt) != 0});
    }
    is_waiting_ = true;
    if (delivery_.writes.empty()) delivered();
    return true;
}

void Receiver::delivered() {
    RMEM_CHECK(is_waiting_);
    is_waiting_ = false;
    ++taken_;
}

}  // namespace bridge
