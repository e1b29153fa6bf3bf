// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A node alone in its ring, and what it sends, without an engine.

#include "rmem/link/udp/outbox.hpp"
#include "tests/support/child.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>
#include <span>
#include <vector>

namespace rmem::udp {

/// What a node alone in its ring sends.
class Wire final : public CoreEdge {
public:
    explicit Wire(std::size_t bank_bytes) : bank_(bank_bytes) {}

    /// The words of the batch in each datagram that had one, in the order in which they left.
    std::vector<std::vector<std::uint32_t>> batches;

    void take(std::span<const std::byte> bytes) {
        Datagram datagram;
        ASSERT_EQ(read_datagram(bytes, 1, kDefaultPayload, datagram), Refusal::none);
        Sections sections;
        ASSERT_EQ(read_sections(datagram, sections), Refusal::none);
        for (const Section& section : sections) {
            if (section.type() != SectionType::batch) continue;
            auto& words = batches.emplace_back();
            for (const Record& record : Batch(section).records()) {
                for (std::size_t i = 0; i < record.place.words; ++i) {
                    words.push_back(record.words[i]);
                }
            }
        }
    }
    void apply(unsigned, const Batch&, std::int64_t) override {}
    void store(std::uint64_t, std::uint32_t) override {}
    std::span<const std::byte> bank() override { return bank_; }
    void clear_bank() override {}
    void has_joined(std::int64_t) override {}
    void was_dropped(std::int64_t) override {}
    void member_came(unsigned, std::int64_t) override {}
    void member_left(unsigned, std::int64_t) override {}

private:
    std::vector<std::byte> bank_;
};

class OutboxTest : public ::testing::Test {
protected:
    OutboxTest() {
        while (!core.is_member()) core.on_tick(now += kJoinNs);
        // relaxed is enough: there is one thread
        ring->board().membership_epoch.store(1, std::memory_order_relaxed);
        outbox.begin_incarnation();
        ring->board().opened[0].store(1);
        ring->rank(0).state.store(static_cast<std::uint32_t>(RankState::joined));
        outbox.find_programs();
    }

    static RingConfig config(const test::RingName& name) {
        RingConfig config = name.config(1, LinkKind::udp, 65536);
        config.ranks = 2;
        return config;
    }
    static CoreConfig core_config(const RingConfig& ring) {
        CoreConfig config;
        config.exchange.ring = 1;
        config.exchange.nodes = 1;
        config.exchange.incarnation = 1;
        config.exchange.bank_bytes = ring.bank_bytes();
        return config;
    }
    LogRecord record(std::size_t words, std::uint32_t delay_ns = 0) const {
        return {
            .written_ns = now, .words = static_cast<std::uint32_t>(words), .delay_ns = delay_ns};
    }
    /// Its words are in the bank.
    LogRecord record_in_bank(std::size_t words) const {
        LogRecord made = record(words);
        made.flags = LogRecord::kInBank;
        return made;
    }
    LogRecord record_beyond_the_bank() const {
        LogRecord made = record(1);
        made.offset = ring->config().bank_bytes();
        return made;
    }
    bool put(std::uint32_t value, std::uint32_t delay_ns = 0) {
        return outbox.put(record(1, delay_ns), &value, now);
    }
    /// Into the log of the program that runs the engine.
    void append(const std::vector<std::uint32_t>& words, std::uint32_t delay_ns = 0) {
        log.append(record(words.size(), delay_ns), words.data());
    }
    void commit_log() { ring->board().committed[0].store(log.head()); }
    bool take(Outbox::Take what, std::size_t datagrams = 1000) {
        const bool any = outbox.take(what, datagrams, now);
        outbox.commit(now);
        return any;
    }
    /// What has left.
    const std::vector<std::vector<std::uint32_t>>& batches() {
        core.outgoing().drain([this](const OutgoingDatagram& sent) { wire.take(sent.bytes); });
        return wire.batches;
    }
    static std::vector<std::uint32_t> some_words() {
        std::vector<std::uint32_t> words(10'000);
        std::iota(words.begin(), words.end(), 1);
        return words;
    }
    /// All that is committed, taken two datagrams at a time.
    std::vector<std::uint32_t> words_taken_in_parts() {
        batches();
        for (; outbox.take(Outbox::Take::committed, 2, now); ++takes) {
            most_datagrams = std::max(most_datagrams, core.outgoing().count());
            batches();
        }
        outbox.commit(now);
        std::vector<std::uint32_t> came;
        for (const auto& batch : batches()) came.insert(came.end(), batch.begin(), batch.end());
        return came;
    }

    unsigned takes = 0;
    std::size_t most_datagrams = 0;  ///< of one of these

    test::RingName name;
    std::shared_ptr<Ring> ring = Ring::open(config(name), Deadline::in(1'000'000'000), 0);
    std::int64_t now = 1;
    Authenticator authenticator;
    Wire wire{ring->config().bank_bytes()};
    Core core{core_config(ring->config()), authenticator, wire, now};
    Tap tap{*ring};
    Roster roster{*ring, 0};
    Outbox outbox{*ring, core, tap, roster, 0};
    LogWriter log{ring->log(0)};
};

}  // namespace rmem::udp
