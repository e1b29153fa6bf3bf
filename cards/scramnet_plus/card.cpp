// SPDX-License-Identifier: Apache-2.0
#include "cards/scramnet_plus/card.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <string>
#include <utility>

namespace cards::scramnet_plus {

namespace {

constexpr std::int64_t kLongestWaitAtExitNs = 1'000'000'000;

/// What of CSR1 and CSR9 a counter of the node stands for.
constexpr std::uint16_t kNoRoom = CSR1_TXFF | CSR1_TXF78;
constexpr std::array kErrorCounters = {
    CountedError{kNoRoom, "back_pressure"},    CountedError{kNoRoom, "held_off"},
    CountedError{kNoRoom, "stores_held_off"},  CountedError{kNoRoom, "stores_lost"},
    CountedError{kNoRoom, "writes_lost_fifo"}, CountedError{CSR1_CD, "ring_breaks"},
    CountedError{CSR1_CD, "lost_on_wire"},     CountedError{CSR1_BM, "records_refused"},
    CountedError{CSR9_RTRF, "ring_switches"},
};

/// Each long word, in place.
void turn_round(std::byte* data, std::size_t bytes, unsigned char mode) {
    for (std::size_t at = 0; at + kWordBytes <= bytes; at += kWordBytes) {
        if (mode == Byte_mode) std::reverse(data + at, data + at + kWordBytes);
        if (mode == Word_mode) std::rotate(data + at, data + at + 2, data + at + kWordBytes);
    }
}

int no_file(const char* path, const char* doing) {
    return refuse(fmt::format("{} {}: {}", doing, path, std::strerror(errno)));
}

int save_bytes(const char* path, const char* from, std::size_t bytes) {
    if (path == nullptr) return refuse("the file's name is a null pointer; give a path");
    std::ofstream file(path, std::ios::binary | std::ios::trunc);
    file.write(from, static_cast<std::streamsize>(bytes));
    file.close();
    return file ? kDone : no_file(path, "writing");
}

/// What is in the file, at most `most` bytes.
int load_bytes(const char* path, std::size_t most, std::vector<char>& bytes) {
    if (path == nullptr) return refuse("the file's name is a null pointer; give a path");
    std::ifstream file(path, std::ios::binary);
    if (!file) return no_file(path, "opening");
    bytes.resize(most + 1);
    file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    if (file.bad()) return no_file(path, "reading");
    if (static_cast<std::size_t>(file.gcount()) > most) {
        return refuse(fmt::format(
            "{} has more than the {} bytes that it is loaded into; give one of this card", path,
            most));
    }
    bytes.resize(static_cast<std::size_t>(file.gcount()));
    return kDone;
}

}  // namespace

Card::Card(unsigned unit, OwnNode node)
    : node_(unit, std::move(node)), identity_(identity_of_node()), errors_(node_, kErrorCounters) {
    const auto lock = node_.lock();
    errors_.tell();
}

Card::~Card() {
    drop_effects();
}

unsigned Card::present_nodes() {
    const auto lock = node_.lock();
    return node_.present_nodes();
}

// ---- Memory

int Card::map(void*& memory) const {
    return result_of(node_.map(memory));
}

int Card::check_range(std::size_t offset, const void* buffer, std::size_t bytes) const {
    if (offset % kWordBytes != 0 || bytes % kWordBytes != 0) {
        return refuse(
            fmt::format("a transfer moves whole long words, and {} bytes at {:#x} are "
                        "none; give multiples of 4",
                        bytes, offset));
    }
    if (!node_.covers(offset, bytes)) return kRefused;
    if (buffer == nullptr && bytes != 0)
        return refuse("the buffer is a null pointer; give an address");
    return kDone;
}

/// In pieces. Each waits for room (hold-off), unless that is off.
int Card::put(std::size_t offset, const std::byte* from, std::size_t bytes) {
    for (std::size_t moved = 0; moved < bytes;) {
        const std::size_t piece = CardNode::piece_of(bytes - moved), at = offset + moved;
        const int code = node_.send_out([&] {
            const int written = node_.write(at, from + moved, piece);
            if (written != RMEM_EAGAIN || !has(SCR_CSR8, CSR8_DHLD)) return written;
            return rmem::fail(RMEM_EINVAL,
                              fmt::format("the ring has no room for the {} bytes at {:#x}, and "
                                          "hold-off is disabled; clear CSR8_DHLD, or write again",
                                          piece, at));
        });
        if (code != RMEM_OK) return result_of(code);
        moved += piece;
    }
    if (bytes != 0 && writes_me_last()) node_.await_own();
    return kDone;
}

int Card::read(std::size_t offset, void* to, std::size_t bytes) {
    if (const int result = check_range(offset, to, bytes); result != kDone) return result;
    if (bytes == 0) return kDone;
    if (const int code = rmem_read(node_, offset, to, bytes); code != RMEM_OK) return kRefused;
    turn_round(static_cast<std::byte*>(to), bytes, byte_order());
    return kDone;
}

int Card::write(std::size_t offset, const void* from, std::size_t bytes) {
    if (const int result = check_range(offset, from, bytes); result != kDone) return result;
    const auto* data = static_cast<const std::byte*>(from);
    std::vector<std::byte> turned;
    if (const unsigned char mode = byte_order(); mode != Long_mode && bytes != 0) {
        turned.assign(data, data + bytes);
        turn_round(turned.data(), bytes, mode);
        data = turned.data();
    }
    return put(offset, data, bytes);
}

int Card::fill(std::uint32_t value) {
    std::array<std::uint32_t, 16384> words;
    words.fill(value);
    for (std::size_t at = 0; at < memory_bytes(); at += sizeof words) {
        const auto* const bytes = reinterpret_cast<const std::byte*>(words.data());
        const int result = put(at, bytes, std::min(memory_bytes() - at, sizeof words));
        if (result != kDone) return result;
    }
    return kDone;
}

int Card::save(const char* path) {
    std::vector<char> bytes(memory_bytes());
    if (rmem_read(node_, 0, bytes.data(), bytes.size()) != RMEM_OK) return kRefused;
    return save_bytes(path, bytes.data(), bytes.size());
}

int Card::load(const char* path) {
    std::vector<char> bytes;
    if (const int result = load_bytes(path, memory_bytes(), bytes); result != kDone) return result;
    return put(0, reinterpret_cast<const std::byte*>(bytes.data()), bytes.size());
}

int Card::set_byte_order(unsigned char mode) {
    if (mode > Byte_mode) {
        return refuse(fmt::format(
            "there is no byte order {}; it is Long_mode (0), Word_mode (1) or Byte_mode (2)",
            mode));
    }
    const auto lock = node_.lock();
    byte_order_ = mode;
    return kDone;
}

unsigned char Card::byte_order() {
    const auto lock = node_.lock();
    return byte_order_;
}

void Card::await_arrival() {
    const auto lock = node_.lock();
    static_cast<void>(rmem_flush(node_, kLongestWaitAtExitNs));
}

// ---- The ACRs in files

int Card::save_acrs(const char* path) {
    std::vector<char> bytes(memory_bytes() / kWordBytes);
    {
        const auto lock = node_.lock();
        std::copy(acrs_.begin(), acrs_.end(), bytes.begin());
    }
    return save_bytes(path, bytes.data(), bytes.size());
}

int Card::load_acrs(const char* path) {
    std::vector<char> bytes;
    if (const int result = load_bytes(path, memory_bytes() / kWordBytes, bytes); result != kDone)
        return result;
    for (std::size_t word = 0; word < bytes.size(); ++word) {
        const int result = set_acr(word, static_cast<std::uint8_t>(bytes[word]));
        if (result != kDone) return result;
    }
    return kDone;
}

}  // namespace cards::scramnet_plus
