// SPDX-License-Identifier: Apache-2.0
#include "rmem/error.hpp"

namespace rmem {

const char* name_of(Errc code) noexcept {
    switch (code) {
        case Errc::invalid_argument: return "invalid-argument";
        case Errc::bad_environment: return "bad-environment";
        case Errc::bad_rank: return "bad-rank";
        case Errc::bad_node_count: return "bad-node-count";
        case Errc::bad_size: return "bad-size";
        case Errc::bad_profile: return "bad-profile";
        case Errc::bad_fault: return "bad-fault";
        case Errc::bad_key: return "bad-key";
        case Errc::unknown_link: return "unknown-link";
        case Errc::version_mismatch: return "version-mismatch";
        case Errc::config_mismatch: return "config-mismatch";
        case Errc::foreign_segment: return "foreign-segment";
        case Errc::no_such_ring: return "no-such-ring";
        case Errc::no_space: return "no-space";
        case Errc::rank_taken: return "rank-taken";
        case Errc::not_permitted: return "not-permitted";
        case Errc::timed_out: return "timed-out";
        case Errc::bad_recording: return "bad-recording";
        case Errc::bad_map: return "bad-map";
        case Errc::no_fabric: return "no-fabric";
        case Errc::system: return "system";
    }
    return "unknown";
}

Error::Error(Errc code, const std::string& sentence)
    : std::runtime_error(sentence + " [" + name_of(code) + "]"), code_(code) {}

std::string Error::sentence() const {
    const std::string text = what();
    return text.substr(0, text.rfind(" ["));
}

}  // namespace rmem
