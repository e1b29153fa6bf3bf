// SPDX-License-Identifier: Apache-2.0
#include "maps/formats/program.hpp"

#include "maps/names.hpp"
#include "rmem/base/large_pages.hpp"
#include "rmem/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

namespace maps {

namespace {

/// What a language takes for something else than a name.
constexpr std::string_view kReserved =
    " alignas alignof and and_eq asm auto bitand bitor bool break case catch char char16_t "
    "char32_t "
    "char8_t class co_await co_return co_yield compl concept const const_cast consteval constexpr "
    "constinit continue decltype default delete do double dynamic_cast else enum explicit export "
    "extern false float for friend goto if inline int long mutable namespace new noexcept not "
    "not_eq "
    "nullptr operator or or_eq private protected public register reinterpret_cast requires "
    "restrict "
    "return short signed sizeof static static_assert static_cast struct switch template this "
    "thread_local throw true try typedef typeid typename union unsigned using virtual void "
    "volatile "
    "wchar_t while xor xor_eq int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t "
    "std "
    "maps rmem NULL linux unix expect kMapHash ";

/// Words of the program for names of the map: letters, digits and '_', each word once.
class Words {
public:
    std::string of(std::string_view name) {
        std::string word;
        for (const char c : name) {
            const bool is_kept =
                (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
            // Names that begin or go on with two of them are the compiler's.
            if (is_kept || (!word.empty() && word.back() != '_')) word += is_kept ? c : '_';
        }
        while (!word.empty() && word.back() == '_') word.pop_back();
        const bool is_reserved = kReserved.find(" " + word + " ") != std::string_view::npos;
        if (word.empty() || (word[0] >= '0' && word[0] <= '9') || is_reserved)
            word.insert(0, is_reserved ? "the_" : "v");
        if (taken_.insert(word).second) return word;
        unsigned& last = numbers_[word];
        for (last = std::max(last, 1U);;) {
            std::string numbered = fmt::format("{}_{}", word, ++last);
            if (taken_.insert(numbered).second) return numbered;
        }
    }

    void reserve(std::size_t names) { taken_.reserve(names); }

private:
    std::unordered_set<std::string> taken_;
    std::unordered_map<std::string, unsigned> numbers_;
};

/// For a comment of one line.
std::string harmless(std::string_view text) {
    std::string result;
    for (const char c : text) {
        const bool is_end = c == '/' && !result.empty() && result.back() == '*';
        result += is_end || c == '\\' || static_cast<unsigned char>(c) < ' ' ? ' ' : c;
    }
    return result;
}

std::string upper(std::string text) {
    for (char& c : text) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
    return text;
}

class Writer {
public:
    Writer(const Map& map, std::string_view name)
        : map_(map), name_(Words().of(name)), hash_(map.hash()) {
        for (const Structure& one : map.structures()) structures_.push_back(words_.of(one.name));
        constexpr std::size_t kUsualBytes = 256;  // of a variable
        const std::size_t usual = kUsualBytes * map.variables().size();
        out_.reserve(usual);
        rmem::prefer_large_pages(out_.data(), usual);
        words_.reserve(map.variables().size());
        for (const Variable& one : map.variables()) {
            if (one.is_placed()) continue;
            throw rmem::Error(rmem::Errc::bad_map,
                              fmt::format("line {}: '{}' has no offset; `rmem map pack` gives it "
                                          "one",
                                          one.line, one.name));
        }
    }

protected:
    template <class... T>
    void add(fmt::format_string<T...> format, T&&... values) {
        fmt::format_to(std::back_inserter(out_), format, std::forward<T>(values)...);
    }
    std::string take() { return std::move(out_); }

    static std::string quoted(std::string_view text) {
        std::string result = "\"";
        for (const char c : text) {
            if (c == '"' || c == '\\') result += '\\';
            if (static_cast<unsigned char>(c) < ' ') {
                result += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
            } else {
                result += c;
            }
        }
        return result + '"';
    }
    static bool is_structure(const Type& type) { return type.structure != Type::kNoStructure; }
    static bool is_text(const Type& type) { return !is_structure(type) && type.cell.is_text(); }

    /// "double": of one element.
    std::string cell_word(const Type& type) const {
        if (is_structure(type)) return structures_[type.structure];
        switch (type.cell.kind) {
            case Cell::Kind::boolean: return "bool";
            case Cell::Kind::text: return "char";
            case Cell::Kind::real: return type.cell.bytes == 4 ? "float" : "double";
            case Cell::Kind::signed_number: return fmt::format("int{}_t", 8 * type.cell.bytes);
            default: return fmt::format("uint{}_t", 8 * type.cell.bytes);
        }
    }
    /// "aircraft/altitude: f64, m, node 0. Above the sea"
    std::string remark(const Variable& one) const {
        std::string text = fmt::format("{}: {}", one.name, map_.name_of(one.type));
        if (!one.unit.empty()) text += ", " + one.unit;
        if (one.owner.kind != Owner::Kind::nobody) text += ", " + text_of(one.owner);
        if (!one.description.empty()) text += ". " + one.description;
        return harmless(text);
    }

    /// C's structures, which C++ has, too: `prefix` is before their names.
    void add_structures(std::string_view prefix, std::string_view assertion) {
        for (std::uint32_t i = 0; i < structures_.size(); ++i) {
            const Structure& one = map_.structures()[i];
            Words words;
            add("\n/* {}: {} bytes */\nstruct {}{} {{\n", harmless(one.name), one.bytes, prefix,
                structures_[i]);
            std::uint64_t end = 0;
            std::vector<const Variable*> members;
            for (const Variable& member : one.members) members.push_back(&member);
            std::stable_sort(members.begin(), members.end(),
                             [](const auto* a, const auto* b) { return a->offset < b->offset; });
            for (const Variable* member : members) {
                if (member->offset < end) {
                    throw rmem::Error(rmem::Errc::bad_map,
                                      fmt::format("line {}: member '{}' overlaps another; a "
                                                  "program's structure cannot say that",
                                                  member->line, member->name));
                }
                add_gap(member->offset - end, words);
                end = member->offset + map_.bytes_of(member->type);
                add("    {}{} {}{}; /* {} */\n", is_structure(member->type) ? "struct " : "",
                    (is_structure(member->type) ? std::string(prefix) : std::string()) +
                        cell_word(member->type),
                    words.of(member->name),
                    member->type.is_array || is_text(member->type)
                        ? fmt::format("[{}]", member->type.count)
                        : "",
                    remark(*member));
            }
            add_gap(one.bytes - end, words);
            const bool is_packed =
                std::any_of(members.begin(), members.end(), [&](const Variable* member) {
                    return member->offset % map_.natural_alignment_of(member->type) != 0;
                });
            add("}} __attribute__(({}aligned({})));\n{}(sizeof(struct {}{}) == {}, \"\");\n",
                is_packed ? "packed, " : "", one.alignment, assertion, prefix, structures_[i],
                one.bytes);
        }
    }
    void add_gap(std::uint64_t bytes, Words& words) {
        if (bytes != 0) add("    unsigned char {}[{}];\n", words.of("unused"), bytes);
    }

    /// Those of whole numbers that lie in one word: (name, place).
    std::vector<std::pair<std::string, BitPlace>> fields_of(const Variable& one) const {
        std::vector<std::pair<std::string, BitPlace>> all;
        for (const Field& field : one.fields) {
            const Place place{one.offset, one.type, &one, &one, &field};
            if (const auto at = bit_place_of(place))
                all.emplace_back(one.name + "." + field.name, *at);
        }
        return all;
    }

    const Map& map_;
    const std::string name_;
    const std::uint64_t hash_;
    std::vector<std::string> structures_;
    Words words_;

private:
    std::string out_;
};

class CWriter : Writer {
public:
    using Writer::Writer;

    std::string text() {
        const std::string guard = upper(name_) + "_MAP_H";
        add("/* Written by `rmem map header`, from the map with this hash. */\n#ifndef {0}\n"
            "#define {0}\n\n#include <maps/maps.h>\n\n#include <stdbool.h>\n#include <stdint.h>\n\n"
            "#define {1}_MAP_HASH UINT64_C({2:#018x})\n\n"
            "/* Whether the ring has this map: 0, or what rmem_expect_map(3) says. */\n"
            "static inline int {3}_expect(rmem_node* node) {{\n"
            "    return rmem_expect_map(node, {1}_MAP_HASH);\n}}\n",
            guard, upper(name_), hash_, name_);
        add_structures(name_ + "_", "_Static_assert");
        for (const Variable& one : map_.variables()) {
            add_variable(one);
            for (const auto& [field, at] : fields_of(one)) {
                add_function("bits", field,
                             fmt::format("{{node, {:#x}, {:#x}, {}, {:#x}}}", at.word, at.mask,
                                         at.shift, at.part));
            }
        }
        add("\n#endif /* {} */\n", guard);
        return take();
    }

private:
    void add_variable(const Variable& one) {
        const Type& type = one.type;
        const bool is_block =
            is_structure(type) || type.is_array || is_text(type) || type.cell.is_swapped;
        add("\n/* {} */\n", remark(one));
        if (is_block) {
            return add_function(
                "block", one.name,
                fmt::format("{{node, {:#x}, {}}}", one.offset, map_.bytes_of(type)));
        }
        const char kind = type.cell.kind == Cell::Kind::real            ? 'f'
                          : type.cell.kind == Cell::Kind::signed_number ? 'i'
                                                                        : 'u';
        add_function(type.cell.kind == Cell::Kind::boolean
                         ? "bool"
                         : fmt::format("{}{}", kind, 8 * type.cell.bytes),
                     one.name, fmt::format("{{node, {:#x}}}", one.offset));
    }
    void add_function(std::string_view handle, std::string_view variable, std::string_view value) {
        add("static inline rmem_{0} {1}_{2}(rmem_node* node) {{\n    rmem_{0} place = {3};\n"
            "    return place;\n}}\n",
            handle, name_, words_.of(variable), value);
    }
};

class CppWriter : Writer {
public:
    using Writer::Writer;

    std::string text() {
        add("// Written by `rmem map header`, from the map with this hash.\n#pragma once\n\n"
            "#include <maps/names.hpp>\n\n#include <array>\n#include <bit>\n#include <cstdint>\n\n"
            "namespace {0} {{\n\ninline constexpr std::uint64_t kMapHash = {1:#018x};\n\n"
            "/// Throws rmem::Error where the ring has another map than this.\n"
            "inline void expect(rmem::Node& node) {{ rmem::Names(node).expect(kMapHash); }}\n\n"
            "using std::int16_t, std::int32_t, std::int64_t, std::int8_t;\n"
            "using std::uint16_t, std::uint32_t, std::uint64_t, std::uint8_t;\n",
            name_, hash_);
        add_structures("", "static_assert");
        if (!structures_.empty()) {
            add("\n}}  // namespace {}\n", name_);
            for (std::uint32_t i = 0; i < structures_.size(); ++i) {
                add("\ntemplate <>\nstruct maps::Described<{0}::{1}> {{\n"
                    "    static constexpr std::string_view name = {2};\n"
                    "    static constexpr std::uint64_t layout = {3:#018x};\n}};\n",
                    name_, structures_[i], quoted(map_.structures()[i].name), map_.layout_of(i));
            }
            add("\nnamespace {} {{\n", name_);
        }
        for (const Variable& one : map_.variables()) {
            const Type& type = one.type;
            std::string word = cell_word(type);
            if (is_text(type) || type.is_array)
                word = fmt::format("std::array<{}, {}>", word, type.count);
            if (!is_structure(type) && type.cell.is_swapped) {
                word += std::endian::native == std::endian::little ? ", std::endian::big"
                                                                   : ", std::endian::little";
            }
            add("\n/// {}\ninline constexpr maps::Known<{}> {}{{{:#x}}};\n", remark(one), word,
                words_.of(one.name), one.offset);
            for (const auto& [field, at] : fields_of(one)) {
                add("inline constexpr maps::BitPlace {}{{{:#x}, {:#x}, {}, {:#x}}};\n",
                    words_.of(field), at.word, at.mask, at.shift, at.part);
            }
        }
        add("\n}}  // namespace {}\n", name_);
        return take();
    }
};

class PythonWriter : Writer {
public:
    using Writer::Writer;

    std::string text() {
        add("\"\"\"Written by `rmem map header`, from the map with this hash.\n\n"
            "STRUCTURES and VARIABLES have types as numpy takes them: numpy.dtype(...).\n\"\"\"\n\n"
            "MAP_HASH = {:#018x}\n\nSTRUCTURES = {{}}\n",
            hash_);
        for (std::uint32_t i = 0; i < structures_.size(); ++i) {
            const Structure& one = map_.structures()[i];
            std::string names, formats, offsets;
            for (const Variable& member : one.members) {
                names += quoted(member.name) + ", ";
                formats += dtype(member.type) + ", ";
                offsets += fmt::format("{}, ", member.offset);
            }
            add("STRUCTURES[{}] = {{\"names\": [{}], \"formats\": [{}], \"offsets\": [{}], "
                "\"itemsize\": {}}}\n",
                quoted(one.name), names, formats, offsets, one.bytes);
        }
        add("\n# Name: (offset, type, unit, owner).\nVARIABLES = {{\n");
        for (const Variable& one : map_.variables()) {
            add("    {}: ({:#x}, {}, {}, {}),\n", quoted(one.name), one.offset, dtype(one.type),
                quoted(one.unit), quoted(text_of(one.owner)));
        }
        add("}}\n");
        return take();
    }

private:
    std::string dtype(const Type& type) const {
        if (is_structure(type)) {
            const std::string one =
                fmt::format("STRUCTURES[{}]", quoted(map_.structures()[type.structure].name));
            return type.is_array ? fmt::format("({}, {})", one, type.count) : one;
        }
        if (type.cell.is_text()) return fmt::format("\"S{}\"", type.count);
        const bool is_big = type.cell.is_swapped == (std::endian::native == std::endian::little);
        const char kind = type.cell.kind == Cell::Kind::real            ? 'f'
                          : type.cell.kind == Cell::Kind::boolean       ? 'b'
                          : type.cell.kind == Cell::Kind::signed_number ? 'i'
                                                                        : 'u';
        const std::string one =
            kind == 'b' ? std::string("?")
                        : fmt::format("{}{}{}", is_big ? '>' : '<', kind, type.cell.bytes);
        return type.is_array ? fmt::format("\"({},){}\"", type.count, one)
                             : fmt::format("\"{}\"", one);
    }
};

}  // namespace

std::optional<Language> parse_language(std::string_view name) noexcept {
    if (name == "c") return Language::c;
    if (name == "c++") return Language::cpp;
    if (name == "python") return Language::python;
    return std::nullopt;
}

std::string program_text(const Map& map, Language language, std::string_view name) {
    switch (language) {
        case Language::c: return CWriter(map, name).text();
        case Language::cpp: return CppWriter(map, name).text();
        case Language::python: return PythonWriter(map, name).text();
    }
    return {};
}

}  // namespace maps
