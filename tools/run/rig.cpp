// SPDX-License-Identifier: Apache-2.0
#include "tools/run/rig.hpp"

#include "rmem/base/check.hpp"
#include "rmem/base/small_file.hpp"
#include "rmem/ring/config.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <grp.h>
#include <pwd.h>
#include <toml++/toml.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <initializer_list>
#include <optional>

namespace tools {

namespace {

rmem::Error refusal(const std::string& where, const std::string& sentence) {
    return {rmem::Errc::invalid_argument, fmt::format("{}: {}", where, sentence)};
}

// ---- Users and processors of this host

/// None for the present user.
std::optional<User> user_named(const std::string& name, const std::string& where) {
    const ::passwd* entry = ::getpwnam(name.c_str());  // NOLINT(concurrency-mt-unsafe): one thread
    if (entry == nullptr) {
        throw refusal(
            where,
            fmt::format("user '{}' is not known here; give one that `getent passwd` lists", name));
    }
    if (entry->pw_uid == ::geteuid()) return std::nullopt;
    if (::geteuid() != 0) {
        throw refusal(where, fmt::format("only root may start a program as user '{}', and this "
                                         "process is user {}; leave `user` out, or use sudo",
                                         name, ::geteuid()));
    }
    User user{name, entry->pw_dir, entry->pw_uid, entry->pw_gid, {}};
    int count = 0;
    ::getgrouplist(name.c_str(), user.group, nullptr, &count);
    user.groups.resize(static_cast<std::size_t>(count));
    ::getgrouplist(name.c_str(), user.group, user.groups.data(), &count);
    return user;
}

/// "0-2,5"
std::vector<unsigned> numbers_of(const std::string& text, const std::string& where) {
    const auto malformed = [&] {
        return refusal(
            where, fmt::format("processors are '{}'; give numbers such as 0 or \"0-1,4\"", text));
    };
    std::vector<unsigned> numbers;
    const char* at = text.data();
    const char* const end = at + text.size();
    const auto number = [&] {
        unsigned value = 0;
        const auto [rest, error] = std::from_chars(at, end, value);
        if (error != std::errc{} || value >= CPU_SETSIZE) throw malformed();
        at = rest;
        return value;
    };
    for (;;) {
        const unsigned first = number();
        unsigned last = first;
        if (at != end && *at == '-') {
            ++at;
            last = number();
        }
        if (last < first) throw malformed();
        for (unsigned n = first; n <= last; ++n) numbers.push_back(n);
        if (at == end) return numbers;
        if (*at++ != ',') throw malformed();
    }
}

void check_processors(const std::vector<unsigned>& wanted, const std::string& where) {
    const auto usable = usable_processors();
    for (const unsigned processor : wanted) {
        if (std::find(usable.begin(), usable.end(), processor) != usable.end()) continue;
        throw refusal(where, fmt::format("there is no processor {} that this process may use; it "
                                         "may use {}",
                                         processor, fmt::join(usable, ", ")));
    }
}

void check_programs(const std::vector<RankProgram>& programs) {
    RMEM_CHECK(!programs.empty() && programs.size() <= rmem::kMaxRanks);
    RMEM_CHECK(std::none_of(programs.begin(), programs.end(),
                            [](const RankProgram& program) { return program.command.empty(); }));
}

// ---- The file

class RigFile {
public:
    RigFile(const std::string& file, const RingKeys& keys) : file_(file), keys_(keys) {}

    Rig rig(const toml::table& root) {
        check_keys(root, {"ring", "environment", "rank"}, "a rig file");
        Rig rig;
        if (const auto* ring = root.get("ring"))
            rig.settings = settings_of(table_of(*ring, "ring"));
        Variables common;
        if (const auto* all = root.get("environment")) common = environment_of(*all);
        const auto* ranks = root.get("rank");
        if (ranks == nullptr || !ranks->is_array_of_tables()) {
            throw refusal(ranks == nullptr ? file_ : where(*ranks),
                          "a rig needs a table [[rank]] for each of its programs");
        }
        for (const toml::node& entry : *ranks->as_array()) add(rig, *entry.as_table(), common);
        check_programs(rig.programs);
        return rig;
    }

private:
    std::string where(const toml::node& node) const {
        return fmt::format("{}:{}", file_, node.source().begin.line);
    }

    void check_keys(const toml::table& table, std::initializer_list<const char*> valid,
                    const char* of) const {
        for (const auto& [key, value] : table) {
            if (std::find(valid.begin(), valid.end(), key.str()) != valid.end()) continue;
            throw refusal(where(value), fmt::format("{} has no key '{}'; there are {}", of,
                                                    key.str(), fmt::join(valid, ", ")));
        }
    }

    const toml::table& table_of(const toml::node& node, const char* key) const {
        if (const auto* table = node.as_table()) return *table;
        throw refusal(where(node), fmt::format("'{}' is not a table; write [{}]", key, key));
    }

    /// The types of a variable or an argument: a string, a number or a truth value.
    std::string text_of(const toml::node& node, std::string_view key) const {
        if (const auto* text = node.as_string()) {
            if (text->get().find('\0') == std::string::npos) return text->get();
            throw refusal(where(node), fmt::format("'{}' has a zero byte in it", key));
        }
        if (const auto* number = node.as_integer()) return fmt::format("{}", number->get());
        if (const auto* number = node.as_floating_point()) return fmt::format("{}", number->get());
        if (const auto* truth = node.as_boolean()) return truth->get() ? "true" : "false";
        throw refusal(where(node), fmt::format("'{}' is neither text nor a number", key));
    }

    Variables settings_of(const toml::table& ring) const {
        Variables settings;
        for (const auto& [key, value] : ring) {
            const auto found = keys_.find(std::string(key.str()));
            if (found == keys_.end()) {
                std::vector<std::string> valid;
                for (const auto& known : keys_) valid.push_back(known.first);
                throw refusal(where(value), fmt::format("[ring] has no key '{}'; there are {}",
                                                        key.str(), fmt::join(valid, ", ")));
            }
            std::string text = text_of(value, key.str());
            if (found->second == "RMEM_TIMING" && rmem::names_timing_file(text)) {
                text = (folder() / text).string();
            }
            settings.emplace_back(found->second, std::move(text));
        }
        return settings;
    }

    Variables environment_of(const toml::node& node) const {
        Variables variables;
        for (const auto& [key, value] : table_of(node, "environment")) {
            const std::string name(key.str());
            if (name.empty() || name.find_first_of(std::string_view("=\0", 2)) != name.npos) {
                throw refusal(where(value),
                              fmt::format("'{}' is not a valid name of a variable", name));
            }
            const bool of_ring = std::any_of(keys_.begin(), keys_.end(), [&](const auto& known) {
                return known.second == name;
            });
            if (of_ring || name == "RMEM_RANK" || name == "RMEM_RANKS" || name == "RMEM_NODE") {
                throw refusal(where(value),
                              fmt::format("{} is the same for all ranks or follows from their "
                                          "order; it belongs in [ring], or is left out",
                                          name));
            }
            variables.emplace_back(name, text_of(value, name));
        }
        return variables;
    }

    std::vector<unsigned> processors_of(const toml::node& node) const {
        std::vector<unsigned> processors;
        if (const auto* list = node.as_array()) {
            for (const toml::node& one : *list) {
                for (const unsigned n : numbers_of(text_of(one, "processors"), where(one)))
                    processors.push_back(n);
            }
        } else {
            processors = numbers_of(text_of(node, "processors"), where(node));
        }
        check_processors(processors, where(node));
        return processors;
    }

    std::filesystem::path folder() const { return std::filesystem::absolute(file_).parent_path(); }

    std::string directory_of(const toml::node* node) const {
        if (node == nullptr) return folder().string();
        const auto directory = folder() / text_of(*node, "directory");
        if (std::filesystem::is_directory(directory)) return directory.string();
        throw refusal(where(*node), fmt::format("there is no folder {}", directory.string()));
    }

    unsigned count_of(const toml::node& node) const {
        const auto count = node.value_exact<std::int64_t>();
        if (count && *count >= 1 && *count <= rmem::kMaxRanks) return static_cast<unsigned>(*count);
        throw refusal(where(node),
                      fmt::format("'count' is how many ranks run the program, from 1 to "
                                  "{}",
                                  rmem::kMaxRanks));
    }

    void add(Rig& rig, const toml::table& rank, const Variables& common) const {
        check_keys(
            rank,
            {"program", "arguments", "count", "environment", "processors", "user", "directory"},
            "[[rank]]");
        RankProgram program;
        program.where = where(rank);
        const auto* path = rank.get("program");
        if (path == nullptr) throw refusal(program.where, "this [[rank]] has no 'program'");
        program.command = {text_of(*path, "program")};
        if (program.command[0].empty()) throw refusal(where(*path), "'program' is empty");
        if (const auto* arguments = rank.get("arguments")) {
            const auto* list = arguments->as_array();
            if (list == nullptr) {
                throw refusal(where(*arguments),
                              "'arguments' is not a list; write [\"one\", \"two\"]");
            }
            for (const toml::node& one : *list)
                program.command.push_back(text_of(one, "arguments"));
        }
        program.environment = common;
        if (const auto* own = rank.get("environment")) {
            for (auto& variable : environment_of(*own)) program.environment.push_back(variable);
        }
        if (const auto* node = rank.get("processors")) program.processors = processors_of(*node);
        if (const auto* user = rank.get("user")) {
            program.user = user_named(text_of(*user, "user"), where(*user));
        }
        program.directory = directory_of(rank.get("directory"));
        const auto* times = rank.get("count");
        const unsigned count = times == nullptr ? 1 : count_of(*times);
        if (rig.programs.size() + count > rmem::kMaxRanks) {
            throw refusal(program.where,
                          fmt::format("a ring has at most {} ranks, and with this program there "
                                      "are {}",
                                      rmem::kMaxRanks, rig.programs.size() + count));
        }
        rig.programs.insert(rig.programs.end(), count, program);
    }

    const std::string& file_;
    const RingKeys& keys_;
};

}  // namespace

Rig parse_rig(std::string_view text, const std::string& file, const RingKeys& keys) {
    try {
        return RigFile(file, keys).rig(toml::parse(text, file));
    } catch (const toml::parse_error& error) {
        const auto at = error.source().begin;
        throw refusal(fmt::format("{}:{}:{}", file, at.line, at.column),
                      fmt::format("{}; correct it: rmem-run(1) has an example of this file, whose "
                                  "format is TOML",
                                  error.description()));
    }
}

Rig read_rig(const std::string& file, const RingKeys& keys) {
    return parse_rig(rmem::user_file(file, "the rig file", rmem::Errc::invalid_argument), file,
                     keys);
}

std::vector<RankProgram> programs_of(unsigned first, const std::vector<std::string>& words) {
    const auto malformed = [](const std::string& sentence) {
        return rmem::Error(rmem::Errc::invalid_argument, sentence);
    };
    std::vector<RankProgram> programs;
    for (auto word = words.begin();;) {
        const auto end = std::find(word, words.end(), ":");
        unsigned count = first;
        if (!programs.empty()) {
            count = 1;
            if (word != end && (*word == "-n" || *word == "--ranks") && word + 1 != end) {
                count = rmem::parse_unsigned("-n", word[1], rmem::kMaxRanks);
                word += 2;
            }
            if (word != end && *word == "--") ++word;
        }
        if (word == end)
            throw malformed("a program is missing beside a ':', which separates programs");
        if (word->starts_with('-')) {
            throw malformed(
                fmt::format("where a program is to be stands '{}'; options of the ring come before "
                            "the first program and its --, further programs after ':' and perhaps "
                            "-n RANKS",
                            *word));
        }
        if (count == 0 || programs.size() + count > rmem::kMaxRanks) {
            throw malformed(
                fmt::format("'{}' cannot have {} ranks: a program has at least one, all "
                            "together at most {}",
                            *word, count, rmem::kMaxRanks));
        }
        RankProgram program;
        program.command.assign(word, end);
        programs.insert(programs.end(), count, program);
        if (end == words.end()) {
            check_programs(programs);
            return programs;
        }
        word = end + 1;
    }
}

}  // namespace tools
