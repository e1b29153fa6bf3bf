// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Threads of one body, which are told their numbers, and waited for.
///
///     Threads(4, [&](unsigned t) { store(t); }).join();
///     const Threads others(2, reader);                   // until the end of the block

#include <thread>
#include <vector>

namespace rmem::test {

class Threads {
public:
    template <class Body>
    Threads(unsigned count, const Body& body) {
        for (unsigned t = 0; t < count; ++t) threads_.emplace_back(body, t);
    }
    void join() { threads_.clear(); }

private:
    std::vector<std::jthread> threads_;
};

}  // namespace rmem::test
