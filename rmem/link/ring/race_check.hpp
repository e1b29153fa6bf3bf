// SPDX-License-Identifier: Apache-2.0
#pragma once

/// RMEM_CHECK=writers: finds bytes that two nodes write at the same time.
///
/// Reflective memory orders the writes of one node, not those of two. When a node writes a byte
/// while another node's write to it is under way, the first one's bank ends with the other's value
/// and the other banks may end with this one's: the banks differ until somebody writes it
/// again. On the card nobody notices. This checker does, at the node whose own write was overtaken:
/// each pair is found once, by the node that wrote second.
///
/// Cost: 8 bytes per word of the bank, in the process that checks, as far as the node writes it.
/// Thread safety: one thread at a time (the one that runs the node's engine).
/// Limits: of several own writes to a word only the newest is remembered.

#include "rmem/base/word_block.hpp"
#include "rmem/error.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace rmem {

/// Two writes of one word, of which neither saw the other.
struct WriterRace {
    std::uint64_t offset = 0;           ///< of the word
    std::uint32_t node = 0;             ///< wrote second, and reports
    std::uint32_t other = 0;            ///< wrote first
    std::int64_t written_ns = 0;        ///< by `node`
    std::int64_t other_written_ns = 0;  ///< by `other`
    std::int64_t other_arrived_ns = 0;  ///< at `node`
    WordPart part = kWholeWord;         ///< bytes that both wrote
};

/// One line for people: names the nodes, the offset and the times.
RMEM_API std::string to_string(const WriterRace& race);

class RMEM_API RaceChecker {
public:
    using Report = std::function<void(const WriterRace&)>;

    /// The default report prints to stderr, the first kMaxLines races.
    static constexpr unsigned kMaxLines = 32;

    RaceChecker(std::uint32_t node, std::size_t bank_bytes, Report report = nullptr);

    /// The node wrote these words itself.
    void wrote(std::uint64_t offset, std::uint32_t words, std::int64_t time_ns,
               WordPart part = kWholeWord) noexcept;
    /// Another node's write reaches this node. Returns the number of races, each reported.
    unsigned arrives(std::uint32_t origin, std::uint64_t offset, std::uint32_t words,
                     std::int64_t written_ns, std::int64_t arrival_ns, WordPart part = kWholeWord);

    void set_report(Report report) { report_ = std::move(report); }

private:
    /// The time of a write, and its part in the lowest bits; 0: there was none.
    struct Written {
        std::int64_t value;

        static constexpr std::int64_t kParts = kWholeWord + 1;
        std::int64_t time_ns() const noexcept { return value / kParts; }
        WordPart part() const noexcept { return static_cast<WordPart>(value % kParts); }
    };
    struct Free {
        void operator()(Written* written) const noexcept;
    };

    void print(const WriterRace& race);

    std::uint32_t node_;
    std::size_t words_;
    std::unique_ptr<Written[], Free> written_;  ///< per word
    Report report_;
    unsigned printed_ = 0;
};

}  // namespace rmem
