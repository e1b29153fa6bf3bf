// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The target's half of a bridge's end: frames of the other end in, writes for the target ring out.
///
/// Trust: a frame is another site's. It is taken if its number is the next one, and each of its
///   pieces lies in a region of the configuration; its words go to that region's place and nowhere
///   else. Words for a region that is not admitted now are left out.
/// Invariants, executed: a frame is taken when the last one was delivered, and delivered once.
/// Thread safety: one thread.
/// Units: bytes of the target's memory.

#include "bridge/message.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace bridge {

/// A region that an end receives.
struct ReceivedRegion {
    std::string name;
    std::uint64_t at = 0, bytes = 0;  ///< whole words of the target's memory
};

/// A frame as it is to be written, with one commit.
struct Delivery {
    struct Write {
        std::size_t region = 0;  ///< of those that the end receives
        std::uint64_t offset = 0;
        std::span<const std::byte> words;
        bool is_interrupt = false;
    };
    FrameHead head;
    std::vector<Write> writes;
};

class Receiver {
public:
    explicit Receiver(std::vector<ReceivedRegion> regions);

    [[nodiscard]] std::size_t regions() const { return regions_.size(); }
    [[nodiscard]] const ReceivedRegion& region(std::size_t index) const {
        return regions_[index].received;
    }
    [[nodiscard]] std::optional<std::size_t> find(const std::string& name) const;

    /// A line has come: the other end calls its regions by numbers of its own.
    void begin();
    void call(std::uint16_t number, std::size_t region);
    [[nodiscard]] std::optional<std::size_t> called(std::uint16_t number) const;
    /// Whether what comes for it is written.
    void admit(std::size_t region, bool is_admitted);
    [[nodiscard]] bool is_admitted(std::size_t region) const {
        return regions_[region].is_admitted;
    }

    /// False: it is no frame that an end of this configuration sends next.
    [[nodiscard]] bool take(std::span<const std::byte> body);
    /// The frame that is to be written now; null if there is none.
    [[nodiscard]] const Delivery* delivery() const { return is_waiting_ ? &delivery_ : nullptr; }
    void delivered();
    /// The last frame that was written, or left out.
    [[nodiscard]] std::uint64_t taken() const { return taken_; }

private:
    struct Region {
        ReceivedRegion received;
        bool is_admitted = false;
    };

    std::vector<Region> regions_;
    std::vector<std::optional<std::size_t>> called_;  ///< by the other end's number
    std::vector<std::byte> body_;                     ///< of the delivery
    FrameMessage frame_;
    Delivery delivery_;
    bool is_waiting_ = false;
    std::uint64_t taken_ = 0;
};

}  // namespace bridge
