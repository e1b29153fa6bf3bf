// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace rmem::stores {

/// Takes what a program stores into a view of its bank, one store after the other.
class StoreTaker {
public:
    /// One store: when this returns, it is in the own bank and on its way. Called by the thread
    /// that stores, between two of its instructions; from several threads at once.
    virtual void take(std::size_t offset, const void* from, std::size_t bytes) noexcept = 0;

protected:
    ~StoreTaker() = default;
};

}  // namespace rmem::stores
