// SPDX-License-Identifier: Apache-2.0
#include "tools/run/rank_output.hpp"

#include "rmem/base/check.hpp"
#include "rmem/base/time.hpp"
#include "tools/output.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace tools {

namespace {
constexpr std::array<int, 6> kColours = {36, 33, 35, 32, 34, 31};
}

void LineBuffer::add(std::string_view text, std::int64_t now_ns) {
    RMEM_CHECK(held_.size() <= kMaxLine && last_ns_ <= now_ns);
    last_ns_ = now_ns;
    while (!text.empty()) {
        const auto end = text.find('\n');
        const auto part = text.substr(0, end);
        const std::size_t room = kMaxLine - held_.size();
        held_ += part.substr(0, room);
        if (part.size() > room) {  // too long for a line
            text.remove_prefix(room);
        } else {
            text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
            if (end == std::string_view::npos) return;
        }
        sink_(held_, true);
        held_.clear();
    }
}

void LineBuffer::tick(std::int64_t now_ns) {
    if (now_ns < due_ns()) return;
    sink_(held_, false);
    held_.clear();
}

std::int64_t LineBuffer::due_ns() const {
    return held_.empty() ? rmem::kNever : last_ns_ + kPromptNs;
}

void LineBuffer::end() {
    if (!held_.empty()) sink_(held_, true);
    held_.clear();
}

LabelledOutput::LabelledOutput(unsigned ranks)
    : ranks_(ranks),
      digits_(fmt::format("{}", ranks - 1).size()),
      colour_out_(is_colourful(STDOUT_FILENO)),
      colour_err_(is_colourful(STDERR_FILENO)) {
    RMEM_CHECK(ranks > 0);
}

bool LabelledOutput::line(unsigned rank, int fd, std::string_view text, bool whole) {
    RMEM_CHECK(rank < ranks_);
    const bool continues = open_rank_ == static_cast<int>(rank) && open_fd_ == fd;
    if (!continues) finish_line();
    std::string out = continues ? "" : label(rank, fd);
    out += text;
    if (whole) out += '\n';
    open_rank_ = whole ? -1 : static_cast<int>(rank);
    open_fd_ = fd;
    return write_all(fd, out);
}

void LabelledOutput::finish_line() {
    if (open_rank_ >= 0) write_all(open_fd_, "\n");
    open_rank_ = -1;
}

std::string LabelledOutput::label(unsigned rank, int fd) const {
    const std::string plain = fmt::format("[{:>{}}]", rank, digits_);
    if (!(fd == STDOUT_FILENO ? colour_out_ : colour_err_)) return plain + " ";
    return fmt::format("\x1b[{}m{}\x1b[0m ", kColours[rank % kColours.size()], plain);
}

bool write_all(int fd, std::string_view text) {
    while (!text.empty()) {
        const ssize_t written = ::write(fd, text.data(), text.size());
        if (written >= 0) {
            text.remove_prefix(static_cast<std::size_t>(written));
        } else if (errno == EAGAIN) {  // somebody made our stdout non-blocking
            pollfd ready{fd, POLLOUT, 0};
            ::poll(&ready, 1, -1);
        } else if (errno != EINTR) {
            return false;
        }
    }
    return true;
}

}  // namespace tools
