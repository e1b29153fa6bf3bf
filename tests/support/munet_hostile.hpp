// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A pair of honest endpoints, and a third whose program writes anything anywhere in its own
/// memory, at one relay. Whatever it writes, each message of the pair arrives once, whole and in
/// order, and nothing is touched that is not the third's (the memory of each lies between guard
/// pages). Frames of another node may be anything, too.
///
///     EXPECT_EQ(run_beside_a_liar(Choices(seed), 1000), "");
///
/// Used with a seed by tests, and with bytes by fuzz/fuzz_relay.cpp.

#include "ports/munet/program.hpp"
#include "ports/munet/relay.hpp"
#include "tests/support/hostile_bank.hpp"

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <span>
#include <string>
#include <tuple>
#include <vector>

namespace rmem::test {

class BesideALiar final : ports::munet::Edge, ports::munet::Surroundings {
public:
    explicit BesideALiar(Choices choices) : choices_(choices) {
        for (std::size_t i = 0; i < kEndpoints; ++i) open(i);
        // So that the liar has slots and places that mean something.
        for (const std::size_t to : {0U, 1U, 2U}) {
            std::ignore = programs_[2].send(address(to), "", 0, deadline());
        }
        std::ignore = programs_[0].send(address(2), "", 0, deadline());
    }

    std::string run(unsigned steps) {
        for (unsigned i = 0; i < steps && violation_.empty() && !choices_.used_up(); ++i) one();
        for (unsigned i = 0; i < 1000 && violation_.empty() && received_ != sent_; ++i) {
            relay_.turn();
            receive();
        }
        if (violation_.empty() && received_ != sent_) {
            violate(fmt::format("{} messages were sent and {} arrived", sent_, received_));
        }
        if (violation_.empty() && counters_[1].get(ports::munet::Counter::no_room) != 0) {
            violate("a message to an honest program was dropped");
        }
        return violation_;
    }

private:
    using Address = ports::munet::Address;
    static constexpr std::size_t kEndpoints = 3;
    static constexpr ports::munet::Geometry kGeometry{
        .send_bytes = 2048, .receive_lines = 66, .senders = 4};

    static Address address(std::size_t endpoint) {
        return {0, static_cast<std::uint8_t>(endpoint)};
    }
    static rmem::Deadline deadline() { return rmem::Deadline::now(); }
    void violate(std::string what) { violation_ = std::move(what); }

    void open(std::size_t i) {
        memory_[i] = {guarded_[i].last(kGeometry.bytes()), kGeometry.bytes()};
        relay_.open(memory_[i], kGeometry, static_cast<std::uint32_t>(i), {&counters_[i], 1});
    }

    // Surroundings and edge
    void ring() noexcept override {}
    void begin_wait() noexcept override {}
    int pause(rmem::Deadline) override {
        relay_.turn();
        return ++pauses_ % 16 == 0 ? -ETIMEDOUT : 0;
    }
    void end_wait() noexcept override {}
    Sent send(unsigned, std::span<const std::byte>, std::span<const std::byte>) override {
        return choices_.below(4) == 0 ? Sent::full : Sent::yes;
    }
    void wake(unsigned) noexcept override {}

    void one() {
        switch (choices_.below(12)) {
            case 0:
            case 1: return honest_send();
            case 2: return receive();
            case 3:
            case 4: relay_.turn(); return;
            case 5: return scribble();
            case 6: return state_words();
            case 7: return frame();
            case 8: relay_.lose(1); return;
            default: return descriptor();
        }
    }
    void honest_send() {
        std::vector<std::byte> bytes(4 + choices_.below(700));
        for (std::size_t i = 4; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(sent_ + i);
        std::memcpy(bytes.data(), &sent_, sizeof sent_);
        auto& program = programs_[0];
        // A message in parts that was given up halfway is not to arrive, so honest ones go in
        // one.
        const bool fits = bytes.size() <= ports::munet::kInline;
        const int result =
            fits ? program.send(address(1), bytes.data(), bytes.size(), deadline())
                 : program.send_dma(address(1), bytes.data(), bytes.size(), deadline());
        if (result == 0) {
            ++sent_;
        } else if (result != -ETIMEDOUT && result != -EMSGSIZE) {
            violate(fmt::format("an honest send failed with {}", result));
        }
    }
    void receive() {
        std::array<std::byte, 4096> bytes;
        while (true) {
            Address from;
            const int size = programs_[1].recv(bytes.data(), bytes.size(), &from);
            if (size < 0) return;
            if (from != address(0)) continue;  // the liar may send, too
            std::uint32_t number = 0;
            std::memcpy(&number, bytes.data(), sizeof number);
            if (size < 4 || number != received_) {
                return violate(fmt::format("message {} came in place of {}", number, received_));
            }
            for (std::size_t i = 4; i < static_cast<std::size_t>(size); ++i) {
                if (bytes[i] != static_cast<std::byte>(number + i)) return violate("bytes changed");
            }
            ++received_;
        }
    }

    // The liar's actions
    void scribble() {
        const std::size_t at = choices_.below(static_cast<std::uint32_t>(kGeometry.bytes() / 4));
        const std::uint32_t word = choices_.word();
        std::memcpy(memory_[2].data() + at * 4, &word, sizeof word);
    }
    void state_words() {
        ports::munet::ProgramWords& words =
            ports::munet::EndpointMemory(memory_[2], kGeometry).program();
        // relaxed is enough: one thread
        words.consumed.store(
            choices_.below(2) == 0 ? choices_.below(200) : std::uint64_t{choices_.word()} << 24,
            std::memory_order_relaxed);
        words.sleeps.store(choices_.below(2), std::memory_order_relaxed);
    }
    void descriptor() {
        auto* entries = ports::munet::EndpointMemory(memory_[2], kGeometry).descriptors();
        // It does not know where the relay is: all of them, as the next lap's or this one's.
        ports::munet::Control control{
            .mark = static_cast<std::uint8_t>(1 + choices_.below(2)),
            .kind = static_cast<ports::munet::Kind>(choices_.below(9)),
            .index = static_cast<std::uint8_t>(choices_.below(choices_.below(2) == 0 ? 4 : 256)),
            .length = choices_.below(4) == 0 ? choices_.word() : choices_.below(200)};
        const std::uint64_t credit =
            choices_.below(3) == 0
                ? ports::munet::Credit{true, static_cast<std::uint8_t>(choices_.below(6)),
                                       choices_.below(100)}
                      .word()
                : 0;
        const std::uint64_t first = choices_.below(2) == 0 ? choices_.below(3000) : choices_.word();
        for (unsigned i = 0; i < ports::munet::kDescriptors; ++i) {
            entries[i].credit = credit;
            std::memcpy(entries[i].data.data(), &first, sizeof first);
            // relaxed is enough: one thread
            entries[i].control.store(control.word(), std::memory_order_relaxed);
        }
    }
    void frame() {
        ports::munet::FrameHead head;
        std::array<std::uint32_t, sizeof head / 4> words;
        for (auto& word : words) word = choices_.word();
        std::ignore = ports::munet::read_head(std::as_bytes(std::span(words)), &head);
        head.type = static_cast<ports::munet::FrameType>(choices_.below(13));
        head.endpoint =
            choices_.below(3) == 0 ? head.endpoint : 2;  // an honest one has no such sender
        head.index %= 6;
        if (choices_.below(2) == 0) head.length = choices_.below(300);
        std::vector<std::byte> bytes(sizeof head + choices_.below(200));
        std::memcpy(bytes.data(), &head, sizeof head);
        relay_.deliver(choices_.below(3), bytes);
    }

    Choices choices_;
    std::array<rmem::Counters, kEndpoints> counters_{};
    std::array<GuardedBytes, kEndpoints> guarded_{GuardedBytes(kGeometry.bytes()),
                                                  GuardedBytes(kGeometry.bytes()),
                                                  GuardedBytes(kGeometry.bytes())};
    std::array<std::span<std::byte>, kEndpoints> memory_{
        std::span(guarded_[0].last(kGeometry.bytes()), kGeometry.bytes()),
        std::span(guarded_[1].last(kGeometry.bytes()), kGeometry.bytes()),
        std::span(guarded_[2].last(kGeometry.bytes()), kGeometry.bytes())};
    ports::munet::Relay relay_{{.node = 0, .nodes = 2}, *this};
    std::array<ports::munet::Program, kEndpoints> programs_{
        ports::munet::Program(memory_[0], kGeometry, address(0), *this),
        ports::munet::Program(memory_[1], kGeometry, address(1), *this),
        ports::munet::Program(memory_[2], kGeometry, address(2), *this)};
    std::uint32_t sent_ = 0, received_ = 0;
    unsigned pauses_ = 0;
    std::string violation_;
};

inline std::string run_beside_a_liar(Choices choices, unsigned steps) {
    return BesideALiar(choices).run(steps);
}

}  // namespace rmem::test
