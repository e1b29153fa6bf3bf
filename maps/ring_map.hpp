// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The map that a ring has in it (rmem/ring/map_text.hpp), and the one that RMEM_MAP names.
///
/// A ring has one map at most: the first who comes with one gives it, and who comes with another is
/// refused. So programs and tools that are on this host need no file.
/// Thread safety: any thread. A map that was read is kept for the next call.
/// Errors: rmem::Error(bad_map): another map than the ring's, with the first difference; one that
/// does not fit the ring; one that cannot be read.

#include "maps/map.hpp"
#include "rmem/ring/owners.hpp"
#include "rmem/ring/ring.hpp"

#include <memory>
#include <string>

namespace maps {

using SharedMap = std::shared_ptr<const Map>;

/// A file's, each variable in its place; read once for as long as the file is as it was.
RMEM_API SharedMap shared_map(const std::string& path);
/// RMEM_MAP's; null: it is unset.
RMEM_API SharedMap map_setting();

/// The ring's; null: it has none. Of one that has no room in it, RMEM_MAP's.
RMEM_API SharedMap map_of(const rmem::Ring& ring);
RMEM_API void give_map(const rmem::Ring& ring, const Map& map);
/// The ring's, which gets RMEM_MAP's where it has none. Null: nobody has one.
RMEM_API SharedMap agreed_map(const rmem::Ring& ring);

/// Has the ring look after the variables' owners, and where the map has canaries after what is
/// between them. Before programs come: those that are there already are not looked after.
RMEM_API void give_owners(const rmem::Ring& ring, const Map& map, rmem::OwnerMode mode);

/// Bytes of memory up to the end of the last variable.
RMEM_API std::uint64_t end_of(const Map& map) noexcept;

}  // namespace maps
