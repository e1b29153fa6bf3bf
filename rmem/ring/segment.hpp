// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A named piece of this host's shared memory, with byte locks that tell who is alive.
///
/// Terms
///   segment     the POSIX shared memory object /dev/shm/rmem.<ring>, mapped whole, between pages
///               that nobody may touch (rmem/ring/mapping.hpp)
///   byte lock   an open-file-description lock on one byte of it. The kernel drops it when its
///               holder ends, however it ends, so "is it locked?" answers "is the holder alive?"
///               across threads, process id re-use and pid namespaces, and nobody has to clean up.
/// Thread safety: distinct objects are independent; one object is used by one thread at a time,
///   except `is_locked`, which any thread may call.
/// Fork: a child does not inherit liveness, and the inherited objects hold, ask and remove nothing.
/// A program that closes descriptors which are not its own (rmem/base/descriptor.hpp) keeps its
///   locks; what needs the descriptor fails, and touches no file of the program's.
/// Trust: an object of another user is opened only where it is meant for us
/// (rmem/base/ownership.hpp).
/// Errors: `rmem::Error` with no_space, not_permitted, no_such_ring, foreign_segment, system.
/// Space is reserved at creation (posix_fallocate), so a small /dev/shm is an error, not a SIGBUS.

#include "rmem/base/descriptor.hpp"
#include "rmem/base/ownership.hpp"
#include "rmem/error.hpp"
#include "rmem/ring/mapping.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace rmem {

/// One byte lock held by this object's own open file description. A mapping alone keeps that, which
/// no child inherits, whatever call has made it, but one that shares all memory; and a program that
/// closes what is not its own lets go of no lock.
class RMEM_API ByteLock {
public:
    ByteLock() = default;
    ByteLock(ByteLock&& other) noexcept;
    ByteLock& operator=(ByteLock&& other) noexcept;
    ~ByteLock() { release(); }

    bool held() const noexcept { return page_ != nullptr && process_ == process_id(); }
    void release() noexcept;

private:
    friend class Segment;
    explicit ByteLock(void* page) : page_(page), process_(process_id()) {}
    void* page_ = nullptr;
    pid_t process_ = 0;
};

inline constexpr std::uint64_t kLifeCycleByte = 0;  ///< locked while a ring is made or removed
inline constexpr std::size_t kSegmentHeaderBytes =
    4096;  ///< SegmentHeader (rmem/ring/ring.hpp) in it

class RMEM_API Segment {
public:
    struct Created;
    /// Makes a new object of `bytes` zeroed bytes, and `sparse_bytes` behind them that have no
    /// memory yet; nothing when the name exists. `byte` is locked before the name can be found, so
    /// a process that finds the object can tell whether its maker is alive.
    static std::optional<Created> create(const std::string& ring, std::size_t bytes,
                                         const std::string& unix_group, std::uint64_t byte,
                                         std::size_t sparse_bytes = 0);
    /// Maps an existing object, as large as it is by now; nothing when there is none.
    /// `foreign_segment` for what is no file, `not_permitted` for another user's.
    [[nodiscard]] static std::optional<Segment> open(
        const std::string& ring, const Trust& trust = {},
        Mapping::Access access = Mapping::Access::load_and_store);
    /// Whether anything has the name.
    [[nodiscard]] static bool exists(const std::string& ring);
    /// The user who has made what has the name, for people; empty when there is nothing.
    static std::string owner(const std::string& ring);
    /// Removes the name; those who have it mapped keep it. False when there was none.
    static bool remove(const std::string& ring);
    /// The rings of this host that this process may look at, by name; and other users' rings.
    static std::vector<std::string> list();
    /// Those of one ring: its own, or of its nodes.
    static std::vector<std::string> list_of(const std::string& ring);
    static std::vector<std::string> others();
    /// "/rmem.<ring>": the name in /dev/shm, for messages.
    static std::string object_name(const std::string& ring);

    std::byte* data() const noexcept { return mapping_.data(); }
    std::size_t size() const noexcept { return mapping_.size(); }

    /// A second mapping of the bytes from `place` on: the beginning of a page of this one.
    [[nodiscard]] Mapping map_again(const std::byte* place, std::size_t bytes,
                                    Mapping::Access access) const;

    /// Gives the bytes from `place` on, which is in this mapping, memory; or takes it away, and
    /// what they hold.
    void reserve(const std::byte* place, std::size_t bytes) const;
    void give_back(const std::byte* place, std::size_t bytes) const noexcept;

    /// The group that shares it; nothing: none.
    std::optional<gid_t> group() const;

    /// False once the name means nothing, or another object.
    bool is_linked() const;
    /// False when the object has another size than the mapping: it was being made.
    bool is_whole() const;

    /// The first byte from `offset` on that was ever touched, or not; the size where there is none.
    /// What was not touched is zeros, and has no memory behind it until it is read. Where the host
    /// cannot tell, all counts as touched.
    std::size_t next_touched(std::size_t offset) const noexcept;
    std::size_t next_untouched(std::size_t offset) const noexcept;

    /// Takes the lock on `byte` if nobody holds it (a shared lock: if nobody holds it exclusively).
    [[nodiscard]] std::optional<ByteLock> try_lock(std::uint64_t byte) const;
    [[nodiscard]] std::optional<ByteLock> try_lock_shared(std::uint64_t byte) const;
    /// Whether somebody holds a lock in [byte, byte + count); locks of other objects in this
    /// process count. One system call.
    bool is_locked(std::uint64_t byte, std::uint64_t count = 1) const noexcept;

private:
    Segment(std::string ring, Descriptor fd, Mapping mapping);
    int own() const noexcept;
    std::string own_path() const;
    std::optional<ByteLock> lock_with(short type, std::uint64_t byte) const;

    std::string ring_;
    Descriptor fd_;
    Mapping mapping_;
};

struct Segment::Created {
    Segment segment;
    ByteLock lock;
};

}  // namespace rmem
