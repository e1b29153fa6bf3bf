// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "rmem/link/udp/engine.hpp"
#include "rmem/ring/membership.hpp"
#include "rmem/ring/node_board.hpp"
#include "rmem/ring/write_log.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>

namespace rmem::udp {

/// A program that runs an engine, as rmem/link/udp/memory.hpp does: by its log.
class EngineProgram {
public:
    EngineProgram(const std::shared_ptr<Ring>& ring, unsigned node, unsigned rank, Engine& engine)
        : board_(ring->board()),
          rank_(rank),
          engine_(engine),
          membership_(ring, Member{rank, node}),
          log_(ring->log(rank)) {
        board_.begun[rank].store(log_.head());
        board_.opened[rank].store(board_.membership_epoch.load());
        change();
    }
    std::uint32_t incarnation() const { return membership_.incarnation(); }
    void leave() {
        board_.opened[rank_].store(0);
        change();
    }
    void append(std::uint32_t value, std::size_t offset = 0, std::int64_t written_ns = now_ns()) {
        LogRecord record;
        record.words = 1;
        record.offset = offset;
        record.written_ns = written_ns;
        log_.reclaim(board_.consumed[rank_].load());
        ASSERT_TRUE(log_.fits(1));
        log_.append(record, &value);
    }
    /// Whether all of it leaves.
    bool commit(Leaving leaving = Leaving::all) {
        board_.committed[rank_].store(log_.head());
        return engine_.take(leaving, now_ns()) == kNever;
    }
    void commit_and_ask() {
        board_.committed[rank_].store(log_.head());
        engine_.take_and_ask();
    }
    bool post(std::uint32_t value, std::size_t offset = 0) {
        append(value, offset);
        return commit();
    }
    bool is_consumed() const { return board_.consumed[rank_].load() == log_.head(); }
    bool is_completed() const { return board_.completed[rank_].load() == log_.head(); }

private:
    void change() {
        board_.membership_changes.fetch_add(1);
        engine_.run();
    }

    NodeBoard& board_;
    const unsigned rank_;
    Engine& engine_;
    Membership membership_;
    LogWriter log_;
};

}  // namespace rmem::udp
