// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The key that all nodes of a ring share, and the file it lies in (RMEM_KEY_FILE).
///
/// The file: 32 raw bytes, or 64 hex digits with white space around them. It must be a regular file
/// that belongs to who runs the program, or to root, and that nobody else may read or write.
/// Who is asked is the opened file, not its name, so that a swap in between changes nothing.
///
/// Thread safety: a key may be read by any thread; the functions share nothing.
/// Errors: `Error(bad_key)` for a file that is no good, `Error(system)` for what the host refuses. The
/// sentence names the file, what was found and what to do; it never quotes the file's contents.

#include "rmem/error.hpp"
#include "rmem/ring/segment.hpp"

#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace rmem::udp {

/// 32 secret bytes, in memory of their own that is read-only, kept from swap and core dumps as far as
/// the host allows, and overwritten at the end.
class RMEM_API MasterKey {
public:
    static constexpr std::size_t kBytes = 32;

    /// Copies; overwriting the source is the caller's.
    explicit MasterKey(std::span<const std::byte, kBytes> bytes);

    std::span<const std::byte, kBytes> bytes() const noexcept {
        return std::span<const std::byte, kBytes>(bytes_.get(), kBytes);
    }

private:
    struct Free {
        void operator()(std::byte* bytes) const noexcept;
    };
    std::unique_ptr<std::byte[], Free> bytes_;
};

/// The key in that file.
RMEM_API MasterKey read_key(const std::string& path);

/// Makes a file with a new random key, as hex digits, for its owner alone (mode 0600), and waits until
/// it is on the disk. A file that exists already is an error: others may have its key.
RMEM_API void write_new_key(const std::string& path);

/// The same without a name, in memory: other processes of this user may read it as /proc/<process>/fd/<number>, as long as
/// this process keeps the descriptor. It leaves nothing behind.
RMEM_API Descriptor new_key_without_name();

}  // namespace rmem::udp
