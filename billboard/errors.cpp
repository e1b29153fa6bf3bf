// SPDX-License-Identifier: Apache-2.0
#include "billboard/errors.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

namespace billboard {

namespace {
thread_local rmem::KeptSentence sentence_of_last_failure;

/// "rank 3", "ranks 1, 2"
std::string names(std::span<const int> ranks) {
    return fmt::format("rank{} {}", ranks.size() == 1 ? "" : "s", fmt::join(ranks, ", "));
}
}  // namespace

int fail(int code, const std::string& sentence) {
    sentence_of_last_failure.keep(sentence);
    return code;
}

void exchange_last_error(rmem::KeptSentence& sentence) noexcept {
    std::swap(sentence_of_last_failure, sentence);
}

const char* last_error() noexcept {
    return sentence_of_last_failure.c_str();
}

int receive_timed_out(int src) {
    return fail(BBP_ETIMEDOUT, fmt::format("no whole message from {} came within the deadline; "
                                           "allow more time, or find out what delays the sender",
                                           src < 0 ? "any rank" : names({&src, 1})));
}

int send_timed_out(std::span<const int> dests) {
    return fail(BBP_ETIMEDOUT, fmt::format("{} made no room for the message within the deadline; "
                                           "let receivers read, or allow more time",
                                           names(dests)));
}

int barrier_timed_out(std::span<const int> missing) {
    return fail(BBP_ETIMEDOUT,
                fmt::format("the barrier was not complete within the deadline{}; enter it again, "
                            "or find out what delays the others",
                            missing.empty() ? "" : " (missing: " + names(missing) + ")"));
}

int code_of(rmem::Errc error) noexcept {
    using rmem::Errc;
    switch (error) {
        case Errc::bad_rank: return BBP_ERANK;
        case Errc::version_mismatch: return BBP_EVERSION;
        case Errc::foreign_segment: return BBP_ECORRUPT;
        case Errc::no_space: return BBP_ENOMEM;
        case Errc::rank_taken: return BBP_EBUSY;
        case Errc::timed_out: return BBP_ETIMEDOUT;
        case Errc::not_permitted:
        case Errc::no_such_ring:
        case Errc::bad_recording:  // no call of the billboard reads one
        case Errc::system: return BBP_ESYS;
        case Errc::invalid_argument:
        case Errc::bad_environment:
        case Errc::bad_size:
        case Errc::bad_node_count:
        case Errc::bad_profile:
        case Errc::bad_fault:
        case Errc::bad_key:
        case Errc::unknown_link:
        case Errc::config_mismatch: return BBP_EINVAL;
    }
    return BBP_ESYS;
}

}  // namespace billboard
