// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A node on a host of the lab, as a program of its own: what it waits for comes within two
/// minutes, or it ends with exit status 1 and a sentence. When the others drop it, it begins again.
/// Thread safety: one thread. Errors: rmem::Error.

#include "rmem/error.hpp"
#include "rmem/node.hpp"
#include "rmem/ring/ring.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <cstdio>
#include <exception>
#include <string>

namespace rmem::test {

/// The others have dropped this node: what it wrote before is nowhere.
struct Dropped {};

class LabNode {
protected:
    [[noreturn]] void fail(const std::string& what) const {
        throw Error(Errc::timed_out, fmt::format("node {}: {}", node_.id(), what));
    }

    unsigned nodes() const { return node_.config().nodes; }

    void write(std::size_t offset, std::uint32_t value) {
        for (;;) {
            const WriteResult result = node_.write_word(offset, value);
            if (result == WriteResult::ok) return;
            if (result == WriteResult::dropped) throw Dropped();
            if (deadline_.passed(now_ns())) fail("no room for a write in time");
            node_.poll();
        }
    }

    void await(std::size_t offset, std::uint32_t least) {
        constexpr std::int64_t kLookNs = 100'000'000;  // whether it is a member still
        for (std::uint32_t found = node_.load(offset); found < least;) {
            found = node_.wait_change(offset, found, Deadline::in(kLookNs));
            if (!node_.is_member()) throw Dropped();
            if (deadline_.passed(now_ns()) && found < least)
                fail(fmt::format("the word at {:#x} is {} instead of {}", offset, found, least));
        }
    }

    void flush() {
        if (!node_.flush(deadline_)) fail("the others do not have all in time");
    }

    const Deadline deadline_ = Deadline::in(120'000'000'000);
    Node node_ = Node::open();
};

/// Runs a program of two numbers: `begin(first, second, times that it was dropped)`, until it is
/// dropped no more.
template <class Begin>
int run_lab_program(int argc, char** argv, const char* usage, Begin begin) {
    if (argc != 3) {
        std::fprintf(stderr, "usage: %s\n", usage);
        return 2;
    }
    try {
        for (unsigned dropped = 0;; ++dropped) {
            try {
                begin(std::stoll(argv[1]), std::stoll(argv[2]), dropped);
                return 0;
            } catch (const Dropped&) {
                // its words are written again, by a new incarnation
            }
        }
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s: %s\n", argv[0], error.what());
        return 1;
    }
}

}  // namespace rmem::test
