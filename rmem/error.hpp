// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Errors of setting a ring up: one code for each kind of trouble, one sentence for people.
///
/// Setting up (opening a ring, claiming a rank, reading the environment) throws `rmem::Error`.
/// Data paths never throw: they return values, because back-pressure and dead peers are expected.
///
/// The sentence names the object, what was found and what to do. `name_of(code)` is stable and
/// is explained in rmem-errors(7), so users can search for the message.

#include <stdexcept>
#include <string>

#if defined(__GNUC__)
#define RMEM_API __attribute__((visibility("default")))
#else
#define RMEM_API
#endif

namespace rmem {

enum class Errc : int {
    invalid_argument = 1,  ///< an argument that can never be right
    bad_environment,       ///< an RMEM_ variable that cannot be read as what it should be
    bad_rank,              ///< a rank or node outside the ring
    bad_node_count,        ///< zero nodes, or more than a ring holds
    bad_size,              ///< a memory size that is zero, too large or no multiple of the word
    bad_profile,           ///< a timing profile that does not exist
    bad_fault,             ///< a fault that RMEM_FAULTS cannot mean
    bad_key,               ///< a key file that is missing, open to others, or holds no key
    unknown_link,          ///< a link that does not exist or is not for this use
    version_mismatch,      ///< a ring made by another version or with another layout
    config_mismatch,       ///< a ring that exists with another configuration
    foreign_segment,       ///< a shared memory object that is no ring, or a half-written one
    no_such_ring,          ///< no ring of that name on this host
    no_space,              ///< the host's shared memory is too small for the ring
    rank_taken,            ///< another live process has claimed that rank
    not_permitted,         ///< the host refuses access to the ring
    timed_out,             ///< others did not come in time
    bad_recording,         ///< a file that is no recording, or whose header is damaged
    bad_map,               ///< a map that cannot be read, or another one than the ring's
    no_fabric,             ///< libfabric, or a provider of it that can carry a ring, is missing
    system                 ///< a system call failed in a way that has no name here
};

/// The code's stable name, e.g. "rank-taken".
RMEM_API const char* name_of(Errc code) noexcept;

/// A failed set-up. `what()` is "<sentence> [<name>]".
class RMEM_API Error : public std::runtime_error {
public:
    Error(Errc code, const std::string& sentence);
    Errc code() const noexcept { return code_; }
    /// what() without the name.
    std::string sentence() const;

private:
    Errc code_;
};

}  // namespace rmem
