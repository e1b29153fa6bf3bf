// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A bank in which the peers write whatever they like, at any moment, and a Memory on it.
///
/// The bank lies between pages that cannot be touched, so a process that reads or writes outside it
/// dies. A peer may change a word at each look that rank 0 takes, also between two looks at one
/// word. Most of the peers' words are nearly right (the sequence expected next, a length at the
/// limit), since plain noise gets no further than the first check. Writes of rank 0 to words that
/// are not its own, and calls that look or wait without end, are violations.
///
/// Time is counted in waits: a call's deadline passes after kWaitsPerCall of them. No threads.

#include "billboard/boards/arrival.hpp"
#include "billboard/boards/layout.hpp"
#include "rmem/link/memory.hpp"
#include "rmem/ring/ring.hpp"
#include "rmem/ring/segment.hpp"
#include "tests/support/patterns.hpp"

#include <fmt/format.h>
#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace rmem::test {

/// The choices of a run: a fuzzer's bytes (zeros when they are used up), or a seed.
class Choices {
public:
    explicit Choices(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}
    explicit Choices(std::uint64_t seed) : state_(seed), seeded_(true) {}

    bool used_up() const { return !seeded_ && bytes_.empty(); }
    std::uint32_t below(std::uint32_t limit) { return take(limit <= 256 ? 1 : 4) % limit; }
    std::uint32_t word() { return take(4); }

private:
    std::uint32_t take(std::size_t bytes) {
        if (seeded_) return static_cast<std::uint32_t>(next_random(state_));
        std::uint32_t value = 0;
        bytes = std::min(bytes, bytes_.size());
        if (bytes != 0) std::memcpy(&value, bytes_.data(), bytes);
        bytes_ = bytes_.subspan(bytes);
        return value;
    }

    std::span<const std::uint8_t> bytes_;
    std::uint64_t state_ = 0;
    bool seeded_ = false;
};

/// How many seeds a test runs.
inline std::uint64_t fuzz_seeds() {
    const char* text = std::getenv("RMEM_FUZZ_SEEDS");
    return text == nullptr ? 300 : std::strtoull(text, nullptr, 10);
}

/// Memory that ends where a page begins that cannot be touched; a large one before it, too.
class GuardedBytes {
public:
    static constexpr std::size_t kGuard = std::size_t{1} << 30;

    explicit GuardedBytes(std::size_t bytes) : bytes_((bytes + 4095) / 4096 * 4096) {
        void* all = ::mmap(nullptr, bytes_ + 2 * kGuard, PROT_NONE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (all == MAP_FAILED) throw std::runtime_error("no address space for guard pages");
        start_ = static_cast<std::byte*>(all);
        if (::mprotect(start_ + kGuard, bytes_, PROT_READ | PROT_WRITE) != 0)
            throw std::runtime_error("no memory between guard pages");
    }
    ~GuardedBytes() { ::munmap(start_, bytes_ + 2 * kGuard); }
    GuardedBytes(const GuardedBytes&) = delete;
    GuardedBytes& operator=(const GuardedBytes&) = delete;

    /// The last `bytes` of it.
    std::byte* last(std::size_t bytes) const { return start_ + kGuard + bytes_ - bytes; }

private:
    std::size_t bytes_;
    std::byte* start_ = nullptr;
};

class HostileBank {
public:
    static constexpr unsigned kMe = 0;
    static constexpr unsigned kRanks = 3;
    static constexpr std::uint32_t kMyIncarnation = 1;
    static constexpr unsigned kWaitsPerCall = 12;
    static constexpr unsigned kLooksPerCall = 200'000;

    HostileBank(const billboard::Geometry& geometry, std::size_t bytes, Choices& choices)
        : geometry_(geometry),
          choices_(choices),
          bytes_(bytes),
          memory_(bytes),
          bank_(memory_.last(bytes)),
          mine_(bytes / kWordBytes, false) {
        find_my_words();
        for (unsigned s = 1; s < kRanks; ++s) {
            put(geometry_.incarnation(s), 1);
            put(geometry_.confirmed(kMe, s), kMyIncarnation);
        }
    }

    const std::string& violation() const { return violation_; }
    void violate(std::string what) {
        if (violation_.empty()) violation_ = std::move(what);
    }
    void begin_call() {
        waits_ = looks_ = 0;
        posts_ = true;  // its earlier messages may have been passed over
    }

    // ---- What the memory is made of
    std::uint32_t load(std::size_t offset) {
        if (!is_inside(offset, kWordBytes, "load")) return 0;
        if (++looks_ > kLooksPerCall) {
            violate("a call looks without end");
            return 0;
        }
        if (tireless_ == 0) {
            maybe_act();
            return get(offset);
        }
        if (offset == geometry_.message_flags(kMe, tireless_) && std::exchange(posts_, false))
            put(offset, get(offset) ^ 1U);
        const std::uint32_t value = get(offset);
        const std::size_t descriptor = geometry_.descriptor(tireless_, 0);
        const std::size_t last = descriptor + (billboard::Descriptor::kWords - 1) * kWordBytes;
        if (offset >= descriptor && offset <= last && --words_unread_ == 0) describe(later_);
        return value;
    }
    const std::byte* data(std::size_t offset, std::size_t bytes) {
        is_inside(offset, bytes, "read");
        if (tireless_ == 0 && looks_ <= kLooksPerCall && choices_.below(4) == 0)
            disturb_data(offset);
        return bank_ + offset;
    }
    std::byte* own(std::size_t offset) const { return bank_ + offset; }
    void store(std::size_t offset, const void* from, std::size_t bytes) {
        if (!is_inside(offset, bytes, "write")) return;
        for (std::size_t at = offset / kWordBytes; at * kWordBytes < offset + bytes; ++at) {
            if (!mine_[at]) {
                violate(
                    fmt::format("rank 0 writes word {:#x}, which is another's", at * kWordBytes));
                return;
            }
        }
        if (bytes != 0) std::memcpy(bank_ + offset, from, bytes);
    }
    bool is_alive(unsigned) { return tireless_ != 0 || choices_.below(16) != 0; }
    bool often() { return choices_.below(16) != 0; }
    Step wait() {
        if (tireless_ == 0) maybe_act();
        if (++waits_ > kWaitsPerCall) return Step::expired;
        return choices_.below(3) == 0 ? Step::check_peers : Step::poll;
    }

    /// From now on s does nothing but post (layout paper): whenever a message was read there is one
    /// more, of this class. `in_parts`: the parts of a large one, and all but the first are empty.
    void post_without_end(unsigned s, billboard::Class cls, bool in_parts) {
        using billboard::Part;
        tireless_ = s;
        later_ = {0, 8, 1, cls, Part::whole};
        if (in_parts) later_ = {0, 0, 1, cls, Part::more};
        put(geometry_.data(s), 1000);  // the size of the large one
        describe(in_parts ? billboard::Descriptor{0, 8, 1, cls, Part::first} : later_);
    }
    /// And it says that it has begun another incarnation.
    void begin_incarnation(unsigned s, std::uint32_t incarnation) {
        put(geometry_.incarnation(s), incarnation);
        put(geometry_.confirmed(kMe, s), kMyIncarnation);
    }

    /// One thing that a hostile peer does.
    void act() {
        const unsigned s = 1 + choices_.below(kRanks - 1);
        switch (choices_.below(16)) {
            case 0: return put_foreign(choices_.word() % bytes_, choices_.word());
            case 1: return put(geometry_.incarnation(s), some_incarnation());
            case 2: return put(geometry_.confirmed(kMe, s), some_incarnation());
            case 3: return put(geometry_.departed(s), some_incarnation());
            case 4: return put(geometry_.ack_flags(kMe, s), choices_.word());
            case 5: return put(geometry_.consumed(kMe, s), near(geometry_.consumed(kMe, s)));
            case 6: return put(geometry_.barrier(s), near(geometry_.barrier(kMe)));
            case 7: {
                const unsigned id = choices_.below(billboard::kBarrierIds);
                return put(geometry_.barrier(s, id), near(geometry_.barrier(kMe, id)));
            }
            case 8: {
                const unsigned i = choices_.below(billboard::kJoinedGroups);
                put(geometry_.group_hash(s, i), get(geometry_.group_hash(kMe, i)));
                return put(geometry_.group_hash(s, i) + 4, get(geometry_.group_hash(kMe, i) + 4));
            }
            default: return post(s);
        }
    }

private:
    void find_my_words() {
        const auto mark = [this](std::size_t offset, std::size_t bytes, bool is_mine) {
            for (std::size_t at = 0; at < bytes; at += kWordBytes)
                mine_[(offset + at) / kWordBytes] = is_mine;
        };
        const bool paper = geometry_.layout() == billboard::Layout::paper;
        constexpr std::size_t kHalf = kLineBytes / 2;  // a line's halves have different writers
        mark(geometry_.partition(kMe), geometry_.partition_bytes(), true);
        for (unsigned s = 0; s < kRanks; ++s) {
            // In my partition the peers answer and post, in theirs I do.
            const auto shared = [&](unsigned owner, unsigned writer, bool is_mine) {
                for (const std::size_t word :
                     {geometry_.consumed(owner, writer), geometry_.ack_flags(owner, writer),
                      geometry_.confirmed(owner, writer),
                      paper ? geometry_.message_flags(owner, writer)
                            : geometry_.bell(owner, writer)}) {
                    mark(word, kWordBytes, is_mine);
                }
                if (paper) return;
                mark(geometry_.slot(owner, writer), kHalf, is_mine);
                mark(geometry_.position(owner, writer), kWordBytes, is_mine);
                mark(geometry_.lines(owner, writer), geometry_.lines() * kLineBytes, is_mine);
            };
            if (s != kMe) {
                shared(kMe, s, false);
                shared(s, kMe, true);
            }
        }
    }

    bool is_inside(std::size_t offset, std::size_t bytes, const char* what) {
        if (offset % kWordBytes == 0 && offset <= bytes_ && bytes <= bytes_ - offset) return true;
        violate(
            fmt::format("{} of {} bytes at {:#x} in a bank of {:#x}", what, bytes, offset, bytes_));
        return false;
    }
    std::uint32_t get(std::size_t offset) const {
        std::uint32_t value = 0;
        std::memcpy(&value, bank_ + offset, sizeof value);
        return value;
    }
    void put(std::size_t offset, std::uint32_t value) {
        std::memcpy(bank_ + offset, &value, sizeof value);
    }
    void put_foreign(std::size_t offset, std::uint32_t value) {
        offset = offset / kWordBytes * kWordBytes;
        if (offset >= geometry_.partition(kMe) && !mine_[offset / kWordBytes]) put(offset, value);
    }
    void maybe_act() {
        if (choices_.below(12) == 0) act();
    }

    std::uint32_t near(std::size_t offset) {
        return choices_.below(4) == 0 ? choices_.word() : get(offset) + choices_.below(12) - 4;
    }
    std::uint32_t some_incarnation() {
        constexpr std::uint32_t kIncarnations[] = {0, 1, 1, 1, 1, 2, 3, 0xffffffff};
        return kIncarnations[choices_.below(std::size(kIncarnations))];
    }
    std::uint32_t some_length() {
        const auto most = static_cast<std::uint32_t>(geometry_.data_bytes());
        switch (choices_.below(8)) {
            case 0: return choices_.word();
            case 1: return most + choices_.below(16) - 8;
            case 2: return choices_.below(most + 1);
            case 3: return 0xffffffff;
            default: return choices_.below(9) * 8;
        }
    }
    std::size_t some_place() {
        switch (choices_.below(4)) {
            case 0: return choices_.word() & 0xffffff;
            case 1: return (geometry_.data_bytes() - choices_.below(80)) / kWordBytes;
            default: return choices_.below(16) * 4;
        }
    }

    /// A message of s, as right or wrong as the choices have it.
    void post(unsigned s) {
        using billboard::Descriptor;
        using billboard::Part;
        constexpr Part kParts[] = {Part::whole, Part::filling, Part::first,   Part::first,
                                   Part::more,  Part::last,    Part::more,    Part::aborted,
                                   Part::read,  Part::offered, Part::offered, Part::last};
        const auto cls =
            static_cast<billboard::Class>(choices_.below(8) == 0 ? choices_.below(16) : 0U);
        Part part = kParts[choices_.below(std::size(kParts))];
        if (choices_.below(32) == 0) part = static_cast<Part>(choices_.below(16));
        const Descriptor d{some_place() * kWordBytes, some_length(), near_sequence(), cls, part};
        const unsigned buffer = choices_.below(billboard::kBuffers);
        if ((part == Part::first || part == Part::offered) &&
            d.offset + 8 <= geometry_.data_bytes())
            put_total(s, d.offset);
        if (geometry_.layout() == billboard::Layout::paper) {
            put_descriptor(geometry_.descriptor(s, buffer), d);
            const std::size_t flags = geometry_.message_flags(kMe, s);
            return put(flags, get(flags) ^ (1U << buffer));
        }
        put(geometry_.filled(s, buffer), some_length());
        post_lines(s, buffer, d);
    }
    /// The same where the layout is `inline`: in the slot, or in a line that rank 0 may be at.
    void post_lines(unsigned s, unsigned buffer, const billboard::Descriptor& d) {
        const std::uint32_t epoch = kMyIncarnation + get(geometry_.incarnation(s));
        const std::uint32_t kind = choices_.below(16) == 0 ? choices_.below(4) : choices_.below(3);
        const auto cls = static_cast<std::uint32_t>(d.cls);
        put_descriptor(geometry_.descriptor(s, buffer), d);
        put(geometry_.bell(kMe, s), get(geometry_.consumed(s, kMe)) + choices_.below(5));
        if (choices_.below(2) == 0) {
            const std::size_t slot = geometry_.slot(kMe, s);
            put_descriptor(slot + kWordBytes, d);
            const std::uint32_t low =
                kind == 0 || choices_.below(16) == 0 ? choices_.below(64) : buffer;
            return put(slot, (~get(slot) & (1U << 31)) | (epoch & 0xff) << 23 |
                                 choices_.below(1024) << 13 | cls << 9 | kind << 6 | low);
        }
        const std::uint32_t lines = geometry_.lines();
        const std::uint32_t number = get(geometry_.position(s, kMe)) - lines + choices_.below(6);
        const std::size_t line = geometry_.lines(kMe, s) + number % lines * kLineBytes;
        std::uint32_t at = choices_.below(4) == 0 ? choices_.below(15) : 0;
        for (; at < 15; at += 1 + choices_.below(6)) {  // headers, where one may be looked for
            std::uint32_t low = kind == 0 ? some_length() & 0xfff : buffer;
            if (choices_.below(4) != 0 && kind == 0) low = choices_.below(130);
            const std::size_t word = line + (1 + at) * kWordBytes;
            put(word, choices_.below(1024) << 22 | choices_.below(2) << 18 | cls << 14 |
                          kind << 12 | low);
            if (at + 2 < 15) put_descriptor(word + kWordBytes, d);
        }
        const std::uint32_t stamp =
            ((number & lines) != 0 ? 1U << 31 : 0) | ((epoch << 5) & 0x7fffffff);
        put(line, stamp | choices_.below(32));
    }
    void put_descriptor(std::size_t at, const billboard::Descriptor& d) {
        put(at, d.place_word());
        put(at + 4, d.length);
        put(at + 8, d.sequence);
    }
    std::uint32_t near_sequence() {
        return choices_.below(8) == 0 ? choices_.word() : 100 + choices_.below(4);
    }
    void put_total(unsigned s, std::size_t offset) {
        std::uint64_t total = std::uint64_t{choices_.below(9)} * 8;
        if (choices_.below(4) == 0) total = choices_.below(40'000);
        if (choices_.below(8) == 0) total = (std::uint64_t{choices_.word()} << 32) - 1;
        std::memcpy(bank_ + geometry_.data(s) + offset, &total, sizeof total);
    }
    /// The word that rank 0 is about to read changes.
    void disturb_data(std::size_t offset) {
        for (unsigned s = 1; s < kRanks; ++s) {
            const std::size_t data = geometry_.data(s);
            if (offset < data || offset + 8 > data + geometry_.data_bytes()) continue;
            put_total(s, offset - data);
        }
    }

    void describe(const billboard::Descriptor& d) {
        put_descriptor(geometry_.descriptor(tireless_, 0), d);
        words_unread_ = billboard::Descriptor::kWords;
        posts_ = true;
    }

    const billboard::Geometry& geometry_;
    Choices& choices_;
    std::size_t bytes_;
    GuardedBytes memory_;
    std::byte* bank_;
    std::vector<bool> mine_;
    std::string violation_;
    unsigned waits_ = 0, looks_ = 0;
    unsigned tireless_ = 0;          ///< the rank that posts without end; 0: none
    billboard::Descriptor later_{};  ///< of all its messages but the first
    unsigned words_unread_ = 0;      ///< of its descriptor
    bool posts_ = false;             ///< at the next look
};

/// The Memory concept over a hostile bank, as seen by rank 0.
template <bool Replicated>
class HostileMemory {
public:
    struct Options {
        HostileBank* bank = nullptr;
    };
    using Ring = rmem::Ring;
    using Membership = rmem::Membership;
    static constexpr bool kReplicated = Replicated;
    static constexpr bool kFar = false;
    static constexpr bool kHasDescriptors = true;

    HostileMemory(Membership&, const Options& options) : bank_(*options.bank) {}

    std::uint32_t load(std::size_t offset) const { return bank_.load(offset); }
    const std::byte* data(std::size_t offset, std::size_t bytes) const {
        return bank_.data(offset, bytes);
    }
    std::byte* own(std::size_t offset) const { return bank_.own(offset); }
    bool room(std::size_t) { return !Replicated || bank_.often(); }
    void write(std::size_t offset, const void* from, std::size_t bytes) {
        bank_.store(offset, from, bytes);
    }
    static constexpr std::size_t kMaxPostWords = Replicated ? rmem::kLinePostWords : 0;
    void post(std::size_t offset, const std::uint32_t* words, std::size_t count) {
        if (count > 1) write(offset + kWordBytes, words + 1, (count - 1) * kWordBytes);
        post_word(offset, *words);
    }
    void publish(std::size_t, std::size_t) {}
    void post_word(std::size_t offset, std::uint32_t value) {
        bank_.store(offset, &value, sizeof value);
    }
    void write_lazy(std::size_t offset, std::uint32_t value) { post_word(offset, value); }
    void commit() {}
    void notify(unsigned) {}
    bool is_alive(unsigned rank) const { return bank_.is_alive(rank); }
    void progress() {}
    bool in_flight() const { return false; }
    void stamp(std::size_t, std::uint32_t) {}
    void seen(std::size_t, std::uint32_t, std::int64_t) {}
    static void expect_write(std::size_t, std::size_t) {}
    static void expect_read(std::size_t, std::size_t) {}
    unsigned brief_polls() const { return 3; }
    bool is_crowded() { return false; }
    void give_way() {}
    void begin_wait() {}
    Step wait(Deadline) { return bank_.wait(); }
    void end_wait() {}
    static std::int64_t now_ns() { return rmem::now_ns(); }

private:
    HostileBank& bank_;
};

static_assert(Memory<HostileMemory<false>> && Memory<HostileMemory<true>>);

}  // namespace rmem::test
