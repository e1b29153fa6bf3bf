// SPDX-License-Identifier: Apache-2.0
#include "maps/map_file.hpp"

#include "maps/plain_line.hpp"
#include "rmem/base/large_pages.hpp"
#include "rmem/base/small_file.hpp"
#include "rmem/base/suggestion.hpp"
#include "rmem/error.hpp"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

namespace maps {

namespace {

constexpr std::size_t kUsualBytes = 100;  // of a variable's section

class Refusal {
public:
    Refusal(std::string path, unsigned line) : path_(std::move(path)), line_(line) {}
    [[noreturn]] void operator()(const std::string& sentence) const {
        throw rmem::Error(rmem::Errc::bad_map, fmt::format("{}:{}: {}", path_, line_, sentence));
    }

private:
    std::string path_;
    unsigned line_;
};

enum class Section : std::uint8_t { none, ring, structure, member, variable };

constexpr std::array<std::pair<std::string_view, Section>, 4> kSections = {{
    {"[[variable]]", Section::variable},
    {"[ring]", Section::ring},
    {"[[structure]]", Section::structure},
    {"[[structure.member]]", Section::member},
}};

Value value_of(const toml::node& node) {
    Value value;
    if (const auto* text = node.as_string()) {
        value.kind = Value::Kind::text;
        value.text = text->get();
    } else if (const auto* integer = node.as_integer()) {
        value.kind = Value::Kind::integer;
        value.integer = integer->get();
        value.real = static_cast<double>(integer->get());
    } else if (const auto* real = node.as_floating_point()) {
        value.kind = Value::Kind::real;
        value.real = real->get();
    } else if (const auto* boolean = node.as_boolean()) {
        value.kind = Value::Kind::boolean;
        value.integer = boolean->get() ? 1 : 0;
    }
    return value;
}

// ---- What the keys mean

class Reader {
public:
    Reader(const std::string& path, Map& map) : path_(path), map_(map) {}

    void read(std::string_view text, bool is_plain) {
        if (is_plain && !has_control(text) && text.find("\"\"\"") == std::string_view::npos &&
            text.find("'''") == std::string_view::npos && split(text)) {
            // What others need comes first, wherever it stands.
            for (const Part& part : parts_) {
                if (part.section == Section::ring || part.section == Section::none) read_part(part);
            }
            for (const Part& part : parts_) {
                if (part.section == Section::structure || part.section == Section::member)
                    read_part(part);
            }
            for (const Part& part : parts_) {
                if (part.section == Section::variable) read_part(part);
            }
        } else {
            read_all(text);
        }
        end_section();
        end_structure();
    }

private:
    /// A section's lines, without that which begins it.
    struct Part {
        Section section = Section::none;
        unsigned line = 1;  ///< of its begin
        std::string_view body;
    };

    /// False: there is a header that is not known, a line that only looks like one, or something
    /// before the first.
    bool split(std::string_view text) {
        const std::size_t usual = 1 + text.size() / kUsualBytes;
        parts_.reserve(usual);
        rmem::prefer_large_pages(parts_.data(), usual * sizeof(Part));
        parts_.assign(1, {Section::none, 0, text});
        unsigned line = 0;
        for (std::size_t at = 0; at < text.size();) {
            ++line;
            const std::size_t end = std::min(text.find('\n', at), text.size());
            std::string_view one = text.substr(at, end - at);
            skip_blank(one);
            if (one.starts_with('[')) {
                one = one.substr(0, one.find_last_not_of(kBlank) + 1);
                const auto* const known =
                    std::find_if(kSections.begin(), kSections.end(),
                                 [&](const auto& section) { return section.first == one; });
                if (known == kSections.end()) return false;
                Part& last = parts_.back();
                last.body =
                    text.substr(static_cast<std::size_t>(last.body.data() - text.data()),
                                at - static_cast<std::size_t>(last.body.data() - text.data()));
                parts_.push_back(
                    {known->second, line, text.substr(std::min(end + 1, text.size()))});
            } else if (parts_.size() == 1 && !one.empty() && one[0] != '#') {
                return false;
            }
            at = end + 1;
        }
        const auto is_ring = [](const Part& part) { return part.section == Section::ring; };
        return std::count_if(parts_.begin(), parts_.end(), is_ring) <= 1;
    }

    void read_part(const Part& part) {
        begin(part.section, part.line);
        // What is set by the plain lines before one that is not is set once more, to the same.
        if (!read_plainly(part)) {
            begin_again();
            try {
                read_table(toml::parse(part.body), part.line);
            } catch (const toml::parse_error& error) {
                refuse_syntax(error, part.line);
            }
        }
    }

    bool read_plainly(const Part& part) {
        keys_.clear();
        unsigned line = part.line;
        for (std::size_t at = 0; at < part.body.size();) {
            ++line;
            const std::size_t end = std::min(part.body.find('\n', at), part.body.size());
            const auto entry = plain_entry(part.body.substr(at, end - at));
            at = end + 1;
            if (!entry) return false;
            if (entry->key.empty()) continue;
            if (std::find(keys_.begin(), keys_.end(), entry->key) != keys_.end()) return false;
            keys_.push_back(entry->key);
            set(entry->key, entry->value, line);
        }
        return true;
    }

    void read_table(const toml::table& table, unsigned first_line) {
        for (const auto& [key, node] : table)
            set(key.str(), value_of(node), first_line + node.source().begin.line, &node);
    }

    void read_all(std::string_view text) {
        try {
            const toml::table root = toml::parse(text);
            if (const auto* ring = root["ring"].as_table()) {
                begin(Section::ring, ring->source().begin.line);
                read_table(*ring, 0);
            }
            for_each(root["structure"], Section::structure);
            for_each(root["variable"], Section::variable);
            begin(Section::none, 0);
            for (const auto& [key, node] : root) {
                if (key != "ring" && key != "structure" && key != "variable")
                    set(key.str(), value_of(node), node.source().begin.line, &node);
            }
        } catch (const toml::parse_error& error) {
            refuse_syntax(error, 0);
        }
    }

    void for_each(const toml::node_view<const toml::node>& list, Section section) {
        if (!list) return;
        const auto* const all = list.as_array();
        const unsigned line = list.node()->source().begin.line;
        if (all == nullptr)
            at(line)(fmt::format("write {}",
                                 section == Section::variable ? "[[variable]]" : "[[structure]]"));
        for (const toml::node& one : *all) {
            const auto* const table = one.as_table();
            const unsigned here = one.source().begin.line;
            if (table == nullptr) at(here)("a variable and a structure are tables");
            begin(section, here);
            for (const auto& [key, node] : *table) {
                if (section == Section::structure && key == "member") continue;
                set(key.str(), value_of(node), node.source().begin.line, &node);
            }
            if (section == Section::structure) for_each((*table)["member"], Section::member);
        }
    }

    [[noreturn]] void refuse_syntax(const toml::parse_error& error, unsigned first_line) const {
        at(first_line +
           error.source().begin.line)(fmt::format("{} (the format is TOML)", error.description()));
    }
    Refusal at(unsigned line) const { return {path_, line}; }

    void begin(Section section, unsigned line) {
        end_section();
        if (section == Section::structure || section == Section::variable) end_structure();
        if (section == Section::member && !structure_)
            at(line)("a member is of no structure; write [[structure]] before it");
        section_ = section;
        line_ = line;
        if (section == Section::structure) structure_.emplace().line = line;
        begin_again();
    }
    void begin_again() {
        type_line_ = 0;
        one_ = Variable();
        one_.line = line_;
    }

    void end_section() {
        const Section section = std::exchange(section_, Section::none);
        if (section == Section::structure && structure_->name.empty())
            at(line_)("a structure has no name; add name = \"…\"");
        if (section != Section::variable && section != Section::member) return;
        const bool is_member = section == Section::member;
        const char* what = is_member ? "member" : "variable";
        if (one_.name.empty()) at(line_)(fmt::format("a {} has no name; add name = \"…\"", what));
        if (type_line_ == 0) {
            at(line_)(fmt::format("{} '{}' has no type; add type = \"f32\", or another: {}", what,
                                  one_.name, kCellNames));
        }
        check_fields();
        if (is_member) {
            structure_->members.push_back(std::move(one_));
            return;
        }
        if (const Variable* first = map_.variable(one_.name)) {
            at(line_)(
                fmt::format("variable '{}' is on line {} already; give one of them another "
                            "name",
                            one_.name, first->line));
        }
        map_.add(std::move(one_));
    }

    void end_structure() {
        if (!structure_) return;
        try {
            map_.add(*std::exchange(structure_, std::nullopt));
        } catch (const rmem::Error& error) {
            throw rmem::Error(error.code(), fmt::format("{}: {}", path_, error.sentence()));
        }
    }

    void check_fields() const {
        if (one_.fields.empty()) return;
        const std::size_t bits = 8 * one_.type.cell.bytes;
        if (one_.type.structure != Type::kNoStructure || !one_.type.cell.is_whole() ||
            one_.type.is_array)
            at(type_line_)(
                fmt::format("'{}' has fields, and is no whole number; give it a type "
                            "such as u32",
                            one_.name));
        for (const Field& field : one_.fields) {
            if (field.first + field.bits <= bits) continue;
            at(type_line_)(fmt::format("field '{}' of '{}' ends behind its {} bits", field.name,
                                       one_.name, bits));
        }
    }

    // ---- Values

    struct Given {
        const Refusal refuse;
        std::string_view key;
        const Value& value;
        const toml::node* node;

        [[noreturn]] void is_not(const char* wanted) const {
            refuse(fmt::format("'{}' is to be {}", key, wanted));
        }
        std::string text() const {
            if (value.kind != Value::Kind::text) is_not("text in quotation marks");
            return std::string(value.text);
        }
        double real() const {
            if (value.kind != Value::Kind::real && value.kind != Value::Kind::integer)
                is_not("a number");
            if (!std::isfinite(value.real)) is_not("a finite number");
            return value.real;
        }
        std::uint64_t whole(std::uint64_t most) const {
            if (value.kind != Value::Kind::integer || value.integer < 0 ||
                static_cast<std::uint64_t>(value.integer) > most)
                refuse(fmt::format("'{}' is to be a whole number from 0 to {}", key, most));
            return static_cast<std::uint64_t>(value.integer);
        }
        bool boolean() const {
            if (value.kind != Value::Kind::boolean) is_not("true or false");
            return value.integer != 0;
        }
    };

    /// `node`: where it was read by toml++.
    void set(std::string_view key, const Value& value, unsigned line,
             const toml::node* node = nullptr) {
        const Given given{at(line), key, value, node};
        switch (section_) {
            case Section::ring: return set_ring(given);
            case Section::structure:
                if (key != "name") refuse_key(given, {"name"});
                structure_->name = given.text();
                return;
            case Section::member:
            case Section::variable: return set_variable(given, line);
            case Section::none:
                given.refuse(
                    fmt::format("'{}' stands outside of [ring], [[structure]] and "
                                "[[variable]]",
                                key));
        }
    }

    [[noreturn]] static void refuse_key(const Given& given, const std::vector<std::string>& known) {
        given.refuse(fmt::format("there is no '{}'{}; there are {}", given.key,
                                 rmem::did_you_mean(given.key, known), fmt::join(known, ", ")));
    }

    void set_ring(const Given& given) {
        constexpr std::uint64_t kMany = 65535, kMost = std::uint64_t{1} << 40;
        RingFacts& ring = map_.ring;
        if (given.key == "nodes") {
            ring.nodes = static_cast<unsigned>(given.whole(kMany));
        } else if (given.key == "ranks") {
            ring.ranks = static_cast<unsigned>(given.whole(kMany));
        } else if (given.key == "bytes") {
            ring.bytes = given.whole(kMost);
        } else if (given.key == "byte_order") {
            const std::string order = given.text();
            if (order != "big" && order != "little") given.is_not("\"big\" or \"little\"");
            ring.is_swapped = (order == "big") == (std::endian::native == std::endian::little);
        } else if (given.key == "whole_words") {
            ring.sends_whole_words = given.boolean();
        } else if (given.key == "canaries") {
            ring.has_canaries = given.boolean();
        } else if (given.key == "other") {
            ring.other = other(given);
        } else {
            refuse_key(given, {"nodes", "ranks", "bytes", "byte_order", "whole_words", "canaries",
                               "other"});
        }
    }

    void set_variable(const Given& given, unsigned line) {
        constexpr std::uint64_t kMost = std::uint64_t{1} << 40;
        const std::string_view key = given.key;
        if (key == "name") {
            one_.name = given.text();
            if (!is_name(one_.name) ||
                (section_ == Section::member && one_.name.find('.') != std::string::npos))
                given.refuse(
                    fmt::format("'{}' cannot be a name: it is an offset, has brackets or "
                                "control characters, or is a member's with a dot",
                                one_.name));
        } else if (key == "offset") {
            one_.offset = given.whole(kMost);
        } else if (key == "type") {
            set_type(given, line);
        } else if (key == "unit") {
            one_.unit = given.text();
        } else if (key == "owner") {
            set_owner(given);
        } else if (key == "scale") {
            one_.scale = given.real();
            if (one_.scale == 0) given.is_not("another number than 0");
        } else if (key == "bias") {
            one_.bias = given.real();
        } else if (key == "minimum") {
            one_.minimum = given.real();
        } else if (key == "maximum") {
            one_.maximum = given.real();
        } else if (key == "rate") {
            one_.rate_hz = given.real();
            if (one_.rate_hz < 0) given.is_not("no negative number of times in a second");
        } else if (key == "description") {
            one_.description = given.text();
        } else if (key == "initial") {
            set_initial(given);
        } else if (key == "fields") {
            set_fields(given);
        } else if (key == "other") {
            one_.other = other(given);
        } else {
            refuse_key(given,
                       {"name", "offset", "type", "unit", "owner", "scale", "bias", "minimum",
                        "maximum", "rate", "description", "initial", "fields", "other"});
        }
    }

    void set_type(const Given& given, unsigned line) {
        if (given.value.kind != Value::Kind::text) given.is_not("text in quotation marks");
        type_line_ = line;
        if (given.value.text == last_type_name_) {
            one_.type = last_type_;
            return;
        }
        const auto type = map_.parse_type(given.value.text);
        if (!type) {
            std::vector<std::string> names;
            for (const Structure& one : map_.structures()) names.push_back(one.name);
            given.refuse(fmt::format(
                "there is no type '{}'{}; give a structure's name, or {}; "
                "with [N] behind it for N of them",
                given.value.text, rmem::did_you_mean(given.value.text, names), kCellNames));
        }
        last_type_ = one_.type = *type;
        last_type_name_ = given.value.text;
    }

    void set_owner(const Given& given) {
        constexpr std::uint64_t kMany = 65535;
        if (given.value.kind == Value::Kind::integer) {
            one_.owner = {Owner::Kind::node, static_cast<unsigned>(given.whole(kMany))};
            return;
        }
        constexpr std::string_view kRank = "rank ";
        std::string_view text = given.value.text;
        unsigned number = 0;
        if (text.starts_with(kRank)) {
            text.remove_prefix(kRank.size());
            const auto [rest, error] =
                std::from_chars(text.data(), text.data() + text.size(), number);
            if (error == std::errc{} && rest == text.data() + text.size() && number <= kMany) {
                one_.owner = {Owner::Kind::rank, number};
                return;
            }
        }
        given.is_not("a node's number, or a rank such as \"rank 2\"");
    }

    void set_initial(const Given& given) {
        switch (given.value.kind) {
            case Value::Kind::text: one_.initial = given.text(); return;
            case Value::Kind::integer:
                one_.initial = fmt::format("{}", given.value.integer);
                return;
            case Value::Kind::real: one_.initial = fmt::format("{}", given.value.real); return;
            case Value::Kind::boolean:
                one_.initial = given.value.integer != 0 ? "true" : "false";
                return;
            case Value::Kind::other: given.is_not("a value");
        }
    }

    static Other other(const Given& given) {
        constexpr const char* kWanted = "texts by name, such as { block = \"A\" }";
        const auto* const table = given.node == nullptr ? nullptr : given.node->as_table();
        if (table == nullptr) given.is_not(kWanted);
        Other other;
        for (const auto& [key, node] : *table) {
            const auto* const text = node.as_string();
            if (text == nullptr) given.is_not(kWanted);
            other.emplace_back(key.str(), text->get());
        }
        return other;
    }

    /// { ready = 0, mode = [1, 3] }: a bit, and some from the first on.
    void set_fields(const Given& given) {
        constexpr const char* kWanted =
            "bits by name, such as { ready = 0, mode = [1, 3] }: one, "
            "and the first and their count";
        const auto* const table = given.node == nullptr ? nullptr : given.node->as_table();
        if (table == nullptr) given.is_not(kWanted);
        for (const auto& [key, node] : *table) {
            const auto* const pair = node.as_array();
            const auto first = pair != nullptr && pair->size() == 2
                                   ? pair->get(0)->value<std::int64_t>()
                                   : node.value<std::int64_t>();
            const auto bits = pair != nullptr && pair->size() == 2
                                  ? pair->get(1)->value<std::int64_t>()
                                  : std::optional<std::int64_t>(1);
            const std::string name(key.str());
            if (!first || !bits || *first < 0 || *bits < 1 || *first > 63 || *bits > 64 ||
                !is_name(name) || name.find('.') != std::string::npos)
                given.is_not(kWanted);
            one_.fields.push_back(
                {name, static_cast<unsigned>(*first), static_cast<unsigned>(*bits)});
        }
        std::sort(one_.fields.begin(), one_.fields.end(), [](const Field& a, const Field& b) {
            return std::pair(a.first, a.name) < std::pair(b.first, b.name);
        });
    }

    const std::string& path_;
    Map& map_;
    std::vector<Part> parts_;
    std::vector<std::string_view> keys_;  ///< of the section
    Section section_ = Section::none;
    unsigned line_ = 0;
    unsigned type_line_ = 0;  ///< 0: it has no type
    Variable one_;
    std::optional<Structure> structure_;
    std::string last_type_name_;
    Type last_type_;
};

}  // namespace

Map read_map(const std::string& path) {
    return map_of(rmem::user_file(path, "the map", rmem::Errc::bad_map, kMaxFileBytes), path);
}

Map map_of(std::string_view text, const std::string& path, bool is_plain) {
    Map map;
    map.reserve(text.size() / kUsualBytes);
    Reader(path, map).read(text, is_plain);
    return map;
}

}  // namespace maps
