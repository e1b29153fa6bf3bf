// SPDX-License-Identifier: Apache-2.0
#include "tools/options.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <deque>
#include <limits>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace tools {

namespace cli {

Check::Check(const CLI::Validator& validator)
    : validator_(std::make_shared<CLI::Validator>(validator)) {}

namespace {

/// A value that `is_right` refuses "is 'x'; give ` wanted`".
template <class IsRight>
CLI::Validator wanting(std::string wanted, std::string shown, IsRight is_right) {
    return {[=](std::string& given) {
                return is_right(given) ? "" : fmt::format("is '{}'; give {}", given, wanted);
            },
            std::move(shown)};
}

/// Numbers of a type, of which CLI11 takes a negative one for a large one.
template <class T>
CLI::Validator within(T low, T high, bool is_shown = true) {
    const bool is_open = sizeof(T) == 8 && high == std::numeric_limits<T>::max();
    const std::string limits =
        is_open ? fmt::format("{} or more", low) : fmt::format("{} to {}", low, high);
    const char* const kind = std::is_floating_point_v<T> ? "a number" : "a whole number";
    return wanting(fmt::format("{}, {}", kind, limits), is_shown ? limits : "",
                   [=](const std::string& given) {
                       T value{};
                       return CLI::detail::lexical_cast(given, value) && value >= low &&
                              value <= high && (std::is_signed_v<T> || !given.starts_with('-'));
                   });
}

}  // namespace

Check is_member(std::initializer_list<const char*> words) {
    const std::vector<std::string> all(words.begin(), words.end());
    return Check(
        wanting(fmt::format("{} or {}", fmt::join(all.begin(), all.end() - 1, ", "), all.back()),
                "", [all](const std::string& given) {
                    return std::find(all.begin(), all.end(), given) != all.end();
                }));
}

Check at_least_one() {
    return Check(within(std::uint64_t{1}, std::numeric_limits<std::uint64_t>::max()));
}

template <class T>
Check range(T low, T high) {
    return Check(within(low, high));
}

template Check range(int, int);
template Check range(unsigned, unsigned);
template Check range(std::uint64_t, std::uint64_t);
template Check range(double, double);

Option* Option::required() {
    option_->required();
    return this;
}

Option* Option::check(const Check& check) {
    option_->transform(check.validator());  // before what add_option() looks for
    return this;
}

Option* Option::needs(Option* other) {
    option_->needs(other->option_);
    return this;
}

Option* Option::excludes(Option* other) {
    option_->excludes(other->option_);
    return this;
}

Option* Option::expected(int count) {
    option_->expected(count);
    return this;
}

Option* Option::expected(int least, int most) {
    option_->expected(least, most);
    return this;
}

Option* Option::envname(const std::string& variable) {
    option_->envname(variable);
    return this;
}

Option* Option::delimiter(char mark) {
    option_->delimiter(mark);
    return this;
}

Option* Option::group(const std::string& name) {
    option_->group(name);
    return this;
}

Option* Option::capture_default_str() {
    option_->capture_default_str();
    return this;
}

std::size_t Option::count() const {
    return option_->count();
}

struct App::Parts {
    std::deque<App> subcommands;
    std::deque<Option> options;
};

App::App(CLI::App& app) : app_(app), parts_(std::make_unique<Parts>()) {}
App::~App() = default;

App* App::add_subcommand(const std::string& name, const std::string& description) {
    return &parts_->subcommands.emplace_back(*app_.add_subcommand(name, description));
}

App* App::require_subcommand(int count) {
    app_.require_subcommand(count);
    return this;
}

App* App::footer(const std::string& text) {
    app_.footer(text);
    return this;
}

App* App::callback(std::function<void()> run) {
    app_.callback(std::move(run));
    return this;
}

App* App::group(const std::string& name) {
    app_.group(name);
    return this;
}

template <class T>
Option* App::add_option(const std::string& names, T& value, const std::string& meaning) {
    CLI::Option* const option = app_.add_option(names, value, meaning);
    using Number = typename CLI::detail::wrapped_type<T, T>::type;
    constexpr bool is_count = std::is_unsigned_v<Number> && sizeof(Number) > 1;  // a text's is char
    if constexpr (is_count || std::is_floating_point_v<Number>)
        option->check(within(Number{0}, std::numeric_limits<Number>::max(), false));
    return &parts_->options.emplace_back(*option);
}

#define RMEM_OPTION_OF(...) \
    template Option* App::add_option(const std::string&, __VA_ARGS__&, const std::string&)
RMEM_OPTION_OF(std::string);
RMEM_OPTION_OF(int);
RMEM_OPTION_OF(unsigned);
RMEM_OPTION_OF(std::uint16_t);
RMEM_OPTION_OF(std::uint64_t);
RMEM_OPTION_OF(double);
RMEM_OPTION_OF(std::optional<std::string>);
RMEM_OPTION_OF(std::optional<unsigned>);
RMEM_OPTION_OF(std::optional<std::uint16_t>);
RMEM_OPTION_OF(std::optional<std::uint64_t>);
RMEM_OPTION_OF(std::vector<std::string>);
RMEM_OPTION_OF(std::vector<unsigned>);
RMEM_OPTION_OF(std::vector<int>);
RMEM_OPTION_OF(std::vector<std::size_t>);
#undef RMEM_OPTION_OF

Option* App::add_flag(const std::string& names, bool& value, const std::string& meaning) {
    return &parts_->options.emplace_back(*app_.add_flag(names, value, meaning));
}

std::string sentence_of(const CLI::App& command, const CLI::Error& wrong) {
    const std::string said = wrong.what(), kind = wrong.get_name();
    const auto split = [&said](std::string_view mark) {
        const std::size_t at = said.find(mark);
        return std::pair(said.substr(0, at),
                         at == std::string::npos ? "" : said.substr(at + mark.size()));
    };
    if (kind == "RequiredError" || kind == "ArgumentMismatch") {
        const bool is_missing = kind == "RequiredError";
        const std::string name = split(is_missing ? " is required" : ":").first;
        if (name == "A subcommand") return "a command is missing";
        const CLI::Option* option = command.get_option_no_throw(name);
        const bool is_word = option != nullptr && option->get_positional();
        return fmt::format("{} {}{}", is_word ? option->get_name(true) : name,
                           is_missing ? "is missing" : "lacks a value",
                           option ? fmt::format(" ({})", option->get_description()) : "");
    }
    if (kind == "ExcludesError") {
        const auto [one, other] = split(" excludes ");
        return fmt::format("{} and {} do not go together; leave one of them out", one, other);
    }
    if (kind == "RequiresError") {
        const auto [one, other] = split(" requires ");
        return fmt::format("{} goes with {} alone; give {} as well, or leave {} out", one, other,
                           other, one);
    }
    if (said.starts_with("The following argument"))
        return fmt::format("there is no place for '{}'; leave it out", split(": ").second);
    const auto [name, problem] = split(": is '");  // of a check
    return problem.empty() ? said : fmt::format("{} is '{}", name, problem);
}

void miss(const std::string& name) {
    throw CLI::RequiredError(name);
}

void refuse(const std::string& name, const std::string& what) {
    throw CLI::ValidationError(name, what);
}

}  // namespace cli

}  // namespace tools
