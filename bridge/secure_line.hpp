// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Keys and encryption of the line between two half-bridges: bytes of the one side in, bytes for
/// the TCP connection out, and the other way round. docs/design/bridge.md lists the threats.
///
/// Each side sends a greeting in the clear: magic, version, a fresh X25519 key. From both fresh
/// keys (crypto_kx), the shared key and both greetings come two keys, one for each way, under which
/// libsodium's secretstream carries the rest. The first message is empty: that it opens shows that
/// the other side has the key. The last one is marked, so that a cut is told from an end.
///
/// Invariants, executed: nothing is sent before there are keys; less than a message has come
///   that is not taken yet.
/// Errors: problem() is empty while the line is as it should be; then nothing more is taken.
/// Trust: nothing is given to the caller that the other side has not sent, in that order.
/// Thread safety: one thread.
/// Source: libsodium's key exchange and secretstream.

#include "rmem/base/frames.hpp"
#include "rmem/link/udp/protocol/master_key.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace bridge {

class SecureLine {
public:
    enum class Side { caller, listener };

    static constexpr std::uint16_t kVersion = 1;
    static constexpr std::size_t kGreetingBytes = 40;
    static constexpr std::size_t kMaxPlainBytes = std::size_t{16} << 10;  ///< of one message

    /// Puts the greeting out. Throws Error(system) where libsodium does not start.
    SecureLine(const rmem::udp::MasterKey& key, Side side);
    ~SecureLine();
    SecureLine(const SecureLine&) = delete;
    SecureLine& operator=(const SecureLine&) = delete;

    /// Bytes of the connection, in any pieces.
    void receive(std::span<const std::byte> bytes);
    /// What the other side has said; it stays until plain() is called again.
    [[nodiscard]] std::vector<std::byte> take_plain() { return std::exchange(plain_, {}); }
    /// Whether the other side has shown that it has the key.
    [[nodiscard]] bool is_ready() const { return is_ready_; }
    /// Whether the other side has said its last.
    [[nodiscard]] bool has_ended() const { return has_ended_; }
    [[nodiscard]] const std::string& problem() const { return problem_; }

    /// Once the other side's greeting has come.
    void send(std::span<const std::byte> plain);
    void send_last();
    [[nodiscard]] bool has_output() const { return !out_.empty(); }
    /// For the connection.
    [[nodiscard]] rmem::ByteQueue& out() { return out_; }

private:
    struct Keys;
    struct Wipe {
        void operator()(Keys* keys) const noexcept;
    };

    [[nodiscard]] bool take_greeting();
    [[nodiscard]] bool take_header();
    [[nodiscard]] bool take_message();
    void make_keys(std::span<const std::byte> theirs);
    void seal(std::span<const std::byte> plain, unsigned char tag);
    void fail(const std::string& sentence);

    const Side side_;
    std::unique_ptr<Keys, Wipe> keys_;
    std::array<std::byte, kGreetingBytes> greeting_{};
    std::vector<std::byte> came_;  ///< and not taken yet
    std::vector<std::byte> plain_;
    rmem::ByteQueue out_;
    enum class Waits { greeting, header, message } waits_ = Waits::greeting;
    bool is_ready_ = false, has_ended_ = false;
    std::string problem_;
};

}  // namespace bridge
