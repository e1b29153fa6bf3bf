// SPDX-License-Identifier: Apache-2.0
#include "tools/options.hpp"

#include <CLI/CLI.hpp>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace tools {

namespace cli {

Check::Check(const CLI::Validator& validator)
    : validator_(std::make_shared<CLI::Validator>(validator)) {}

Check is_member(std::initializer_list<const char*> words) {
    return Check(CLI::IsMember(std::vector<std::string>(words.begin(), words.end())));
}

Check positive_number() {
    return Check(CLI::PositiveNumber);
}

template <class T>
Check range(T low, T high) {
    return Check(CLI::Range(low, high));
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
    option_->check(check.validator());
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
    return &parts_->options.emplace_back(*app_.add_option(names, value, meaning));
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

void miss(const std::string& name) {
    throw CLI::RequiredError(name);
}

void refuse(const std::string& name, const std::string& what) {
    throw CLI::ValidationError(name, what);
}

}  // namespace cli

}  // namespace tools
