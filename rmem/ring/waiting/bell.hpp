// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A bell that one process of this host hears while it waits for descriptors, and others ring.
///
/// A pipe with a name beside the segment's, /dev/shm/rmem-bell.<segment>, made by the listener
/// and kept for its successor; it goes with the segment (Segment::remove). Ringing is for a
/// listener that has said it sleeps: it costs a system call.
///
/// Thread safety: ring() by any thread; the rest by one. Progress: nothing waits; a bell that has
///   been rung thousands of times unheard stays rung.
/// Trust: the contents of the pipe are not looked at. One that another user has made is taken only
///   where it is meant for us (rmem/base/ownership.hpp): its maker could keep others from being
///   heard.
/// Errors: making throws `Error` with system, foreign_segment or not_permitted, nothing else does.

#include "rmem/ring/segment.hpp"

#include <optional>
#include <string>
#include <utility>

namespace rmem {

class RMEM_API Bell {
public:
    /// For the listener; takes over the pipe that its predecessor has left. `group`: the group that
    /// shares the segment (Segment::group); its users may ring, too, and may own the bell.
    static Bell make(const std::string& segment, std::optional<gid_t> group = {});
    /// For the process that rings. Nothing rings where there is no bell yet, or another's.
    static Bell open(const std::string& segment, std::optional<gid_t> group = {});
    /// Removes the name.
    static void remove(const std::string& segment) noexcept;

    void ring() const noexcept;
    [[nodiscard]] bool is_ours() const noexcept { return pipe_.is_ours(); }
    /// To be waited for with poll(2): readable once it was rung.
    int handle() const noexcept { return pipe_.get(); }
    /// Forgets that it was rung.
    void clear() const noexcept;

private:
    explicit Bell(Descriptor pipe) : pipe_(std::move(pipe)) {}
    Descriptor pipe_;
};

}  // namespace rmem
