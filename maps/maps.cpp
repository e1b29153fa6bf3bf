// SPDX-License-Identifier: Apache-2.0
#include "maps/maps.h"

#include "maps/names.hpp"
#include "rmem/base/failures.hpp"
#include "rmem/node_impl.hpp"

#include <fmt/format.h>

#include <cstdio>

namespace {

/// Calls `body` with the names of the node's memory.
template <class Body>
int by_name(rmem_node* node, const char* path, const void* place, Body&& body) noexcept {
    if (node == nullptr) return rmem::no_node();
    if (path == nullptr) return rmem::no_place("the name");
    if (place == nullptr) return rmem::no_place("what is found");
    return rmem::guarded([&] {
        body(rmem::Names(rmem::node_of(*node)));
        return static_cast<int>(RMEM_OK);
    });
}

template <class T, class Handle>
int find(rmem_node* node, const char* path, Handle* place) noexcept {
    return by_name(node, path, place, [&](const rmem::Names& names) {
        *place = {node, maps::offset_of(names.map(), path, maps::wanted<T, std::endian::native>())};
    });
}

void copy(const std::string& text, std::span<char> to) {
    static_cast<void>(std::snprintf(to.data(), to.size(), "%s", text.c_str()));
}

}  // namespace

extern "C" {

int rmem_find_bool(rmem_node* node, const char* path, rmem_bool* place) {
    return find<bool>(node, path, place);
}
int rmem_find_u8(rmem_node* node, const char* path, rmem_u8* place) {
    return find<std::uint8_t>(node, path, place);
}
int rmem_find_i8(rmem_node* node, const char* path, rmem_i8* place) {
    return find<std::int8_t>(node, path, place);
}
int rmem_find_u16(rmem_node* node, const char* path, rmem_u16* place) {
    return find<std::uint16_t>(node, path, place);
}
int rmem_find_i16(rmem_node* node, const char* path, rmem_i16* place) {
    return find<std::int16_t>(node, path, place);
}
int rmem_find_u32(rmem_node* node, const char* path, rmem_u32* place) {
    return find<std::uint32_t>(node, path, place);
}
int rmem_find_i32(rmem_node* node, const char* path, rmem_i32* place) {
    return find<std::int32_t>(node, path, place);
}
int rmem_find_f32(rmem_node* node, const char* path, rmem_f32* place) {
    return find<float>(node, path, place);
}
int rmem_find_u64(rmem_node* node, const char* path, rmem_u64* place) {
    return find<std::uint64_t>(node, path, place);
}
int rmem_find_i64(rmem_node* node, const char* path, rmem_i64* place) {
    return find<std::int64_t>(node, path, place);
}
int rmem_find_f64(rmem_node* node, const char* path, rmem_f64* place) {
    return find<double>(node, path, place);
}

int rmem_find_block(rmem_node* node, const char* path, size_t bytes, rmem_block* place) {
    return by_name(node, path, place, [&](const rmem::Names& names) {
        const maps::Place found = names.find(path);
        const std::size_t there = names.map().bytes_of(found.type);
        if (there != bytes || found.field != nullptr) {
            throw rmem::Error(rmem::Errc::bad_map,
                              fmt::format("'{}' has {} bytes in the map, and this program takes it "
                                          "for {}; correct one of them",
                                          path, there, bytes));
        }
        *place = {node, found.offset, bytes};
    });
}

int rmem_find_bits(rmem_node* node, const char* path, rmem_bits* place) {
    return by_name(node, path, place, [&](const rmem::Names& names) {
        const maps::BitPlace at = rmem::Bits(names, path).place();
        *place = {node, at.word, at.mask, at.shift, at.part};
    });
}

int rmem_find(rmem_node* node, const char* path, rmem_place* place) {
    return by_name(node, path, place, [&](const rmem::Names& names) {
        const maps::Place found = names.find(path);
        *place = {};
        place->offset = found.offset;
        place->bytes = names.map().bytes_of(found.type);
        place->count = found.type.count;
        copy(names.map().name_of(found.type), place->type);
        copy(found.leaf->unit, place->unit);
        copy(maps::text_of(found.variable->owner), place->owner);
    });
}

int rmem_expect_map(rmem_node* node, uint64_t hash) {
    return by_name(node, "", node, [&](const rmem::Names& names) { names.expect(hash); });
}

}  // extern "C"
