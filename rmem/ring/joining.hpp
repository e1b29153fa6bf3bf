// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Joining the ring that the environment names; a ring that is there already supplies the settings
/// that the environment does not.
///
/// A ring that is alive on this host has a configuration, and a process that has been given a part
/// of one only (its name and a rank are enough) takes the rest from it; the part must agree. Where
/// no such ring is, the process makes it of its own settings and the defaults.
/// Thread safety: functions; the environment is read as by getenv.
/// Errors: `rmem::Error`: config_mismatch with both values of each setting that differs, and those
/// of Ring::open.

#include "rmem/base/clock.hpp"
#include "rmem/ring/config.hpp"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace rmem {

class Ring;

/// A variable, and its value as a user gives it.
using GivenSetting = std::pair<const char*, std::string>;

/// The settings of users that make a ring; not the system regions, which follow from others.
RMEM_API std::vector<GivenSetting> settings_of(const RingConfig& config);

/// A setting of which a ring and a process that joins it have two values, as their users give them.
struct Difference {
    const char* variable;
    std::string there, here;
};

/// In what those differ.
RMEM_API std::vector<Difference> differences_of(const RingConfig& there, const RingConfig& here);

/// The error that names them all.
RMEM_API Error settings_differ(const std::string& ring, const std::vector<Difference>& differences);

/// Throws config_mismatch where that time namespace is not the own one: writes carry the times of a
/// monotonic clock that all share. 0: it is not known.
RMEM_API void refuse_other_clock(const std::string& ring, std::uint64_t theirs);

/// The environment with what it leaves open as the ring has it. Throws where it says otherwise.
RMEM_API Environment completed(const Environment& environment, const RingConfig& there);

struct Joined {
    std::shared_ptr<Ring> ring;
    Member member;
};

/// The ring that a process asks for, by a completed environment and the ring that is there (null:
/// none).
using Wish = std::function<RingConfig(const Environment&, const RingConfig* there)>;

/// `to_make`: the configuration of a ring that has to be made; empty: as wished.
RMEM_API Joined join_ring(const Environment& environment, Deadline deadline, const Wish& wish,
                          const std::function<RingConfig(const Environment&)>& to_make = {});

}  // namespace rmem
