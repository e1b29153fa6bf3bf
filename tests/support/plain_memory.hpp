// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A Memory (rmem/link/memory.hpp) of plain arrays within one thread, for tests of protocols alone.
///
/// PlainBanks holds what all ranks have written; a PlainMemory is one rank's view. Either there is
/// one bank for all, where a store is seen at once, or each rank has its own, where a store of
/// another is seen when the test delivers it. Each writer's stores are delivered in order, as every
/// link does; those of one `write` in any order, since there is none inside a write.
/// Counts each rank's loads and stores. `PlainMemory<true>` says that it is replicated.

#include "rmem/link/memory.hpp"
#include "rmem/ring/config.hpp"

#include <algorithm>
#include <cstring>
#include <deque>
#include <random>
#include <vector>

namespace rmem::test {

enum class Seen { at_once, when_delivered };

class PlainBanks {
public:
    PlainBanks(unsigned ranks, std::size_t bytes, Seen seen)
        : ranks_(ranks),
          seen_(seen),
          banks_(seen == Seen::at_once ? 1 : ranks, Bank(bytes / sizeof(Line) + 1)),
          on_the_way_(std::size_t{ranks} * ranks),
          loads_(ranks, 0),
          stores_(ranks, 0) {}

    std::byte* at(unsigned rank, std::size_t offset) {
        Bank& bank = banks_[seen_ == Seen::at_once ? 0 : rank];
        return reinterpret_cast<std::byte*>(bank.data()) + offset;
    }
    std::uint32_t load(unsigned rank, std::size_t offset) {
        ++loads_[rank];
        for (unsigned writer = 0; between_loads_ && writer < ranks_; ++writer) {
            deliver(writer, rank, chance_() % 4 == 0 ? chance_() % 16 : 0);
        }
        return word(rank, offset);
    }
    void store(unsigned rank, std::size_t offset, std::uint32_t value) {
        std::memcpy(at(rank, offset), &value, sizeof value);
        publish(rank, offset, sizeof value);
    }
    /// The words of the rank's own bank go on their way to the others'.
    void publish(unsigned rank, std::size_t offset, std::size_t bytes) {
        const std::size_t words = (bytes + rmem::kWordBytes - 1) / rmem::kWordBytes;
        stores_[rank] += words;
        if (seen_ == Seen::at_once) return;
        for (unsigned reader = 0; reader < ranks_; ++reader) {
            if (reader == rank) continue;
            for (std::size_t i = 0; i < words; ++i) {
                const std::size_t at = offset + (i + stores_[rank]) % words * rmem::kWordBytes;
                way(rank, reader).push_back({at, word(rank, at)});
            }
        }
    }

    /// The writer's next stores, this many at most, get to the reader's bank.
    void deliver(unsigned writer, unsigned reader, std::size_t most = ~std::size_t{0}) {
        auto& way_there = way(writer, reader);
        for (; most > 0 && !way_there.empty(); --most) {
            const Store& store = way_there.front();
            std::memcpy(at(reader, store.offset), &store.value, sizeof store.value);
            way_there.pop_front();
        }
    }
    void deliver_all() {
        for (unsigned writer = 0; writer < ranks_; ++writer) {
            for (unsigned reader = 0; reader < ranks_; ++reader) deliver(writer, reader);
        }
    }
    /// From now on some of them also get there just before a load of the reader.
    void deliver_between_loads(bool on) { between_loads_ = on && seen_ == Seen::when_delivered; }
    /// Nothing of one is on its way to the other.
    bool all_seen(unsigned a, unsigned b) { return way(a, b).empty() && way(b, a).empty(); }

    std::uint64_t loads(unsigned rank) const { return loads_[rank]; }
    std::uint64_t stores(unsigned rank) const { return stores_[rank]; }  ///< in words

private:
    struct alignas(rmem::kLineBytes) Line {
        std::byte bytes[rmem::kLineBytes];
    };
    using Bank = std::vector<Line>;
    struct Store {
        std::size_t offset;
        std::uint32_t value;
    };

    std::uint32_t word(unsigned rank, std::size_t offset) {
        std::uint32_t value;
        std::memcpy(&value, at(rank, offset), sizeof value);
        return value;
    }
    std::deque<Store>& way(unsigned writer, unsigned reader) {
        return on_the_way_[std::size_t{writer} * ranks_ + reader];
    }

    unsigned ranks_;
    Seen seen_;
    std::vector<Bank> banks_;
    std::vector<std::deque<Store>> on_the_way_;
    std::vector<std::uint64_t> loads_, stores_;
    bool between_loads_ = false;
    std::minstd_rand chance_;
};

template <bool Replicated>
class PlainMemory {
public:
    static constexpr bool kReplicated = Replicated;
    static constexpr bool kFar = false;
    static constexpr bool kHasDescriptors = false;

    PlainMemory(PlainBanks& banks, unsigned rank) : banks_(&banks), rank_(rank) {}

    std::uint32_t load(std::size_t offset) const { return banks_->load(rank_, offset); }
    const std::byte* data(std::size_t offset, std::size_t) const {
        return banks_->at(rank_, offset);
    }
    std::byte* own(std::size_t offset) const { return banks_->at(rank_, offset); }
    bool room(std::size_t) { return true; }
    void write(std::size_t offset, const void* from, std::size_t bytes) {
        if (bytes == 0) return;
        std::memcpy(own(offset), from, bytes);
        publish(offset, bytes);
    }
    void publish(std::size_t offset, std::size_t bytes) { banks_->publish(rank_, offset, bytes); }
    void post_word(std::size_t offset, std::uint32_t value) { banks_->store(rank_, offset, value); }
    static constexpr std::size_t kMaxPostWords = Replicated ? rmem::kLinePostWords : 0;
    void post(std::size_t offset, const std::uint32_t* words, std::size_t count) {
        if (count > 1) write(offset + kWordBytes, words + 1, (count - 1) * kWordBytes);
        post_word(offset, *words);
    }
    void write_lazy(std::size_t offset, std::uint32_t value) { post_word(offset, value); }
    void commit() {}
    void notify(unsigned) {}
    void stamp(std::size_t, std::uint32_t) {}
    void seen(std::size_t, std::uint32_t, std::int64_t) {}
    bool is_alive(unsigned) const { return true; }
    void progress() {}
    bool in_flight() const { return false; }
    static void expect_write(std::size_t, std::size_t) {}
    static void expect_read(std::size_t, std::size_t) {}
    unsigned brief_polls() const { return 0; }
    bool is_crowded() { return false; }
    void give_way() {}
    void begin_wait() {}
    rmem::Step wait(rmem::Deadline) { return rmem::Step::expired; }
    void end_wait() {}
    static std::int64_t now_ns() { return 0; }

private:
    PlainBanks* banks_;
    unsigned rank_;
};

static_assert(rmem::Memory<PlainMemory<false>> && rmem::Memory<PlainMemory<true>>);

}  // namespace rmem::test
