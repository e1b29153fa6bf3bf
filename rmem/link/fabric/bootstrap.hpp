// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A directory in which the nodes of a ring find each other's addresses: for providers whose
/// addresses nobody knows before, and for ports that the host chooses.
///
/// A node's file is `<ring>.node-<n>`, made aside and renamed, so it is read whole; the node takes
/// it away when it ends. Several rings may share a directory.
/// Thread safety: one user at a time. Progress: each call asks the file system, which may be a
/// network's.
/// Errors: the constructor and publish() throw `Error(bad_environment)` where the directory cannot
/// be written. Trust: what others wrote is an address and nothing more: bounded, its provider
/// compared, a regular file. Keys decide who may speak.

#include "rmem/error.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace rmem::fabric {

class RMEM_API Bootstrap {
public:
    static constexpr std::size_t kMaxProviderNameBytes = 256;
    using Name = std::vector<std::byte>;  ///< as the provider says it

    /// `provider`: names of others are not taken.
    Bootstrap(std::string directory, std::string ring, std::string provider);

    /// This node's, for the others; again where it has been taken away or changed.
    void publish(unsigned node, const Name& name);
    bool is_published(unsigned node, const Name& name) const;
    /// Takes it away, unless another has taken its place.
    void withdraw(unsigned node, const Name& name) noexcept;
    /// What a dead node could not take away: of `segment`, "rig@3", in the directory where
    /// RMEM_GROUP lets the nodes of link fabric meet. A node of that number that is alive elsewhere
    /// publishes its own again.
    static void forget(const std::string& segment) noexcept;
    /// Another node's; none: it has not said, or what is there is no name.
    [[nodiscard]] std::optional<Name> find(unsigned node) const;

private:
    std::string path_of(unsigned node) const;
    std::string text_of(const Name& name) const;

    std::string directory_, ring_, provider_;
};

}  // namespace rmem::fabric
