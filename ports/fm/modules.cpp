// SPDX-License-Identifier: Apache-2.0
#include "ports/fm/modules.hpp"

#include "rmem/base/hash.hpp"

#include <elf.h>
#include <link.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <span>

namespace ports::fm {

namespace {

/// With the last bits mixed.
std::uint64_t hash(std::span<const std::byte> bytes, std::uint64_t from) {
    const std::uint64_t value = rmem::Fnv1a(from).add(bytes).value();
    return value ^ value >> 29;
}

std::span<const std::byte> bytes_at(std::uintptr_t at, std::size_t size) {
    return {reinterpret_cast<const std::byte*>(at), size};
}

/// The build id among a segment's notes; empty: none.
std::span<const std::byte> build_id(std::span<const std::byte> notes) {
    const auto padded = [](std::size_t n) { return (n + 3) / 4 * 4; };
    while (notes.size() >= sizeof(ElfW(Nhdr))) {
        ElfW(Nhdr) head;
        std::memcpy(&head, notes.data(), sizeof head);
        const std::size_t name = padded(head.n_namesz), text = padded(head.n_descsz);
        if (name > notes.size() - sizeof head || text > notes.size() - sizeof head - name) break;
        const auto description = notes.subspan(sizeof head + name, head.n_descsz);
        if (head.n_type == NT_GNU_BUILD_ID && head.n_namesz == sizeof ELF_NOTE_GNU &&
            std::memcmp(notes.data() + sizeof head, ELF_NOTE_GNU, sizeof ELF_NOTE_GNU) == 0) {
            return description;
        }
        notes = notes.subspan(sizeof head + name + text);
    }
    return {};
}

}  // namespace

Modules::Modules() {
    ::dl_iterate_phdr(add, &list_);
    if (list_.empty()) list_.emplace_back();  // no code at all: no pointer is in it
    program_ = list_.front().id;
    all_ = rmem::Fnv1a::kStart;
    for (const Module& m : list_) all_ = hash(std::as_bytes(std::span(&m.id, 1)), all_);
}

int Modules::add(::dl_phdr_info* info, std::size_t, void* list) noexcept {
    Module m;
    std::uintptr_t begin = std::numeric_limits<std::uintptr_t>::max(), code = begin, end = 0;
    std::span<const std::byte> id;
    for (const ElfW(Phdr) & p : std::span(info->dlpi_phdr, info->dlpi_phnum)) {
        const std::uintptr_t at = info->dlpi_addr + p.p_vaddr;
        if (p.p_type == PT_NOTE && id.empty()) id = build_id(bytes_at(at, p.p_memsz));
        if (p.p_type != PT_LOAD) continue;
        begin = std::min<std::uintptr_t>(begin, at);
        if ((p.p_flags & PF_X) == 0) continue;
        code = std::min<std::uintptr_t>(code, at);
        end = std::max<std::uintptr_t>(end, at + p.p_memsz);
    }
    if (end != 0) {
        m.base = begin;
        m.code = code;
        m.code_bytes = end - code;
        m.id = hash(id.empty() ? bytes_at(code, m.code_bytes) : id, rmem::Fnv1a::kStart);
    }
    // Offsets have 32 bits. A larger module keeps its place, and has no code that can be told.
    if (m.code + m.code_bytes - m.base > std::numeric_limits<std::uint32_t>::max())
        m.code_bytes = 0;
    try {
        static_cast<std::vector<Module>*>(list)->push_back(m);
    } catch (...) {
        return 1;
    }
    return 0;
}

Modules::Place Modules::find_slowly(std::uintptr_t at) noexcept {
    for (const Module& m : list_) {
        if (at - m.code >= m.code_bytes) continue;
        latest_ = static_cast<std::uint32_t>(&m - list_.data());
        return {latest_, static_cast<std::uint32_t>(at - m.base)};
    }
    return {kUnknown, 0};
}

}  // namespace ports::fm
