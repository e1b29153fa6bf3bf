// SPDX-License-Identifier: Apache-2.0
#include "rmem/link/udp/key_file.hpp"

#include "rmem/base/small_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sodium.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>

namespace rmem::udp {

namespace {

constexpr std::size_t kHexDigits = 2 * MasterKey::kBytes;
/// Hex digits and some white space; what is longer is no key.
constexpr std::size_t kMaxBytes = 256;
constexpr std::string_view kWhiteSpace = " \t\r\n\v\f";
constexpr std::string_view kHex = "0123456789abcdefABCDEF";

constexpr const char* kMakeOne =
    "copy the other nodes' key here, or make one with `rmem key` and copy it to them";

/// Bytes that are overwritten at the end of their scope.
template <std::size_t size>
struct Secret : std::array<char, size> {
    Secret() = default;
    Secret(const Secret&) = delete;
    Secret& operator=(const Secret&) = delete;
    ~Secret() { sodium_memzero(this->data(), size); }
};

[[noreturn]] void refuse(const std::string& path, const std::string& why) {
    throw Error(Errc::bad_key, fmt::format("key file '{}' {}", path, why));
}

[[noreturn]] void fail(const std::string& path, const char* doing, int error) {
    throw Error(Errc::system,
                fmt::format("key file '{}': {}: {}", path, doing, system_words(error)));
}

Descriptor open_to_read(const std::string& path) {
    // Without waiting, in case it is a pipe that nobody writes to.
    Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
    if (file.get() >= 0) return file;
    if (errno == ENOENT || errno == ENOTDIR) {
        refuse(path, fmt::format("is missing; {}", kMakeOne));
    }
    if (errno == EACCES || errno == EPERM) {
        refuse(path,
               fmt::format("may not be read by user {}; give it to that user (`chown`), or run "
                           "as its owner",
                           ::geteuid()));
    }
    fail(path, "opening it", errno);
}

void check_who_may_read(const std::string& path, const Descriptor& file) {
    struct stat status {};
    if (::fstat(file.get(), &status) != 0) fail(path, "looking at it", errno);
    if (!S_ISREG(status.st_mode)) {
        refuse(path, "is a directory, device or pipe; name a regular file that holds the key");
    }
    if (status.st_uid != ::geteuid() && status.st_uid != 0) {
        refuse(path,
               fmt::format("belongs to user {}, who could change it; it must be owned by user {} "
                           "or root (`chown`)",
                           status.st_uid, ::geteuid()));
    }
    if ((status.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
        refuse(path,
               fmt::format("has mode {:04o}, so others than its owner may use it; `chmod 600` it, "
                           "and if they may have read it, use a new key on all nodes",
                           status.st_mode & 07777U));
    }
}

/// How many bytes there are, at most as many as fit.
std::size_t read_all(const std::string& path, const Descriptor& file, std::span<char> into) {
    std::size_t count = 0;
    while (count < into.size()) {
        const auto got = ::read(file.get(), into.data() + count, into.size() - count);
        if (got == 0) break;
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) fail(path, "reading it", errno);
        count += static_cast<std::size_t>(got);
    }
    return count;
}

bool is_hex(std::string_view text) {
    return text.find_first_not_of(kHex) == std::string_view::npos;
}

std::string_view trimmed(std::string_view text) {
    const auto first = text.find_first_not_of(kWhiteSpace);
    if (first == std::string_view::npos) return {};
    return text.substr(first, text.find_last_not_of(kWhiteSpace) - first + 1);
}

MasterKey key_of_bytes(const std::string& path, std::span<const char, MasterKey::kBytes> raw) {
    if (std::all_of(raw.begin(), raw.end(), [](char c) { return c == 0; })) {
        refuse(path, fmt::format("holds zero bytes only, which anybody guesses; {}", kMakeOne));
    }
    return MasterKey(std::as_bytes(raw));
}

MasterKey key_of_hex(const std::string& path, std::string_view digits) {
    Secret<MasterKey::kBytes> raw;
    std::size_t count = 0;
    if (sodium_hex2bin(reinterpret_cast<unsigned char*>(raw.data()), raw.size(), digits.data(),
                       digits.size(), nullptr, &count, nullptr) != 0 ||
        count != raw.size()) {
        refuse(path, fmt::format("cannot be read as hex digits; {}", kMakeOne));
    }
    return key_of_bytes(path, raw);
}

MasterKey key_of(const std::string& path, std::string_view contents) {
    const std::string_view text = trimmed(contents);
    if (text.size() == kHexDigits && is_hex(text)) return key_of_hex(path, text);
    if (is_hex(text) && !text.empty()) {
        refuse(path, fmt::format("holds {} hex digits; a key has {}: {}", text.size(), kHexDigits,
                                 kMakeOne));
    }
    if (contents.size() == MasterKey::kBytes) {
        return key_of_bytes(path, std::span<const char, MasterKey::kBytes>(contents));
    }
    refuse(path, fmt::format(
                     "holds {} bytes, which are no key: a key is {} hex digits or {} raw bytes; {}",
                     contents.size() == kMaxBytes ? "too many" : fmt::to_string(contents.size()),
                     kHexDigits, MasterKey::kBytes, kMakeOne));
}

void write_all(const std::string& path, const Descriptor& file, std::span<const char> bytes) {
    while (!bytes.empty()) {
        const auto put = ::write(file.get(), bytes.data(), bytes.size());
        if (put < 0 && errno == EINTR) continue;
        if (put < 0) fail(path, "writing it", errno);
        bytes = bytes.subspan(static_cast<std::size_t>(put));
    }
    if (::fsync(file.get()) != 0) fail(path, "writing it to the disk", errno);
}

void make_key(Secret<kHexDigits + 1>& hex) {
    Secret<MasterKey::kBytes> raw;
    randombytes_buf(raw.data(), raw.size());
    sodium_bin2hex(hex.data(), hex.size(), reinterpret_cast<const unsigned char*>(raw.data()),
                   raw.size());
    hex.back() = '\n';  // in place of the end of the string
}

}  // namespace

MasterKey read_key(const std::string& path) {
    need_sodium();
    const Descriptor file = open_to_read(path);
    check_who_may_read(path, file);
    Secret<kMaxBytes> contents;
    const std::size_t count = read_all(path, file, contents);
    return key_of(path, {contents.data(), count});
}

void write_new_key(const std::string& path) {
    need_sodium();
    const Descriptor file(
        ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (file.get() < 0) {
        if (errno != EEXIST) fail(path, "making it", errno);
        refuse(path,
               "exists, and nodes may use its key; name a new file, or remove this one first");
    }
    Secret<kHexDigits + 1> hex;
    make_key(hex);
    try {
        write_all(path, file, hex);
    } catch (...) {
        ::unlink(path.c_str());
        throw;
    }
}

Descriptor new_key_without_name() {
    need_sodium();
    const std::string what = "in memory";
    Descriptor file(::memfd_create("rmem-key", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    if (file.get() < 0) fail(what, "making it", errno);
    if (::fchmod(file.get(), 0600) != 0) fail(what, "chmod of it", errno);
    Secret<kHexDigits + 1> hex;
    make_key(hex);
    write_all(what, file, hex);
    constexpr int kSeals = F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
    if (::fcntl(file.get(), F_ADD_SEALS, kSeals) != 0) fail(what, "sealing it", errno);
    return file;
}

}  // namespace rmem::udp
