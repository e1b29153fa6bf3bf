// SPDX-License-Identifier: Apache-2.0
#include "remote/view.hpp"

#include "remote/protocol.hpp"
#include "rmem/base/check.hpp"
#include "rmem/base/word_block.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <new>
#include <utility>

namespace remote {

namespace {

constexpr std::size_t kNumberBytes = sizeof(std::uint64_t);

// relaxed is enough, for all accesses to the program's memory: it promises no order between words,
// and what a program is told besides comes by a mutex
constexpr auto kRelaxed = std::memory_order_relaxed;

std::uint32_t load(std::uint32_t* word) {
    return std::atomic_ref(*word).load(kRelaxed);
}

}  // namespace

View::Zeros View::zeros(std::size_t bytes) {
    std::unique_ptr<void, Free> owned(std::calloc(bytes + kPageBytes, 1));
    if (owned == nullptr) throw std::bad_alloc();
    const auto place = reinterpret_cast<std::uintptr_t>(owned.get());
    const std::size_t past = (kPageBytes - place % kPageBytes) % kPageBytes;
    auto* const first = static_cast<std::byte*>(owned.get()) + past;
    return {std::move(owned), first};
}

View::View(std::size_t memory_bytes)
    : bytes_(memory_bytes),
      memory_(zeros(bytes_)),
      twin_(zeros(bytes_)),
      numbers_(zeros(bytes_ / kWordBytes * kNumberBytes)),
      is_mapped_(bytes_ / kPageBytes) {}

std::uint32_t* View::word_at(std::uint64_t offset) {
    return reinterpret_cast<std::uint32_t*>(memory_.first + offset);
}
std::uint32_t* View::twin_at(std::uint64_t offset) {
    return reinterpret_cast<std::uint32_t*>(twin_.first + offset);
}
std::uint64_t& View::number_at(std::uint64_t offset) {
    return reinterpret_cast<std::uint64_t*>(numbers_.first)[offset / kWordBytes];
}

bool View::is_within(std::uint64_t offset, std::uint64_t bytes) const {
    return offset <= bytes_ && bytes <= bytes_ - offset;
}

void View::note(std::uint64_t number) {
    RMEM_CHECK(number > last_number_ || number == 0);
    last_number_ = std::max(last_number_, number);
}

void View::map(std::uint64_t offset, std::uint64_t bytes) {
    RMEM_CHECK(is_within(offset, bytes) && (offset | bytes) % kPageBytes == 0);
    for (std::uint64_t page = offset / kPageBytes; page < (offset + bytes) / kPageBytes; ++page)
        is_mapped_.at(page) = true;
}

bool View::is_mapped(std::uint64_t page) const {
    return page < is_mapped_.size() && is_mapped_[page];
}

void View::collect(std::uint64_t offset, std::uint64_t bytes, const Send& send) {
    const std::uint64_t end =
        std::min<std::uint64_t>((offset + bytes + kPageBytes - 1) / kPageBytes, is_mapped_.size());
    for (std::uint64_t page = offset / kPageBytes; page < end; ++page) {
        if (is_mapped(page)) collect_page(page, send);
    }
}

/// Each stretch of words that differ is a write, and each word that differs in part.
void View::collect_page(std::uint64_t page, const Send& send) {
    const std::uint64_t first = page * kPageBytes;
    if (std::memcmp(word_at(first), twin_at(first), kPageBytes) == 0) return;
    constexpr std::size_t kWords = kPageBytes / kWordBytes;
    std::array<std::uint32_t, kWords> found;
    std::uint32_t* const words = word_at(first);
    std::uint32_t* const twins = twin_at(first);
    for (std::size_t i = 0; i < kWords; ++i) found[i] = load(&words[i]);
    const auto part_at = [&](std::size_t word) {
        return rmem::differing_part(found[word], twins[word]);
    };
    for (std::size_t from = 0, end = 0; from < kWords; from = end) {
        while (end < kWords && part_at(end) == rmem::kWholeWord) ++end;
        const rmem::WordPart part = end == from ? part_at(end++) : rmem::kWholeWord;
        if (part == 0) continue;
        std::copy(found.begin() + from, found.begin() + end, twins + from);
        const std::uint64_t number = send(first + from * kWordBytes,
                                          std::as_bytes(std::span(twins + from, end - from)), part);
        note(number);
        for (std::size_t word = from; word < end; ++word)
            number_at(first + word * kWordBytes) = number;
    }
}

void View::wrote(std::uint64_t offset, std::span<const std::byte> data, std::uint64_t number,
                 rmem::WordPart part) {
    RMEM_CHECK(is_within(offset, data.size()));
    note(number);
    for (std::size_t i = 0; i < data.size();) {
        const std::uint64_t at = offset + i;
        if (const std::uint64_t page = at / kPageBytes; !is_mapped(page)) {
            i += kPageBytes - at % kPageBytes;
            continue;
        }
        number_at(at) = number;
        if (part != rmem::kWholeWord && (part >> i & 1) == 0) {
            ++i;
        } else if (part == rmem::kWholeWord && at % kWordBytes == 0 &&
                   data.size() - i >= kWordBytes) {
            std::memcpy(twin_at(at), data.data() + i, kWordBytes);
            std::atomic_ref(*word_at(at)).store(*twin_at(at), kRelaxed);
            i += kWordBytes;
        } else {
            // Its neighbours in the word are the program's.
            twin_.first[at] = data[i];
            std::atomic_ref(memory_.first[at]).store(data[i], kRelaxed);
            ++i;
        }
    }
}

void View::changed(std::uint64_t offset, std::span<const std::byte> words, std::uint64_t known) {
    RMEM_CHECK(is_within(offset, words.size()) && (offset | words.size()) % kWordBytes == 0);
    for (std::size_t i = 0; i < words.size(); i += kWordBytes) {
        const std::uint64_t at = offset + i;
        if (number_at(at) > known) continue;
        std::uint32_t value = 0;
        std::memcpy(&value, words.data() + i, kWordBytes);
        const std::uint32_t before = std::exchange(*twin_at(at), value);
        const std::atomic_ref word(*word_at(at));
        std::uint32_t seen = word.load(kRelaxed);
        // Bytes that the program has stored meanwhile stay.
        while (!word.compare_exchange_weak(
            seen, rmem::with_part(value, seen, rmem::differing_part(seen, before)), kRelaxed)) {
        }
    }
}

}  // namespace remote
