// SPDX-License-Identifier: Apache-2.0
#include "bridge/image.hpp"

#include <algorithm>

namespace bridge {

// ---- A set of words

void WordSet::add(std::size_t word) {
    RMEM_CHECK_IF(false, word < words_);
    const std::uint64_t bit = std::uint64_t{1} << word % 64;
    std::uint64_t& bits = bits_[word / 64];
    if ((bits & bit) == 0) ++count_;
    bits |= bit;
}

void WordSet::remove(std::size_t word) {
    RMEM_CHECK_IF(false, word < words_);
    const std::uint64_t bit = std::uint64_t{1} << word % 64;
    std::uint64_t& bits = bits_[word / 64];
    if ((bits & bit) != 0) --count_;
    bits &= ~bit;
}

void WordSet::add_all() {
    std::fill(bits_.begin(), bits_.end(), ~std::uint64_t{0});
    if (words_ % 64 != 0) bits_.back() = (std::uint64_t{1} << words_ % 64) - 1;
    count_ = words_;
}

void WordSet::clear() {
    std::fill(bits_.begin(), bits_.end(), 0);
    count_ = 0;
}

std::size_t WordSet::next(std::size_t word) const {
    if (count_ == 0) return words_;
    for (; word < words_; word = (word / 64 + 1) * 64) {
        const std::uint64_t left = bits_[word / 64] >> word % 64;
        if (left != 0) return word + static_cast<std::size_t>(std::countr_zero(left));
    }
    return words_;
}

// ---- An image

void Image::set_sync(std::size_t word, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) sync_.add(word + i);
}

std::span<const std::byte> Image::put(std::size_t word, std::span<const std::byte> words,
                                      bool has_mark, bool is_dirty, rmem::WordPart part) {
    RMEM_CHECK(words.size() % kWordBytes == 0 && word <= this->words() &&
               words.size() / kWordBytes <= this->words() - word);
    const std::span<std::byte> here = std::span(bytes_).subspan(word * kWordBytes, words.size());
    for (std::size_t i = 0; part != rmem::kWholeWord && i < kWordBytes; ++i) {
        if ((part >> i & 1) != 0) here[i] = words[i];
    }
    if (part == rmem::kWholeWord) std::copy(words.begin(), words.end(), here.begin());
    if (!has_mark && !is_dirty) return here;
    for (std::size_t end = word + words.size() / kWordBytes; word < end; ++word) {
        if (is_dirty) dirty_.add(word);
        if (has_mark) sync_.add(word);
        if (has_mark && is_dirty) due_.add(word);
    }
    return here;
}

void Image::mark(std::size_t word) {
    dirty_.add(word);
    sync_.add(word);
    due_.add(word);
}

void Image::forget() {
    std::fill(bytes_.begin(), bytes_.end(), std::byte{0});
    dirty_.add_all();
}

}  // namespace bridge
