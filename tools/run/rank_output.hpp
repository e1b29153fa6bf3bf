// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Turns what ranks print into whole lines with a label: `[2] text`.
///
/// Lines of different ranks never mix. A line without an end (a prompt) is shown after a moment of
/// silence; if another rank prints then, its end is made up. A line longer than kMaxLine is broken.
/// Invariants, executed: no more than kMaxLine is held, and time does not go back; a label is of
/// one of the ranks.

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

namespace tools {

inline constexpr std::size_t kMaxLine = std::size_t{1} << 16;
inline constexpr std::int64_t kPromptNs = 100'000'000;  ///< silence after which a prompt is shown

/// The lines of one rank's one stream.
class LineBuffer {
public:
    /// Called with each line, without its end; `whole` is false for a prompt.
    using Sink = std::function<void(std::string_view line, bool whole)>;

    explicit LineBuffer(Sink sink) : sink_(std::move(sink)) {}

    void add(std::string_view text, std::int64_t now_ns);
    /// Shows a prompt whose time has come.
    void tick(std::int64_t now_ns);
    /// When `tick` should be called; never: the largest number.
    std::int64_t due_ns() const;
    /// Shows what is left.
    void end();

private:
    Sink sink_;
    std::string held_;
    std::int64_t last_ns_ = 0;
};

/// Labelled lines on the launcher's own stdout and stderr.
class LabelledOutput {
public:
    explicit LabelledOutput(unsigned ranks);

    /// Returns false once the descriptor has no reader any more.
    bool line(unsigned rank, int fd, std::string_view text, bool whole);
    /// Ends a prompt that is there, before something else is printed.
    void finish_line();

private:
    std::string label(unsigned rank, int fd) const;

    unsigned ranks_;
    std::size_t digits_;
    bool colour_out_, colour_err_;
    int open_rank_ = -1;  ///< whose prompt is at the end of the screen
    int open_fd_ = -1;
};

/// Writes all of it; returns false if there is no reader.
bool write_all(int fd, std::string_view text);

}  // namespace tools
