// SPDX-License-Identifier: Apache-2.0
// `rmem map`: looks at the map of a ring's memory, and makes one whole.

#include "maps/check.hpp"
#include "maps/difference.hpp"
#include "maps/formats/format.hpp"
#include "maps/formats/program.hpp"
#include "maps/map_file.hpp"
#include "maps/map_text.hpp"
#include "maps/pack.hpp"
#include "maps/ring_map.hpp"
#include "rmem/base/small_file.hpp"
#include "rmem/error.hpp"
#include "rmem/ring/ring.hpp"
#include "tools/commands.hpp"
#include "tools/json.hpp"
#include "tools/output.hpp"
#include "tools/usage.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

namespace tools {

namespace {

constexpr const char* kMapExamples = R"(
Examples:
  rmem map check rig.toml                  who overlaps whom, and what else is wrong
  rmem map show rig.toml                   all variables, by their places
  rmem map show rig                        of a ring that runs
  rmem map show rig.toml aircraft/state    one of them, with its members
  rmem map pack rig.toml -o packed.toml    gives places to those that have none
  rmem map diff old.toml new.toml
  rmem map import blocks.csv --node 2 -o rig.toml    what another program's table says
  rmem map export rig.toml --format ddf              and back; stderr says what it cannot say
  rmem map header rig.toml -o rig.hpp                variables of a program in C++, by their names

A map:
  [ring]
  nodes = 4
  [[variable]]
  name = "aircraft/altitude"
  type = "f64"
  unit = "m"
  owner = 0

Exit codes: 0 done, 1 failed, or check found errors, or diff differences, 2 wrong command line.)";

struct MapOptions {
    std::string file, other, out, format, language, name;
    std::vector<std::string> names;
    unsigned node = 0;
    bool json = false;
};

/// A file's, or the one that a ring of that name has.
maps::Map map_of(const std::string& file) {
    std::shared_ptr<rmem::Ring> ring;
    try {
        if (!std::filesystem::exists(file)) ring = rmem::Ring::observe(file);
    } catch (const rmem::Error& error) {
        if (error.code() != rmem::Errc::no_such_ring) throw;
    }
    if (ring == nullptr) return maps::read_map(file);
    if (const auto map = maps::map_of(*ring)) return *map;
    throw rmem::Error(rmem::Errc::bad_map,
                      fmt::format("ring '{}' has no map; give the map's file", file));
}

nlohmann::json json_of(const maps::Map& map, const maps::Variable& one) {
    nlohmann::json json = {{"name", one.name},
                           {"type", map.name_of(one.type)},
                           {"bytes", map.bytes_of(one.type)},
                           {"owner", maps::text_of(one.owner)},
                           {"line", one.line}};
    if (one.is_placed()) json["offset"] = one.offset;
    if (!one.unit.empty()) json["unit"] = one.unit;
    if (!one.description.empty()) json["description"] = one.description;
    return json;
}

// ---- check

void check_map(const MapOptions& options) {
    const maps::Map map = map_of(options.file);
    const auto findings = maps::check(map);
    nlohmann::json all = nlohmann::json::array();
    std::string text;
    for (const maps::Finding& one : findings) {
        const bool is_error = one.weight == maps::Finding::Weight::error;
        std::string where = options.file;
        if (one.line != 0) where += fmt::format(":{}", one.line);
        if (one.other_line != 0) where += fmt::format(" and {}", one.other_line);
        text += fmt::format("{}: {}: {}\n", where, is_error ? "error" : "note", one.sentence);
        all.push_back({{"weight", is_error ? "error" : "note"},
                       {"sentence", one.sentence},
                       {"lines", {one.line, one.other_line}}});
    }
    const auto errors = std::count_if(findings.begin(), findings.end(), [](const auto& one) {
        return one.weight == maps::Finding::Weight::error;
    });
    const auto notes = findings.size() - static_cast<std::size_t>(errors);
    text += fmt::format("{}: {} variables, {} error{}, {} note{}\n", options.file,
                        map.variables().size(), errors, errors == 1 ? "" : "s", notes,
                        notes == 1 ? "" : "s");
    options.json ? show_json({{"variables", map.variables().size()}, {"findings", all}})
                 : show(text);
    if (errors != 0) end_with(kExitFailed);
}

// ---- show

void add_row(Table& table, const maps::Map& map, const std::string& name, std::uint64_t offset,
             const maps::Variable& one) {
    table.add({offset == maps::Variable::kUnplaced ? "-" : offset_text(offset), printable(name),
               map.name_of(one.type), printable(one.unit), maps::text_of(one.owner),
               printable(one.description)});
}

/// And what it is made of.
void add_whole(Table& table, const maps::Map& map, const std::string& path) {
    const maps::Place place = map.at(path);
    maps::Variable one = *place.leaf;
    one.type = place.type;
    one.owner = place.variable->owner;
    add_row(table, map, path, place.offset, one);
    if (one.type.is_array || place.field != nullptr) return;
    for (const maps::Field& field : one.fields) {
        const unsigned last = field.first + field.bits - 1;
        table.add({"", path + "." + field.name,
                   field.bits == 1 ? fmt::format("bit {}", last)
                                   : fmt::format("bits {} to {}", field.first, last),
                   "", "", ""});
    }
    if (one.type.structure == maps::Type::kNoStructure) return;
    for (const maps::Variable& member : map.structures()[one.type.structure].members)
        add_whole(table, map, path + "." + member.name);
}

void show_map(const MapOptions& options) {
    const maps::Map map = map_of(options.file);
    if (options.json) {
        nlohmann::json all = nlohmann::json::array();
        for (const maps::Variable& one : map.variables()) all.push_back(json_of(map, one));
        return show_json({{"hash", fmt::format("{:016x}", map.hash())},
                          {"nodes", map.ring.nodes},
                          {"variables", all}});
    }
    Table table({">offset", "name", "type", "unit", "owner", "description"});
    for (const std::string& name : options.names) add_whole(table, map, name);
    if (options.names.empty()) {
        std::vector<const maps::Variable*> all;
        for (const maps::Variable& one : map.variables()) all.push_back(&one);
        std::stable_sort(all.begin(), all.end(),
                         [](const auto* a, const auto* b) { return a->offset < b->offset; });
        for (const maps::Variable* one : all) add_row(table, map, one->name, one->offset, *one);
    }
    show(table.text());
}

// ---- pack, diff, import, export

void give(const MapOptions& options, const std::string& text) {
    if (options.out.empty()) return show(text);
    std::ofstream out(options.out);
    out << text << std::flush;
    if (!out) {
        throw rmem::Error(rmem::Errc::system,
                          fmt::format("'{}' cannot be written; look whether there is room, and "
                                      "whether its folder is there",
                                      options.out));
    }
}

void pack_map(const MapOptions& options) {
    maps::Map map = map_of(options.file);
    maps::pack(map);
    give(options, maps::file_of(map));
}

void diff_maps(const MapOptions& options) {
    const auto found = maps::differences(map_of(options.file), map_of(options.other));
    if (options.json) {
        show_json({{"differences", found}});
    } else {
        std::string text;
        for (const std::string& one : found) text += one + "\n";
        show(text);
    }
    if (!found.empty()) end_with(kExitFailed);
}

maps::Format format_option(const MapOptions& options) {
    if (const auto format = maps::parse_format(options.format)) return *format;
    throw UsageError(
        fmt::format("--format: there is no '{}'; give {}", options.format, maps::kFormatNames));
}

void import_table(const MapOptions& options) {
    const std::string text =
        rmem::user_file(options.file, "the table", rmem::Errc::bad_map, maps::kMaxFileBytes);
    const auto format =
        options.format.empty() ? maps::format_of(text) : std::optional(format_option(options));
    if (!format) {
        throw UsageError(fmt::format("'{}' begins like no table that is known; give --format: {}",
                                     options.file, maps::kFormatNames));
    }
    give(options, maps::file_of(maps::import_map(*format, text, options.file, options.node)));
}

void export_table(const MapOptions& options) {
    const maps::Exported exported =
        maps::export_map(format_option(options), map_of(options.file), options.node);
    for (const std::string& one : exported.lost) fmt::print(stderr, "rmem map: {}\n", one);
    give(options, exported.text);
}

// ---- header

/// What is given, or what the file's name says.
maps::Language language_of(const MapOptions& options) {
    const std::string ending = std::filesystem::path(options.out).extension();
    const std::string language = !options.language.empty() ? options.language
                                 : ending == ".h"          ? "c"
                                 : ending == ".py"         ? "python"
                                                           : "c++";
    if (const auto known = maps::parse_language(language)) return *known;
    throw UsageError(
        fmt::format("--language: there is no '{}'; give {}", language, maps::kLanguageNames));
}

void write_header(const MapOptions& options) {
    const maps::Language language = language_of(options);
    maps::Map map = map_of(options.file);
    maps::pack(map);
    const std::string stem = std::filesystem::path(options.file).stem();
    give(options, maps::program_text(map, language, options.name.empty() ? stem : options.name));
}

}  // namespace

void add_map(cli::App& app) {
    auto options = std::make_shared<MapOptions>();
    cli::App* map = app.add_subcommand("map", "Look at the map of a memory: names, types, owners");
    map->require_subcommand(1);
    map->footer(kMapExamples);
    const auto add = [&](const char* word, const char* description, auto run) {
        cli::App* command = map->add_subcommand(word, description);
        command->add_option("FILE", options->file, "The map's file, or a ring that has one")
            ->required();
        command->callback([options, run] { run(*options); });
        return command;
    };
    add("check", "Find what is wrong with a map", check_map)
        ->add_flag("--json", options->json, "Print JSON");
    cli::App* show_command = add("show", "List variables", show_map);
    show_command->add_option("NAME", options->names, "Of these, with all that they are made of");
    show_command->add_flag("--json", options->json, "Print JSON");
    const auto add_writing = [&](const char* word, const char* description, auto run) {
        cli::App* command = add(word, description, run);
        command->add_option("-o,--out", options->out, "File to write, instead of stdout");
        return command;
    };
    add_writing("pack", "Give places to variables that have none", pack_map);
    const std::string formats = fmt::format("Format: {}", maps::kFormatNames);
    cli::App* from = add_writing("import", "Make a map of another program's table", import_table);
    from->add_option("--format", options->format, formats + " (default: by how it begins)");
    cli::App* to = add_writing("export", "Make another program's table of a map", export_table);
    to->add_option("--format", options->format, formats)->required();
    cli::App* header =
        add_writing("header", "Write what a program in C, C++ or Python includes", write_header);
    header->add_option("--language", options->language,
                       fmt::format("Language: {} (default: by FILE's ending of --out, or c++)",
                                   maps::kLanguageNames));
    header->add_option("--name", options->name,
                       "Before the names in C, and the namespace in C++ (default: the map's file)");
    for (cli::App* command : {from, to}) {
        command->add_option("--node", options->node, "The node whose table it is")
            ->capture_default_str();
    }
    cli::App* diff = add("diff", "Compare two maps", diff_maps);
    diff->add_option("OTHER", options->other, "The other one")->required();
    diff->add_flag("--json", options->json, "Print JSON");
}

}  // namespace tools
