// SPDX-License-Identifier: Apache-2.0
#include "billboard/errors.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>

namespace billboard {

namespace {
/// "rank 3", "ranks 1, 2"
std::string names(std::span<const int> ranks) {
    return fmt::format("rank{} {}", ranks.size() == 1 ? "" : "s", fmt::join(ranks, ", "));
}
}  // namespace

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

}  // namespace billboard
