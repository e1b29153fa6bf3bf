// SPDX-License-Identifier: Apache-2.0
#include "rmem/link/fabric/pieces.hpp"

#include "rmem/base/check.hpp"

namespace rmem::fabric {

Pieces::Pieces(Register registrar) : registrar_(std::move(registrar)) {}

void Pieces::grow(Class& of) {
    constexpr std::size_t kLine = 64;
    const std::size_t each = (kMarkBytes + of.room + kLine - 1) / kLine * kLine;
    const std::size_t bytes = each * of.a_slab;
    if (bytes_ + bytes > kMaxBytes) return;
    memory_.push_back(std::make_unique_for_overwrite<std::byte[]>(bytes));
    pieces_.push_back(std::make_unique<Piece[]>(of.a_slab));
    of.free.reserve(of.free.size() + pieces_.size() * of.a_slab);
    std::byte* const memory = memory_.back().get();
    void* const registration = registrar_ ? registrar_(memory, bytes) : nullptr;
    bytes_ += bytes;
    for (std::size_t i = 0; i < of.a_slab; ++i) {
        Piece& piece = pieces_.back()[i];
        piece.memory = memory + i * each;
        piece.room = of.room;
        piece.registration = registration;
        of.free.push_back(&piece);
    }
}

Piece* Pieces::take(std::size_t bytes) {
    Class& of = class_of(bytes);
    RMEM_CHECK(bytes <= of.room);
    if (of.free.empty()) grow(of);
    if (of.free.empty()) return nullptr;
    Piece* const piece = of.free.back();
    of.free.pop_back();
    RMEM_CHECK(piece->users == 0);
    piece->length = 0;
    piece->datagrams = 0;
    piece->users = 1;
    ++in_use_;
    return piece;
}

void Pieces::leave(Piece& piece) noexcept {
    RMEM_CHECK(piece.users != 0);
    if (--piece.users != 0) return;
    --in_use_;
    class_of(piece.room).free.push_back(&piece);
}

}  // namespace rmem::fabric
