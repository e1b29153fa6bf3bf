// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The file with the key that all nodes of a ring share (RMEM_KEY_FILE).
///
/// The file: 32 raw bytes, or 64 hex digits with white space around them. It must be a regular file
/// that belongs to the user of the program, or to root, and that nobody else may read or write.
/// The opened file is asked, not its name, so that a swap in between changes nothing.
///
/// Thread safety: the functions share nothing.
/// Errors: `Error(bad_key)` for a file that is no good, `Error(system)` for what the host refuses.
/// The sentence names the file, what was found and what to do; it never quotes the file's contents.

#include "rmem/error.hpp"
#include "rmem/link/udp/protocol/master_key.hpp"
#include "rmem/ring/segment.hpp"

#include <string>

namespace rmem::udp {

/// The key in that file.
RMEM_API MasterKey read_key(const std::string& path);

/// Makes a file with a new random key, as hex digits, for its owner alone (mode 0600), and waits
/// until it is on the disk. A file that exists already is an error: others may have its key.
RMEM_API void write_new_key(const std::string& path);

/// The same without a name, in memory: other processes of this user may read it as
/// /proc/<process>/fd/<number>, as long as this process keeps the descriptor. It leaves nothing
/// behind.
RMEM_API Descriptor new_key_without_name();

}  // namespace rmem::udp
