// SPDX-License-Identifier: Apache-2.0
#include "tools/command_line.hpp"

#include "rmem/base/suggestion.hpp"
#include "tools/commands.hpp"
#include "tools/output.hpp"
#include "tools/usage.hpp"

#include <fmt/format.h>

#include <unistd.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <sstream>

namespace tools {

namespace {

constexpr const char* kOverview = R"(
Examples:
  rmem run -n 4 -- ./program            four ranks of a program on this host
  rmem node --ring rig --node 0 --nodes 2   a node of a ring over several hosts
  rmem list                             the rings of this host
  rmem watch my-ring 0x100 4            the changes at an address
  rmem top my-ring                      members, traffic, losses, times: live
  rmem record my-ring -o a.rec          every write, with its time, in a file
  rmem doctor                           is this host fit for it?
  rmem conform --link ring              does a link, or a card, keep the order that it promises?
  rmem bench pingpong                   how fast is it here, beside the machine's own limit?
  rmem sim paper                        how fast was it on the cards of 1999? In virtual time
  rmem help run                         as rmem run --help

Exit codes: 0 done, 1 failed (the sentence says why), 2 wrong command line; `rmem run` has its own.
Manual: rmem(1), rmem(7) for the environment, bbp(7) for programming.)";

using Words = std::vector<std::string>;

bool is_option(const std::string& word) {
    if (word.size() < 2 || word[0] != '-') return false;
    return word[1] == '-' ? word.size() > 2
                          : std::isalpha(static_cast<unsigned char>(word[1])) != 0;
}

std::string name_of_option(const std::string& word) {
    return word.starts_with("--") ? word.substr(0, word.find('=')) : word.substr(0, 2);
}

/// Whether the option's value is the next word.
bool takes_next(const CLI::Option& option, const std::string& word) {
    const bool has_value = word != name_of_option(word);
    return option.get_items_expected_max() > 0 && !has_value;
}

/// The words after the program's name belong to the program: `run -n 4 prog -n 3` becomes
/// `run -n 4 -- prog -n 3`.
void separate_program(const CLI::App& run, Words& words) {
    for (auto word = words.begin() + 1; word != words.end(); ++word) {
        if (*word == "--") return;
        if (!is_option(*word)) {
            words.insert(word, "--");
            return;
        }
        const CLI::Option* option = run.get_option_no_throw(name_of_option(*word));
        if (option != nullptr && takes_next(*option, *word) && word + 1 != words.end()) ++word;
    }
}

const CLI::App* subcommand_of(const CLI::App& app, const std::string& name) {
    for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
        if (command->get_name() == name) return command;
    }
    return nullptr;
}

Words subcommands_of(const CLI::App& app) {
    Words names;
    for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
        names.push_back(command->get_name());
    }
    return names;
}

Words options_of(const CLI::App& app) {
    Words names;
    for (const CLI::Option* option : app.get_options()) {
        for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    }
    return names;
}

std::string title_of(const CLI::App& app) {
    const CLI::App* parent = app.get_parent();
    return parent == nullptr ? app.get_name() : title_of(*parent) + " " + app.get_name();
}

/// The known word that is nearest to the first unknown one; empty when all are known. CLI11 says of
/// them only that they were not expected, after anything else that is missing.
std::string unknown_word(const CLI::App& app, const Words& words) {
    const CLI::App* command = &app;
    for (std::size_t i = 0; i < words.size() && words[i] != "--"; ++i) {
        const std::string& word = words[i];
        const bool is_parent = !subcommands_of(*command).empty();
        if (!is_option(word)) {
            if (!is_parent) continue;  // an argument
            const CLI::App* next = subcommand_of(*command, word);
            if (next == nullptr) {
                return fmt::format(
                    "{}: there is no command '{}'{}; `{} --help` lists them", title_of(*command),
                    word, rmem::did_you_mean(word, subcommands_of(*command)), title_of(*command));
            }
            command = next;
            continue;
        }
        const CLI::Option* option = command->get_option_no_throw(name_of_option(word));
        if (option == nullptr) {
            return fmt::format("{}: there is no option {}{}; `{} --help` lists them",
                               title_of(*command), name_of_option(word),
                               rmem::did_you_mean(name_of_option(word), options_of(*command)),
                               title_of(*command));
        }
        if (takes_next(*option, word)) ++i;
    }
    return {};
}

/// Where a ring may be a word, too, --ring comes before the other words, so that none of them is
/// taken for it.
void put_ring_first(const CLI::App& app, Words& words) {
    const CLI::App* command = words.empty() ? nullptr : subcommand_of(app, words[0]);
    if (command == nullptr) return;
    const CLI::Option* option = command->get_option_no_throw("--ring");
    if (option == nullptr || !option->get_positional()) return;
    const auto given = std::find_if(words.begin() + 1, words.end(), [](const std::string& word) {
        return name_of_option(word) == "--ring";
    });
    if (given == words.end()) return;
    const bool has_next = takes_next(*option, *given) && given + 1 != words.end();
    std::rotate(words.begin() + 1, given, given + (has_next ? 2 : 1));
}

/// `help` and `help COMMAND` as the options that they mean.
void translate_help(Words& words) {
    if (words.empty() || words[0] != "help") return;
    words.erase(words.begin());
    words.emplace_back("--help");
}

const CLI::App& chosen(const CLI::App& app) {
    const auto commands = app.get_subcommands();
    return commands.empty() ? app : chosen(*commands.front());
}

void complain(const std::string& sentence) {
    std::fputs((sentence + "\n").c_str(), stderr);
}

/// The program that this process has begun to be when there is none in its own folder.
[[noreturn]] void become(const Program& program, Words words) {
    const std::string name = fmt::format("rmem-{}", program.word);
    const auto own = std::filesystem::read_symlink("/proc/self/exe");
    const std::string path = (own.parent_path() / name).string();
    words.insert(words.begin(), path);
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    ::execv(path.c_str(), arguments.data());
    if (errno == ENOENT)
        throw rmem::Error(
            rmem::Errc::system,
            fmt::format("`rmem {}` is the program {}, which is not in {}; install the "
                        "package {}, or the whole of rmem",
                        program.word, name, own.parent_path().string(), name));
    throw rmem::Error(rmem::Errc::system,
                      fmt::format("{} cannot be started: {}", path, std::strerror(errno)));
}

int parse_and_run(CLI::App& app, Words words) {
    if (!words.empty() && words[0] == "run") separate_program(*app.get_subcommand("run"), words);
    if (const std::string unknown = unknown_word(app, words); !unknown.empty()) {
        complain(unknown);
        return kExitUsage;
    }
    put_ring_first(app, words);
    std::reverse(words.begin(), words.end());  // as CLI11 wants them
    try {
        app.parse(words);
    } catch (const CLI::ParseError& wrong) {
        const std::string title = title_of(chosen(app));
        if (wrong.get_exit_code() != 0) {
            complain(fmt::format("{}: {}; `{} --help` says more", title,
                                 cli::sentence_of(chosen(app), wrong), title));
            return kExitUsage;
        }
        std::ostringstream text;  // --help or --version
        app.exit(wrong, text, text);
        show(text.str());
    }
    return kExitOk;
}

}  // namespace

int run_command_line(Words words, std::span<const AddCommand> commands) {
    CLI::App app{"Reflective memory in software: starts programs, looks at rings.", "rmem"};
    cli::App line(app);
    app.set_version_flag("-v,--version", RMEM_TOOL_VERSION);
    app.footer(kOverview);
    app.require_subcommand(1);
    app.get_formatter()->column_width(34);
    const auto labels = app.get_formatter();
    labels->label("REQUIRED", "");
    labels->label("Needs", "with");
    labels->label("Excludes", "not with");
    for (const AddCommand add : commands) add(line);
    const auto say = [&app](const std::exception& error) {
        complain(fmt::format("{}: {}", title_of(chosen(app)), error.what()));
    };
    try {
        translate_help(words);
        for (const Program& program : kPrograms) {
            if (subcommand_of(app, program.word) != nullptr) continue;
            app.add_subcommand(program.word, program.description);
            if (!words.empty() && words[0] == program.word)
                become(program, {words.begin() + 1, words.end()});
        }
        return parse_and_run(app, std::move(words));
    } catch (const Ended& ended) {
        return ended.exit_code;
    } catch (const UsageError& error) {
        say(error);
        return kExitUsage;
    } catch (const std::exception& error) {
        say(error);
    }
    return kExitFailed;
}

int run_program(const Program& program, AddCommand command, Words words) {
    words.insert(words.begin(), program.word);
    return run_command_line(std::move(words), {&command, 1});
}

}  // namespace tools
