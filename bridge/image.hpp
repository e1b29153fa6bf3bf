// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What the source's end of a bridge holds of a region: its words as of the last write that was
/// taken, and which of them the target has not been sent.
///
/// Sync words are those that a copy shows last: the declared ones, and every word that was ever
/// written with an interrupt mark.
/// Invariants, executed: words that are named are the region's; a word whose mark is due is dirty,
///   and a sync word.
/// Thread safety: one thread. Progress: nothing is allocated after construction.
/// Units: words of 4 bytes, numbered within the region.

#include "bridge/message.hpp"
#include "rmem/base/check.hpp"
#include "rmem/base/word_block.hpp"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace bridge {

/// Words of a region, a bit each.
class WordSet {
public:
    explicit WordSet(std::size_t words) : words_(words), bits_((words + 63) / 64) {}

    [[nodiscard]] std::size_t size() const { return words_; }
    [[nodiscard]] bool empty() const { return count_ == 0; }
    [[nodiscard]] bool has(std::size_t word) const {
        return (bits_[word / 64] >> word % 64 & 1) != 0;
    }
    void add(std::size_t word);
    void remove(std::size_t word);
    void add_all();
    void clear();
    /// The first at or behind `word`; size() if there is none.
    [[nodiscard]] std::size_t next(std::size_t word) const;

private:
    std::size_t words_;
    std::size_t count_ = 0;
    std::vector<std::uint64_t> bits_;
};

class Image {
public:
    explicit Image(std::size_t words)
        : bytes_(words * kWordBytes), dirty_(words), sync_(words), due_(words) {}

    [[nodiscard]] std::size_t words() const { return dirty_.size(); }
    /// Words that a copy shows last.
    void set_sync(std::size_t word, std::size_t count);
    /// A write to the source, perhaps of some bytes of a word. The target has been sent it, or is
    /// to be (`is_dirty`): as whole words, which it gives.
    std::span<const std::byte> put(std::size_t word, std::span<const std::byte> words,
                                   bool has_mark, bool is_dirty,
                                   rmem::WordPart part = rmem::kWholeWord);
    /// Its next copy carries the mark, whatever is written until then.
    void mark(std::size_t word);
    /// The source is looked at once more: what is not put() from now on is zero.
    void forget();
    void set_all_dirty() { dirty_.add_all(); }
    [[nodiscard]] bool is_dirty() const { return !dirty_.empty(); }

    enum class Pass { others, sync };
    /// Gives the dirty words of a kind, and makes them clean: visit(word, words, has_mark), runs of
    /// at most `most` words, sync words one by one.
    template <class Visit>
    void copy(Pass pass, std::size_t most, Visit visit) {
        for (std::size_t at = dirty_.next(0); at < words(); at = dirty_.next(at)) {
            const bool is_sync = sync_.has(at);
            if (is_sync != (pass == Pass::sync)) {
                ++at;
                continue;
            }
            std::size_t end = at + 1;
            while (!is_sync && end < words() && end - at < most && dirty_.has(end) &&
                   !sync_.has(end))
                ++end;
            const bool has_mark = due_.has(at);
            RMEM_CHECK_IF(false, is_sync || !has_mark);
            for (std::size_t word = at; word < end; ++word) {
                dirty_.remove(word);
                due_.remove(word);
            }
            visit(at,
                  std::span<const std::byte>(bytes_).subspan(at * kWordBytes,
                                                             (end - at) * kWordBytes),
                  has_mark);
            at = end;
        }
        RMEM_CHECK(is_dirty() || due_.empty());
    }

private:
    std::vector<std::byte> bytes_;
    WordSet dirty_;
    WordSet sync_;
    WordSet due_;  ///< dirty ones that were written with the interrupt mark
};

}  // namespace bridge
