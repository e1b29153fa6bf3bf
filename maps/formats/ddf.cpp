// SPDX-License-Identifier: Apache-2.0
// Orchestra's data definition file: XML of domains, sets and items, which have a type, a length and
// a default; an item of the type `bus` has items. The client, whose table it is, writes the set
// SUBSCRIBE. It has no places: `rmem map pack` gives some. Source: what VILLASnode reads and
// writes.

#include "maps/formats/parts.hpp"

#include <fmt/format.h>
#include <pugixml.hpp>

#include <algorithm>
#include <array>
#include <sstream>
#include <utility>

namespace maps::formats {

namespace {

constexpr unsigned kMaxDepth = 64;  // of buses
constexpr const char* kOwnSet = "SUBSCRIBE";

constexpr std::array<std::pair<const char*, const char*>, 11> kItemTypes = {
    {{"boolean", "bool"},
     {"float64", "f64"},
     {"float32", "f32"},
     {"int8", "i8"},
     {"unsigned int8", "u8"},
     {"int16", "i16"},
     {"unsigned int16", "u16"},
     {"int32", "i32"},
     {"unsigned int32", "u32"},
     {"int64", "i64"},
     {"unsigned int64", "u64"}}};

class Reader {
public:
    explicit Reader(const Source& source) : source_(source) {}

    Map read() {
        pugi::xml_document document;
        const auto result = document.load_buffer(source_.text.data(), source_.text.size());
        if (!result)
            source_.refuse(line_at(result.offset),
                           fmt::format("{} (the format is XML)", result.description()));
        const pugi::xml_node root = document.child("orchestra");
        const pugi::xml_node domain = root.child("domain");
        if (!domain || domain.next_sibling("domain"))
            source_.refuse(1, "an <orchestra> with one <domain> is wanted; divide the file");
        map_.ring.other.emplace_back("domain", domain.attribute("name").value());
        for (const pugi::xml_node part : domain.children()) {
            if (std::string_view(part.name()) == "set") {
                const std::string set = part.attribute("name").value();
                for (const pugi::xml_node item : part.children("item"))
                    read_item(item, set, set, 0);
            } else if (part.next_sibling(part.name()) ||
                       std::string_view(part.name()) == "domain") {
                source_.refuse(
                    line_at(part.offset_debug()),
                    fmt::format("the domain has two of <{}>, or one in it", part.name()));
            } else if (part.type() == pugi::node_element) {
                map_.ring.other.emplace_back(part.name(), text_of(part));
            }
        }
        std::sort(map_.ring.other.begin(), map_.ring.other.end());
        return std::move(map_);
    }

private:
    /// Counted on from the last one, since items come in their order.
    unsigned line_at(std::ptrdiff_t offset) {
        const auto end = std::min(static_cast<std::size_t>(std::max<std::ptrdiff_t>(offset, 0)),
                                  source_.text.size());
        if (end < counted_) counted_ = lines_ = 0;
        const std::string_view more = source_.text.substr(counted_, end - counted_);
        lines_ += static_cast<unsigned>(std::count(more.begin(), more.end(), '\n'));
        counted_ = end;
        return 1 + lines_;
    }
    static std::string text_of(const pugi::xml_node& node) {
        std::ostringstream text;
        node.print(text, "", pugi::format_raw);
        return text.str();
    }

    void read_item(const pugi::xml_node& item, const std::string& set, const std::string& path,
                   unsigned depth) {
        const unsigned line = line_at(item.offset_debug());
        const std::string name = path + "/" + item.attribute("name").value();
        if (depth > kMaxDepth) source_.refuse(line, "buses lie in one another more than 64 deep");
        const std::string type = item.child_value("type");
        if (type == "bus") {
            for (const pugi::xml_node part : item.children("item"))
                read_item(part, set, name, depth + 1);
            return;
        }
        if (!is_name(name)) source_.refuse(line, fmt::format("'{}' cannot be a name", name));
        if (const Variable* first = map_.variable(name))
            source_.refuse(line, fmt::format("'{}' is on line {} already", name, first->line));
        std::string usual = type;
        if (usual.starts_with("uint")) usual = "unsigned " + usual.substr(1);
        const auto* const known = std::find_if(kItemTypes.begin(), kItemTypes.end(),
                                               [&](const auto& one) { return usual == one.first; });
        const std::string length = item.child_value("length");
        const auto count = length.empty() ? std::optional<std::uint64_t>(1) : number(length);
        constexpr std::uint64_t kMost = 1U << 28;
        if (known == kItemTypes.end() || !count || *count == 0 || *count > kMost)
            source_.refuse(line, fmt::format("'{}' has the type '{}' and the length '{}', of which "
                                             "one is not known",
                                             name, type, length));
        Variable one;
        one.name = name;
        one.line = line;
        one.type = *map_.parse_type(*count == 1 ? std::string(known->second)
                                                : fmt::format("{}[{}]", known->second, *count));
        if (set == kOwnSet) one.owner = {Owner::Kind::node, source_.node};
        const std::string first = item.child_value("default");
        const bool is_boolean = one.type.cell.kind == Cell::Kind::boolean;
        if (*count == 1)
            one.initial = !is_boolean      ? first
                          : first == "yes" ? "true"
                          : first.empty()  ? ""
                                           : "false";
        one.other = other_with({{"type", usual == type ? std::string() : type},
                                {"default", *count == 1 ? std::string() : first}});
        map_.add(std::move(one));
    }

    const Source& source_;
    Map map_;
    std::size_t counted_ = 0;  ///< bytes whose lines are in lines_
    unsigned lines_ = 0;
};

/// The item of that name, which is made a bus if it is not there.
pugi::xml_node bus(pugi::xml_node parent, const std::string& name) {
    pugi::xml_node last = parent.last_child();
    if (last && name == last.attribute("name").value() &&
        std::string_view(last.child_value("type")) == "bus")
        return last;
    pugi::xml_node item = parent.append_child("item");
    item.append_attribute("name") = name.c_str();
    item.append_child("type").text() = "bus";
    return item;
}

}  // namespace

Map read_ddf(const Source& source) {
    return Reader(source).read();
}

Exported write_ddf(const Map& map, unsigned node) {
    Exported exported;
    Losses losses(exported);
    pugi::xml_document document;
    pugi::xml_node domain = document.append_child("orchestra").append_child("domain");
    const std::string name(other_of(map.ring.other, "domain"));
    domain.append_attribute("name") = name.empty() ? "rmem" : name.c_str();
    for (const auto& [key, text] : map.ring.other) {
        if (key != "domain") domain.append_buffer(text.data(), text.size());
    }
    std::size_t placed = 0;
    for (const Variable& one : map.variables()) {
        Cell cell = one.type.cell;
        cell.is_swapped = false;
        if (cell.kind == Cell::Kind::bits || cell.kind == Cell::Kind::hexadecimal)
            cell.kind = Cell::Kind::unsigned_number;
        const auto* const type =
            std::find_if(kItemTypes.begin(), kItemTypes.end(),
                         [&](const auto& kind) { return name_of(cell) == kind.second; });
        if (one.type.structure != Type::kNoStructure || type == kItemTypes.end()) {
            losses.lose(one, fmt::format("a file of Orchestra has no {}: all of it is lost",
                                         map.name_of(one.type)));
            continue;
        }
        if (cell != one.type.cell) losses.lose(one, "its byte order, or that it is bits, is lost");
        losses.look_at(one, node, false, false);
        if (one.rate_hz != 0) losses.lose(one, "its rate is lost");
        if (one.is_placed()) ++placed;

        std::string_view path = one.name;
        const bool is_own = one.owner == Owner{Owner::Kind::node, node};
        std::string set = is_own ? kOwnSet : "PUBLISH";
        if (path.starts_with(set + "/")) path.remove_prefix(set.size() + 1);
        pugi::xml_node parent = domain.find_child_by_attribute("set", "name", set.c_str());
        if (!parent) {
            parent = domain.append_child("set");
            parent.append_attribute("name") = set.c_str();
        }
        for (std::size_t end = path.find('/'); end != std::string_view::npos;
             end = path.find('/')) {
            parent = bus(parent, std::string(path.substr(0, end)));
            path.remove_prefix(end + 1);
        }
        pugi::xml_node item = parent.append_child("item");
        item.append_attribute("name") = std::string(path).c_str();
        std::string written(other_of(one.other, "type"));
        if (written.empty()) written = type->first;
        item.append_child("type").text() = written.c_str();
        item.append_child("length").text() = one.type.count;
        std::string first(other_of(one.other, "default"));
        if (!one.initial.empty()) first = one.initial;
        if (cell.kind == Cell::Kind::boolean && !one.initial.empty())
            first = one.initial == "true" ? "yes" : "no";
        if (!first.empty()) item.append_child("default").text() = first.c_str();
    }
    if (placed != 0)
        exported.lost.push_back(fmt::format("the places of {} variables are lost", placed));
    std::ostringstream text;
    document.save(text, "    ");
    exported.text = text.str();
    return exported;
}

}  // namespace maps::formats
