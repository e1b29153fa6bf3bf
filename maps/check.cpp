// SPDX-License-Identifier: Apache-2.0
#include "maps/check.hpp"

#include "rmem/base/limits.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <tuple>
#include <utility>

namespace maps {

namespace {

class Checker {
public:
    explicit Checker(const Map& map) : map_(map) {}

    std::vector<Finding> run() {
        sort();
        for (const Variable& one : map_.variables()) check_alone(one);
        check_neighbours();
        check_shared(rmem::kWordBytes);
        check_shared(rmem::kLineBytes);
        sum_up();
        std::stable_sort(findings_.begin(), findings_.end(),
                         [](const Finding& a, const Finding& b) {
                             return std::pair(a.weight == Finding::Weight::note, a.line) <
                                    std::pair(b.weight == Finding::Weight::note, b.line);
                         });
        return std::move(findings_);
    }

private:
    using Weight = Finding::Weight;

    std::uint64_t end_of(const Variable& one) const noexcept {
        return one.offset + map_.bytes_of(one.type);
    }
    std::string named(const Variable& one) const {
        return fmt::format("'{}' ({}, {:#x} to {:#x}, {})", one.name, map_.name_of(one.type),
                           one.offset, end_of(one) - 1, text_of(one.owner));
    }
    void find(Weight weight, std::string sentence, unsigned line = 0, unsigned other_line = 0) {
        findings_.push_back({weight, std::move(sentence), line, other_line});
    }

    void sort() {
        const auto variables = map_.variables();
        placed_.reserve(variables.size());
        for (std::uint32_t i = 0; i < variables.size(); ++i) {
            if (variables[i].is_placed()) placed_.emplace_back(variables[i].offset, i);
        }
        if (!std::is_sorted(placed_.begin(), placed_.end()))
            std::sort(placed_.begin(), placed_.end());
    }
    const Variable& at(std::size_t place) const { return map_.variables()[placed_[place].second]; }

    void check_alone(const Variable& one) {
        const RingFacts& ring = map_.ring;
        const std::size_t bytes = map_.bytes_of(one.type);
        if (one.is_placed()) {
            const std::size_t alignment = map_.alignment_of(one.type);
            if (one.offset % alignment != 0) {
                find(Weight::error,
                     fmt::format("{} is not at a multiple of {} bytes, as its type needs; move it "
                                 "to {:#x}",
                                 named(one), alignment,
                                 (one.offset + alignment - 1) / alignment * alignment),
                     one.line);
            }
            if (ring.bytes != 0 && end_of(one) > ring.bytes) {
                find(Weight::error,
                     fmt::format("{} ends behind the memory, which has {:#x} bytes; move it, or "
                                 "give the ring more (bytes)",
                                 named(one), ring.bytes),
                     one.line);
            }
        } else {
            ++unplaced_;
        }
        const bool is_node = one.owner.kind == Owner::Kind::node;
        const unsigned most = is_node ? ring.nodes : ring.ranks;
        if (one.owner.kind != Owner::Kind::nobody && most != 0 && one.owner.number >= most) {
            find(Weight::error,
                 fmt::format("'{}' belongs to {}, and the ring has {} {}s, which count from 0; "
                             "correct its owner, or the ring's {}s",
                             one.name, text_of(one.owner), most, is_node ? "node" : "rank",
                             is_node ? "node" : "rank"),
                 one.line);
        }
        if (one.minimum > one.maximum) {
            find(Weight::error,
                 fmt::format("'{}' has a minimum of {} above its maximum of {}; exchange them",
                             one.name, one.minimum, one.maximum),
                 one.line);
        }
        check_initial(one);
        const bool is_text = one.type.structure == Type::kNoStructure && one.type.cell.is_text();
        if (bytes > rmem::kWordBytes && !is_text) {
            if (torn_++ == 0) first_torn_ = &one;
        }
    }

    void check_initial(const Variable& one) {
        if (one.initial.empty()) return;
        const bool is_value = one.type.structure == Type::kNoStructure && !one.type.is_array;
        const auto bytes = is_value ? value_bytes(one.type.cell, one.initial) : std::nullopt;
        const bool fits = bytes && (!one.type.cell.is_text() || bytes->size() <= one.type.count);
        if (fits) return;
        find(
            Weight::error,
            fmt::format("'{}' begins with '{}', which is not {}; correct it", one.name, one.initial,
                        !is_value ? "for arrays and structures"
                        : one.type.cell.is_text()
                            ? fmt::format("a text of less than {} bytes", one.type.count)
                            : wanted_of(one.type.cell)),
            one.line);
    }

    /// The one that reaches farthest is kept: a small one may lie in it, and another behind that.
    void check_neighbours() {
        std::size_t farthest = 0;
        for (std::size_t i = 1; i < placed_.size(); ++i) {
            const Variable &before = at(farthest), &one = at(i);
            if (one.offset < end_of(before)) {
                const bool is_other = before.owner != one.owner;
                find(Weight::error,
                     fmt::format("{} and {} overlap{}; move one of them", named(before), named(one),
                                 is_other ? ", and have two writers" : ""),
                     before.line, one.line);
            } else {
                if (one.offset != end_of(before)) ++holes_;
                hole_bytes_ += one.offset - end_of(before);
            }
            if (end_of(one) > end_of(before)) farthest = i;
        }
    }

    /// Two owners in one word, or line.
    void check_shared(std::size_t unit) {
        const bool is_word = unit == rmem::kWordBytes;
        for (std::size_t i = 1; i < placed_.size(); ++i) {
            const Variable &before = at(i - 1), &one = at(i);
            const bool shares =
                end_of(before) <= one.offset && (end_of(before) - 1) / unit == one.offset / unit;
            if (!shares || before.owner == one.owner || before.owner.kind == Owner::Kind::nobody ||
                one.owner.kind == Owner::Kind::nobody)
                continue;
            if (!is_word) {
                if (before.rate_hz >= kOften && one.rate_hz >= kOften) ++shared_lines_;
                continue;
            }
            if (map_.ring.sends_whole_words) {
                find(Weight::error,
                     fmt::format("{} and {} share a word, and this card sends whole words: each "
                                 "takes the other's bytes back; move one of them",
                                 named(before), named(one)),
                     before.line, one.line);
            } else {
                ++shared_words_;
            }
        }
    }

    void sum_up() {
        const auto note = [&](std::size_t count, const std::string& sentence) {
            if (count != 0) find(Weight::note, sentence);
        };
        note(unplaced_, fmt::format("{} of {} variables have no offset; `rmem map pack` gives them "
                                    "one",
                                    unplaced_, map_.variables().size()));
        if (torn_ != 0) {
            find(Weight::note,
                 fmt::format("{} values are larger than the {} bytes that are stored at once, '{}' "
                             "on line {} is the first: a reader may see half of a new one; write "
                             "them in frames, or publish them",
                             torn_, rmem::kWordBytes, first_torn_->name, first_torn_->line));
        }
        note(shared_words_,
             fmt::format("in {} words two write, each bytes of its own", shared_words_));
        note(shared_lines_, fmt::format("in {} lines of {} bytes two write often: on one host each "
                                        "of their stores fetches the line; move them apart",
                                        shared_lines_, rmem::kLineBytes));
        note(holes_, fmt::format("{} bytes in {} holes are nobody's", hole_bytes_, holes_));
    }

    const Map& map_;
    std::vector<std::pair<std::uint64_t, std::uint32_t>> placed_;  ///< by their offsets
    std::vector<Finding> findings_;
    const Variable* first_torn_ = nullptr;
    std::size_t unplaced_ = 0, torn_ = 0, holes_ = 0, shared_words_ = 0, shared_lines_ = 0;
    std::uint64_t hole_bytes_ = 0;
};

}  // namespace

std::vector<Finding> check(const Map& map) {
    return Checker(map).run();
}

bool has_errors(const std::vector<Finding>& findings) {
    return std::any_of(findings.begin(), findings.end(),
                       [](const Finding& one) { return one.weight == Finding::Weight::error; });
}

}  // namespace maps
