// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A file that only grows, by whole pieces: recordings and captures are such files.
///
/// Thread safety: one thread at a time.
/// Errors: the constructor throws Error; the rest returns false, and failure() says why. After a
/// failed append the file ends with the piece before (if the system lets it be shortened), and
/// nothing more is written.

#include "rmem/error.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace rmem {

class RMEM_API OutputFile {
public:
    /// Makes the file, readable by its owner alone, as the ring is. One of that name is replaced
    /// only if `replace`, and keeps its mode.
    OutputFile(std::string path, bool replace);
    ~OutputFile();
    OutputFile(const OutputFile&) = delete;
    OutputFile& operator=(const OutputFile&) = delete;

    /// One write(2), unless the system takes less. All of the piece is there, or false and nothing.
    bool append(std::span<const std::byte> piece);
    /// Waits until the disk has it all.
    bool sync();
    /// Once; tells what the system has found out only now.
    bool close();

    bool failed() const noexcept { return error_ != 0; }
    /// The error of the first failure, no_space or system: it names the failed operation, and
    /// `kept`.
    Error failure(const std::string& kept) const;
    std::uint64_t bytes() const noexcept { return bytes_; }
    const std::string& path() const noexcept { return path_; }

private:
    bool fail(int error) noexcept;

    std::string path_;
    int fd_;
    int error_ = 0;  ///< errno of the first failure
    std::uint64_t bytes_ = 0;
};

}  // namespace rmem
