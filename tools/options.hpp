// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The command line, as the subcommands see it: CLI11, whose headers cost every file that includes
/// them some seconds to compile, hidden by declarations. Each call is documented by CLI11 under the
/// same name.
///
/// Lifetime: an App is owned by the App that it is a subcommand of, an Option by its App; both stay
/// where they are.
/// Thread safety: one thread.

#include <cstddef>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <type_traits>

namespace CLI {
class App;
class Error;
class Option;
class Validator;
}  // namespace CLI

namespace tools::cli {

/// The requirement on a value.
class Check {
public:
    explicit Check(const ::CLI::Validator& validator);
    const ::CLI::Validator& validator() const { return *validator_; }

private:
    std::shared_ptr<const ::CLI::Validator> validator_;
};

Check is_member(std::initializer_list<const char*> words);
Check at_least_one();

/// From `low` to `high`, both included; defined for the types that options have.
template <class T>
Check range(T low, T high);

class Option {
public:
    explicit Option(::CLI::Option& option) : option_(&option) {}

    Option* required();
    Option* check(const Check& check);
    Option* needs(Option* other);
    Option* excludes(Option* other);
    Option* expected(int count);
    Option* expected(int least, int most);
    Option* envname(const std::string& variable);
    Option* delimiter(char mark);
    Option* group(const std::string& name);
    Option* capture_default_str();
    /// How often it was given.
    std::size_t count() const;

private:
    ::CLI::Option* option_;
};

class App {
public:
    explicit App(::CLI::App& app);
    ~App();

    App* add_subcommand(const std::string& name, const std::string& description);
    App* require_subcommand(int count);
    App* footer(const std::string& text);
    App* callback(std::function<void()> run);
    App* group(const std::string& name);

    /// Defined for the types that command_line.cpp lists.
    template <class T>
    Option* add_option(const std::string& names, T& value, const std::string& meaning);
    Option* add_flag(const std::string& names, bool& value, const std::string& meaning);

    /// For main(), which reads the line.
    ::CLI::App& parser() { return app_; }

private:
    struct Parts;

    ::CLI::App& app_;
    std::unique_ptr<Parts> parts_;
};

/// What the parser found wrong in a line of this command: the word, what is wrong with it, and what
/// to give.
std::string sentence_of(const ::CLI::App& command, const ::CLI::Error& wrong);

/// `name` must be given.
[[noreturn]] void miss(const std::string& name);

/// The command line cannot mean anything: `what` is wrong with `name`.
[[noreturn]] void refuse(const std::string& name, const std::string& what);

}  // namespace tools::cli
