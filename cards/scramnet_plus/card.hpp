// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The card of a process: a node of a ring, its registers (CSRs), and an auxiliary control RAM
/// (ACR) for each long word of the memory.
///
/// What a register's bits do here is said in scrhwd.h and scrplus.h; a bit that does nothing is
/// kept. Status comes from the node: CSR1 has a bit for each of its counters of errors that has
/// moved since the last read.
/// Thread safety: any thread, but the destructor. Calls of the node that rmem.h gives to one thread
///   at a time come one after the other; a transfer that waits for room lets others in between.
/// Errors: -1, with the sentence in rmem_last_error().
/// Trust: offsets, lengths, numbers and values are a program's, and checked here; buffers are as
///   large as it says. A file that is loaded is checked for its size alone, since anything may be
///   in the memory.
/// Units: bytes, unless they are long words; ticks of the counter in CSR13 are as its mode says.
/// Source: the SC150e's hardware reference, and the vendor's headers.

#include "cards/common/card_node.hpp"
#include "cards/scramnet_plus/scrplus.h"
#include "rmem/base/failures.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace cards::scramnet_plus {

inline constexpr int kDone = 0;
inline constexpr int kRefused = -1;

[[gnu::cold]] inline int refuse(std::string_view sentence) {
    static_cast<void>(rmem::fail(RMEM_EINVAL, sentence));
    return kRefused;
}

/// For a call of rmem.h; where it has failed it has left its sentence.
inline int result_of(int code) {
    return code >= RMEM_OK ? kDone : kRefused;
}

class Card {
public:
    static constexpr unsigned kRegisters = 16;

    Card(unsigned unit, OwnNode node);
    ~Card();
    Card(const Card&) = delete;
    Card& operator=(const Card&) = delete;

    unsigned unit() const { return node_.unit(); }
    std::size_t memory_bytes() const { return node_.memory_bytes(); }

    // ---- Memory
    /// For plain stores.
    [[nodiscard]] int map(void*& memory) const;
    /// Whole long words, turned round as the byte order says.
    [[nodiscard]] int read(std::size_t offset, void* to, std::size_t bytes);
    [[nodiscard]] int write(std::size_t offset, const void* from, std::size_t bytes);
    [[nodiscard]] int fill(std::uint32_t value);
    [[nodiscard]] int save(const char* path);
    [[nodiscard]] int load(const char* path);
    [[nodiscard]] int set_byte_order(unsigned char mode);
    [[nodiscard]] unsigned char byte_order();
    /// Waits until own writes have arrived, a while at most.
    void await_arrival();

    // ---- Registers
    /// 0xFFFF for one that there is not.
    [[nodiscard]] std::uint16_t read_register(unsigned number);
    [[nodiscard]] int write_register(unsigned number, std::uint16_t value);
    /// The bits of `mask` become those of `bits`.
    [[nodiscard]] int change_register(unsigned number, std::uint16_t mask, std::uint16_t bits);
    /// CSR1 without clearing it.
    [[nodiscard]] std::uint16_t status();
    void reset();
    /// The fields of CSR3, whatever CSR8_IDMX says.
    struct Identity {
        std::uint8_t own, receive;
        std::uint8_t first_age = 0;  ///< of messages
    };
    /// Calls `body` with them.
    template <class Body>
    void on_identity(Body&& body) {
        const auto lock = node_.lock();
        body(identity_);
    }
    /// Those with a program that runs.
    [[nodiscard]] unsigned present_nodes();

    // ---- Interrupts
    [[nodiscard]] std::uint8_t acr(std::size_t word);
    [[nodiscard]] int set_acr(std::size_t word, std::uint8_t value);
    [[nodiscard]] int fill_acrs(std::uint8_t value);
    [[nodiscard]] int save_acrs(const char* path);
    [[nodiscard]] int load_acrs(const char* path);
    /// The oldest address, out of the FIFO; nothing: it is empty.
    [[nodiscard]] std::optional<std::uint32_t> take_interrupt();

private:
    // ---- Memory
    [[nodiscard]] int check_range(std::size_t offset, const void* buffer, std::size_t bytes) const;
    [[nodiscard]] int put(std::size_t offset, const std::byte* from, std::size_t bytes);

    // ---- Registers. Called under the lock.
    [[nodiscard]] bool writes_me_last() const { return has(SCR_CSR2, CSR2_DHMW | CSR2_WOS); }
    [[nodiscard]] bool has(unsigned number, std::uint16_t bits) const {
        return (registers_[number] & bits) == bits;
    }
    [[nodiscard]] int set_register(unsigned number, std::uint16_t value);
    [[nodiscard]] int set_modes(unsigned number, std::uint16_t value);
    [[nodiscard]] std::uint16_t identity() const;
    [[nodiscard]] Identity identity_of_node() const {
        const auto id = static_cast<std::uint8_t>(node_.id());
        return {id, id};
    }
    [[nodiscard]] std::uint16_t look_at_status();

    // ---- The counter of CSR13
    enum class Counting { errors, triggers, round, events, time, slow_time };
    [[nodiscard]] Counting counting() const;
    [[nodiscard]] std::uint64_t counter_source() const;
    [[nodiscard]] std::uint16_t measure_round();
    [[nodiscard]] std::uint16_t read_counter();
    void start_counter(std::uint16_t from);

    // ---- Interrupts
    struct Effect {
        bool watches = false;
        bool marks = false;
        bool operator==(const Effect&) const = default;
    };
    [[nodiscard]] Effect effect_of(std::uint8_t acr) const;
    [[nodiscard]] int trigger() const;
    std::uint8_t acr_at(std::size_t word) const { return word < acrs_.size() ? acrs_[word] : 0; }
    [[nodiscard]] int apply_effect(std::size_t word, std::size_t words, Effect effect);
    [[nodiscard]] int apply_acrs();
    void drop_effects();
    [[nodiscard]] bool has_interrupt();
    void empty_fifo();

    const CardNode node_;

    // Under its lock.
    std::array<std::uint16_t, kRegisters> registers_{};
    Identity identity_;
    unsigned char byte_order_ = Long_mode;
    bool is_armed_ = false;
    std::uint16_t latched_ = 0;        ///< of CSR1
    CountedErrors errors_;             ///< that CSR1 has not latched yet
    std::uint64_t counter_base_ = 0;   ///< CSR13 is this and its source
    std::uint64_t counter_wraps_ = 0;  ///< that CSR1 has latched
    std::uint16_t last_round_ = 0;
    std::vector<std::uint8_t> acrs_;  ///< empty: all are 0
    bool has_effects_ = false;
    std::optional<std::uint32_t> first_;  ///< out of the FIFO: what CSR5 and CSR4 show
};

}  // namespace cards::scramnet_plus
