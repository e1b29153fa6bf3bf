// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The values that a user means by OFFSET or NAME.
///
/// A name is one of the ring's map; what is no name is an offset, and then --as says the type.
/// Thread safety: functions of their arguments.
/// Errors: UsageError for an offset or a type that is none, and for a name where the ring has no
/// map; rmem::Error(bad_map) for a name that the map does not have, with the nearest.

#include "maps/leaf.hpp"
#include "maps/ring_map.hpp"
#include "rmem/ring/ring.hpp"
#include "tools/json.hpp"
#include "tools/options.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tools {

/// The options of a command that have such a place.
struct GivenPlace {
    std::string ring, place, as;
    std::optional<std::uint64_t> count;
    std::optional<unsigned> node;

    /// RING and OFFSET, and --as and --node; `whose`: what the node is asked for.
    void add_to(cli::App& command, const char* whose);
    void add_count(cli::App& command, std::uint64_t most);

    /// Whether it is meant by what --as says, u32 if nothing.
    bool is_of_type() const noexcept { return !as.empty() || !maps::is_path(place); }
    /// That type. Throws what is wrong with the line, whatever the ring.
    maps::Cell type() const;
};

struct Meant {
    maps::SharedMap map;  ///< null: by its offset
    std::vector<maps::Leaf> leaves;
    std::uint64_t repeats = 1;  ///< by its offset: the one leaf, as often, one behind the other

    bool is_named() const noexcept { return map != nullptr; }
    std::uint64_t size() const noexcept { return repeats == 1 ? leaves.size() : repeats; }
    maps::Leaf leaf(std::uint64_t index) const;  ///< below size()
    std::uint64_t begin() const noexcept;
    std::uint64_t end() const noexcept;
    /// For people: the name, or the offset.
    std::string label(const maps::Leaf& leaf) const;
    /// "1000 m"
    std::string text(const maps::Leaf& leaf, std::span<const std::byte> bytes) const;
    nlohmann::json json(const maps::Leaf& leaf, std::span<const std::byte> bytes) const;
};

Meant meant_by(const GivenPlace& given, const rmem::Ring& ring);

/// An offset, or the place of a name: for options such as --from.
std::uint64_t offset_option(const std::string& option, const std::string& text,
                            const rmem::Ring& ring);

}  // namespace tools
