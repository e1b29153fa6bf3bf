// SPDX-License-Identifier: Apache-2.0
// How a program receives.
#include "ports/munet/program.hpp"

#include "rmem/base/copy.hpp"
#include "rmem/base/marks.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace ports::munet {

using rmem::Deadline;

inline std::uint64_t Program::next_word() const noexcept {
    // (2) pairs with relay.cpp (6): the record, and the zero behind it
    return memory_.record(at_).control.load(std::memory_order_acquire);
}

int Program::recv(void* buffer, std::size_t room, Address* from) {
    return next(room, true, buffer, from);
}

int Program::probe(Address* from) {
    return next(0, false, nullptr, from);
}

/// The next message: received, or only looked at. Parts on the way to it are taken in.
int Program::next(std::size_t room, bool takes, void* buffer, Address* from) {
    if (owed_ != 0) [[unlikely]]
        return_credit();
    while (true) {
        if (whole_ != kNoPlace) [[unlikely]] {
            Source& source = sources_[whole_];
            if (from != nullptr) *from = Origin::of(source.origin).from;
            const std::size_t bytes = source.parts.size();
            if (!takes) return static_cast<int>(bytes);
            if (bytes > room) return -EMSGSIZE;
            std::memcpy(buffer, source.parts.data(), bytes);
            source.parts.clear();
            whole_ = kNoPlace;
            return static_cast<int>(bytes);
        }
        const std::uint64_t word = next_word();
        if (word == 0) return -EAGAIN;
        const Control control = Control::of(word);
        Source& source = source_of(control, memory_.record(at_).origin);
        const std::uint32_t lines = lines_of(control.length);
        if (control.kind == Kind::whole) [[likely]] {
            if (from != nullptr) *from = Origin::of(source.origin).from;
            if (!takes) return static_cast<int>(control.length);
            if (control.length > room) return -EMSGSIZE;
            source.parts.clear();  // a message in parts whose sender gave up
            copy_out(buffer, at_, 0, control.length);
            RMEM_MARK("munet.receive.copied");
            consume(source, lines);
            return static_cast<int>(control.length);
        }
        if (control.kind != Kind::none) take_part(source, control, at_);
        RMEM_MARK("munet.receive.part-taken");
        consume(source, lines);
    }
}

void Program::take_part(Source& source, Control control, std::uint32_t at) {
    std::size_t skip = 0;
    if (control.kind == Kind::first) {
        copy_out(&source.total, at, 0, sizeof source.total);
        skip = sizeof source.total;
        source.parts.clear();
        if (source.total > most_bytes(geometry_.share()))
            source.total = 0;  // no library sends that
        source.parts.reserve(source.total);
    } else if (source.parts.empty()) {
        return;
    }
    const std::size_t before = source.parts.size(), bytes = control.length - skip;
    if (control.length < skip || source.total - before < bytes) return source.parts.clear();
    source.parts.resize(before + bytes);
    copy_out(source.parts.data() + before, at, skip, bytes);
    if (control.kind != Kind::last) return;
    if (source.parts.size() != source.total) return source.parts.clear();
    whole_ = static_cast<unsigned>(&source - sources_.data());
}

/// From the record at `at`, `skip` bytes left out.
inline void Program::copy_out(void* to, std::uint32_t at, std::size_t skip,
                              std::size_t bytes) const noexcept {
    if (skip + bytes <= kNear) [[likely]]
        return rmem::copy_short(to, memory_.line(at) + kHeader + skip, bytes);
    const std::size_t size = geometry_.receive_lines * kLine;
    std::size_t from = at * kLine + kHeader + skip;
    if (from >= size) from -= size;
    const std::size_t first = std::min(bytes, size - from);
    std::memcpy(to, memory_.line(0) + from, first);
    if (first < bytes)
        std::memcpy(static_cast<std::byte*>(to) + first, memory_.line(0), bytes - first);
}

/// The sender; a place that has a new holder begins again.
inline Program::Source& Program::source_of(Control control, std::uint64_t origin) {
    Source& source = sources_[std::min<std::size_t>(control.index, sources_.size() - 1)];
    if (source.origin == origin) [[likely]]
        return source;
    if (source.slot != kSlots) peers_[source.slot].place = kNoPlace;
    source = {};
    source.origin = origin;
    const auto slot = slots_.find(static_cast<std::uint32_t>(origin & 0xffffff));
    if (slot != slots_.end()) {
        source.slot = slot->second;
        peers_[slot->second].place = static_cast<unsigned>(&source - sources_.data());
    }
    return source;
}

inline void Program::consume(Source& source, std::uint32_t lines) {
    at_ += lines;
    if (at_ >= geometry_.receive_lines) at_ -= geometry_.receive_lines;
    consumed_ += lines;
    // (4) pairs with relay.cpp (5): what was there has been read
    memory_.program().consumed.store(consumed_, std::memory_order_release);
    source.consumed += lines;
    if (source.consumed - source.told >= std::max(1U, high_water(geometry_.share()))) [[unlikely]] {
        ++owed_;
        return_credit();
    }
}

/// Credit messages to all who are over their high-water mark, as long as there are descriptors.
void Program::return_credit() {
    owed_ = 0;
    for (std::size_t place = 0; place < sources_.size(); ++place) {
        Source& source = sources_[place];
        if (source.consumed - source.told < std::max(1U, high_water(geometry_.share()))) continue;
        if (!has_descriptor()) {
            ++owed_;
            continue;
        }
        source.told = source.consumed;
        RMEM_MARK("munet.receive.before-credit");
        write({.kind = Kind::credit}, {true, static_cast<std::uint8_t>(place), source.consumed},
              nullptr, 0, nullptr, 0);
    }
}

int Program::wait(Deadline deadline) {
    if (probe(nullptr) != -EAGAIN) return 0;
    surroundings_.begin_wait();
    int result = 0;
    while (result == 0) {
        if (const int found = probe(nullptr); found != -EAGAIN) break;
        result = surroundings_.pause(deadline);
    }
    surroundings_.end_wait();
    return result;
}

}  // namespace ports::munet
