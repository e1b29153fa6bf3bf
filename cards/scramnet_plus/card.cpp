// SPDX-License-Identifier: Apache-2.0
#include "cards/scramnet_plus/card.hpp"

#include "rmem/base/clock.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <memory>
#include <string>
#include <thread>

namespace cards::scramnet_plus {

namespace {

constexpr std::size_t kWordBytes = 4;
/// So that a write finds room on every link.
constexpr std::size_t kMostBytesAtOnce = 4096;
constexpr std::int64_t kNsPerSecond = 1'000'000'000;
constexpr std::int64_t kLongestWaitForRoomNs = 2 * kNsPerSecond;
constexpr std::int64_t kLongestWaitAtExitNs = kNsPerSecond;

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

Card::Card(unsigned unit, rmem_node* node)
    : unit_(unit),
      node_(node),
      memory_bytes_(rmem_size(node) / kWordBytes * kWordBytes),
      own_id_(static_cast<std::uint8_t>(rmem_id(node))),
      receive_id_(own_id_),
      told_(error_counts()) {}

Card::~Card() {
    drop_effects();
    rmem_close(node_);
}

/// A node is there while a program of it runs.
unsigned Card::present_nodes() const {
    const auto ranks = static_cast<unsigned>(rmem_ranks(node_));
    const auto nodes = static_cast<unsigned>(rmem_nodes(node_));
    std::vector<bool> is_present(nodes);
    for (unsigned rank = 0; rank < ranks; ++rank) {
        if (rmem_is_alive(node_, static_cast<int>(rank)) == 1)
            is_present[rank * nodes / ranks] = true;
    }
    return static_cast<unsigned>(std::count(is_present.begin(), is_present.end(), true));
}

// ---- Memory

int Card::map(void*& memory) {
    const Lock lock(mutex_);
    return result_of(rmem_stores(node_, RMEM_STORES_DEFAULT, &memory));
}

int Card::check_range(std::size_t offset, const void* buffer, std::size_t bytes) const {
    if (offset % kWordBytes != 0 || bytes % kWordBytes != 0) {
        return refuse(
            fmt::format("a transfer moves whole long words, and {} bytes at {:#x} are "
                        "none; give multiples of 4",
                        bytes, offset));
    }
    if (bytes > memory_bytes_ || offset > memory_bytes_ - bytes) {
        return refuse(fmt::format("{} bytes at {:#x} are beyond the memory, which has {}", bytes,
                                  offset, memory_bytes_));
    }
    if (buffer == nullptr && bytes != 0)
        return refuse("the buffer is a null pointer; give an address");
    return kDone;
}

/// One write. Waits for room as the bus of a card does (hold-off), unless that is off.
int Card::put(std::size_t offset, const void* from, std::size_t bytes) {
    std::int64_t until_ns = 0;
    for (;;) {
        {
            const Lock lock(mutex_);
            const int code = rmem_write(node_, offset, from, bytes);
            if (code != RMEM_EAGAIN) return result_of(code);
            if (has(SCR_CSR8, CSR8_DHLD)) {
                return refuse(
                    fmt::format("the ring has no room for the {} bytes at {:#x}, and "
                                "hold-off is disabled; clear CSR8_DHLD, or write again",
                                bytes, offset));
            }
        }
        const std::int64_t now_ns = rmem::now_ns();
        if (until_ns == 0) until_ns = now_ns + kLongestWaitForRoomNs;
        if (now_ns >= until_ns) {
            return refuse(
                fmt::format("the ring had no room for {} s; find out which node does not "
                            "take what is sent (rmem top)",
                            kLongestWaitForRoomNs / kNsPerSecond));
        }
        static_cast<void>(rmem_poll(node_));
        std::this_thread::yield();
    }
}

int Card::read(std::size_t offset, void* to, std::size_t bytes) {
    if (const int result = check_range(offset, to, bytes); result != kDone) return result;
    if (bytes == 0) return kDone;
    if (const int code = rmem_read(node_, offset, to, bytes); code != RMEM_OK) return kRefused;
    turn_round(static_cast<std::byte*>(to), bytes, byte_order());
    return kDone;
}

/// The last long word is a write of its own, so that it can be a flag for the others.
int Card::write(std::size_t offset, const void* from, std::size_t bytes) {
    if (const int result = check_range(offset, from, bytes); result != kDone) return result;
    const auto* data = static_cast<const std::byte*>(from);
    std::vector<std::byte> turned;
    if (const unsigned char mode = byte_order(); mode != Long_mode && bytes != 0) {
        turned.assign(data, data + bytes);
        turn_round(turned.data(), bytes, mode);
        data = turned.data();
    }
    for (std::size_t moved = 0; moved < bytes;) {
        const std::size_t chunk =
            std::clamp(bytes - kWordBytes - moved, kWordBytes, kMostBytesAtOnce);
        if (const int result = put(offset + moved, data + moved, chunk); result != kDone)
            return result;
        moved += chunk;
    }
    return kDone;
}

int Card::fill(std::uint32_t value) {
    std::array<std::uint32_t, kMostBytesAtOnce / kWordBytes> words;
    words.fill(value);
    for (std::size_t at = 0; at < memory_bytes_;) {
        const std::size_t chunk = std::min(memory_bytes_ - at, kMostBytesAtOnce);
        if (const int result = put(at, words.data(), chunk); result != kDone) return result;
        at += chunk;
    }
    return kDone;
}

int Card::save(const char* path) {
    std::vector<char> bytes(memory_bytes_);
    if (rmem_read(node_, 0, bytes.data(), bytes.size()) != RMEM_OK) return kRefused;
    return save_bytes(path, bytes.data(), bytes.size());
}

int Card::load(const char* path) {
    std::vector<char> bytes;
    if (const int result = load_bytes(path, memory_bytes_, bytes); result != kDone) return result;
    for (std::size_t at = 0; at < bytes.size();) {
        const std::size_t chunk = std::min(bytes.size() - at, kMostBytesAtOnce);
        if (const int result = put(at, bytes.data() + at, chunk); result != kDone) return result;
        at += chunk;
    }
    return kDone;
}

int Card::set_byte_order(unsigned char mode) {
    if (mode > Byte_mode) {
        return refuse(fmt::format(
            "there is no byte order {}; it is Long_mode (0), Word_mode (1) or Byte_mode (2)",
            mode));
    }
    const Lock lock(mutex_);
    byte_order_ = mode;
    return kDone;
}

unsigned char Card::byte_order() {
    const Lock lock(mutex_);
    return byte_order_;
}

void Card::await_arrival() {
    const Lock lock(mutex_);
    static_cast<void>(rmem_flush(node_, kLongestWaitAtExitNs));
}

// ---- The ACRs in files

int Card::save_acrs(const char* path) {
    std::vector<char> bytes(memory_bytes_ / kWordBytes);
    {
        const Lock lock(mutex_);
        std::copy(acrs_.begin(), acrs_.end(), bytes.begin());
    }
    return save_bytes(path, bytes.data(), bytes.size());
}

int Card::load_acrs(const char* path) {
    std::vector<char> bytes;
    if (const int result = load_bytes(path, memory_bytes_ / kWordBytes, bytes); result != kDone)
        return result;
    for (std::size_t word = 0; word < bytes.size(); ++word) {
        const int result = set_acr(word, static_cast<std::uint8_t>(bytes[word]));
        if (result != kDone) return result;
    }
    return kDone;
}

}  // namespace cards::scramnet_plus
