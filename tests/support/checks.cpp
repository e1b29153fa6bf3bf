// SPDX-License-Identifier: Apache-2.0
#include "tests/support/checks.hpp"

#include "billboard/bbp.h"

#include <cstring>

namespace rmem::test {

Place* last_place = nullptr;

namespace {

const char* base_name(const char* path) {
    const char* slash = std::strrchr(path, '/');
    return slash == nullptr ? path : slash + 1;
}

}  // namespace

CheckFailed::CheckFailed(Place place, std::string_view text)
    : std::runtime_error(fmt::format("{}:{}: {}", base_name(place.file), place.line, text)) {}

void fail(std::string_view text, Place place) {
    throw CheckFailed(place, text);
}

std::string code_name(int code) {
    switch (code) {
        case BBP_OK: return "BBP_OK (0)";
        case BBP_EAGAIN: return "BBP_EAGAIN (-1)";
        case BBP_EINVAL: return "BBP_EINVAL (-2)";
        case BBP_ERANK: return "BBP_ERANK (-3)";
        case BBP_ESIZE: return "BBP_ESIZE (-4)";
        case BBP_EPEER: return "BBP_EPEER (-5)";
        case BBP_ETIMEDOUT: return "BBP_ETIMEDOUT (-6)";
        case BBP_ENOMEM: return "BBP_ENOMEM (-7)";
        case BBP_ESYS: return "BBP_ESYS (-8)";
        case BBP_ECORRUPT: return "BBP_ECORRUPT (-9)";
        case BBP_EVERSION: return "BBP_EVERSION (-10)";
        case BBP_EBUSY: return "BBP_EBUSY (-11)";
        default: return fmt::format("{}", code);
    }
}

void check_code(int found, int expected, std::string_view what, Place place) {
    passing(place);
    if (found == expected) return;
    const char* said = bbp_last_error();
    fail(fmt::format("{}{}expected {}, found {}; bbp_last_error(): \"{}\"", what,
                     what.empty() ? "" : ": ", code_name(expected), code_name(found),
                     found < 0 && said != nullptr ? said : ""),
         place);
}

void check_refused(int found, std::string_view what, Place place) {
    passing(place);
    if (found >= 0) {
        fail(fmt::format("{}: expected an error, found {}", what, code_name(found)), place);
    }
    const char* said = bbp_last_error();
    if (said == nullptr || *said == '\0') {
        fail(fmt::format("{}: {} without a word in bbp_last_error()", what, code_name(found)),
             place);
    }
}

void check_said(std::string_view words, Place place) {
    const std::string said = bbp_last_error();
    check(said.find(words) != std::string::npos,
          fmt::format("\"{}\" does not say \"{}\"", said, words), place);
}

}  // namespace rmem::test
